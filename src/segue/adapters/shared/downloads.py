"""Downloads from the internet within limits, and never from a private network.

Law: Segue resolves a host once, requires all its addresses to be public, and connects to one of those. So neither a
second DNS answer nor a redirect reaches the private network.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import IPv4Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx2

from segue.adapters.shared.trust import trust
from segue.core.values import Value
from segue.errors import Disconnected, SegueError

LARGEST = 20 * 1024 * 1024
"""The largest download by default, in bytes."""
SLOWEST = 60.0
"""The longest time for a whole download, in seconds."""
_REDIRECTS = 3
_EMBEDDING = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""Networks whose last 32 bits are an IPv4 address: NAT64 and the old compatible addresses."""


class NotFetched(SegueError):
    """A file that can never be fetched. The message gives the reason and hides the address."""


class Limits(Value, frozen=True):
    """The limits of a download, and one trusted server that may be private."""

    largest: int = LARGEST
    slowest: float = SLOWEST
    trusted: str = ""
    """The address of a server from the host's settings. It may be on a private network."""
    opens: tuple[tuple[str, str], ...] = ()
    """Headers for the trusted server. No other server gets them, even after a redirect."""


@asynccontextmanager
async def fetching(url: str, limits: Limits = Limits()) -> AsyncIterator[AsyncIterator[bytes]]:  # noqa: B008 -- frozen
    """Stream the bytes at an address.

    Raises `NotFetched` for a permanent failure, `Disconnected` for a temporary one.
    """
    try:
        async with asyncio.timeout(limits.slowest), AsyncExitStack() as stack:
            # A proxy would resolve names by itself.
            client = await stack.enter_async_context(
                httpx2.AsyncClient(trust_env=False, timeout=limits.slowest, verify=trust())
            )
            response = await _open(client, stack, url, limits)
            yield _pieces(response, limits.largest)
    except TimeoutError as error:
        raise NotFetched(f"It took longer than {limits.slowest:g} seconds.") from error
    except (httpx2.TransportError, httpx2.DecodingError, httpx2.InvalidURL) as error:
        raise Disconnected(f"A file couldn't be fetched ({type(error).__name__}).") from error


async def _open(client: httpx2.AsyncClient, stack: AsyncExitStack, url: str, limits: Limits) -> httpx2.Response:
    for _ in range(_REDIRECTS + 1):
        parts = _split(url)
        request = _request(client, parts, await _address(parts, limits.trusted))
        if _is_trusted(parts, limits.trusted):
            request.headers.update(limits.opens)
        response = await client.send(request, stream=True)
        stack.push_async_callback(response.aclose)
        if not response.has_redirect_location:
            return _checked(response, limits.largest)
        url = urljoin(url, response.headers["Location"])
    raise NotFetched("It was moved too often.")


def server_of(url: str) -> tuple[str, str]:
    """Return the scheme, name and port of an address; raise `NotFetched` if it is invalid."""
    parts = _split(url)
    return parts.scheme, parts.netloc


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https"} and _host(parts) and parts.port != 0:
            return parts
    except ValueError:
        """The port or host is invalid, and so is the address."""
    raise NotFetched("Its address isn't one of the web.")


def _host(parts: SplitResult) -> str:
    """Return the host of an address in ASCII, as DNS needs it."""
    return (parts.hostname or "").encode("idna").decode()


async def _address(parts: SplitResult, trusted: str) -> str:
    """Return the checked IP address to connect to."""
    host = _host(parts)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, _port(parts), type=socket.SOCK_STREAM)
    except OSError as error:
        raise Disconnected("A file's host has no address.") from error
    addresses = [str(known[4][0]) for known in found]
    if _is_trusted(parts, trusted):
        return addresses[0]
    if not all(map(_is_public, addresses)):
        raise NotFetched("Its address is on a private network.")
    return addresses[0]


def _is_public(address: str) -> bool:
    """Return whether an address is public, and so is an IPv4 address inside it."""
    found = ip_address(address.partition("%")[0])
    if not found.is_global or found.is_multicast:
        return False
    if found.version == 4:
        return True
    inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
    if any(found in network for network in _EMBEDDING):
        inner = IPv4Address(int(found) & 0xFFFFFFFF)
    return inner is None or (inner.is_global and not inner.is_multicast)


def _request(client: httpx2.AsyncClient, parts: SplitResult, address: str) -> httpx2.Request:
    """Build a request to an IP address. The certificate must belong to the host's name."""
    host = _host(parts)
    url = httpx2.URL(parts.geturl()).copy_with(host=address)
    named = f"[{host}]" if ":" in host else host
    headers = {"Host": named if parts.port is None else f"{named}:{parts.port}"}
    return client.build_request("GET", url, headers=headers, extensions={"sni_hostname": host})


def _checked(response: httpx2.Response, largest: int) -> httpx2.Response:
    status = response.status_code
    if status == httpx2.codes.TOO_MANY_REQUESTS or response.is_server_error:
        raise Disconnected(f"A file couldn't be fetched: its server answered {status}.")
    if not response.is_success:
        raise NotFetched(f"Its server answered {status}.")
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > largest:
        raise _too_large(largest)
    return response


async def _pieces(response: httpx2.Response, largest: int) -> AsyncIterator[bytes]:
    size = 0
    async for piece in response.aiter_bytes(64 * 1024):
        size += len(piece)
        if size > largest:
            raise _too_large(largest)
        yield piece


def _too_large(largest: int) -> NotFetched:
    return NotFetched(f"It is larger than {largest / 1024 / 1024:.3g} MB.")


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _is_trusted(parts: SplitResult, trusted: str) -> bool:
    return bool(trusted) and _origin(parts) == _origin(urlsplit(trusted))


def _origin(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, _port(parts)
