"""Slack's Web API: calls by name, with errors that say what became of them.

A call is one POST and an envelope of Socket Mode one JSON message, so no library stands between.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

from segue.adapters.shared.connections import Returned
from segue.adapters.shared.decoding import text_in
from segue.adapters.shared.downloads import server_of
from segue.adapters.shared.outcomes import retry_after
from segue.adapters.shared.web import Web
from segue.core.messages import Sending
from segue.core.values import Secret
from segue.errors import MessageGone, SendError, SendLater, SendNever, SendUnsure

PUBLIC = "https://slack.com/api"
_FILES = "https://files.slack.com"
_HOOKS = ("https", "hooks.slack.com")
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_TOO_MANY, _SERVER_ERROR = 429, 500
_LIMITED = {"ratelimited", "rate_limited", "message_limit_exceeded"}
_LOGGED_OUT = {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"}
_BROKEN = {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
_GONE = {"message_not_found", "cant_update_message", "edit_window_closed"}
_PATIENCE = 30.0
"""Seconds to wait where Slack asks for patience and doesn't say how much."""

Json = dict[str, Any]


class Api:
    """Calls Slack as one app; raises nothing but `SendError`s."""

    def __init__(self, token: Secret, base: str = PUBLIC, app_token: Secret = Secret("")) -> None:  # noqa: B008 -- frozen
        self._base = base.rstrip("/")
        self._app_token = app_token
        self._web = Web("Slack", self._base, Sending.READ_BACK)
        self._me = ""
        self.bearer = _bearer(token)
        """The header that opens what the app may see."""
        self.files = _FILES if self._base == PUBLIC else self._base
        """The one server that is shown the token when a file is fetched: Slack's own, or the one that is called."""
        self.close = self._web.close

    async def call(self, method: str, **fields: Any) -> Json:
        """The answer of a method; fields that are None are left out."""
        return (await self._called(method, fields, self.bearer))[0]

    async def who(self) -> str:
        """The id of the app's own user."""
        if not self._me:
            self._me = str((await self.call("auth.test")).get("user_id", ""))
        return self._me

    async def scopes(self) -> tuple[Json, frozenset[str] | None]:
        """Who the token is, and what it may do as far as Slack says."""
        told, answer = await self._called("auth.test", {}, self.bearer)
        named = answer.headers.get("x-oauth-scopes")
        return told, None if named is None else frozenset(named.replace(",", " ").split())

    async def socket(self) -> str:
        """The address of a socket, for one connection; the app-level token opens it."""
        return text_in((await self._called("apps.connections.open", {}, _bearer(self._app_token)))[0], "url")

    async def pages(
        self, method: str, of: str, *, most: int = sys.maxsize, patience: float = 0.0, **fields: Any
    ) -> AsyncIterator[Json]:
        """The first things in a list, page by page as they are asked for; Slack may ask for so much patience."""
        cursor: str | None = None
        while most and (cursor is None or cursor):
            try:
                told = await self.call(method, cursor=cursor, **fields)
            except SendLater as error:
                if error.seconds is None or error.seconds > patience:
                    raise
                await asyncio.sleep(error.seconds)
                continue
            page = [one for one in told.get(of) or () if isinstance(one, dict)][:most]
            for one in page:
                yield one
            most -= len(page)
            cursor = text_in(told, "response_metadata", "next_cursor")

    async def upload(self, name: str, content: bytes) -> Json:
        """A file that was uploaded and is nowhere shared yet."""
        there = await self.call("files.getUploadURLExternal", filename=name, length=len(content))
        await _post(str(there["upload_url"]), content, "application/octet-stream")
        done = await self.call("files.completeUploadExternal", files=[{"id": there["file_id"], "title": name}])
        return dict(done["files"][0])

    async def respond(self, url: str, **fields: Any) -> None:
        """Change what somebody pressed, at the address that came with it."""
        if server_of(url) in (_HOOKS, server_of(self._base)):
            await _post(url, json.dumps(fields).encode(), "application/json")

    async def _called(self, method: str, fields: Json, bearer: tuple[str, str]) -> tuple[Json, Returned]:
        given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()
                 if value is not None}  # fmt: skip
        answer = await self._web.call("POST", f"/{method}", urlencode(given).encode(), dict([bearer], **_FORM))
        told = {"error": "ratelimited"} if answer.status == _TOO_MANY else self._web.told(answer)
        if isinstance(told, dict) and told.get("ok") is True:
            return told, answer
        raise _refused(answer, text_in(told, "error") or str(answer.status), text_in(told, "needed"))


def _bearer(token: Secret) -> tuple[str, str]:
    return "Authorization", f"Bearer {token.reveal()}"


async def _post(url: str, body: bytes, kind: str) -> None:
    web = Web("Slack", url, Sending.KEYED)
    try:
        web.taken(await web.call("POST", "", body, {"Content-Type": kind}))
    finally:
        await web.close()


def _refused(answer: Returned, why: str, needed: str) -> SendError:
    if why in _LIMITED:
        seconds = retry_after(answer.retry_after, 0.0)
        return SendLater(f"Slack asks for patience ({why}).", _PATIENCE if seconds is None else seconds)
    if why in _LOGGED_OUT:
        # Not lost: the host can bring the account back with a new token.
        return SendLater(f"Slack doesn't know the token ({why}). Run `segue add slack` again.")
    if why in _BROKEN or answer.status >= _SERVER_ERROR:
        return SendUnsure(f"Slack answered {why}.")
    if why == "missing_scope":
        return SendNever(f"The app has no scope {needed}: add it under OAuth & Permissions, and install the app again.")
    return (MessageGone if why in _GONE else SendNever)(f"Slack refused it: {why}.")
