"""Calls an ASGI application in memory, as a platform calls a webhook."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from segue.core.values import Value

Application = Callable[..., Awaitable[None]]


class Answer(Value, frozen=True):
    """The application's response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def post(app: Application, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    """POST a body to an application."""
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [
            (b"content-length", str(len(body)).encode()),
            *((name.lower().encode(), value.encode()) for name, value in headers.items()),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    incoming = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return incoming.pop() if incoming else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = next(message for message in sent if message["type"] == "http.response.start")
    chunks = [message.get("body", b"") for message in sent if message["type"] == "http.response.body"]
    return Answer(
        start["status"],
        {name.decode().lower(): value.decode() for name, value in start.get("headers", ())},
        b"".join(chunks),
    )
