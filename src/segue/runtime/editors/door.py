"""The way in for editors elsewhere, at `/acp`; the library is loaded when the first one comes."""

import asyncio
from importlib import import_module
from importlib.util import find_spec

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from segue.runtime.gateway import Gateway
from segue.runtime.windows.routes import Windows

_MISSING = 4501
"""The code that a WebSocket is closed with if the library isn't installed."""


class EditorDoor:
    """Lets editors in that show a token."""

    def __init__(self, windows: Windows, gateway: Gateway) -> None:
        self._windows = windows
        self._tokens = gateway.tokens

    def routes(self) -> list[BaseRoute]:
        """Its route."""
        return [WebSocketRoute("/acp", self._serve)]

    async def _serve(self, socket: WebSocket) -> None:
        if find_spec("acp") is None:
            await socket.accept()
            await socket.close(_MISSING, "Editors aren't served here. Run `segue install acp` there.")
            return
        routes = await asyncio.to_thread(import_module, "segue.runtime.editors.routes")
        await routes.Editors(self._windows, self._tokens).serve(socket)
