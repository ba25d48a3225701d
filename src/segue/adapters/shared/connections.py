"""Connections to one server, reused between calls: h11 on asyncio's own transports.

Law: a connection has one call at a time, and is reused only after the last answer was read to its end. There are as
many connections as concurrent calls. Idle ones are closed after some seconds.
"""

import asyncio
import socket
from collections.abc import Mapping
from typing import cast
from urllib.request import getproxies, proxy_bypass

import h11
import httpx2

from segue.adapters.shared.trust import trust
from segue.core.values import Value

_IDLE = 4.0
"""Seconds before an idle connection is closed. Many servers close theirs after five."""
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
"""Hosts that never use a proxy, whatever the environment says."""


_NEXT = 0.25
"""Seconds before a host's next address is tried too. Its IPv6 address may not be reachable."""


class NotConnected(Exception):
    """No connection could be made, so nothing was sent."""


class Returned(Value, frozen=True):
    """The response to a call. A body over the limit is cut off."""

    status: int
    headers: Mapping[str, str]
    """The headers, by names in lower case."""
    body: bytes

    @property
    def retry_after(self) -> str | None:
        """The server's Retry-After header."""
        return self.headers.get("retry-after")


class _Connection(asyncio.Protocol):
    """A connection to a server, for one call at a time."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._http = h11.Connection(h11.CLIENT)
        self._answer: asyncio.Future[Returned] | None = None
        self._head: h11.Response | None = None
        self._body = bytearray()
        self._transport: asyncio.Transport | None = None
        self.expiry: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            # Nothing was requested: the next call would take this for its response.
            self.close()
            return
        try:
            self._http.receive_data(data)
            self._read(self._answer)
        except h11.RemoteProtocolError as error:
            self._answer.set_exception(ConnectionAbortedError(str(error)))

    def eof_received(self) -> None:
        self.data_received(b"")

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionResetError("the server hung up"))

    @property
    def free(self) -> bool:
        """Whether another call can start."""
        return self._http.our_state is h11.IDLE and self._transport is not None and not self._transport.is_closing()

    async def call(self, request: h11.Request, body: bytes) -> Returned:
        """Make one call and return its response."""
        if self._transport is None:
            raise ConnectionResetError("the server hung up")
        self._head, self._body, self._answer = None, bytearray(), asyncio.get_running_loop().create_future()
        # Write everything at once: a second write may wait until the server acknowledges the first.
        parts = [self._http.send(event) for event in (request, h11.Data(body), h11.EndOfMessage())]
        self._transport.write(b"".join(part for part in parts if part))
        return await self._answer

    def _read(self, answer: asyncio.Future[Returned]) -> None:
        while (event := self._http.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                self._head = event
            elif isinstance(event, h11.Data):
                self._body += event.data
            ended = isinstance(event, h11.EndOfMessage)
            if self._head is not None and (ended or len(self._body) > self._largest):
                headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._head.headers}
                answer.set_result(Returned(self._head.status_code, headers, bytes(self._body)))
                if self._http.their_state is h11.DONE is self._http.our_state:
                    self._http.start_next_cycle()
                return

    def close(self) -> None:
        """Abort the connection, even during a call."""
        if self._transport is not None:
            self._transport.abort()


class Connections:
    """Calls to one server, at or below one address."""

    def __init__(self, url: str, largest: int, slowest: float) -> None:
        self._url = httpx2.URL(url)
        self._largest = largest
        self._slowest = slowest
        """The longest time to connect, in seconds."""
        self._tls = trust() if self._url.scheme == "https" else None
        self._headers = {"Host": self._url.netloc.decode(), "User-Agent": "segue"}
        self._idle: list[_Connection] = []

    async def call(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Returned:
        """Make one call; raise `NotConnected`, or `OSError` if it breaks off."""
        connection = self._take() or await self._open()
        length = {"Content-Length": str(len(body))}
        about = list({**self._headers, **length, **headers}.items())
        base = self._url.raw_path
        target = base.rstrip(b"/") + path.encode() if path else base
        request = h11.Request(method=method, target=target, headers=about)
        try:
            return await connection.call(request, body)
        finally:
            if connection.free:
                connection.expiry = asyncio.get_running_loop().call_later(_IDLE, self._expire, connection)
                self._idle.append(connection)
            else:
                connection.close()

    async def close(self) -> None:
        """Close all idle connections."""
        while (connection := self._take()) is not None:
            connection.close()
        await asyncio.sleep(0)  # the event loop closes sockets in its next iteration

    def _take(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.expiry is not None:
                connection.expiry.cancel()
            if connection.free:
                return connection
        return None

    def _expire(self, connection: _Connection) -> None:
        self._idle.remove(connection)
        connection.close()

    async def _open(self) -> _Connection:
        host, port = self._url.raw_host.decode(), self._url.port or (443 if self._tls else 80)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._slowest):
                # Only names have two addresses. Cancelling a call while both are tried leaks a socket.
                delay = None if host in _LOOPBACK else _NEXT
                _, made = await loop.create_connection(
                    lambda: _Connection(self._largest), host, port, ssl=self._tls, happy_eyeballs_delay=delay
                )
        except socket.gaierror as error:
            raise NotConnected("its name can't be looked up") from error
        except OSError as error:
            raise NotConnected(type(error).__name__) from error
        return made


class Proxied:
    """Calls to one server through a proxy from the environment."""

    def __init__(self, url: str, largest: int, slowest: float) -> None:
        self._url = url
        self._largest = largest
        self._client = httpx2.AsyncClient(timeout=httpx2.Timeout(None, connect=slowest, pool=slowest), verify=trust())

    async def call(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Returned:
        """Make one call; raise `NotConnected`, or `OSError` if it breaks off."""
        url = self._url.rstrip("/") + path if path else self._url
        try:
            async with self._client.stream(method, url, content=body, headers=headers) as response:
                returned = bytearray()
                async for piece in response.aiter_bytes():
                    returned += piece
                    if len(returned) > self._largest:
                        break
                return Returned(response.status_code, dict(response.headers), bytes(returned))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise NotConnected(type(error).__name__) from error
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise ConnectionAbortedError(type(error).__name__) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def connections(url: str, largest: int, slowest: float) -> Connections | Proxied:
    """Return the connections to a server, through a proxy if the environment names one for it."""
    named, there = getproxies(), httpx2.URL(url)
    proxied = there.host not in _LOOPBACK and (there.scheme in named or "all" in named) and not proxy_bypass(there.host)
    return (Proxied if proxied else Connections)(url, largest, slowest)
