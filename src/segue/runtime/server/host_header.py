"""The names that the server answers to, so that no other site can point a browser at it."""

from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOCAL = ("127.0.0.1", "localhost", "[::1]")


class Hosts:
    """Passes on only what was sent to a name that the host allowed, on whichever port."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str]) -> None:
        self._app = app
        self._allowed = frozenset(name.lower() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        names = Headers(scope=scope).getlist("host")
        if len(names) != 1:
            refusal = PlainTextResponse("Send one Host header.\n", 400)
        elif _name(names[0]) not in self._allowed:
            refusal = PlainTextResponse("Segue doesn't answer to this name. Add it to hosts under [server].\n", 421)
        else:
            await self._app(scope, receive, send)
            return
        await refusal(scope, receive, send)


def _name(host: str) -> str:
    """A Host header without its port."""
    name, colon, port = host.rpartition(":")
    # The last colon of an IPv6 address belongs to a port only behind the bracket.
    return (name if colon and port.isdigit() else host).lower()
