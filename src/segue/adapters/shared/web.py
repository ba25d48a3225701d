"""The HTTP API of a platform: calls whose errors say what became of them.

Law: what never reached the platform is for later, what broke off nobody knows, and what was answered is the adapter's
to judge, by `refused` where its platform says nothing else.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import httpx2
import msgspec

from segue.adapters.shared.connections import NotConnected, Returned, connections
from segue.adapters.shared.outcomes import refused, retry_after
from segue.core.contracts.database import Clock
from segue.core.messages import Sending
from segue.errors import SendError, SendUnsure, Unreachable

_CONNECT = 5.0
SLOWEST = 110.0
"""Seconds that a call may take in all."""
LARGEST = 64 * 1024 * 1024
"""Bytes of an answer."""
_SUCCESS = 2


class Web:
    """Calls one platform, at or below one address; `sending` says what an answer of 5xx means."""

    def __init__(
        self,
        who: str,
        url: str,
        sending: Sending = Sending.KEYED,
        *,
        slowest: float = SLOWEST,
        largest: int = LARGEST,
        clock: Clock = time.time,
    ) -> None:
        self._who = who
        self._sending = sending
        self._slowest = slowest
        self._clock = clock
        self._server = connections(url, largest, min(_CONNECT, slowest / 2))

    async def close(self) -> None:
        """Let go of the connections."""
        await self._server.close()

    async def call(
        self,
        method: str,
        path: str = "",
        body: bytes | Mapping[str, Any] = b"",
        headers: Mapping[str, str] | None = None,
        slowest: float = 0.0,
    ) -> Returned:
        """Make one call and return its answer, whatever that says; what isn't bytes is sent as JSON."""
        about = dict(headers or {})
        if not isinstance(body, bytes):
            body, about = msgspec.json.encode(body), {"Content-Type": "application/json", **about}
        try:
            async with asyncio.timeout(slowest or self._slowest):
                return await self._server.call(method, path, body, about)
        except NotConnected as error:
            raise Unreachable(f"{self._who} can't be reached ({error})") from error
        except OSError as error:
            raise SendUnsure(f"{self._who} broke off or was too slow ({type(error).__name__})") from error

    def taken(self, returned: Returned) -> bytes:
        """The body of an answer, if the call was taken; else its outcome is raised."""
        if returned.status // 100 != _SUCCESS:
            raise self.refused(returned)
        return returned.body

    def refused(self, returned: Returned, seconds: float | None = None, why: str = "") -> SendError:
        """The outcome of a call that wasn't taken; the platform may have its own way to name the seconds."""
        if seconds is None:
            seconds = retry_after(returned.retry_after, self._clock())
        return refused(self._who, returned.status, seconds, why, self._sending)

    def told(self, returned: Returned) -> Any:
        """The JSON in an answer; if there is none, the outcome of the call is raised."""
        try:
            # The standard library's reader takes half a surrogate pair, which people do send.
            return json.loads(returned.body)
        except (ValueError, RecursionError) as error:
            self.taken(returned)
            raise SendUnsure(f"{self._who} didn't answer in JSON") from error


Upload = tuple[str, bytes]
"""The name and the content of a file in a form."""
TypedUpload = tuple[str, bytes, str]
"""The same with its media type."""


def form(fields: Mapping[str, Any], files: Mapping[str, Upload | TypedUpload]) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of a call with files in it; of the fields, what is no text goes as JSON."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    request = httpx2.Request("POST", "http://form.invalid", data=texts, files=files)
    return request.read(), {"Content-Type": request.headers["Content-Type"]}
