import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import connect

from segue.core.accounts import Health, Reach
from segue.errors import Invalid
from segue.runtime.server.app import LARGEST_BODY, Mounted, is_local, make_app
from segue.runtime.server.callers import CallerLimits
from segue.runtime.server.listeners import Listener, serving
from segue.runtime.telemetry.metrics import Metrics
from tests.clients import http_client


class House:
    """As much of a gateway as the server shows."""

    def __init__(self) -> None:
        self.ready = True
        self.trouble: list[str] = []
        self.accounts: dict[str, Health] = {}
        self.metrics = Metrics()
        self.dead_letters = 0
        self.audited: list[tuple[str, int]] = []
        self.largest_bodies = {"/in/http/alpha": 2 * LARGEST_BODY}

    def problems(self) -> list[str]:
        return self.trouble

    def audit_unproven(self, path: str, calls: int) -> None:
        self.audited.append((path, calls))

    def webhooks(self) -> list[tuple[str, Callable[..., Awaitable[None]]]]:
        return [("/in/http/alpha", echo)]


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """An adapter's application: a plain function, as ASGI allows."""
    request = Request(scope, receive)
    answer = PlainTextResponse(f"{request.method} {(await request.body()).decode()}")
    await answer(scope, receive, send)


@asynccontextmanager
async def client(
    house: House, *hosts: str, knows: Callable[[Request], bool] = lambda _: True
) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(make_app(house, hosts, knows=knows))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8800") as made:
        yield made


async def test_health_is_red_with_the_reasons() -> None:
    house = House()
    async with client(house) as ask:
        well = await ask.get("/healthz")
        assert (well.status_code, well.json()) == (200, {"healthy": True, "problems": [], "accounts": {}, "letters": 0})
        house.trouble = ["The disk is full. Make room."]
        house.accounts = {
            "matrix.main": Health(Reach.BROKEN, "nobody answers"),
            "telegram.main": Health(Reach.CONNECTED),
        }
        ill = await ask.get("/healthz")
    assert (ill.status_code, ill.json()["problems"]) == (503, ["The disk is full. Make room."])
    stand = {
        "matrix.main": {"reach": "broken", "why": "nobody answers"},
        "telegram.main": {"reach": "connected", "why": ""},
    }
    assert ill.json()["accounts"] == stand


async def test_a_stranger_learns_that_it_is_well_or_not_and_nothing_else() -> None:
    house = House()
    async with client(house, knows=is_local) as ask:
        assert ((await ask.get("/healthz")).status_code, (await ask.get("/healthz")).text) == (200, "well")
        house.trouble = ["The disk is full. Make room."]
        assert ((await ask.get("/healthz")).status_code, (await ask.get("/healthz")).text) == (503, "unwell")
        refused = await ask.get("/metrics")
    assert refused.status_code == 401
    assert "segue_" not in refused.text
    assert "status_token" in refused.text


async def test_readiness_is_told() -> None:
    house = House()
    async with client(house) as ask:
        assert (await ask.get("/readyz")).status_code == 200
        house.ready = False
        assert (await ask.get("/readyz")).status_code == 503


async def test_metrics_are_those_of_this_gateway() -> None:
    house = House()
    house.metrics.turns.labels("done").inc()
    async with client(house) as ask:
        response = await ask.get("/metrics")
    assert 'segue_turns_total{outcome="done"} 1.0' in response.text
    assert response.headers["content-type"].startswith("text/plain; version=")


async def test_a_webhook_is_served_at_exactly_its_path_with_every_method() -> None:
    async with client(House()) as ask:
        assert (await ask.post("/in/http/alpha", content=b"hello")).text == "POST hello"
        assert (await ask.put("/in/http/alpha", content=b"hello")).text == "PUT hello"
        assert (await ask.post("/in/http/beta")).status_code == 404
        assert (await ask.post("/in/http/alpha/more")).status_code == 404


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:8800", 200),
        ("localhost:1", 200),
        ("LocalHost", 200),
        ("[::1]", 200),
        ("[::1]:8800", 200),
        ("segue.example.org", 200),
        ("segue.example.org:443", 200),
        ("evil.example.org", 421),
        ("evil.example.org:8800", 421),
        ("localhost.evil.example.org", 421),
        ("127.0.0.1.evil.example.org", 421),
        ("127.0.0.1:8800:80", 421),
        ("localhost:evil", 421),
        ("", 421),
    ],
)
@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/in/http/alpha"])
async def test_only_known_names_are_answered_to(host: str, status: int, path: str) -> None:
    async with client(House(), "segue.example.org") as ask:
        response = await ask.get(path, headers={"Host": host})
    assert response.status_code == status
    if status == 421:
        assert "[server]" in response.text


@pytest.mark.parametrize("names", [[], [b"127.0.0.1", b"127.0.0.1"]], ids=["none", "two"])
async def test_one_host_header_is_needed(names: list[bytes]) -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    headers = [(b"host", name) for name in names]
    scope = {"type": "http", "method": "GET", "path": "/healthz", "headers": headers, "query_string": b""}
    await make_app(House())(scope, receive, send)
    assert sent[0]["status"] == 400


@pytest.mark.parametrize(("path", "size"), [("/in/http/alpha", 2 * LARGEST_BODY), ("/other", LARGEST_BODY)])
@pytest.mark.parametrize("form", ["whole", "chunks"])
async def test_a_body_has_a_limit_at_every_path(path: str, size: int, form: str) -> None:
    read = 0

    async def chunks(count: int) -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(count // 65536):
            yield b"x" * 65536
            read += 65536

    house = House()
    transport = httpx2.ASGITransport(make_app(house, windows=[Route("/other", Mounted(echo))]))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8800") as ask:
        whole = b"x" * size if form == "whole" else chunks(size)
        assert (await ask.post(path, content=whole)).status_code == 200
        read = 0
        larger = b"x" * (size + 1) if form == "whole" else chunks(100 * size)
        assert (await ask.post(path, content=larger)).status_code == 413
        assert read <= size + 65536, "the rest isn't read"


async def test_half_sent_bodies_hold_a_bounded_number_of_bytes() -> None:
    """Small ones come through meanwhile, and large ones again when those are gone."""
    end, half = asyncio.Event(), 300 * 1024

    async def sent(size: int, *, waits: bool) -> AsyncIterator[bytes]:
        yield b"x" * size
        if waits:
            await end.wait()

    transport = httpx2.ASGITransport(make_app(House(), windows=[Route("/other", Mounted(echo))]))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8800") as ask:
        calls = [asyncio.create_task(ask.post("/other", content=sent(half, waits=True))) for _ in range(400)]
        refused, going = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert {call.result().status_code for call in refused} == {503}
        assert len(going) * half < 100 * 1024 * 1024
        assert (await ask.post("/other", content=b"x" * 60_000)).status_code == 200
        end.set()
        assert {(await call).status_code for call in calls} == {200, 503}
        assert (await ask.post("/other", content=b"x" * half)).status_code == 200


async def test_calls_that_prove_nothing_are_counted_and_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def refusing(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("no", 401)(scope, receive, send)

    house = House()
    app = make_app(house, windows=[Route("/link", Mounted(refusing)), Route("/other", Mounted(refusing))])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1:8800") as ask:
        for path in ("/link", "/link", "/link", "/other"):
            assert (await ask.post(path)).status_code == 401
    figures = house.metrics.text().decode()
    assert 'segue_unproven_calls_total{path="/link"} 3.0' in figures
    assert "/other" not in figures
    assert len([line for line in caplog.messages if "/link" in line]) == 1
    assert house.audited == [("/link", 1)]


async def test_it_listens_on_a_free_port_and_stops() -> None:
    listener = Listener("127.0.0.1", 0)
    assert listener.port > 0
    async with http_client() as ask:
        async with serving(make_app(House()), listener) as task:
            assert (await ask.get(f"{listener.url}/readyz")).status_code == 200
            assert not task.done()
        assert task.done()
        with pytest.raises(httpx2.ConnectError):
            await ask.get(f"{listener.url}/readyz")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_what_is_written_to_a_caller_is_sent_at_once(host: str) -> None:
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connected(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        accepted.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listener = Listener(host, 0)
    async with await asyncio.start_server(connected, sock=listener.socket):
        with socket.create_connection((host, listener.port)):
            assert await accepted


async def test_a_call_under_way_is_answered_before_it_stops() -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await end.wait()
        await PlainTextResponse("done")(scope, receive, send)

    listener = Listener("127.0.0.1", 0)
    async with http_client() as ask:
        async with serving(Mounted(slow), listener):
            call = asyncio.create_task(ask.get(listener.url))
            await begun.wait()
            asyncio.get_running_loop().call_later(0.5, end.set)
        assert end.is_set()
        assert (await call).text == "done"


async def test_it_stops_without_a_pause_when_nobody_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, listener, pauses = asyncio.get_running_loop(), Listener("127.0.0.1", 0), list[float]()
    later = loop.call_later

    def counted(delay: float, callback: Callable[..., object], *args: Any, **more: Any) -> asyncio.TimerHandle:
        pauses.append(delay)
        return later(delay, callback, *args, **more)

    async with serving(make_app(House()), listener):
        async with http_client() as ask:
            assert (await ask.get(f"{listener.url}/healthz")).status_code == 200
        monkeypatch.setattr(loop, "call_later", counted)
    assert pauses == []


async def test_signals_stay_with_whoever_runs_it() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    listener = Listener("127.0.0.1", 0)
    async with http_client() as ask, serving(make_app(House()), listener):
        await ask.get(f"{listener.url}/readyz")
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_taken_port_is_named() -> None:
    listener = Listener("127.0.0.1", 0)
    with pytest.raises(Invalid, match=f"port: {listener.port} is taken. .*--port"):
        Listener("127.0.0.1", listener.port)
    listener.close()


def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(Invalid, match=r"host: '192.0.2.1' is not an address of this machine"):
        Listener("192.0.2.1", 0)


HALF = b"GET /healthz HTTP/1.1\r\nHost: 127"


@asynccontextmanager
async def half_sent(listener: Listener, sent: bytes = HALF) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(sent)
    await writer.drain()
    try:
        yield reader
    finally:
        writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        HALF,
        b"POST /in/http/alpha HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\nhal",
    ],
    ids=["nothing", "half a head", "half a body"],
)
async def test_a_request_that_never_ends_is_given_up(sent: bytes) -> None:
    listener = Listener("127.0.0.1", 0)
    patience = CallerLimits(head=0.2, body=0.2)
    async with serving(make_app(House()), listener, patience=patience), half_sent(listener, sent) as reader:
        async with asyncio.timeout(90):
            while await reader.read(1000):
                pass


async def test_many_half_sent_requests_keep_nobody_else_waiting() -> None:
    listener = Listener("127.0.0.1", 0)
    server = serving(make_app(House()), listener, patience=CallerLimits(connections=10))
    async with http_client() as ask, server, AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(half_sent(listener)) for _ in range(30)]
        assert (await ask.get(f"{listener.url}/healthz")).status_code == 200
        async with asyncio.timeout(90):
            assert await asyncio.gather(*(reader.read() for reader in idle[:20])) == [b""] * 20


async def test_a_slow_answer_is_waited_for() -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.5)
        await echo(scope, receive, send)

    listener = Listener("127.0.0.1", 0)
    patience = CallerLimits(head=0.1, body=0.1)
    async with http_client() as ask, serving(Mounted(slow), listener, patience=patience):
        assert (await ask.post(listener.url, content=b"hello")).text == "POST hello"


async def test_a_window_stays_open_past_the_time_for_a_request() -> None:
    async def hello(socket: WebSocket) -> None:
        await socket.accept()
        with contextlib.suppress(WebSocketDisconnect):
            while True:
                await socket.send_text(await socket.receive_text())

    listener = Listener("127.0.0.1", 0)
    app, address = make_app(House(), windows=[WebSocketRoute("/live", hello)]), f"ws://127.0.0.1:{listener.port}/live"
    async with serving(app, listener, patience=CallerLimits(body=0.05)), connect(address) as window:
        silent = asyncio.create_task(window.wait_closed())
        done, _ = await asyncio.wait([silent], timeout=0.5)
        assert not done, "it was cut"
        await window.send("still here?")
        assert await window.recv() == "still here?"
        silent.cancel()
