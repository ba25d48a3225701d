"""Proxies in front of the server: which are believed, for whom they call, and how much one address may call at once."""

from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_SAME_HOME = 64
"""Bits of an IPv6 address that one home or one machine has to itself."""
_TRY_AGAIN = 1016
"""The code of a WebSocket that is refused, of those that are free for servers."""


class Proxies:
    """The proxies that the host listed: the only ones that are believed whom they call for."""

    def __init__(self, listed: Iterable[str] = ()) -> None:
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(one, strict=False) for one in listed]

    def has(self, address: str) -> bool:
        """Return whether an address is one of a proxy."""
        found = _parsed(address)
        return found is not None and any(found in network for network in self._networks)

    def unlimited(self, address: str) -> bool:
        """Return whether an address has no limit of its own: a proxy's, this machine's, or none at all."""
        found = _parsed(address)
        return found is None or found.is_loopback or self.has(address)

    def caller(self, peer: str, forwarded: str) -> str:
        """Return the address that a call comes from: the last one in X-Forwarded-For that no listed proxy has."""
        if not self.has(peer):
            return peer
        for named in reversed(forwarded.split(",")):
            address = named.strip()
            if _parsed(address) is None:
                return peer
            if not self.has(address):
                return address
        return peer


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def home_of(address: str) -> str:
    """Return the part of an address that is counted as one: all of IPv4, the network of IPv6."""
    found = _parsed(address)
    if isinstance(found, IPv6Address):
        return str(ip_network((found, _SAME_HOME), strict=False))
    return str(found or address)


class Forwarded:
    """Calls by the address that they come from: a proxy's are those of the address that it names.

    An address that a proxy names has a limit of calls under way, as others have one of connections.
    """

    def __init__(self, app: ASGIApp, proxies: Proxies, most: int) -> None:
        self._app = app
        self._proxies = proxies
        self._most = most
        self._under_way = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        peer = (scope.get("client") or ("", 0))[0]
        if scope["type"] == "lifespan" or not self._proxies.has(peer):
            await self._app(scope, receive, send)
            return
        named = ",".join(Headers(scope=scope).getlist("x-forwarded-for"))
        address = self._proxies.caller(peer, named)
        scope["client"] = (address, 0)
        home = "" if self._proxies.unlimited(address) else home_of(address)
        if home and self._under_way[home] >= self._most:
            await _refuse(scope, receive, send)
            return
        self._under_way[home] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way[home] -= 1
            if not self._under_way[home]:
                del self._under_way[home]


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": _TRY_AGAIN})
    else:
        answer = PlainTextResponse("Your address has too many calls under way.\n", 429, {"Retry-After": "1"})
        await answer(scope, receive, send)
