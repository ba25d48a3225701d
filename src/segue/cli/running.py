"""A gateway as a config describes it: everything is opened, run, and closed again in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from segue.cli.stopping import Stop
from segue.config import Config
from segue.core.contracts import Adapter, Agent, Closes
from segue.errors import StoreUnreachable
from segue.runtime.gateway import Gateway
from segue.runtime.listening import Listener, serving
from segue.runtime.server import make_app
from segue.store.opening import open_store
from segue.store.store import Store

_EVERYWHERE = ("0.0.0.0", "[::]")  # noqa: S104 -- names that nobody is called by


async def run(config: Config, listener: Listener, stop: Stop, ready: Callable[[], None]) -> None:
    """Run a gateway until it is asked to stop; calls `ready` when it takes messages in."""
    stop.listen()
    hosts = [*config.server.hosts, *([] if listener.host in _EVERYWHERE else [listener.host])]
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(await _open(config))
        agent = config.agent.agent()
        adapters = [account.keys.adapter(account.name) for account in config.accounts]
        _close_later(agent, stack)
        for adapter in adapters:
            _close_later(adapter, stack)
        gateway = await stack.enter_async_context(Gateway(store, agent, adapters, config.gateway))
        server = await stack.enter_async_context(serving(make_app(gateway, hosts), listener, config.gateway.grace))
        ready()
        asked = asyncio.create_task(stop.wait(), name="stop")
        await asyncio.wait([asked, server], return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()


def _close_later(made: Adapter | Agent, stack: AsyncExitStack) -> None:
    if isinstance(made, Closes):
        stack.push_async_callback(made.close)


async def _open(config: Config) -> Store:
    if not isinstance(config.store, Path):
        return await open_store(config.store.reveal())
    try:
        config.store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnreachable(
            f"{config.store.parent} can't be made ({error.strerror}). Name another place."
        ) from error
    return await open_store(config.store)
