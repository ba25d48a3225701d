"""Runs a gateway as a config describes it, and closes all its parts in turn."""

import asyncio
import contextlib
import getpass
import hmac
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp

from segue.cli.host import file_store, open_configured
from segue.config import Config, default
from segue.core.contracts.adapters import Adapter, Closes
from segue.core.contracts.probes import Probe
from segue.core.settings import AccountSettings, GatewaySettings
from segue.core.windows import ACCOUNT, EDITOR, HOSTS, PROGRAM, TERMINAL, WEB
from segue.database.none import Absent
from segue.database.transactions import unheeded
from segue.errors import Invalid, StoreError, StoreLocked, StoreSilent
from segue.runtime.editors.door import EditorDoor
from segue.runtime.files.folder import Folder
from segue.runtime.files.upload import upload_folder
from segue.runtime.gateway import Gateway
from segue.runtime.mcp.door import McpDoor
from segue.runtime.server.app import is_local, make_app
from segue.runtime.server.callers import CallerLimits, connections
from segue.runtime.server.listeners import Listener, LocalListener, serving
from segue.runtime.server.proxies import Proxies
from segue.runtime.telemetry.spans import open_tracing
from segue.runtime.windows.local import Local
from segue.runtime.windows.routes import Windows
from segue.runtime.windows.sign_in import SignIn
from segue.runtime.windows.window import meet_host
from segue.store import Store

SOCKET = "gateway.sock"
"""The name of the socket in the data folder, for this user's terminals."""
PAGE = "Open the page with this link, which works once:\n"
_EVERYWHERE = ("0.0.0.0", "[::]")  # noqa: S104 -- names that nobody is called by


class RunningGateway:
    """A running gateway and its addresses."""

    def __init__(self, sign_in: SignIn, places: Sequence[Local], url: str, tasks: Sequence[asyncio.Task[None]]) -> None:
        self._sign_in = sign_in
        self._places = [place for place in places if place.platform != WEB]
        self.url = url
        self.tasks = tasks

    def link(self) -> str:
        """Return an address that signs one browser in, once."""
        return self.url + self._sign_in.link()

    async def others(self) -> bool:
        """Whether a terminal or an editor is attached, after those that just left are gone."""
        await asyncio.sleep(0.1)
        return any(place.chats for place in self._places)

    async def outlast(self) -> None:
        """Wait until the last terminal or editor has left, or a signal stops the process."""
        stop = Stop()
        stop.listen()
        asked = asyncio.create_task(stop.wait())
        while await self.others() and not asked.done():
            await asyncio.wait([asked], timeout=_LOOK)
        asked.cancel()


@asynccontextmanager
async def gateway(
    config: Config,
    listener: Listener,
    probe: Probe = unheeded,
    brought: Gateway | None = None,
    store: Store | None = None,
) -> AsyncIterator[RunningGateway]:
    """Run a gateway from a config and an optional `Gateway` of the host's code. Close `store` at the end."""
    hosts = [*config.server.hosts, *([] if listener.host in _EVERYWHERE else [listener.host])]
    hosts += [name] if (name := urlsplit(config.server.url).hostname) else []
    url = config.server.url.rstrip("/") or listener.url
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(store or await _opened(config))
        agents = brought.agents if brought else {name: keys.agent() for name, keys in config.agents.items()}
        places = [Local(platform) for platform in (TERMINAL, WEB, EDITOR)]
        files = file_store(config, store)
        if not isinstance(files, Folder):
            await upload_folder(config.data, files, store.driver)
        adapters: list[Adapter] = [account.keys.adapter(account.name, files) for account in config.accounts]
        # Every editor has proved its user by a token.
        accounts = {**config.gateway.accounts, (EDITOR, ACCOUNT): AccountSettings(public=True)}
        hosts_known = (*HOSTS, *config.gateway.hosts)
        settings = msgspec.structs.replace(config.gateway, hosts=hosts_known, data=str(config.data), accounts=accounts)
        if brought:
            settings = merge_settings(settings, brought)
            adapters += brought.adapters
        for made in (*agents.values(), *adapters):
            _close_later(made, stack)
        runs = await stack.enter_async_context(
            Gateway(
                store,
                agents,
                [*adapters, *places, Local(PROGRAM)],
                settings,
                clock=brought.clock if brought else time.time,
                tracing=open_tracing(config.server.tracing) or (brought.tracing if brought else None),
                files=files,
                probe=probe,
            )
        )
        sign_in = await SignIn.open(runs.patient, config.data)
        windows = Windows(runs, sign_in, places, files, getpass.getuser(), url)
        token = config.server.status_token

        def knows(request: Request) -> bool:
            shown = request.headers.get("authorization", "").encode()
            bears = token is not None and hmac.compare_digest(shown, f"Bearer {token.reveal()}".encode())
            return bears or is_local(request) or sign_in.knows(request)

        door = McpDoor(runs, sign_in, listener.near)
        await stack.enter_async_context(door.open())
        proxies = Proxies(config.server.proxies)
        routes = [*windows.routes(), *door.routes(), *EditorDoor(windows, runs).routes()]
        servers = await _listen(stack, config, make_app(runs, hosts, routes, knows, proxies), listener, proxies)
        ended = asyncio.create_task(runs.ended(), name="ended")
        stack.callback(ended.cancel)
        yield RunningGateway(sign_in, places, url, [*servers, ended])


async def _listen(
    stack: AsyncExitStack, config: Config, app: ASGIApp, listener: Listener, proxies: Proxies
) -> list[asyncio.Task[None]]:
    """Serve at the gateway's address and at the socket in its data folder."""
    local = LocalListener(config.data / SOCKET)
    stack.callback(local.close)
    patience = CallerLimits(connections=connections())
    return [
        await stack.enter_async_context(serving(app, socket, config.gateway.grace, patience, proxies))
        for socket in (local, listener)
    ]


async def serve(
    config: Config,
    listener: Listener,
    stop: "Stop",
    ready: Callable[[RunningGateway], None],
    brought: Gateway | None = None,
) -> None:
    """Run a gateway until a signal stops it. Call `ready` when it accepts messages.

    It waits for a database server that isn't up yet, because both may start at boot. It also waits for a database file
    that another process has locked.
    """
    stop.listen()
    store = await _up(config, stop)
    if store is None:
        return
    async with gateway(config, listener, brought=brought, store=store) as running:
        ready(running)
        asked = asyncio.create_task(stop.wait(), name="stop")
        done, _ = await asyncio.wait([asked, *running.tasks], return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        for task in done:
            task.result()


async def _opened(config: Config) -> Store:
    """Open the store of a config, with the host in it."""
    store = await open_configured(config)
    try:
        await meet_host(store)
    except StoreError:
        await store.close()
        raise
    return store


async def _up(config: Config, stop: "Stop") -> Store | None:
    """Open the database once it answers; return None if a signal came before."""
    told = ""
    while True:
        try:
            return await _opened(config)
        except (StoreSilent, StoreLocked) as error:
            if told != str(error):
                told = str(error)
                log.warning("waiting for the database: %s", told)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PAUSE):
                await stop.wait()
                return None


def merge_settings(settings: GatewaySettings, brought: Gateway) -> GatewaySettings:
    """Merge the host's settings with those of its own `Gateway`; raise `Invalid` where they contradict.

    A setting that the host left unset comes from the `Gateway`. Only the host may set a store and files.
    """
    plain, unset, theirs = GatewaySettings(), default(os.environ).gateway, brought.settings
    taken: dict[str, Any] = {"hosts": (*settings.hosts, *(host for host in theirs.hosts if host not in settings.hosts))}
    both = theirs.accounts.keys() & settings.accounts.keys()
    clashes = [f"account {'.'.join(key)}" for key in both if theirs.accounts[key] != settings.accounts[key]]
    taken["accounts"] = {**theirs.accounts, **settings.accounts}
    for name in GatewaySettings.__struct_fields__:
        value, mine = getattr(theirs, name), getattr(settings, name)
        if name in taken or value in (mine, getattr(plain, name)):
            continue
        if mine != getattr(unset, name):
            clashes.append(name)
        taken[name] = value
    clashes += ["a store"] if not isinstance(brought.store.driver, Absent) else []
    clashes += ["files"] if brought.files is not None else []
    if clashes:
        problem = f"the Gateway sets {', '.join(clashes)}, which the settings of this Segue say otherwise"
        raise Invalid("agent", problem, "Leave it out of the Gateway, or out of segue.toml.")
    return msgspec.structs.replace(settings, **taken)


def _close_later(made: object, stack: AsyncExitStack) -> None:
    if isinstance(made, Closes):
        stack.push_async_callback(made.close)


log = logging.getLogger(__name__)
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK = 0.5
"""Seconds between two checks for attached terminals."""
_PAUSE = 1.0
"""Seconds between two attempts to reach a database server."""


class Stop:
    """A request to stop this process, made by a signal."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()

    def listen(self) -> None:
        """Install the signal handlers."""
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._heard, number)

    async def wait(self) -> None:
        """Wait for a signal."""
        await self._asked.wait()

    def _heard(self, number: int) -> None:
        if self._asked.is_set():
            # Stored data is safe. Another replica takes over the rest, as after a crash.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        log.info("stopping; a second signal stops at once")
        self._asked.set()
