"""Callers who prove nothing: however many there are and whatever they do, everybody else is served."""

import asyncio
import contextlib
import inspect
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.asyncio.client import connect

from segue.runtime.server.app import Mounted, make_app
from segue.runtime.server.callers import CallerLimits, Callers, more_descriptors, vouch
from segue.runtime.server.listeners import Listener, serving
from segue.runtime.server.proxies import Forwarded, Proxies
from segue.testing.waits import PATIENCE
from tests.cli.service.test_proxy import nginx
from tests.clients import http_client
from tests.ports import free_port
from tests.runtime.server.test_app import House

FEW = CallerLimits(connections=8)
HALF = b"GET /healthz HTTP/1.1\r\nHost: 127"
LARGE = b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
OPENS = (
    b"GET /refusing HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
OTHERS = "203.0.113.9"


async def large(scope: Any, receive: Any, send: Any) -> None:
    await PlainTextResponse("x" * 16_000_000)(scope, receive, send)


async def refusing(socket: WebSocket) -> None:
    await socket.accept()
    await socket.close(4401)


async def proving(socket: WebSocket) -> None:
    await socket.accept()
    vouch(socket.scope)
    while True:
        await socket.send_text(await socket.receive_text())


APP = make_app(
    House(),
    windows=[Route("/large", Mounted(large)), WebSocketRoute("/refusing", refusing), WebSocketRoute("/live", proving)],
)


@asynccontextmanager
async def caller(listener: Listener, sent: bytes) -> AsyncIterator[socket.socket]:
    """A connection that says this, reads nothing, and answers nothing."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(connection, ("127.0.0.1", listener.port))
        await loop.sock_sendall(connection, sent)
        yield connection


@pytest.mark.parametrize(
    "sent", [b"", HALF, 30 * LARGE, OPENS], ids=["nothing", "half a head", "no reader", "no close"]
)
async def test_callers_who_prove_nothing_make_way(sent: bytes) -> None:
    listener = Listener("127.0.0.1", 0)
    async with serving(APP, listener, patience=FEW), AsyncExitStack() as stack, http_client() as ask:
        for _ in range(3 * FEW.connections):
            await stack.enter_async_context(caller(listener, sent))
        async with asyncio.timeout(PATIENCE):
            assert (await ask.get(f"{listener.url}/healthz")).status_code == 200


async def test_who_proved_who_they_are_stays() -> None:
    listener = Listener("127.0.0.1", 0)
    patience = CallerLimits(connections=8, head=0.05)
    async with serving(APP, listener, patience=patience), AsyncExitStack() as stack:
        window = await stack.enter_async_context(connect(f"ws://127.0.0.1:{listener.port}/live"))
        await window.send("hello")
        assert await window.recv() == "hello"
        for _ in range(3 * patience.connections):
            await stack.enter_async_context(caller(listener, HALF))
        half = await stack.enter_async_context(caller(listener, HALF))
        async with asyncio.timeout(PATIENCE):
            await closed(half)  # the deadline of a stranger has passed
            await window.send("still here?")
            assert await window.recv() == "still here?"


async def closed(connection: socket.socket) -> None:
    """Wait until a connection can't be written to any more, without reading from it."""
    with contextlib.suppress(ConnectionError):
        while True:
            await asyncio.sleep(0.02)
            connection.send(b"x")


@pytest.mark.parametrize("sent", [30 * LARGE, OPENS], ids=["no reader", "no close"])
async def test_a_caller_who_reads_or_closes_nothing_is_let_go(sent: bytes) -> None:
    listener, patience = Listener("127.0.0.1", 0), CallerLimits(head=0.1, stalled=0.1)
    server = serving(APP, listener, patience=patience)
    async with server, caller(listener, sent) as connection, asyncio.timeout(PATIENCE):
        await closed(connection)


async def test_places_are_counted_right_in_a_burst() -> None:
    callers = Callers(FEW, Proxies())
    for _ in range(100):
        assert await callers.admit(OTHERS) is not None
        assert len(callers) <= FEW.connections
    assert len(callers.strangers) == FEW.connections


async def test_when_everybody_proved_who_they_are_a_newcomer_waits() -> None:
    callers = Callers(FEW, Proxies())
    known = [await callers.admit("127.0.0.1") for _ in range(FEW.connections)]
    for one in known:
        assert one is not None
        scope: dict[str, Any] = {}
        one.vouched(scope)
        vouch(scope)
        assert one.known
    waiting = asyncio.create_task(callers.admit(OTHERS))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert known[3] is not None
    known[3].lost()
    async with asyncio.timeout(PATIENCE):
        assert await waiting is not None
    assert len(callers) == FEW.connections


async def test_one_address_has_so_many_and_this_machine_any_number() -> None:
    limits = CallerLimits(connections=1000, address=5)
    callers = Callers(limits, Proxies(["10.0.0.0/8"]))
    for address in ("127.0.0.1", "::1", "10.1.2.3", ""):
        assert all([await callers.admit(address) is not None for _ in range(20)])
    first = await callers.admit(OTHERS)
    assert first is not None
    rest = [await callers.admit(OTHERS) for _ in range(9)]
    assert all(one is not None for one in rest), "the oldest of the same address makes way"
    assert first not in callers.strangers
    assert len(callers) == 80 + 5
    for one in list(callers.strangers):
        if one.home == OTHERS:
            del callers.strangers[one]
    assert await callers.admit(OTHERS) is None, "nobody who proved who they are makes way"
    assert await callers.admit("2001:db8::1") is not None


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("10.0.0.5", OTHERS, OTHERS),
        ("10.0.0.5", f"1.2.3.4, {OTHERS}", OTHERS),
        ("10.0.0.5", f"1.2.3.4, {OTHERS}, 10.0.0.6", OTHERS),
        ("10.0.0.5", "", "10.0.0.5"),
        ("10.0.0.5", "nonsense", "10.0.0.5"),
        ("8.8.8.8", OTHERS, "8.8.8.8"),
        ("127.0.0.1", OTHERS, "127.0.0.1"),
        ("::ffff:10.0.0.5", OTHERS, OTHERS),
    ],
)
def test_only_listed_proxies_are_believed(peer: str, forwarded: str, address: str) -> None:
    assert Proxies(["10.0.0.0/24"]).caller(peer, forwarded) == address


async def test_an_address_behind_a_proxy_has_so_many_calls_under_way() -> None:
    end, begun = asyncio.Event(), asyncio.Queue[str]()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.put_nowait(scope["client"][0])
        await end.wait()
        await PlainTextResponse("done")(scope, receive, send)

    app = Forwarded(slow, Proxies(["127.0.0.1"]), most=3)
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8800") as ask:
        named = {"X-Forwarded-For": OTHERS}
        calls = [asyncio.create_task(ask.get("/", headers=named)) for _ in range(3)]
        calls += [asyncio.create_task(ask.get("/", headers={"X-Forwarded-For": "127.0.0.1"})) for _ in range(9)]
        assert sorted([await begun.get() for _ in range(12)]) == ["127.0.0.1"] * 9 + [OTHERS] * 3
        assert (await ask.get("/", headers=named)).status_code == 429
        end.set()
        assert [(await call).status_code for call in calls] == [200] * 12
        assert (await ask.get("/", headers=named)).status_code == 200


_RECIPE = """
server {
    listen 127.0.0.1:PORT;
    location / {
        proxy_pass http://127.0.0.1:BACKEND;
        proxy_http_version 1.1;
        proxy_set_header Host 127.0.0.1;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
}
"""


async def test_six_hundred_people_behind_nginx_are_all_served(tmp_path: Path) -> None:
    more_descriptors()
    people, end, under_way = 600, asyncio.Event(), 0
    together = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        nonlocal under_way
        vouch(scope)
        under_way += 1
        if under_way == people:
            together.set()
        await end.wait()
        await PlainTextResponse("served")(scope, receive, send)

    listener, port = Listener("127.0.0.1", 0), free_port()
    recipe = _RECIPE.replace("PORT", str(port), 1).replace("BACKEND", str(listener.port), 1)
    app = make_app(House(), windows=[Route("/slow", Mounted(slow))], proxies=Proxies(["127.0.0.1"]))
    patience = CallerLimits(connections=people + 50)
    async with serving(app, listener, patience=patience, proxies=Proxies(["127.0.0.1"])), nginx(tmp_path, recipe):
        await listened(port)
        calls = [asyncio.create_task(_called(port)) for _ in range(people)]
        async with asyncio.timeout(PATIENCE):
            await together.wait()
        end.set()
        answers = await asyncio.gather(*calls)
    assert [answer for answer in answers if not answer.endswith(b"served")] == []


async def listened(port: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


async def _called(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /slow HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer


def test_uvicorn_still_has_the_parts_that_are_built_upon() -> None:
    """They aren't all public: the upper bound in pyproject.toml is raised once this passes with a newer one."""
    for owner, names in {
        H11Protocol: ("handle_events", "timeout_keep_alive_handler", "pause_writing", "resume_writing"),
        WebSocketsSansIOProtocol: ("handle_connect", "pause_writing", "resume_writing", "connection_lost"),
        uvicorn.Server: ("startup", "shutdown", "main_loop", "on_tick", "capture_signals"),
    }.items():
        for name in names:
            assert callable(getattr(owner, name)), f"{owner.__name__}.{name}"
    assert list(inspect.signature(H11Protocol).parameters)[:3] == ["config", "server_state", "app_state"]
    assert os.name == "posix"
