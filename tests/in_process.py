"""The world in this process: gateways on one database, between platforms of the test kit."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from segue.agents.given import Given
from segue.core.contracts.adapters import Adapter, Files
from segue.core.contracts.database import Clock, Driver
from segue.core.contracts.probes import Probe
from segue.core.settings import AccountSettings, GatewaySettings
from segue.database.transactions import unheeded
from segue.runtime.gateway import Gateway
from segue.store import Store, open_driver
from segue.testing.personas import Persona
from segue.testing.platform import Platform
from tests.today import file_of_today

PUBLIC = AccountSettings(public=True)
DEFAULT = GatewaySettings()


@asynccontextmanager
async def gateway_on(
    where: str | Path | Driver,
    agent: Given | Mapping[str, Given],
    *there: Persona | Adapter,
    account: AccountSettings = PUBLIC,
    settings: GatewaySettings = DEFAULT,
    clock: Clock = time.time,
    replicas: int = 1,
    files: Files | None = None,
    probe: Probe = unheeded,
    **more: Any,
) -> AsyncIterator[Gateway]:
    """Gateways until the block ends, the first of which the platforms call.

    `where` is a folder, a database, or a driver that is closed at the end. `there` are platforms of the test kit, or
    adapters. `more` are settings that differ; accounts, poll and grace are a test's own unless somebody sets them.
    """
    assert replicas == 1 or isinstance(where, str | Path), "each has a driver of its own"
    platforms = [one for one in there if isinstance(one, Platform)]
    accounts = {(one.name if isinstance(one, Platform) else one.platform, one.account): account for one in there}
    plain: dict[str, Any] = {"accounts": accounts, "poll": 0.25, "grace": 0.0}
    unset = {name: value for name, value in plain.items() if getattr(settings, name) == getattr(DEFAULT, name)}
    settings = replace(settings, **(unset | more))
    where = file_of_today(where / "segue.db") if isinstance(where, Path) else where
    async with AsyncExitStack() as stack:
        gateways = []
        for _ in range(replicas):
            driver = await open_driver(where) if isinstance(where, str | Path) else where
            store = await stack.enter_async_context(Store(driver, clock))
            adapters = [one.adapter() if isinstance(one, Platform) else one for one in there]
            made = Gateway(store, agent, adapters, settings, clock=clock, files=files, probe=probe)
            gateways.append(await stack.enter_async_context(made))
        for platform in platforms:
            await stack.enter_async_context(platform.reaching(gateways[0].webhooks()))
        yield gateways[0]
