"""Slack's Web API: calls by name, with errors that say what became of them.

A call is one POST and an envelope of Socket Mode one JSON message, so no library stands between.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

from segue.adapters.shared.connections import Returned
from segue.adapters.shared.downloads import server_of
from segue.adapters.shared.outcomes import retry_after
from segue.adapters.shared.web import Web
from segue.core.messages import Sending
from segue.core.values import Secret
from segue.errors import MessageGone, SendError, SendLater, SendNever, SendUnsure

PUBLIC = "https://slack.com/api"
_FILES = "https://files.slack.com"
_HOOKS = ("https", "hooks.slack.com")
_FORM = "application/x-www-form-urlencoded"
_TOO_MANY, _SERVER_ERROR = 429, 500
_LIMITED = {"ratelimited", "rate_limited", "message_limit_exceeded"}
_LOGGED_OUT = {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"}
_BROKEN = {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
_GONE = {"message_not_found", "cant_update_message", "edit_window_closed"}
_PATIENCE = 30.0
"""Seconds to wait where Slack asks for patience and doesn't say how much."""

Json = dict[str, Any]


class Api:
    """Calls Slack with one token; raises nothing but `SendError`s."""

    def __init__(self, token: Secret, base: str = PUBLIC) -> None:
        self._base = base
        self._token = token
        self._web = Web("Slack", base, Sending.READ_BACK)
        self._me = ""

    async def close(self) -> None:
        """Let go of the connections."""
        await self._web.close()

    @property
    def bearer(self) -> tuple[str, str]:
        """The header that opens what the token may see."""
        return "Authorization", f"Bearer {self._token.reveal()}"

    @property
    def files(self) -> str:
        """The one server that is shown the token when a file is fetched: Slack's own, or the one that is called."""
        return _FILES if self._base == PUBLIC else self._base

    def is_own(self, url: str) -> bool:
        """Whether a file lies on that server; raises `NotFetched` if it can't lie anywhere."""
        return server_of(url) == server_of(self.files)

    async def call(self, method: str, **fields: Any) -> Json:
        """The answer of a method; fields that are None are left out."""
        return (await self._called(method, fields))[0]

    async def who(self) -> str:
        """The id of the app's own user."""
        if not self._me:
            self._me = str((await self.call("auth.test")).get("user_id", ""))
        return self._me

    async def scopes(self) -> tuple[Json, frozenset[str] | None]:
        """Who the token is, and what it may do as far as Slack says."""
        told, answer = await self._called("auth.test", {})
        named = answer.headers.get("x-oauth-scopes")
        return told, None if named is None else frozenset(named.replace(",", " ").split())

    async def pages(self, method: str, of: str, *, patience: float = 0.0, **fields: Any) -> AsyncIterator[Json]:
        """The things in a list, page by page as they are asked for, if Slack asks for no more patience than that."""
        cursor: str | None = None
        while cursor is None or cursor:
            try:
                told = await self.call(method, cursor=cursor or None, **fields)
            except SendLater as error:
                if error.seconds is None or error.seconds > patience:
                    raise
                await asyncio.sleep(error.seconds)
                continue
            for one in told.get(of) or ():
                if isinstance(one, dict):
                    yield one
            cursor = str((told.get("response_metadata") or {}).get("next_cursor") or "")

    async def upload(self, name: str, content: bytes) -> Json:
        """A file that was uploaded and is nowhere shared yet."""
        there = await self.call("files.getUploadURLExternal", filename=name, length=len(content))
        await self._post(str(there["upload_url"]), content, "application/octet-stream")
        done = await self.call("files.completeUploadExternal", files=[{"id": there["file_id"], "title": name}])
        return dict(done["files"][0])

    async def respond(self, url: str, **fields: Any) -> None:
        """Change what somebody pressed, at the address that came with it."""
        if server_of(url) in (_HOOKS, server_of(self._base)):
            await self._post(url, json.dumps(fields).encode(), "application/json")

    async def _post(self, url: str, body: bytes, kind: str) -> None:
        web = Web("Slack", url, Sending.KEYED)
        try:
            web.taken(await web.call("POST", "", body, {"Content-Type": kind}))
        finally:
            await web.close()

    async def _called(self, method: str, fields: Json) -> tuple[Json, Returned]:
        given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()
                 if value is not None}  # fmt: skip
        headers = dict((self.bearer, ("Content-Type", _FORM)))
        answer = await self._web.call("POST", f"/{method}", urlencode(given).encode(), headers)
        if answer.status == _TOO_MANY:
            raise SendLater("Slack allows no more calls for now.", _patience(answer))
        told = self._web.told(answer)
        if isinstance(told, dict) and told.get("ok") is True:
            return told, answer
        raise _refused(answer, told if isinstance(told, dict) else {})


def _refused(answer: Returned, told: Json) -> SendError:
    why = str(told.get("error") or answer.status)
    if why in _LIMITED:
        return SendLater(f"Slack asks for patience ({why}).", _patience(answer))
    if why in _LOGGED_OUT:
        # Not lost: the host can bring the account back with a new token.
        return SendLater(f"Slack doesn't know the token ({why}). Run `segue add slack` again.")
    if why in _BROKEN or answer.status >= _SERVER_ERROR:
        return SendUnsure(f"Slack answered {why}.")
    if why == "missing_scope":
        needed = told.get("needed", "")
        return SendNever(f"The app has no scope {needed}: add it under OAuth & Permissions, and install the app again.")
    return (MessageGone if why in _GONE else SendNever)(f"Slack refused it: {why}.")


def _patience(answer: Returned) -> float:
    seconds = retry_after(answer.retry_after, 0.0)
    return _PATIENCE if seconds is None else seconds
