"""A window on a lane: a terminal or a page, with the whole transcript of its session, live, whoever speaks where.

The wire is JSON objects, one a frame. From the window: `{"say": TEXT, "id": ID}`, `{"list": true}`,
`{"search": WORDS}`, `{"resume": SESSION}`, `{"commands": true}`, `{"invite": true}` for a way to take the conversation
along, answered by `{"invitation": {"code", "links", "typed"}}`, and `{"handoff": DESTINATION, "session": SESSION,
"yes": BOOLEAN}`, answered by `{"refused": TEXT, "mistake": BOOLEAN}` if that can't be. To the window:
`{"session": {"id", "title"}, "transcript": [...]}` when it opens and whenever what was said isn't what it showed,
`{"session": {...}, "entries": [...]}` as they come, `{"waiting": [...]}` after each of these with what has been said
and not answered, `{"handoff": {"id", "state", "step", "to", "error"}}` while the conversation goes elsewhere,
`{"growing": TEXT}` while a reply is written, `{"notice": TEXT, "files": [...]}` for what is in no transcript, and
`{"accepted": ID}` once a message is durable, before it is shown among those that wait or were answered.
A file is `{"name", "media", "where"}`: a path in the data folder, or wherever else its platform keeps it.
A window that lost its connection opens anew and is shown all of it again, so nothing is lost or doubled.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

from segue.changes.exchange import handoffs, turns
from segue.changes.sessions import transcripts
from segue.core.commands import Spec
from segue.core.contracts.adapters import Accepted, Letter
from segue.core.handoffs import Handoff
from segue.core.lanes import Address, Kind, Lane, Person, Place
from segue.core.messages import Arrival, Aside, Delivery, File, Speaker, Text, plain_text
from segue.core.moves import Consent, Resume
from segue.core.transcripts import Entry, Role, Session, Tip
from segue.core.turns import Turn, TurnKind
from segue.core.values import SessionId, Value
from segue.core.windows import HOSTS
from segue.errors import Invalid, Refused, StoreError
from segue.runtime.invitations import Invitation
from segue.runtime.windows.local import Local
from segue.runtime.windows.watchers import Arrived, Changed, Growing, Moved, Sight, Watches
from segue.store import Store

_SHORT = 80
_MOST_WAITING = 100
_RECENT = 50

Send = Callable[[dict[str, Any]], Awaitable[None]]


class Seat(Value, frozen=True):
    """Whose window it is."""

    chat: str
    """A terminal's user, a browser, or a script's `USER:SESSION`."""
    name: str

    @property
    def is_scripts(self) -> bool:
        """Whether it is a script's, which says itself which session it means."""
        return ":" in self.chat


class Host(Protocol):
    """What a window needs of the gateway."""

    store: Store
    watches: Watches

    @property
    def commands(self) -> Sequence[Spec]:
        """What people can type."""
        ...

    async def accept(self, arrival: Arrival | Letter) -> Accepted:
        """Make an arrival durable."""
        ...

    async def invite(self, lane: Lane, person: Person) -> Invitation | None:
        """A way to take a lane's conversation along to another platform."""
        ...

    async def hand_off(
        self, session: SessionId, destination: str, person: Person, consent: Consent, window: Lane
    ) -> Handoff:
        """Hand a session off; raises `Refused` or `Invalid` if that can't be."""
        ...


async def meet_host(store: Store) -> None:
    """Whoever opens a terminal or a page is known before the gateway starts, which makes all who are the host one."""
    for host in HOSTS:
        await store.person(host)


class Window:
    """One window on a lane."""

    def __init__(self, gateway: Host, place: Local, seat: Seat, send: Send) -> None:
        self._gateway = gateway
        self._local = place
        self._seat = seat
        self._send = send
        self._place = Place(Address(place.platform, place.account, chat=seat.chat), Kind.DM)
        self._identity = next(host for host in HOSTS if host.platform == place.platform)
        self._sights: deque[Sight | Delivery] = deque()
        self._seen = asyncio.Event()
        self._telling = asyncio.Lock()
        """Held from accepting a message to saying so: it must not be shown before."""
        self._session: SessionId | None = None
        self._named: dict[str, Any] = {}
        self._shown: list[Tip] | None = None
        """None until anything was shown."""
        self._told: dict[str, int] = defaultdict(int)
        """The last entry of each session that was shown here."""
        self._answered = 0
        """The newest turn whose answer is shown."""
        self._growing = 0
        """The turn whose answer was last shown growing."""
        self._look_away: Callable[[], None] = _nothing
        self._look_after: Callable[[], None] = _nothing
        self._following: str | None = None
        """The handoff of another lane that is shown here."""
        self._handoff: dict[str, str] = {}
        """What was last shown of a handoff from here."""
        self._past = ""
        """The handoff from here that was over before anybody looked."""

    async def show(self) -> None:
        """Show what happens until cancelled."""
        store = self._gateway.store
        person = await store.person(self._identity, self._seat.name)
        lane = await store.lane(self._place, person)
        close = self._local.look(self._seat.chat, self._see)
        leave = self._gateway.watches.watch(lane, self._see)
        try:
            last = await store.driver.read(handoffs.last_from, lane)
            self._past = last.id if last is not None and last.settled is not None else ""
            await self._begin(lane, person)
            await self._refresh(lane)
            while True:
                await self._seen.wait()
                self._seen.clear()
                while self._sights:
                    await self._handle(self._sights.popleft(), lane)
        finally:
            leave()
            close()
            self._look_away()
            self._look_after()

    async def say(self, id: str, text: str, at: float) -> None:
        """The person says something."""
        speaker = Speaker(self._identity, self._seat.name)
        async with self._telling:
            await self._gateway.accept(Arrival(self._place, id, speaker, (Text(text),), at))
            await self._send({"accepted": id})
        await self._tell()

    async def invite(self) -> None:
        """Show how the conversation can be taken along, if it can."""
        store = self._gateway.store
        person = await store.person(self._identity)
        found = await self._gateway.invite(await store.lane(self._place, person), person)
        if found is not None:
            await self._send({"invitation": {"code": found.code, "links": found.links, "typed": found.typed}})

    async def hand_off(self, session: str, destination: str, consent: Consent) -> None:
        """Hand a session off, wherever it is spoken to, and show how far that is."""
        store = self._gateway.store
        person = await store.person(self._identity)
        lane = await store.lane(self._place, person)
        try:
            asked = await self._gateway.hand_off(SessionId(session), destination, person, consent, lane)
        except (Refused, Invalid, StoreError) as error:
            await self._send({"refused": str(error), "mistake": isinstance(error, Invalid)})
            return
        self._following = asked.id
        self._look_after = self._gateway.watches.watch(asked.session, self._see)
        self._see(Moved())

    async def list_commands(self) -> None:
        """Show what can be typed."""
        known = [{"name": spec.name, "usage": spec.usage, "does": spec.does} for spec in self._gateway.commands]
        await self._send({"commands": known})

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
        await self._tell()

    async def _tell(self) -> None:
        """Every window on this lane looks again, and every one on its session."""
        store = self._gateway.store
        lane = await store.lane(self._place, await store.person(self._identity))
        self._gateway.watches.tell(lane, Arrived())
        if session := await store.bound(lane):
            self._gateway.watches.tell(session.id, Arrived())

    def _see(self, sight: Sight | Delivery) -> None:
        """Something happened; of what the next one says again only the last is kept, however slow the window is."""
        if not isinstance(sight, Delivery) and self._sights and isinstance(self._sights[-1], type(sight)):
            self._sights.pop()
        self._sights.append(sight)
        self._seen.set()

    async def _begin(self, lane: Lane, person: Person) -> None:
        """A new window starts on the person's last session, of those that they didn't close."""
        if self._seat.is_scripts:
            return
        store = self._gateway.store
        recent = await store.sessions(person, count=_RECENT) if await store.bound(lane) is None else []
        if last := next((session for session in recent if session.closed is None), None):
            try:
                await store.move(Resume(lane, last.id), person)
            except Refused as refused:
                await self._send({"notice": str(refused)})

    async def _handle(self, sight: Sight | Delivery, lane: Lane) -> None:
        match sight:
            case Growing():
                if sight.turn != self._growing:
                    await self._refresh(lane)
                    self._growing = sight.turn
                # One that waited here while its whole answer was shown comes too late.
                if sight.turn > self._answered:
                    await self._send({"growing": sight.text})
            case Arrived() | Changed():
                await self._refresh(lane)
            case Moved():
                await self._show_handoff(lane)
            case Delivery():
                await self._refresh(lane)
                # An answer in a session that this lane left before it was there stands nowhere else here.
                left = sight.session != self._session and sight.entry > self._told[sight.session]
                if left or not sight.entry:
                    await self._send({"notice": sight.text, "files": _files([sight.file])})

    async def _show_handoff(self, lane: Lane) -> None:
        """How far the conversation is on its way to another place; once it is there, this lane has let it go."""
        driver = self._gateway.store.driver
        followed = self._following
        found = await (driver.read(handoffs.read, followed) if followed else driver.read(handoffs.last_from, lane))
        if found is None or found.id == self._past:
            return
        shown = {
            "id": found.id,
            "state": str(found.state),
            "step": str(found.progress),
            "to": found.place,
            "error": found.error or "",
        }
        if shown != self._handoff:
            self._handoff = shown
            await self._send({"handoff": shown})
        if found.settled is not None:
            await self._refresh(lane)

    async def _refresh(self, lane: Lane) -> None:
        """Show what is new; all of it if what was shown isn't what was said any more."""
        store = self._gateway.store
        async with self._telling:
            session = await store.bound(lane)
            # Watched before it is read, so that nothing happens in between unseen.
            named = self._turn_to(session)
            path = await store.path(session.id) if session else []
            waiting = await store.driver.read(turns.waiting, session.id, _MOST_WAITING) if session else []
            tips = [entry.tip for entry in path]
            if self._shown is None or tips[: len(self._shown)] != self._shown:
                await self._send({**named, "transcript": _entries(path)})
            elif len(tips) > len(self._shown) or named != self._named:
                await self._send({**named, "entries": _entries(path[len(self._shown) :])})
            self._shown, self._named = tips, named
            for tip in tips:
                self._told[tip.session] = max(self._told[tip.session], tip.n)
            self._answered = max((e.turn for e in path if session and e.tip.session == session.id), default=0)
            await self._send({"waiting": [_waiting(turn) for turn in waiting if turn.kind is TurnKind.ARRIVAL]})

    def _turn_to(self, session: Session | None) -> dict[str, Any]:
        """Watch a session; if it isn't the one that was shown, all of it is new."""
        id = session.id if session else None
        if id != self._session:
            self._look_away()
            self._look_away = self._gateway.watches.watch(id, self._see) if id else _nothing
            self._session, self._shown, self._growing = id, None, 0
        return {"session": _session(session) if session else None}


def _nothing() -> None:
    """Nothing is watched yet."""


def _session(session: Session) -> dict[str, Any]:
    return {"id": session.id, "title": session.title}


def _entries(path: Sequence[Entry]) -> list[dict[str, Any]]:
    """What people are shown of a path: not what the agent alone was told."""
    return [_entry(entry) for entry in path if not all(isinstance(part, Aside) for part in entry.parts)]


def _entry(entry: Entry) -> dict[str, Any]:
    role = entry.author.role
    name = entry.author.name if role is Role.PERSON else ""
    return {"role": str(role), "name": name, "text": entry.text, "at": entry.at, "files": _files(entry.parts)}


def _files(parts: Iterable[object]) -> list[dict[str, str]]:
    """The files among parts."""
    return [{"name": p.name, "media": p.media, "where": p.where} for p in parts if isinstance(p, File)]


def _waiting(turn: Turn) -> dict[str, Any]:
    return {"role": str(Role.PERSON), "name": turn.name, "text": plain_text(turn.parts), "at": turn.accepted}
