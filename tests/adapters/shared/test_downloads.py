"""What is fetched stays within its limits and off private networks."""

import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from segue.adapters.shared.downloads import Limits, NotFetched, fetching
from segue.errors import Disconnected
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving


async def unannounced() -> AsyncIterator[bytes]:
    for _ in range(20):
        yield b"x" * 1000


async def answer(scope: Any, receive: Any, send: Any) -> None:
    request = Request(scope, receive)
    responses: dict[str, Response] = {
        "/cake": Response(b"cake", headers={"X-Host": request.headers["Host"]}),
        "/large": Response(b"x" * 5000),
        "/unannounced": StreamingResponse(unannounced()),
        "/moved": RedirectResponse("/cake"),
        "/away": RedirectResponse("http://127.0.0.1:1/cake"),
        "/broken": Response("no", 503),
        **{f"/moved/{n}": RedirectResponse(f"/moved/{n - 1}" if n > 1 else "/cake") for n in range(1, 5)},
    }
    await responses.get(request.url.path, Response("no", 404))(scope, receive, send)


@pytest.fixture
async def base() -> AsyncIterator[str]:
    listener = Listener("127.0.0.1", 0)
    async with serving(Mounted(answer), listener):
        yield listener.url


async def fetched(url: str, limits: Limits) -> bytes:
    async with fetching(url, limits) as pieces:
        return b"".join([piece async for piece in pieces])


async def test_a_file_is_fetched_from_the_server_that_the_host_named(base: str) -> None:
    assert await fetched(f"{base}/cake", Limits(trusted=base)) == b"cake"
    assert await fetched(f"{base}/moved", Limits(trusted=base)) == b"cake"
    assert await fetched(f"{base}/moved/3", Limits(trusted=base)) == b"cake"


@pytest.mark.parametrize(
    ("path", "why"),
    [("/large", "larger than"), ("/unannounced", "larger than"), ("/none", "404"), ("/moved/4", "too often")],
)
async def test_what_will_never_come_is_told(base: str, path: str, why: str) -> None:
    with pytest.raises(NotFetched, match=why) as told:
        await fetched(base + path, Limits(largest=4000, trusted=base))
    assert base not in str(told.value)


async def test_what_may_come_later_is_told_apart(base: str) -> None:
    with pytest.raises(Disconnected, match="503"):
        await fetched(f"{base}/broken", Limits(trusted=base))
    with pytest.raises(Disconnected):
        await fetched("http://127.0.0.1:1/cake", Limits(trusted="http://127.0.0.1:1"))


async def test_a_redirect_from_the_named_server_leads_nowhere_private(base: str) -> None:
    with pytest.raises(NotFetched, match="private"):
        await fetched(f"{base}/away", Limits(trusted=base))


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "[::1]", "[fd00::1]", "0.0.0.0"),
        *("[::ffff:127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[::127.0.0.1]", "[2002:7f00:1::]", "[ff0e::1]", "224.0.0.1"),
    ],
)
async def test_a_private_network_is_never_asked(host: str) -> None:
    with pytest.raises(NotFetched, match="private"):
        await fetched(f"http://{host}/latest/meta-data", Limits())


async def test_a_name_with_one_private_address_is_never_asked(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(base.rpartition(":")[2])
    asked: list[object] = []

    def looked_up(host: Any, *_args: Any, **_more: Any) -> list[Any]:
        asked.append(host)
        public = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", port))
        return [public, (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    with pytest.raises(NotFetched, match="private"):
        await fetched(f"http://rebinding.example:{port}/cake", Limits())
    assert asked == ["rebinding.example"], "a name that is looked up again may answer otherwise"


async def test_the_connection_goes_to_the_address_that_was_checked(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(base.rpartition(":")[2])
    real, asked = socket.getaddrinfo, []

    def looked_up(host: Any, *args: Any, **more: Any) -> list[Any]:
        if host == "files.example":
            asked.append(host)
            host = "127.0.0.1"
        return list(real(host, *args, **more))

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    url = f"http://files.example:{port}"
    assert await fetched(f"{url}/cake", Limits(trusted=url)) == b"cake"
    assert asked == ["files.example"]


async def test_a_host_whose_name_is_not_ascii_is_asked(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port, real = int(base.rpartition(":")[2]), socket.getaddrinfo

    def looked_up(host: Any, *args: Any, **more: Any) -> list[Any]:
        return list(real("127.0.0.1" if host == "xn--bcher-kva.example" else host, *args, **more))

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    url = f"http://b\u00fccher.example:{port}"
    assert await fetched(f"{url}/cake", Limits(trusted=url)) == b"cake"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/a",
        "http://",
        "http://a:99999/",
        "nothing",
        "http://a..example/",
        f"http://{'a' * 64}.example/",
        "http://\ud800.example/",
    ],
)
async def test_only_the_web_is_asked(url: str) -> None:
    with pytest.raises(NotFetched, match="web"):
        await fetched(url, Limits())


async def test_a_slow_server_is_given_up(base: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises((NotFetched, Disconnected)):
            await fetched(f"{url}/cake", Limits(slowest=0.05, trusted=url))
