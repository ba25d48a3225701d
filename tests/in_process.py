"""The world in this process: gateways on one database, between platforms of the test kit."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from segue.agents.given import Given
from segue.core.contracts.adapters import Files
from segue.core.contracts.database import Clock, Driver
from segue.core.settings import AccountSettings, GatewaySettings
from segue.runtime.gateway import Gateway
from segue.store import Store, open_driver
from segue.testing.personas import Persona

PUBLIC = AccountSettings(public=True)


@asynccontextmanager
async def gateway_on(
    where: str | Path,
    agent: Given | Mapping[str, Given],
    *platforms: Persona,
    account: AccountSettings = PUBLIC,
    settings: GatewaySettings | None = None,
    clock: Clock = time.time,
    replicas: int = 1,
    files: Files | None = None,
    through: Callable[[Driver], Driver] = lambda driver: driver,
    **more: Any,
) -> AsyncIterator[Gateway]:
    """Gateways until the block ends, the first of which the platforms call; `where` is a folder or a database.

    `through` puts something between a gateway and its database; `more` are settings that differ.
    """
    accounts = {(platform.name, platform.account): account for platform in platforms}
    plain: dict[str, Any] = {"accounts": accounts, "poll": 0.05, "grace": 0.0}
    settings = replace(settings or GatewaySettings(), **(plain | more))
    where = where / "segue.db" if isinstance(where, Path) else where
    async with AsyncExitStack() as stack:
        gateways = []
        for _ in range(replicas):
            store = await stack.enter_async_context(Store(through(await open_driver(where)), clock))
            adapters = [platform.adapter() for platform in platforms]
            made = Gateway(store, agent, adapters, settings, clock=clock, files=files)
            gateways.append(await stack.enter_async_context(made))
        for platform in platforms:
            await stack.enter_async_context(platform.reaching(gateways[0].webhooks()))
        yield gateways[0]
