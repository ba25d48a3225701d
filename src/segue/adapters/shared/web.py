"""The HTTP API of a platform. Errors say whether the platform accepted a call.

Law: without a connection a call is retried, and a call that broke off is in doubt. The adapter judges a response, by
`refused` unless its platform has other rules.
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
"""The longest time for a whole call, in seconds."""
LARGEST = 64 * 1024 * 1024
"""The largest response, in bytes."""
_SUCCESS = 2


class Web:
    """Calls one platform, at or below one address. `sending` decides the outcome of a 5xx response."""

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
        """Close the connections."""
        await self._server.close()

    async def call(
        self,
        method: str,
        path: str = "",
        body: bytes | Mapping[str, Any] = b"",
        headers: Mapping[str, str] | None = None,
        slowest: float = 0.0,
    ) -> Returned:
        """Make one call and return its response with any status.

        A body that isn't bytes is sent as JSON.
        """
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
        """Return the body of a successful response; raise the outcome of any other."""
        if returned.status // 100 != _SUCCESS:
            raise self.refused(returned)
        return returned.body

    def refused(self, returned: Returned, seconds: float | None = None, why: str = "") -> SendError:
        """Return the error of a rejected call. `seconds` overrides the Retry-After header."""
        if seconds is None:
            seconds = retry_after(returned.retry_after, self._clock())
        return refused(self._who, returned.status, seconds, why, self._sending)

    def told(self, returned: Returned) -> Any:
        """Return the JSON in a response; without JSON, raise the outcome of the call."""
        try:
            # The standard library accepts half of a surrogate pair, which people do send.
            return json.loads(returned.body)
        except (ValueError, RecursionError) as error:
            self.taken(returned)
            raise SendUnsure(f"{self._who} didn't answer in JSON") from error


Upload = tuple[str, bytes]
"""The name and the content of a file in a form."""
TypedUpload = tuple[str, bytes, str]
"""The name, content and media type of a file in a form."""


def form(fields: Mapping[str, Any], files: Mapping[str, Upload | TypedUpload]) -> tuple[bytes, dict[str, str]]:
    """Return the body and headers of a form with files. Fields that aren't text are sent as JSON."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    request = httpx2.Request("POST", "http://form.invalid", data=texts, files=files)
    return request.read(), {"Content-Type": request.headers["Content-Type"]}
