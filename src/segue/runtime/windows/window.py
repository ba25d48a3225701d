"""A window on a lane: a terminal, a page or a script, and in it a session's transcript, live, whoever speaks where."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Self
from uuid import uuid4

from segue.changes.exchange import answers, handoffs, questions, turns
from segue.changes.sessions import lists, readings, sessions
from segue.core.commands import Command, parse
from segue.core.contracts.adapters import Files
from segue.core.contracts.database import Clock
from segue.core.contracts.wakes import Topic
from segue.core.handoffs import ALLOW_READERS
from segue.core.lanes import Address, Identity, Kind, Lane, Person, Place, also_read_in
from segue.core.messages import Arrival, Delivery, File, Parts, Speaker, Text, plain_text
from segue.core.moves import Release, Renew, Resume
from segue.core.transcripts import Session, Tip
from segue.core.turns import Turn, TurnKind
from segue.core.values import SessionId, Value
from segue.core.windows import EDITOR, HOSTS, WEB
from segue.errors import Invalid, Refusal, Refused, StoreError
from segue.runtime.gateway import Gateway
from segue.runtime.windows.frames import (
    LISTED,
    AcceptedFrame,
    AnsweredFrame,
    Begins,
    CommandsFrame,
    FoundFrame,
    GrowingFrame,
    GrowthFrame,
    HandoffFrame,
    HandoffRequest,
    InvitationFrame,
    NoticeFrame,
    OpenRequest,
    QuestionsFrame,
    RefusedFrame,
    SaidFile,
    SayRequest,
    SessionsFrame,
    Shown,
    ShownAnswer,
    ShownCommand,
    ShownQuestion,
    ShownTurn,
    WaitingFrame,
)
from segue.runtime.windows.local import Local
from segue.runtime.windows.view import WindowView, answer, listed, shown
from segue.runtime.windows.watchers import Arrived, Changed, Forgotten, Growing, HandoffMoved, Sight, SomethingAsked
from segue.store import Store

_MOST_WAITING = 100
_LOOKED_AT = 8
"""Messages that wait for their answers and are looked at each time."""
_INVITES = Command("handoff")
"""The command that asks how the conversation can be taken along."""

Send = Callable[[Shown], Awaitable[None]]


class Seat(Value, frozen=True):
    """A window's place and person."""

    chat: str
    """A terminal's user, a browser, or a lane beside those."""
    name: str
    beside: str = ""
    """The chat that another window looks at now, if this one was opened beside it."""
    identity: Identity | None = None
    """What its person is known by; None for the host."""


async def meet_host(store: Store) -> None:
    """Whoever opens a terminal or a page is known before the gateway starts, which makes all who are the host one."""
    for host in HOSTS:
        await store.person(host)


def not_yours(session: str) -> str:
    """Say that a session isn't there, or somebody else's: the command that resumes one says the same."""
    return f"No session of yours is called “{session}”."


class Window:
    """One window on a lane."""

    def __init__(
        self, gateway: Gateway, place: Local, seat: Seat, send: Send, clock: Clock, files: Files | None = None
    ) -> None:
        self._files = files
        self._gateway = gateway
        self._driver = gateway.store.driver
        self._local = place
        self._seat = seat
        self._send = send
        self._clock = clock
        self._place = Place(Address(place.platform, place.account, chat=seat.chat), Kind.DM)
        self._identity = seat.identity or next(host for host in HOSTS if host.platform == place.platform)
        self.person: Person
        self.lane: Lane
        self._view: WindowView
        self._sights: deque[Sight | Delivery] = deque()
        self._seen = asyncio.Event()
        self._begun = asyncio.Event()
        """Set once its lane speaks to what the window opens on: what is asked of it before that would move that."""
        self._telling = asyncio.Lock()
        """Held from accepting a message to saying so: it must not be shown before."""
        self._unanswered: dict[str, Command | None] = {}
        """Messages that were said here and have no answer yet, with the command that each is."""
        self._going: dict[str, SessionId] = {}
        """Sessions that this window asked to turn to, by the message that did."""
        self._leaving: dict[str, tuple[SessionId, str]] = {}
        """Sessions that it asked to hand off, likewise, each with the handoff of it that was the last before."""
        self._told: set[str] = set()
        """Messages that a notice has answered which isn't shown yet."""
        self._newest = ""
        """The key of the notice that came last: it is here, though its sending may not be written down yet."""
        self._growing = 0
        """The turn whose answer was last shown growing."""
        self._grown = ""
        """The words of it that were sent."""
        self._parts: Parts = ()
        """The parts of it that were sent, to a window that shows it whole."""
        self._whole = False
        self._look_away: Callable[[], None] = _nothing
        self._look_after: Callable[[], None] = _nothing
        self._following: str | None = None
        """The handoff of another lane that is shown here."""
        self._handoff: HandoffFrame | None = None
        """The step of a handoff from here that was shown last."""
        self._questions = QuestionsFrame()
        """Questions to the person that are shown."""
        self._past = ""
        """The handoff from here that was over before anybody looked."""

    async def open(self, asked: OpenRequest) -> Self:
        """Find the lane that it looks at."""
        store = self._gateway.store
        self.person = await store.person(self._identity, self._seat.name)
        if asked.session is not None and asked.session == asked.lane and asked.begins is not Begins.NEW:
            # A lane is named after a session only if there is such a session.
            await self._driver.read(sessions.own, asked.session, self.person.id)
        self.lane = await store.lane(self._place, self.person)
        merged = await store.merges(self.person)
        self._view = WindowView(
            self._driver, asked, frozenset({self.person.id, *(merge.gone for merge in merged)}), self._place.address
        )
        self._whole = asked.whole
        last = await self._driver.read(handoffs.last_from, self.lane)
        self._past = last.id if last is not None and last.settled is not None else ""
        return self

    async def show(self, asked: OpenRequest) -> None:
        """Show what happens until cancelled."""
        close = self._local.look(self._seat.chat, self._see)
        leave = self._gateway.watches.watch(self.lane, self._see)
        stop_asking = self._gateway.watches.watch(Topic.ASKED, self._see)
        try:
            await self._begin(asked)
            self._begun.set()
            await self._refresh()
            await self._show_questions()
            while True:
                await self._seen.wait()
                self._seen.clear()
                while self._sights:
                    await self._handle(self._sights.popleft())
        finally:
            leave()
            stop_asking()
            close()
            self._look_away()
            self._look_after()

    async def say(self, asked: SayRequest) -> None:
        """The person says something."""
        await self._begun.wait()
        async with self._telling:
            command = parse(asked.text)
            self._unanswered[asked.id] = command if isinstance(command, Command) else None
            try:
                await self._accept(asked.id, asked.text, [await self._keep(file) for file in asked.files])
            except (StoreError, Invalid):
                del self._unanswered[asked.id]
                raise
            await self._send(AcceptedFrame(asked.id))
        await self._tell()

    async def resume(self, session: SessionId) -> None:
        """Turn to another session."""
        await self._begun.wait()
        await self._go(session)

    async def _go(self, session: SessionId) -> None:
        """Turn to another session, by the command that does it everywhere."""
        id = uuid4().hex
        self._going[id] = session
        await self._accept(id, f"/resume {session}")
        await self._tell()

    async def earlier(self, cursor: Tip) -> None:
        """Show what came before; a cursor of what isn't shown any more is of no use."""
        async with self._telling:
            page = await self._view.earlier(cursor)
            if page is not None:
                await self._send(page)

    async def hand_off(self, asked: HandoffRequest) -> None:
        """Hand a session off, wherever it is spoken to, by the command that does it everywhere."""
        await self._begun.wait()
        id, last = uuid4().hex, await self._driver.read(handoffs.last_of, asked.session)
        self._leaving[id] = asked.session, last.id if last else ""
        consent = ALLOW_READERS if asked.yes else ""
        await self._accept(id, f"/handoff {asked.session} {asked.destination} {consent}".rstrip())

    async def _follow(self, session: SessionId, before: str, answer: str) -> None:
        """Show how far a handoff is that this window asked for; the answer, if none began."""
        begun = await self._driver.read(handoffs.last_of, session)
        if begun is None or begun.id == before:
            await self._send(RefusedFrame(answer))
            return
        self._following = begun.id
        self._look_after()
        self._look_after = self._gateway.watches.watch(session, self._see)
        self._see(HandoffMoved())

    async def list_commands(self) -> None:
        """Show the commands that can be typed."""
        known = tuple(ShownCommand(spec.name, spec.usage, spec.does) for spec in self._gateway.commands)
        await self._send(CommandsFrame(known))

    async def list_sessions(self, after: SessionId | None = None) -> None:
        """Show the person's own sessions, the last used first."""
        found = await self._driver.read(lists.recent, self.person.id, LISTED, after)
        await self._send(SessionsFrame(tuple(listed(each.session, each.text) for each in found)))

    async def search(self, words: str) -> None:
        """Show the sessions in which something was said."""
        found = await self._driver.read(lists.having, self.person.id, words, LISTED)
        await self._send(FoundFrame(words, tuple(listed(each.session, each.text) for each in found)))

    async def _keep(self, file: SaidFile) -> File:
        if self._files is None:
            raise Invalid("file", "files aren't kept here", "Say it in words.")
        return await self._files.keep(file.name, file.media, _once(file.data))

    async def _accept(self, id: str, text: str, files: Sequence[File] = ()) -> None:
        speaker = Speaker(self._identity, self._seat.name)
        said = (Text(text),) if text or not files else ()
        # An editor that is started again may take another lane, and say what it has said.
        seen_as = (f"{self.person.id}/{id}",) if self._place.address.platform == EDITOR else ()
        await self._gateway.accept(Arrival(self._place, id, speaker, (*said, *files), self._clock(), seen_as))

    async def _tell(self) -> None:
        """Every window on this lane looks again, and every one on its session."""
        self._gateway.watches.tell(self.lane, Arrived())
        if session := await self._gateway.store.bound(self.lane):
            self._gateway.watches.tell(session.id, Arrived())

    def _see(self, sight: Sight | Delivery) -> None:
        """Something happened. Of each kind only the last is kept between two deliveries, however slow the window is."""
        if isinstance(sight, Delivery):
            self._told.update(sight.answers)
            self._newest = sight.key
        else:
            for n in reversed(range(len(self._sights))):
                if isinstance(self._sights[n], Delivery | type(sight)):
                    if not isinstance(self._sights[n], Delivery):
                        del self._sights[n]
                    break
        self._sights.append(sight)
        self._seen.set()

    async def _begin(self, asked: OpenRequest) -> None:
        """Turn to the session that the window is to open on, if its lane has none or another one was asked for."""
        store = self._gateway.store
        bound = await store.bound(self.lane)
        wanted = asked.session
        if asked.begins is Begins.JOINED and self._seat.beside:
            place = Place(Address(self._local.platform, self._local.account, chat=self._seat.beside), Kind.DM)
            joined = await store.bound(await store.lane(place, self.person))
            wanted = wanted or (joined.id if joined else None)
        if wanted is not None:
            await self._turn(wanted, bound, asked.begins)
        elif asked.begins is Begins.NEW or self._seat.beside:
            if bound is not None and bound.tip is not None:
                await store.move(Renew(self.lane, SessionId(uuid4().hex)), self.person)
        elif asked.begins is not Begins.HERE:
            await self._choose(bound)

    async def _turn(self, wanted: SessionId, bound: Session | None, begins: Begins) -> None:
        """Turn to the session that was asked for, or begin it."""
        if bound is not None and bound.id == wanted:
            return
        if begins is Begins.NEW:
            await self._gateway.store.move(Renew(self.lane, wanted), self.person)
        else:
            await self._go(wanted)

    async def _choose(self, bound: Session | None) -> None:
        """Turn to a session of one's own if the lane has none, or one that others read by now.

        A page stays where its browser is, and says so: it is reloaded in the middle of a conversation. So does whoever
        can't leave, since the conversation is being handed off.
        """
        store = self._gateway.store
        shared = await self._driver.read(readings.shared, bound.id) if bound else []
        if bound is not None and not shared:
            return
        if self._place.address.platform != WEB or not shared:
            try:
                if last := await self._driver.read(sessions.last_own, self.person.id):
                    await store.move(Resume(self.lane, last.id), self.person)
                elif bound is not None:
                    await store.move(Release(self.lane), self.person)
            except Refused as refused:
                # Another window that opens on this lane may have been quicker.
                if refused.why is not Refusal.ALREADY_THERE:
                    await self._send(NoticeFrame(str(refused)))
            else:
                return
        if shared:
            await self._send(NoticeFrame(also_read_in(shared)))

    async def _handle(self, sight: Sight | Delivery) -> None:
        match sight:
            case Growing():
                await self._grow(sight)
            case Arrived() | Changed():
                await self._refresh()
                await self._settle()
            case Forgotten():
                self._view.forget()
                await self._refresh()
            case HandoffMoved():
                await self._show_handoff()
            case SomethingAsked():
                await self._show_questions()
            case Delivery():
                await self._refresh()
                await self._deliver(sight)
                await self._settle()

    async def _grow(self, sight: Growing) -> None:
        if sight.turn != self._growing:
            await self._refresh()
            self._growing, self._grown = sight.turn, ""
            self._parts = ()
        # One that waited here while its whole answer was shown comes too late.
        if sight.turn > self._view.answered and self._whole:
            await self._grow_whole(sight)
        elif sight.turn > self._view.answered:
            begins = not self._grown or not sight.text.startswith(self._grown)
            await self._send(GrowingFrame(sight.text if begins else sight.text[len(self._grown) :], begins))
            self._grown = sight.text

    async def _grow_whole(self, sight: Growing) -> None:
        """Send the parts from the last one on that was sent; of a text that goes on, what is new."""
        sent, self._parts = self._parts, sight.parts
        at = max(len(sent) - 1, 0)
        new = sight.parts[at:]
        was, now = (sent[at], new[0]) if sent and new else (None, None)
        more = isinstance(was, Text) and isinstance(now, Text) and now.text.startswith(was.text)
        if more and isinstance(was, Text) and isinstance(now, Text):
            new = (Text(now.text[len(was.text) :]), *new[1:])
        elif was != now or len(sight.parts) < len(sent):
            at, new = 0, sight.parts
        await self._send(GrowthFrame(sight.turn, at, new, more, sight.doing, sight.answers))

    async def _deliver(self, sight: Delivery) -> None:
        """Show a message that stands in no transcript here, and who of this window is answered by it."""
        self._told.difference_update(sight.answers)
        wanted = [self._going.pop(id) for id in sight.answers if id in self._going]
        if wanted:
            if wanted[-1] != self._view.session:
                await self._send(RefusedFrame(sight.text))
            return
        leaving = [self._leaving.pop(id) for id in sight.answers if id in self._leaving]
        if leaving:
            await self._follow(*leaving[-1], sight.text)
            return
        files = (sight.file,) if sight.file else ()
        # An answer in a session that this lane left before it was there stands nowhere else here.
        left = sight.session != self._view.session and not self._view.shows(sight.session, sight.entry)
        if card := questions.shows(sight.key):
            await self._show_questions()
        elif left or not sight.entry:
            await self._send(NoticeFrame(sight.text, files))
        for id in [id for id in sight.answers if id in self._unanswered]:
            if not sight.session and await self._driver.read(answers.to_message, id) is None:
                # What the command led to is shown before it counts as answered.
                await self._show_handoff()
                if self._unanswered[id] == _INVITES:
                    await self._invite()
                await self._answered(id, *(() if card else (ShownAnswer(sight.text, files),)))

    async def _settle(self) -> None:
        """Tell of the messages said here whose turns are over, and of commands that answer nothing."""
        async with self._telling:
            waiting = 0
            for id in list(self._unanswered):
                found = await self._driver.read(answers.to_message, id)
                if found is None:
                    # What was sent while this was read is known by then.
                    coming = await self._driver.read(answers.on_its_way, self._place.address, self._newest)
                    if not coming and id not in self._told:
                        await self._answered(id)
                elif found.over:
                    if found.session.id == self._view.session and found.session.tip != self._view.tip:
                        # It was answered since this window looked.
                        await self._show_new()
                    said = tuple(answer(parts) for parts in found.said)
                    del self._unanswered[id]
                    await self._send(AnsweredFrame(id, said, shown(found.session), found.turn, found.state))
                elif (waiting := waiting + 1) == _LOOKED_AT:
                    # Turns end about in the order in which they were asked for: the end of one is when to look on.
                    return

    async def _answered(self, id: str, *said: ShownAnswer) -> None:
        self._unanswered.pop(id, None)
        await self._send(AnsweredFrame(id, said))

    async def _invite(self) -> None:
        """Show how the conversation can be taken along, if it can."""
        found = await self._gateway.invite(self.lane, self.person)
        if found is not None:
            await self._send(InvitationFrame(found.code, found.links, found.typed))

    async def _show_handoff(self) -> None:
        """The step of a handoff from here; once the conversation has arrived, this lane has let it go."""
        followed = self._following
        found = await (
            self._driver.read(handoffs.read, followed) if followed else self._driver.read(handoffs.last_from, self.lane)
        )
        if found is None or found.id == self._past:
            return
        frame = HandoffFrame(found.id, found.state, found.progress, found.place, found.error or "")
        if frame != self._handoff:
            self._handoff = frame
            await self._send(frame)
        if found.settled is not None:
            await self._refresh()

    async def _show_questions(self) -> None:
        """Show what the person is asked, if that isn't what is shown."""
        asked = await self._driver.read(questions.open_to, self.person.id, self.lane, self._clock())
        frame = QuestionsFrame(
            tuple(ShownQuestion(one.id, one.words, one.choices, one.deadline, here, one.session) for one, here in asked)
        )
        if frame != self._questions:
            self._questions = frame
            await self._send(frame)

    async def _refresh(self) -> None:
        """Show what is new."""
        async with self._telling:
            await self._show_new()

    async def _show_new(self) -> None:
        session = await self._gateway.store.bound(self.lane)
        # Watched before it is read, so that nothing happens in between unseen.
        self._turn_to(session)
        frame = await self._view.update(session)
        waiting = await self._driver.read(turns.waiting, session.id, _MOST_WAITING) if session else []
        if frame is not None:
            self._grown = ""
            await self._send(frame)
        said = tuple(self._waits(turn) for turn in waiting if turn.kind is TurnKind.ARRIVAL)
        self._grown = self._grown if said else ""
        await self._send(WaitingFrame(said))

    def _waits(self, turn: Turn) -> ShownTurn:
        text, mine = plain_text(turn.parts), self._view.mine(turn.person)
        return ShownTurn(turn.message, turn.name, text, turn.accepted, mine)

    def _turn_to(self, session: Session | None) -> None:
        id = session.id if session else None
        if self._view.turn_to(id):
            self._look_away()
            self._look_away = self._gateway.watches.watch(id, self._see) if id else _nothing
            self._growing = 0


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _nothing() -> None:
    """Nothing is watched yet."""
