"""The homeserver: the few calls of its client API that a bot makes, and what their failures mean."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import aiohttp
from mautrix.api import HTTPAPI, Method, Path, PathBuilder
from mautrix.errors import MatrixConnectionError, MatrixInvalidToken, MatrixRequestError

from segue.adapters.shared.downloads import Limits, NotFetched, fetching
from segue.adapters.shared.outcomes import refused
from segue.core.messages import File
from segue.core.values import Plain, Secret
from segue.errors import SendLater, SendNever, SendUnsure

Json = dict[str, Plain]

_SLOWEST = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=110.0)
"""Longer than the homeserver holds a sync that has nothing to tell."""
_SLOWEST_EVENT = 5.0
"""Everything that is told after it waits for it."""
_STATE = ("encryption", "member", "name", "topic", "join_rules", "tombstone")
_TYPES = ["m.room.message", "m.room.redaction", "m.room.encrypted", *(f"m.room.{kind}" for kind in _STATE)]
PRIVATE_CHATS = "m.direct"
"""The account data that lists them."""
_PAGE = 100
_NOTHING: Json = {"not_types": ["*"]}
_MXC = re.compile(r"mxc://[\w.:\[\]-]*[\w\]]/[\w-]+", re.ASCII)
"""An address in the media store; dots alone would lead out of it."""


class Homeserver:
    """Calls one homeserver for one user; raises nothing but `SendError`s."""

    def __init__(self, url: str, user: str, token: Secret = Secret("")) -> None:  # noqa: B008 -- frozen
        self.url = url
        self.user = user
        self.space = user.partition(":")[2]
        self._token = token
        self._made: HTTPAPI | None = None

    @property
    def _api(self) -> HTTPAPI:
        """Made on first use: it wants a running loop."""
        if self._made is None:
            session = aiohttp.ClientSession(timeout=_SLOWEST, raise_for_status=_heed_limits)
            self._made = HTTPAPI(self.url, self._token.reveal(), client_session=session, default_retry_count=0)
        return self._made

    async def close(self) -> None:
        """Let go of the connections."""
        if self._made is not None:
            await self._made.session.close()
            self._made = None

    async def whoami(self) -> Json:
        """Whose token it is."""
        return await self._call(Method.GET, Path.v3.account.whoami)

    async def log_in(self, password: Secret) -> Secret:
        """An access token for a password; it is used from now on."""
        body = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": self.user},
            "password": password.reveal(),
            "initial_device_display_name": "Segue",
        }
        answer = await self._call(Method.POST, Path.v3.login, body)
        self._token = Secret(str(answer["access_token"]))
        self._api.token = self._token.reveal()
        return self._token

    async def begin_chat(self, person: str) -> str:
        """A new private room with somebody, which isn't encrypted; returns its id."""
        body = {"preset": "trusted_private_chat", "is_direct": True, "invite": [person]}
        room = str((await self._call(Method.POST, Path.v3.createRoom, body))["room_id"])
        await self.mark_private(person, room)
        return room

    async def sync(self, since: str, wait: int) -> Json:
        """What happened since then; waits up to so many milliseconds for something to happen."""
        room: Json = {
            "timeline": {"types": _TYPES, "limit": _PAGE if since else 1},
            "state": {"types": _TYPES, "lazy_load_members": True},
            "ephemeral": _NOTHING,
            "account_data": _NOTHING,
        }
        chosen = json.dumps({"room": room, "presence": _NOTHING, "account_data": {"types": [PRIVATE_CHATS]}})
        query = {"filter": chosen, "timeout": str(wait), "set_presence": "online"}
        return await self._call(Method.GET, Path.v3.sync, query=query | ({"since": since} if since else {}))

    async def before(self, room: str, start: str, end: str = "") -> AsyncIterator[Json]:
        """The events of a room from one token back to another, the newest first."""
        query = {"dir": "b", "limit": str(_PAGE), "filter": json.dumps({"types": _TYPES})}
        while start:
            there = {"from": start} | ({"to": end} if end else {})
            page = await self._call(Method.GET, Path.v3.rooms[room].messages, query=query | there)
            for event in page.get("chunk", []):
                yield event
            start = page.get("end", "")

    async def event(self, room: str, event: str) -> Json | None:
        """One event; None if there is no such, or none that may be seen."""
        try:
            async with asyncio.timeout(_SLOWEST_EVENT):
                return await self._call(Method.GET, Path.v3.rooms[room].event[event])
        except SendNever:
            return None
        except TimeoutError as error:
            raise SendUnsure(f"{self.url} doesn't tell an event") from error

    async def state(self, room: str) -> list[Json]:
        """How a room is now."""
        found: Any = await self._call(Method.GET, Path.v3.rooms[room].state)
        return list(found)

    async def goes_on(self, room: str) -> str:
        """The room that another one says stands for it; empty if it says none, or nothing that the bot may see."""
        try:
            told = await self._call(Method.GET, Path.v3.rooms[room].state["m.room.tombstone"])
        except SendNever:
            return ""
        return str(told.get("replacement_room", ""))

    async def rooms(self) -> list[str]:
        """The rooms that the bot is in."""
        return list((await self._call(Method.GET, Path.v3.joined_rooms))["joined_rooms"])

    async def join(self, room: str, via: str) -> None:
        """Come into a room that a server knows."""
        await self._call(Method.POST, Path.v3.join[room], query={"server_name": via, "via": via})

    async def leave(self, room: str) -> None:
        """Go out of a room."""
        await self._call(Method.POST, Path.v3.rooms[room].leave)

    async def private_chats(self) -> frozenset[str]:
        """The rooms that the bot's account has marked as private chats."""
        return frozenset(room for rooms in (await self._private()).values() for room in rooms)

    async def mark_private(self, person: str, room: str) -> None:
        """Mark a room as a private chat with somebody, as clients do."""
        marked = await self._private()
        rooms = [*dict.fromkeys([*marked.get(person, []), room])]
        await self._call(Method.PUT, Path.v3.user[self.user].account_data[PRIVATE_CHATS], {**marked, person: rooms})

    async def _private(self) -> dict[str, list[str]]:
        try:
            told = await self._call(Method.GET, Path.v3.user[self.user].account_data[PRIVATE_CHATS])
        except SendNever:
            return {}  # nothing was ever marked
        return {person: rooms for person, rooms in told.items() if isinstance(rooms, list)}

    async def send(self, room: str, transaction: str, content: Json) -> str:
        """Write; the same transaction gives the same event."""
        path = Path.v3.rooms[room].send["m.room.message"][transaction]
        return str((await self._call(Method.PUT, path, content))["event_id"])

    async def redact(self, room: str, event: str) -> None:
        """Take the content of an event away; asked again, it is the same redaction."""
        await self._call(Method.PUT, Path.v3.rooms[room].redact[event][f"delete-{event}"], {})

    async def typing(self, room: str, milliseconds: int) -> None:
        """Show that the bot writes."""
        path = Path.v3.rooms[room].typing[self.user]
        await self._call(Method.PUT, path, {"typing": True, "timeout": milliseconds})

    async def marked(self, room: str, mark: str) -> bool:
        """Whether the bot has put this mark on a room."""
        path = Path.v3.user[self.user].rooms[room].account_data[mark]
        try:
            return bool(await self._call(Method.GET, path))
        except SendNever:
            return False

    async def mark(self, room: str, mark: str) -> None:
        """Put a mark on a room, which only the bot sees."""
        await self._call(Method.PUT, Path.v3.user[self.user].rooms[room].account_data[mark], {"done": True})

    async def upload(self, name: str, media: str, content: bytes) -> str:
        """Put a file into the media store; returns its mxc address."""
        path = PathBuilder("_matrix/media/v3/upload")
        answer = await self._call(Method.POST, path, content, {"filename": name}, {"Content-Type": media})
        return str(answer["content_uri"])

    async def download(self, mxc: str, keep: Callable[[AsyncIterator[bytes]], Awaitable[File]]) -> File:
        """Keep a file of the media store; raises `NotFetched` for one that can't be had."""
        if not _MXC.fullmatch(mxc):
            raise NotFetched("Its address is none of a media store.")
        url = str(self._api.get_download_url(mxc, authenticated=True))
        opens = (("Authorization", f"Bearer {self._token.reveal()}"),)
        async with fetching(url, Limits(trusted=self.url, opens=opens)) as chunks:
            return await keep(chunks)

    async def _call(
        self,
        method: Method,
        path: PathBuilder,
        content: Json | bytes | None = None,
        query: Mapping[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Json:
        said = method is not Method.GET  # what people write stays out of the library's log
        try:
            answer: Json = await self._api.request(method, path, content, headers, query, sensitive=said)
        except MatrixInvalidToken as error:
            # Not lost: the host can bring the account back with a new token.
            raise SendLater("the homeserver doesn't know the access token. Run `segue add matrix` again.") from error
        except MatrixRequestError as error:
            raise refused("the homeserver", error.http_status, why=f"{error.errcode}: {error.message}") from error
        except MatrixConnectionError as error:
            if isinstance(error.__cause__, aiohttp.ClientConnectorError):
                raise SendLater(f"nobody answers at {self.url}") from error
            raise SendUnsure(f"the connection to {self.url} broke off") from error
        except (TimeoutError, ValueError) as error:
            raise SendUnsure(f"{self.url} answered too late, or not in JSON") from error
        return answer


async def _heed_limits(response: aiohttp.ClientResponse) -> None:
    """Raise for a rate limit, with the time it asks for: mautrix's own error doesn't carry that."""
    if response.status != 429:
        return
    try:
        told = json.loads(await response.read())
        seconds = float(told["retry_after_ms"]) / 1000
    except (ValueError, KeyError, TypeError):
        seconds = 5.0
    raise SendLater("the homeserver asks for patience", seconds)
