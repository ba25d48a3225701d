"""A window on a lane: a terminal or a page, with the whole transcript of its session, live, whoever speaks where.

The wire is JSON objects, one a frame. From the window: `{"say": TEXT, "id": ID}`, `{"list": true}`,
`{"search": WORDS}`, `{"resume": SESSION}`. To the window:
`{"session": {"id", "title"}, "transcript": [...]}` when it opens and whenever what was said isn't what it showed,
`{"entries": [...]}` as they come, `{"growing": TEXT}` while a reply is written, `{"waiting": N}`,
`{"notice": TEXT}` for what is in no transcript, and `{"accepted": ID}` once a message is durable.
A window that lost its connection opens anew and is shown all of it again, so nothing is lost or doubled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from segue.adapters.local import HOSTS, Local
from segue.core.contracts import Accepted, Letter
from segue.core.lanes import Address, Kind, Lane, Person, Place
from segue.core.messages import Arrival, Delivery, Speaker, Text
from segue.core.moves import Resume
from segue.core.transcripts import Entry, Role, Session, Tip
from segue.core.values import SessionId, Value
from segue.errors import Refused
from segue.runtime.watches import Changed, Growing, Sight, Watches
from segue.store import transcripts, turns
from segue.store.store import Store

_SHORT = 80

Send = Callable[[dict[str, Any]], Awaitable[None]]


class Seat(Value, frozen=True):
    """Whose window it is."""

    chat: str
    """A terminal's user, or a browser."""
    name: str


class Host(Protocol):
    """What a window needs of the gateway."""

    store: Store
    watches: Watches

    async def accept(self, arrival: Arrival | Letter) -> Accepted:
        """Make an arrival durable."""
        ...


class Window:
    """One window on a lane."""

    def __init__(self, gateway: Host, place: Local, seat: Seat, send: Send) -> None:
        self._gateway = gateway
        self._local = place
        self._seat = seat
        self._send = send
        self._place = Place(Address(place.platform, place.account, chat=seat.chat), Kind.DM)
        self._identity = next(host for host in HOSTS if host.platform == place.platform)
        self._sights: asyncio.Queue[Sight | Delivery] = asyncio.Queue()
        self._session: SessionId | None = None
        self._shown: list[Tip] = []
        self._answered = 0
        """The newest turn whose answer is shown."""
        self._look_away: Callable[[], None] = _nothing

    async def show(self) -> None:
        """Show what happens until cancelled."""
        store = self._gateway.store
        person = await store.person(self._identity, self._seat.name)
        lane = await store.lane(self._place, person)
        close = self._local.look(self._seat.chat, self._sights.put_nowait)
        try:
            await self._begin(lane, person)
            await self._refresh(lane)
            while True:
                await self._handle(await self._sights.get(), lane)
        finally:
            close()
            self._look_away()

    async def say(self, id: str, text: str, at: float) -> None:
        """The person says something."""
        speaker = Speaker(self._identity, self._seat.name)
        await self._gateway.accept(Arrival(self._place, id, speaker, (Text(text),), at))
        await self._send({"accepted": id})
        self._sights.put_nowait(Changed())

    async def list_sessions(self) -> None:
        """Show the person's own sessions, the last used first."""
        store = self._gateway.store
        person = await store.person(self._identity)
        shown = []
        for session in await store.sessions(person, count=50):
            last = await store.driver.read(transcripts.entry, session.tip)
            shown.append({**_session(session), "text": last.text[:_SHORT] if last else ""})
        await self._send({"sessions": shown})

    async def search(self, words: str) -> None:
        """Show the sessions in which something was said."""
        store = self._gateway.store
        person = await store.person(self._identity)
        found: dict[str, dict[str, Any]] = {}
        for entry in await store.search(words, person, count=50):
            if entry.tip.session not in found:
                session = await store.session(entry.tip.session, person)
                found[session.id] = {**_session(session), "text": entry.text[:_SHORT]}
        await self._send({"found": list(found.values())})

    async def resume(self, session: str) -> None:
        """Turn to another of the person's sessions."""
        store = self._gateway.store
        person = await store.person(self._identity)
        lane = await store.lane(self._place, person)
        try:
            await store.move(Resume(lane, SessionId(session)), person)
        except Refused as refused:
            await self._send({"notice": str(refused)})
        self._sights.put_nowait(Changed())

    async def _begin(self, lane: Lane, person: Person) -> None:
        """A new window starts on the person's last session."""
        store = self._gateway.store
        if await store.bound(lane) is None and (last := await store.sessions(person, count=1)):
            try:
                await store.move(Resume(lane, last[0].id), person)
            except Refused as refused:
                await self._send({"notice": str(refused)})

    async def _handle(self, sight: Sight | Delivery, lane: Lane) -> None:
        match sight:
            case Growing():
                # One that waited here while its whole answer was shown comes too late.
                if sight.turn > self._answered:
                    await self._send({"growing": sight.text})
            case Changed():
                await self._refresh(lane)
            case Delivery():
                if not sight.entry:
                    await self._send({"notice": sight.text})
                await self._refresh(lane)

    async def _refresh(self, lane: Lane) -> None:
        """Show what is new; all of it if what was shown isn't what was said any more."""
        store = self._gateway.store
        session = await store.bound(lane)
        if session is None:
            if self._session is not None or not self._shown:
                await self._send({"session": None, "transcript": []})
            self._turn_to(None)
            return
        path = await store.path(session.id)
        tips = [entry.tip for entry in path]
        if session.id != self._session or tips[: len(self._shown)] != self._shown:
            self._turn_to(session.id)
            await self._send({"session": _session(session), "transcript": [_entry(entry) for entry in path]})
        elif len(tips) > len(self._shown):
            await self._send({"session": _session(session), "entries": [_entry(e) for e in path[len(self._shown) :]]})
        self._shown = tips
        self._answered = max((entry.turn for entry in path if entry.tip.session == session.id), default=0)
        waiting = await store.driver.read(turns.waiting, session.id, 100)
        await self._send({"waiting": len(waiting)})

    def _turn_to(self, session: SessionId | None) -> None:
        self._look_away()
        self._session, self._shown, self._answered = session, [], 0
        self._look_away = self._gateway.watches.watch(session, self._sights.put_nowait) if session else _nothing


def _nothing() -> None:
    """Nothing is watched yet."""


def _session(session: Session) -> dict[str, Any]:
    return {"id": session.id, "title": session.title}


def _entry(entry: Entry) -> dict[str, Any]:
    role = entry.author.role
    name = entry.author.name if role is Role.PERSON else ""
    return {"role": str(role), "name": name, "text": entry.text, "at": entry.at}
