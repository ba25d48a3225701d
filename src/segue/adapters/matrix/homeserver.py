"""The homeserver: the few calls of its client API that a bot makes, and what their failures mean."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from segue.adapters.matrix.events import SEALED, events_in
from segue.adapters.shared.decoding import inside, listed, text_in
from segue.adapters.shared.downloads import Limits, NotFetched
from segue.adapters.shared.web import Web
from segue.core.values import Plain, Secret
from segue.errors import SendLater, SendNever, SendUnsure

Json = dict[str, Plain]

_SLOWEST_EVENT = 5.0
"""Everything that is told after it waits for it."""
_OK, _UNAUTHORIZED, _TOO_MANY = 200, 401, 429
_PATIENCE = 5000
"""Milliseconds to wait if the homeserver asks for patience and doesn't say for how much."""
_LOGGED_OUT = frozenset({"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN"})
_STATE = ("encryption", "member", "name", "topic", "join_rules", "tombstone")
_TYPES = ["m.room.message", "m.room.redaction", SEALED, *(f"m.room.{kind}" for kind in _STATE)]
PRIVATE_CHATS = "m.direct"
"""The account data that lists them."""
_PAGE = 100
_NOTHING: Json = {"not_types": ["*"]}
NONE = Secret("")
_MXC = re.compile(r"mxc://([\w.:\[\]-]*[\w\]]/[\w-]+)", re.ASCII)
"""An address in the media store; dots alone would lead out of it."""


class Unproven(SendNever):
    """The homeserver wants a proof first that the call is the account's own."""

    def __init__(self, session: Plain) -> None:
        super().__init__("the homeserver asks for the account's password: give it as `password`.")
        self.session = session


class Homeserver:
    """Calls one homeserver for one user; raises nothing but `SendError`s."""

    def __init__(
        self, url: str, user: str, token: Secret = NONE, password: Secret = NONE, recovery: Secret = NONE
    ) -> None:
        self.url = url
        self.user = user
        self.space = user.partition(":")[2]
        self.token = token
        self.password = password
        self.recovery = recovery
        self._web = Web(f"the homeserver at {url}", url)

    async def close(self) -> None:
        await self._web.close()

    async def whoami(self) -> tuple[str, str]:
        """The user and the device whose token it is; not every token is a device's."""
        told = await self.call("GET", ("account", "whoami"))
        return text_in(told, "user_id"), text_in(told, "device_id")

    async def log_in(self) -> Secret:
        body = {**self._proof, "initial_device_display_name": "Segue"}
        self.token = Secret(_text(await self.call("POST", ("login",), body), "access_token"))
        return self.token

    @property
    def _proof(self) -> Json:
        user = {"type": "m.id.user", "user": self.user}
        return {"type": "m.login.password", "identifier": user, "password": self.password.reveal()}

    async def begin_chat(self, person: str) -> str:
        """A new private room with somebody, which isn't encrypted; returns its id."""
        body = {"preset": "trusted_private_chat", "is_direct": True, "invite": [person]}
        room = _text(await self.call("POST", ("createRoom",), body), "room_id")
        await self.mark_private(person, room)
        return room

    async def sync(self, since: str, wait: int) -> Json:
        """The events since then; waits up to so many milliseconds for one."""
        room: Json = {
            "timeline": {"types": _TYPES, "limit": _PAGE if since else 1},
            "state": {"types": _TYPES, "lazy_load_members": True},
            "ephemeral": _NOTHING,
            "account_data": _NOTHING,
        }
        chosen = json.dumps({"room": room, "presence": _NOTHING, "account_data": {"types": [PRIVATE_CHATS]}})
        query = {"filter": chosen, "timeout": str(wait), "set_presence": "online"}
        batch: Json = await self.call("GET", ("sync",), query=query | ({"since": since} if since else {}))
        _text(batch, "next_batch")
        return batch

    async def back(self, room: str, timeline: Json, end: str = "") -> AsyncIterator[Any]:
        """The events of a timeline and of the gap before it, back to a token or to the beginning, the newest first."""
        for event in reversed(events_in(timeline)):
            yield event
        start = text_in(timeline, "prev_batch") if timeline.get("limited") else ""
        query = {"dir": "b", "limit": str(_PAGE), "filter": json.dumps({"types": _TYPES})}
        while start:
            there = {"from": start} | ({"to": end} if end else {})
            page = await self.call("GET", ("rooms", room, "messages"), query=query | there)
            for event in listed(inside(page).get("chunk")):
                yield event
            start = following if (following := text_in(page, "end")) != start else ""

    async def event(self, room: str, event: str) -> Json:
        """One event; empty if there is no such, or none that may be seen."""
        return await self._known("rooms", room, "event", event, slowest=_SLOWEST_EVENT)

    async def state(self, room: str) -> list[Json]:
        return listed(await self.call("GET", ("rooms", room, "state")))

    async def goes_on(self, room: str) -> str:
        """The room that another one says stands for it; empty if it says none, or nothing that the bot may see."""
        return text_in(await self._known("rooms", room, "state", "m.room.tombstone"), "replacement_room")

    async def private_chats(self) -> frozenset[str]:
        marked = (await self.account_data(PRIVATE_CHATS)).values()
        return frozenset(room for rooms in marked for room in listed(rooms) if isinstance(room, str))

    async def mark_private(self, person: str, room: str) -> None:
        marked = await self.account_data(PRIVATE_CHATS)
        rooms = [*dict.fromkeys([*listed(marked.get(person)), room])]
        await self.call("PUT", ("user", self.user, "account_data", PRIVATE_CHATS), {**marked, person: rooms})

    async def send(self, room: str, transaction: str, content: Json) -> str:
        """Write; the same transaction gives the same event."""
        kind = SEALED if "ciphertext" in content else "m.room.message"
        return _text(await self.call("PUT", ("rooms", room, "send", kind, transaction), content), "event_id")

    async def account_data(self, kind: str) -> Json:
        return await self._known("user", self.user, "account_data", kind)

    async def upload_identity(self, keys: Json) -> None:
        """Let others know the keys by which the account vouches for its devices; this may need the password."""
        path = ("keys", "device_signing", "upload")
        try:
            await self.call("POST", path, keys)
        except Unproven as error:
            if not self.password.reveal():
                raise
            await self.call("POST", path, {**keys, "auth": {**self._proof, "session": error.session}})

    async def upload(self, name: str, media: str, content: bytes) -> str:
        told = await self.call("POST", ("upload",), content, {"filename": name}, media=media)
        return _text(told, "content_uri")

    async def media(self, mxc: str) -> str:
        """The address of a file in the media store; raises `NotFetched` for what can't be one."""
        if not (found := _MXC.fullmatch(mxc)):
            raise NotFetched("Its address is none of a media store.")
        return f"{self.url.rstrip('/')}/_matrix/client/v1/media/download/{found[1]}"

    @property
    def limits(self) -> Limits:
        return Limits(trusted=self.url, opens=tuple(self._opens.items()))

    async def _known(self, *path: str, slowest: float = 0.0) -> Json:
        """What is there; empty if there is nothing, or nothing that the bot may see."""
        try:
            return inside(await self.call("GET", path, slowest=slowest))
        except SendNever:
            return {}

    @property
    def _opens(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token.reveal()}"} if self.token.reveal() else {}

    async def call(
        self,
        method: str,
        path: tuple[str, ...],
        body: Json | bytes = b"",
        query: Mapping[str, str] | None = None,
        *,
        media: str = "",
        slowest: float = 0.0,
    ) -> Any:
        there = "/".join(quote(part, safe="") for part in ("media" if media else "client", "v3", *path))
        asked, headers = f"/_matrix/{there}?{urlencode(query or {})}", {"Content-Type": media or "application/json"}
        answer = await self._web.call(method, asked, body, headers | self._opens, slowest)
        told = self._web.told(answer)
        if answer.status == _OK:
            return told
        said = inside(told)
        if said.get("errcode") in _LOGGED_OUT:
            # Not lost: the host can bring the account back with a new token.
            fix = "Take its table out of segue.toml and run `segue add matrix` again."
            raise SendLater(f"the homeserver doesn't know the access token. {fix}")
        if answer.status == _UNAUTHORIZED and "session" in said:
            raise Unproven(said["session"])
        wait = said.get("retry_after_ms", _PATIENCE if answer.status == _TOO_MANY else None)
        seconds = wait / 1000 if isinstance(wait, int | float) else None
        raise self._web.refused(answer, seconds, f"{said.get('errcode')}: {said.get('error')}")


def _text(answer: object, name: str) -> str:
    if not (found := text_in(answer, name)):
        raise SendUnsure(f"the homeserver answered without {name}")
    return found
