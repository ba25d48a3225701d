"""Feishu's Open API: calls by path, with errors that say what became of them; and people, chats and messages by id.

A call is one HTTP request and a token that lasts two hours, so no library stands between.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from segue.adapters.feishu.messages import Json, Message, decode, moment
from segue.adapters.shared.connections import Returned
from segue.adapters.shared.decoding import inside, listed, text_in
from segue.adapters.shared.lookups import Lookups, Recent
from segue.adapters.shared.outcomes import retry_after
from segue.adapters.shared.web import Upload, Web, form
from segue.core.contracts.database import Clock
from segue.core.lanes import Kind
from segue.core.values import Moment, Secret
from segue.errors import MessageGone, SendError, SendLater, SendNever, SendUnsure

NEEDED = (
    ("im:message:send_as_bot", "im:message"),
    ("im:message.p2p_msg:readonly", "im:message.p2p_msg"),
    ("im:message.group_at_msg:readonly", "im:message.group_at_msg", "im:message.group_msg"),
    ("im:message:readonly", "im:message"),
    ("im:message:update", "im:message"),
    ("im:message:recall", "im:message"),
    ("im:resource", "im:resource:upload"),
    ("im:chat:readonly", "im:chat", "im:chat:read"),
    ("contact:user.base:readonly", "contact:contact.base:readonly"),
    ("cardkit:card:write",),
    ("cardkit:card:read",),
)
"""The scopes that the app needs, each by its name, and the others that hold it."""
_TOKEN = "/open-apis/auth/v3/tenant_access_token/internal"  # noqa: S105 -- a path
_TOO_MANY, _SERVER_ERROR = 429, 500
_EARLY = 600.0
"""Seconds before its end at which a token is fetched anew; Feishu gives a new one in the last half an hour."""
_PATIENCE = 1.0
"""Seconds to wait where Feishu asks for patience and doesn't say how much."""
_LIMITED = {99991400, 11232, 11233, 230020, 200810, 230049}
"""Too many calls; a message that is being sent, or a card that somebody is using at this moment."""
_PAGE, _PAGES = 50, 10
"""Messages of a page, and pages of a chat or a thread."""


class StaleToken(SendLater):
    """A token that ran out, or was revoked."""


class OutOfOrder(SendLater):
    """A change of a card whose number isn't above the last one's."""


class StreamEnded(SendNever):
    """A card that doesn't stream any more: Feishu ends that by itself after ten minutes."""


class Api:
    """Calls Feishu as one app; raises nothing but `SendError`s."""

    def __init__(self, app: str, secret: Secret, base: str, clock: Clock = time.monotonic) -> None:
        self.app = app
        self.base = base
        self._secret = secret
        self._web = Web("Feishu", base)
        self._clock = clock
        self._me = self._token = ""
        self._until: Moment = 0.0
        self._fetching = asyncio.Lock()
        self._lookups = Lookups("Feishu")
        self._kinds = Recent[str, Kind](10_000)
        self.close = self._web.close

    async def bearer(self) -> tuple[str, str]:
        """The header that opens what the app may see; its token is fetched anew before it runs out."""
        async with self._fetching:
            if self._clock() >= self._until:
                known = {"app_id": self.app, "app_secret": self._secret.reveal()}
                told = self._taken(await self._web.call("POST", _TOKEN, known))
                self._token = str(told["tenant_access_token"])
                self._until = self._clock() + max(float(told.get("expire") or 0) - _EARLY, 1.0)
        return "Authorization", f"Bearer {self._token}"

    async def endpoint(self) -> Json:
        """The address of a long connection, which holds for one."""
        known = {"AppID": self.app, "AppSecret": self._secret.reveal()}
        return self._taken(await self._web.call("POST", "/callback/ws/endpoint", known, {"locale": "en"}))

    async def who(self) -> str:
        """The id of the app's own bot."""
        if not self._me:
            self._me = str((await self.bot()).get("open_id") or "")
        return self._me

    async def bot(self) -> Json:
        return (await self.call("GET", "/bot/v3/info")).get("bot") or {}

    async def lacks(self) -> str:
        """A sentence that names the scopes which the app hasn't; empty if it has all, or Feishu doesn't say."""
        try:
            scopes = (await self.call("GET", "/application/v6/scopes"))["scopes"]
        except (SendNever, KeyError):
            return ""
        has = {text_in(one, "scope_name") for one in listed(scopes) if inside(one).get("grant_status") == 1}
        lacks = [names[0] for names in NEEDED if not has.intersection(names)]
        where = f"{self.base}/app/{self.app}/auth?q={','.join(lacks)}"
        return f"It has no scope {', '.join(lacks)}: grant it at {where}, and publish a version." if lacks else ""

    async def name(self, user: str) -> str:
        """The name of a person; their id if it can't be had."""
        return text_in(await self._known(f"/contact/v3/users/{user}"), "user", "name") or user

    async def chat(self, id: str) -> tuple[str, str]:
        """The name and the topic of a group."""
        found = await self._known(f"/im/v1/chats/{id}")
        return text_in(found, "name"), text_in(found, "description")

    async def kind(self, id: str, told: str = "") -> Kind:
        """The kind of a chat, which a message tells and which never changes."""
        if id not in self._kinds and (mode := told or (await self._known(f"/im/v1/chats/{id}")).get("chat_mode")):
            self._kinds[id] = Kind.DM if mode == "p2p" else Kind.GROUP
        return self._kinds.get(id, Kind.GROUP)

    async def has_topics(self, chat: str) -> bool:
        """Whether each message of a chat is the root of a thread."""
        found = await self._known(f"/im/v1/chats/{chat}")
        return found.get("chat_mode") == "topic" or found.get("group_message_type") == "thread"

    async def _known(self, path: str) -> Json:
        return await self._lookups.get(path, lambda: self.call("GET", path, user_id_type="open_id"), {})

    async def messages(self, id: str) -> list[Message]:
        """A message, and those that it passes on; none, if it can't be had."""
        return await self._lookups.get(f"message {id}", lambda: self.fetch(id), [])

    async def fetch(self, id: str) -> list[Message]:
        """The same, from Feishu itself; raises what becomes of the call, unless Feishu will never tell it."""
        try:
            told = await self.call("GET", f"/im/v1/messages/{id}", user_id_type="open_id")
        except SendNever:
            return []
        return [decode(one) for one in listed(told.get("items"))]

    async def newest(self, container: str, id: str, since: Moment) -> list[Json]:
        """The messages of a chat or a thread, the newest first: a page at least, and all since a time."""
        about: Json = {"container_id_type": container, "container_id": id, "page_size": _PAGE}
        found: list[Json] = []
        for _ in range(_PAGES):
            told = await self.call("GET", "/im/v1/messages", sort_type="ByCreateTimeDesc", **about)
            found += [raw for raw in listed(told.get("items")) if isinstance(raw, dict)]
            about["page_token"] = told.get("page_token")
            is_enough = not found or moment(found[-1].get("create_time")) <= since
            if is_enough or not told.get("has_more") or not about["page_token"]:
                break
        return found

    async def call(
        self, method: str, path: str, body: Json | None = None, *, files: dict[str, Upload] | None = None, **query: Any
    ) -> Json:
        """The answer of a call below /open-apis, which may have files in it."""
        target = f"/open-apis{path}" + (f"?{urlencode(query)}" if query else "")
        content, about = form(body or {}, files) if files else (body or b"", {})

        async def once() -> Json:
            headers = dict([await self.bearer(), *about.items()])
            return self._taken(await self._web.call(method, target, content, headers))

        try:
            return await once()
        except StaleToken:
            self._until = 0.0
            return await once()

    def _taken(self, answer: Returned) -> Json:
        told = self._web.told(answer)
        if not isinstance(told, dict):
            raise SendUnsure("Feishu didn't answer with an object.")
        code = told.get("code")
        if isinstance(code, int) and code:
            raise self._refused(answer, code, str(told.get("msg") or ""))
        self._web.taken(answer)
        return told["data"] if isinstance(told.get("data"), dict) else told

    def _refused(self, answer: Returned, code: int, why: str) -> SendError:
        said = f"Feishu answered {code} {why}".rstrip()
        if code in _LIMITED or answer.status == _TOO_MANY:
            reset = retry_after(answer.headers.get("x-ogw-ratelimit-reset") or answer.retry_after, 0.0)
            return SendLater(said, _PATIENCE if reset is None else reset)
        if code in _OUTCOMES:
            kind, hint = _OUTCOMES[code]
            return kind(f"{said}{hint}")
        return self._web.refused(answer, why=why) if answer.status >= _SERVER_ERROR else SendNever(said)


_LOOK = ". Look at the app's credentials, or run `segue add feishu` again."
"""What isn't lost: the host can bring the account back with a new secret."""
_OUTCOMES: dict[int, tuple[Callable[[str], SendError], str]] = {
    **dict.fromkeys((99991661, 99991663, 99991664, 99991671), (StaleToken, _LOOK)),
    # An app that Feishu doesn't know, or another secret.
    **dict.fromkeys((10003, 10014, 514), (SendLater, _LOOK)),
    # A message that was recalled, deleted or edited 20 times, or a card that is older than 14 days.
    **dict.fromkeys((200740, 200750, 230011, 230072, 230075, 230110), (MessageGone, "")),
    **dict.fromkeys((200850, 300309), (StreamEnded, "")),
    300317: (OutOfOrder, ""),
    99991672: (SendNever, " Add the scope under Permissions & Scopes, and publish the app anew."),
}
