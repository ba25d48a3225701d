"""The homeserver: the few calls of its client API that a bot makes, and what their failures mean."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from segue.adapters.matrix.events import SEALED, inside
from segue.adapters.shared.downloads import Limits, NotFetched, fetching
from segue.adapters.shared.web import Web
from segue.core.messages import File
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
_MXC = re.compile(r"mxc://([\w.:\[\]-]*[\w\]]/[\w-]+)", re.ASCII)
"""An address in the media store; dots alone would lead out of it."""


class Homeserver:
    """Calls one homeserver for one user; raises nothing but `SendError`s."""

    def __init__(self, url: str, user: str, token: Secret = Secret("")) -> None:  # noqa: B008 -- frozen
        self.url = url
        self.user = user
        self.space = user.partition(":")[2]
        self.token = token
        self._web = Web(f"the homeserver at {url}", url)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._web.close()

    async def whoami(self) -> tuple[str, str]:
        """The user and the device whose token it is; not every token is a device's."""
        told = await self._get("account", "whoami")
        return str(told.get("user_id")), str(told.get("device_id") or "")

    async def log_in(self, password: Secret) -> Secret:
        """An access token for a password; it is used from now on."""
        body = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": self.user},
            "password": password.reveal(),
            "initial_device_display_name": "Segue",
        }
        self.token = Secret(_text(await self.call("POST", ("login",), body), "access_token"))
        return self.token

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
        batch: Json = await self._get("sync", query=query | ({"since": since} if since else {}))
        _text(batch, "next_batch")
        return batch

    async def before(self, room: str, start: str, end: str = "") -> AsyncIterator[Json]:
        """The events of a room from one token back to another, the newest first."""
        query = {"dir": "b", "limit": str(_PAGE), "filter": json.dumps({"types": _TYPES})}
        while start:
            there = {"from": start} | ({"to": end} if end else {})
            page = await self._get("rooms", room, "messages", query=query | there)
            for event in _list(page.get("chunk")):
                yield event
            following = page.get("end")
            start = following if isinstance(following, str) and following != start else ""

    async def event(self, room: str, event: str) -> Json | None:
        """One event; None if there is no such, or none that may be seen."""
        found: Json | None = await self._get("rooms", room, "event", event, slowest=_SLOWEST_EVENT, missing=None)
        return found

    async def redacted(self, room: str, event: str) -> bool:
        """Whether somebody deleted an event."""
        found = await self.event(room, event) or {}
        return "redacted_because" in (found.get("unsigned") or {})

    async def state(self, room: str) -> list[Json]:
        """The state of a room now."""
        return _list(await self.call("GET", ("rooms", room, "state"), b""))

    async def goes_on(self, room: str) -> str:
        """The room that another one says stands for it; empty if it says none, or nothing that the bot may see."""
        told = await self._get("rooms", room, "state", "m.room.tombstone", missing={})
        return str(told.get("replacement_room", ""))

    async def rooms(self) -> list[str]:
        """The rooms that the bot is in."""
        return _list((await self._get("joined_rooms")).get("joined_rooms"))

    async def join(self, room: str, via: str) -> None:
        """Come into a room that a server knows."""
        await self.call("POST", ("join", room), {}, {"server_name": via, "via": via})

    async def leave(self, room: str) -> None:
        """Go out of a room."""
        await self.call("POST", ("rooms", room, "leave"), {})

    async def private_chats(self) -> frozenset[str]:
        """The rooms that the bot's account has marked as private chats."""
        return frozenset(room for rooms in (await self._private()).values() for room in rooms if isinstance(room, str))

    async def mark_private(self, person: str, room: str) -> None:
        """Mark a room as a private chat with somebody, as clients do."""
        marked = await self._private()
        rooms = [*dict.fromkeys([*marked.get(person, []), room])]
        await self.call("PUT", ("user", self.user, "account_data", PRIVATE_CHATS), {**marked, person: rooms})

    async def _private(self) -> dict[str, list[Any]]:
        told = await self.account_data(PRIVATE_CHATS)
        return {person: rooms for person, rooms in told.items() if isinstance(rooms, list)}

    async def send(self, room: str, transaction: str, content: Json) -> str:
        """Write; the same transaction gives the same event."""
        kind = SEALED if "ciphertext" in content else "m.room.message"
        path = ("rooms", room, "send", kind, transaction)
        return _text(await self.call("PUT", path, content), "event_id")

    async def redact(self, room: str, event: str) -> None:
        """Take the content of an event away; asked again, it is the same redaction."""
        await self.call("PUT", ("rooms", room, "redact", event, f"delete-{event}"), {})

    async def typing(self, room: str, milliseconds: int) -> None:
        """Show that the bot writes."""
        await self.call("PUT", ("rooms", room, "typing", self.user), {"typing": True, "timeout": milliseconds})

    async def account_data(self, kind: str) -> Json:
        """What the account keeps on the homeserver under a name."""
        found: Json = await self._get("user", self.user, "account_data", kind, missing={})
        return found

    async def upload_identity(self, keys: Json, password: Secret) -> None:
        """Let others know the keys by which the account vouches for its devices; this may need a password."""
        path = "/_matrix/client/v3/keys/device_signing/upload"
        answer = await self._web.call("POST", path, keys, self._opens)
        told = inside(self._web.told(answer))
        if answer.status == _UNAUTHORIZED and "session" in told and password.reveal():
            proof = {"type": "m.login.password", "session": told["session"], "password": password.reveal()}
            body = {**keys, "auth": {**proof, "identifier": {"type": "m.id.user", "user": self.user}}}
            await self.call("POST", ("keys", "device_signing", "upload"), body)
        elif answer.status == _UNAUTHORIZED and "session" in told:
            raise SendNever("the homeserver asks for the account's password: give it as `password`.")
        elif answer.status != _OK:
            raise self._web.refused(answer, None, f"{told.get('errcode')}: {told.get('error')}")

    async def upload(self, name: str, media: str, content: bytes) -> str:
        """Put a file into the media store; returns its mxc address."""
        path = f"/_matrix/media/v3/upload?{urlencode({'filename': name})}"
        return _text(await self._asked("POST", path, content, {"Content-Type": media}), "content_uri")

    async def download(self, mxc: str, keep: Callable[[AsyncIterator[bytes]], Awaitable[File]]) -> File:
        """Keep a file of the media store; raises `NotFetched` for one that can't be had."""
        if not (found := _MXC.fullmatch(mxc)):
            raise NotFetched("Its address is none of a media store.")
        url = f"{self.url.rstrip('/')}/_matrix/client/v1/media/download/{found[1]}"
        async with fetching(url, Limits(trusted=self.url, opens=tuple(self._opens.items()))) as chunks:
            return await keep(chunks)

    async def _get(
        self, *path: str, query: Mapping[str, str] | None = None, slowest: float = 0.0, missing: Any = SendNever
    ) -> Any:
        """The answer to a question; what `missing` says if there is nothing, or nothing that the bot may see."""
        try:
            answer = await self.call("GET", path, b"", query, slowest)
        except SendNever:
            if missing is SendNever:
                raise
            return missing
        if not isinstance(answer, dict):
            raise SendUnsure(f"{self.url} answered what no homeserver does")
        return answer

    async def call(
        self,
        method: str,
        path: tuple[str, ...],
        body: Json | bytes,
        query: Mapping[str, str] | None = None,
        slowest: float = 0.0,
    ) -> Any:
        """Call a method of the client API; returns what it answers."""
        there = "/".join(quote(part, safe="") for part in path)
        asked = f"?{urlencode(query)}" if query else ""
        return await self._asked(method, f"/_matrix/client/v3/{there}{asked}", body, {}, slowest)

    @property
    def _opens(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token.reveal()}"} if self.token.reveal() else {}

    async def _asked(
        self, method: str, path: str, body: Json | bytes, headers: dict[str, str], slowest: float = 0.0
    ) -> Any:
        answer = await self._web.call(method, path, body, headers | self._opens, slowest)
        told = self._web.told(answer)
        if answer.status == _OK:
            return told
        said = told if isinstance(told, dict) else {}
        if said.get("errcode") in _LOGGED_OUT:
            # Not lost: the host can bring the account back with a new token.
            raise SendLater("the homeserver doesn't know the access token. Run `segue add matrix` again.")
        wait = said.get("retry_after_ms", _PATIENCE if answer.status == _TOO_MANY else None)
        seconds = wait / 1000 if isinstance(wait, int | float) else None
        raise self._web.refused(answer, seconds, f"{said.get('errcode')}: {said.get('error')}")


def _list(told: object) -> list[Any]:
    return told if isinstance(told, list) else []


def _text(answer: object, name: str) -> str:
    """A text that every answer of its kind has."""
    if not isinstance(answer, dict) or not isinstance(found := answer.get(name), str):
        raise SendUnsure(f"the homeserver answered without {name}")
    return found
