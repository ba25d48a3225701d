"""Feishu's Open API: calls by path, with errors that say what became of them.

A call is one HTTP request and a token that lasts two hours, so no library stands between.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from segue.adapters.shared.connections import Returned
from segue.adapters.shared.outcomes import retry_after
from segue.adapters.shared.web import Upload, Web, form
from segue.core.contracts.database import Clock
from segue.core.messages import Sending
from segue.core.values import Moment, Secret
from segue.errors import MessageGone, SendError, SendLater, SendNever, SendUnsure

FEISHU, LARK = "https://open.feishu.cn", "https://open.larksuite.com"
_TOKEN = "/open-apis/auth/v3/tenant_access_token/internal"  # noqa: S105 -- a path
_TOO_MANY, _SERVER_ERROR = 429, 500
_EARLY = 600.0
"""Seconds before its end at which a token is fetched anew; Feishu gives a new one in the last half an hour."""
_PATIENCE = 1.0
"""Seconds to wait where Feishu asks for patience and doesn't say how much."""
_STALE = {99991661, 99991663, 99991664, 99991671}
"""A token that ran out, or was revoked."""
_UNKNOWN = {10003, 10014, 514}
"""An app that Feishu doesn't know, or another secret."""
_LIMITED = {99991400, 11232, 11233, 230020}
_BUSY = {200810, 230049}
"""A message that is being sent, or a card that somebody is using at this moment."""
_GONE = {200740, 200750, 230011, 230072, 230075, 230110}
"""A message that was recalled or deleted, a card that is older than 14 days, or a message that was edited 20 times."""
_NO_SCOPE, _OUT_OF_ORDER, _NO_STREAM = 99991672, 300317, {200850, 300309}

Json = dict[str, Any]


class OutOfOrder(SendLater):
    """A change of a card whose number isn't above the last one's."""


class StreamEnded(SendNever):
    """A card that doesn't stream any more: Feishu ends that by itself after ten minutes."""


class Api:
    """Calls Feishu as one app; raises nothing but `SendError`s."""

    def __init__(self, app: str, secret: Secret, base: str = FEISHU, clock: Clock = time.monotonic) -> None:
        self.app = app
        self.base = base
        self._secret = secret
        self._web = Web("Feishu", base, Sending.KEYED)
        self._clock = clock
        self._token = ""
        self._until: Moment = 0.0
        self._fetching = asyncio.Lock()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._web.close()

    async def bearer(self) -> tuple[str, str]:
        """The header that opens what the app may see; its token is fetched anew before it runs out."""
        async with self._fetching:
            if self._clock() >= self._until:
                known = {"app_id": self.app, "app_secret": self._secret.reveal()}
                told = self._taken(await self._web.call("POST", _TOKEN, known))
                lasts = float(told.get("expire") or 0)
                self._token, self._until = str(told["tenant_access_token"]), self._clock() + max(lasts - _EARLY, 1.0)
        return "Authorization", f"Bearer {self._token}"

    async def endpoint(self) -> Json:
        """The address of a long connection, which holds for one."""
        known = {"AppID": self.app, "AppSecret": self._secret.reveal()}
        return self._taken(await self._web.call("POST", "/callback/ws/endpoint", known, {"locale": "en"}))

    async def call(self, method: str, path: str, body: Json | None = None, **query: Any) -> Json:
        """The answer of a call below /open-apis; what is None isn't asked for."""
        given = {name: value for name, value in query.items() if value is not None}
        return await self._called(method, path + (f"?{urlencode(given)}" if given else ""), body or b"", {})

    async def upload(self, path: str, fields: Json, files: dict[str, Upload]) -> Json:
        """The answer of a call with a file in it."""
        return await self._called("POST", path, *form(fields, files))

    async def _called(self, method: str, path: str, body: bytes | Json, headers: dict[str, str]) -> Json:
        answer = await self._web.call(method, f"/open-apis{path}", body, dict([await self.bearer(), *headers.items()]))
        if self._code(answer) in _STALE:
            self._until = 0.0
            again = dict([await self.bearer(), *headers.items()])
            answer = await self._web.call(method, f"/open-apis{path}", body, again)
        return self._taken(answer)

    def _code(self, answer: Returned) -> int:
        told = self._web.told(answer)
        code = told.get("code", 0) if isinstance(told, dict) else 0
        return code if isinstance(code, int) else 0

    def _taken(self, answer: Returned) -> Json:
        told, code = self._web.told(answer), self._code(answer)
        if not isinstance(told, dict):
            raise SendUnsure("Feishu didn't answer with an object.")
        if code == 0:
            self._web.taken(answer)
            return told["data"] if isinstance(told.get("data"), dict) else told
        raise self._refused(answer, code, str(told.get("msg") or ""))

    def _refused(self, answer: Returned, code: int, why: str) -> SendError:
        said = f"Feishu answered {code} {why}".rstrip()
        if code in _LIMITED or code in _BUSY or answer.status == _TOO_MANY:
            reset = retry_after(answer.headers.get("x-ogw-ratelimit-reset") or answer.retry_after, 0.0)
            return SendLater(said, _PATIENCE if reset is None else reset)
        if code in _STALE or code in _UNKNOWN:
            # Not lost: the host can bring the account back with a new secret.
            return SendLater(f"{said}. Look at the app's credentials, or run `segue add feishu` again.")
        if code == _NO_SCOPE:
            return SendNever(f"{said} Add the scope under Permissions & Scopes, and publish the app anew.")
        if answer.status >= _SERVER_ERROR:
            return self._web.refused(answer, why=why)
        return _KINDS.get(code, SendNever)(said)


_KINDS: dict[int, Callable[[str], SendError]] = {
    **dict.fromkeys(_GONE, MessageGone),
    **dict.fromkeys(_NO_STREAM, StreamEnded),
    _OUT_OF_ORDER: OutOfOrder,
}
