"""Connections to a callback: kept for as many as call at once, never used again when something is wrong with them."""

import asyncio
import datetime as dt
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from segue.adapters.http.callback import Call, Callback
from segue.adapters.shared import connections
from segue.adapters.shared.trust import trust
from segue.core.lanes import Address
from segue.core.values import Secret
from segue.errors import SendLater
from tests.adapters.platform import platform

CALL = Call("key-1", "message", Address("http", "alpha", chat="lobby"))
OK = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"id":"m1"}'
SENDERS = 64

Answering = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answers each call as the test says, and counts connections."""

    def __init__(self, answer: Answering) -> None:
        self._answer = answer
        self.port = 0
        self.connections = 0
        self._hung_up = asyncio.Event()

    async def is_left(self) -> None:
        """Wait until a connection is ended from the other side."""
        async with asyncio.timeout(90):
            await self._hung_up.wait()
        self._hung_up.clear()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                await self._answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._hung_up.set()
        finally:
            writer.close()


async def at_once(writer: asyncio.StreamWriter) -> None:
    writer.write(OK)


@asynccontextmanager
async def serving(answer: Answering = at_once, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answer)
    async with await asyncio.start_server(server.connected, "127.0.0.1", 0, ssl=tls) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server


@asynccontextmanager
async def calling(url: str) -> AsyncIterator[Callable[[], Awaitable[bytes]]]:
    callback = Callback(url, Secret("s"), lambda: 1.0, slowest=5.0)
    try:
        yield lambda: callback.call(CALL)
    finally:
        await callback.close()


async def test_as_many_are_kept_as_call_at_once() -> None:
    called, everybody = 0, asyncio.Event()

    async def together(writer: asyncio.StreamWriter) -> None:
        nonlocal called
        called += 1
        if called % SENDERS == 0:
            everybody.set()
        await everybody.wait()
        writer.write(OK)

    async with serving(together) as server, calling(f"http://127.0.0.1:{server.port}/out") as call:
        for _ in range(3):
            everybody.clear()
            assert await asyncio.gather(*(call() for _ in range(SENDERS))) == [b'{"id":"m1"}'] * SENDERS
        assert server.connections == SENDERS


async def test_one_that_the_server_closed_is_not_used_again() -> None:
    async def once(writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        writer.write_eof()

    async with serving(once) as server, calling(f"http://127.0.0.1:{server.port}/out") as call:
        for _ in range(3):
            await call()
            await server.is_left()
        assert server.connections == 3


@pytest.mark.parametrize("more", [b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", b"\0"])
async def test_what_nobody_asked_for_is_no_answer(more: bytes) -> None:
    async def and_more(writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await asyncio.sleep(0.05)
        writer.write(more)

    async with serving(and_more) as server, calling(f"http://127.0.0.1:{server.port}/out") as call:
        for _ in range(3):
            assert await call() == b'{"id":"m1"}'
            await server.is_left()
        assert server.connections == 3


async def test_one_that_nobody_needs_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_IDLE", 0.05)
    async with serving() as server, calling(f"http://127.0.0.1:{server.port}/out") as call:
        await call()
        await server.is_left()
        await call()
        assert server.connections == 2


async def test_a_call_that_is_given_up_ends_its_connection() -> None:
    asked = asyncio.Event()

    async def never(_writer: asyncio.StreamWriter) -> None:
        asked.set()

    async with serving(never) as server, calling(f"http://127.0.0.1:{server.port}/out") as call:
        task = asyncio.ensure_future(call())
        await asked.wait()
        task.cancel()
        await server.is_left()
        assert task.cancelled()


def certified(folder: Path) -> ssl.SSLContext:
    """A server's certificate that it made itself, kept in this folder."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")])
    now, day = dt.datetime.now(dt.UTC), dt.timedelta(days=1)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
    made = made.add_extension(address, critical=False).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    (folder / "cert.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return tls


async def test_a_server_has_to_prove_who_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tls=certified(tmp_path)) as server:
        # Read anew each time, for this test alone.
        monkeypatch.setattr(connections, "trust", trust.__wrapped__)
        url = f"https://127.0.0.1:{server.port}/out"
        async with calling(url) as call:
            with pytest.raises(SendLater, match="SSLCertVerificationError"):
                await call()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        async with calling(url) as call:
            assert [await call(), await call()] == [b'{"id":"m1"}'] * 2
        assert server.connections == 1


async def test_a_proxy_of_the_environment_is_asked_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    async with platform() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/out"))
        monkeypatch.setenv("no_proxy", "own.invalid")
        async with calling("http://platform.invalid/out") as call:
            await call()
        async with calling("http://own.invalid/out") as call:
            with pytest.raises(SendLater):
                await call()
    assert [headers["host"] for headers in proxy.headers] == ["platform.invalid"]


async def test_an_address_that_leads_nowhere_takes_no_time_from_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo
    with socket.socket() as dead, socket.socket() as first, socket.socket() as second:
        dead.bind(("127.0.0.2", 0))
        dead.listen(0)
        for waiting in (first, second):  # whoever comes after them is never answered
            waiting.settimeout(0)
            waiting.connect_ex(dead.getsockname())

        def both(host: str, port: int, *more: Any, **named: Any) -> list[Any]:
            if host != "segue.invalid":
                return real(host, port, *more, **named)
            found = (dead.getsockname(), ("127.0.0.1", port))
            return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", each) for each in found]

        monkeypatch.setattr(socket, "getaddrinfo", both)
        async with serving() as server, asyncio.timeout(90):
            calls = connections.Connections(f"http://segue.invalid:{server.port}", 1000, 60.0)
            assert (await calls.call("POST", "/", b"{}", {})).status == 200
            await calls.close()
