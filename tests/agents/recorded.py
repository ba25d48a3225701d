"""Responses as they come from a provider, for what aimock doesn't tell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import httpx2

Told = dict[str, Any]
"""One event of a stream."""


class Recorded(httpx2.AsyncBaseTransport):
    """A provider that answers a request with a recorded stream, and keeps what it was sent."""

    def __init__(self, answer: Callable[[str], Iterable[Told]]) -> None:
        self._answer = answer
        self.sent: list[str] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The stream that answers it."""
        self.sent.append((await request.aread()).decode())
        lines = "".join(map(_line, self._answer(self.sent[-1])))
        return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, text=lines, request=request)


def _line(event: Told) -> str:
    named = f"event: {event['type']}\n" if "type" in event else ""
    return f"{named}data: {json.dumps(event)}\n\n"
