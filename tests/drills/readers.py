"""Words keep their readers: people talk, move, hand off and schedule at random, and nobody is shown what isn't theirs.

Everything that somebody says has a canary in it. The agent repeats every canary that it can get hold of, by its
transcript, by its context and by every tool, with any session's id. A model knows who may read which canary: whoever
heard it said, who reads the session that it was said in, whom its owner agreed to, and who is one person with those.
"""

import asyncio
import random
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from segue.changes.commands.consent import READERS
from segue.changes.exchange import questions
from segue.changes.people import persons, register
from segue.changes.places import merges
from segue.core.contracts.database import Statement, Transaction
from segue.core.lanes import Address, Identity, Kind, Lane, Place
from segue.core.messages import Arrival, Delivery, Speaker, Text, encode_parts
from segue.core.moves import Limits
from segue.core.people import UNBOUNDED
from segue.core.questions import YES
from segue.core.resets import Policies, Policy, When
from segue.core.settings import (
    AccountSettings,
    GatewaySettings,
    Mentions,
    QuestionSettings,
    Quotes,
    Settings,
    Streams,
)
from segue.core.values import SessionId, Value
from segue.core.windows import HOSTS, TERMINAL
from segue.database import statements
from segue.database.sqlite import RunsIn, Sqlite
from segue.runtime.gateway import Gateway
from segue.runtime.windows.frames import (
    HandoffRequest,
    NoticeFrame,
    OpenRequest,
    ResumeRequest,
    SayRequest,
    Shown,
    TranscriptFrame,
    WaitingFrame,
    encode,
)
from segue.runtime.windows.local import Local
from segue.runtime.windows.window import Seat, Window, meet_host
from segue.store import Store, open_driver
from segue.testing import HandClock, Shelf
from tests.drills.parrots import ACCOUNT, CANARY, ERROR, FAILS, PLATFORM, Board, HushedBoard, Parrot
from tests.drills.planting import Bug, Patch, planted
from tests.in_process import gateway_on

ANN, BOB, CEM, DEE = "ann", "bob", "cem", "dee"
"""Ann is the host."""
PEOPLE = (ANN, BOB, CEM, DEE)
CLUB, LOBBY, DEN, ROOM = "club", "lobby", "den", "room"
"""The room is a private chat or a group, and becomes the other one at any time."""
HOME_NAME = "zq88888q"
"""The canary in the name of the lobby, which is the host's home to begin with."""
_CODE = re.compile(r"/link ([A-Z0-9]{4}-[A-Z0-9]{4})")
_BY_A_CODE = re.compile(r"^(\d+)\. .*by a code", re.MULTILINE)
_PATIENCE = 60.0
_TRAIL = 30
"""Things that happened last, told with whatever is wrong: a seed repeats what people do, and not when answers come."""
_HOUR = 3700.0
"""Seconds after which scheduled work is due and questions are over."""
_IDLE = Policies(Policy(When.IDLE, _HOUR / 120))
"""A conversation that nobody went on with for half of that is over."""
_SQL = {
    # A turn that waits for an answer does nothing else, and what is behind it waits, too.
    "drill_busy": """select (select count(*) from sessions s where head < tail and not exists (
          select 1 from questions q where q.session = s.id and q.state = 'open'))
        + (select count(*) from deliveries where sent is null and dead is null)
        + (select count(*) from handoffs h where settled is null and not exists (
          select 1 from questions q where q.session = h.session and q.state = 'open'))""",
    "drill_pending": """select 'session', id, head || ' of ' || tail, holder, fails, due from sessions where head < tail
        union all select 'turn', session, seq || ' ' || kind, null, 0, accepted from turns where outcome is null
        union all select 'delivery', key, address, holder, attempts, due from deliveries
          where sent is null and dead is null
        union all select 'handoff', id, state, holder, 0, deadline from handoffs where settled is null""",
    "drill_bound": """select b.lane, l.address, a.kind, b.session, s.owner, s.depth, coalesce(t.name, '')
        from bindings b join lanes l on l.key = b.lane join addresses a on a.key = l.address
        join sessions s on s.id = b.session
        left join titles t on t.session = s.id and t.until is null where b.until is null""",
    "drill_path": """with recursive path (session, n) as (
          select tip_session, tip from sessions where id = :session and tip is not null
          union all
          select e.parent_session, e.parent from path p join entries e on e.session = p.session and e.n = p.n
          where e.parent is not null)
        select e.parts from path p join entries e on e.session = p.session and e.n = p.n
        union all select t.parts from turns t where t.session = :session and t.outcome is null""",
    # An answer is for whoever hears the session that asked, or one that started it.
    "drill_said_in": """with recursive up (session, person) as (
          select session, person from questions where session is not null and answer like :like
          union
          select s.parent, up.person from up join sessions s on s.id = up.session where s.parent is not null)
        select distinct session, '', '' from entries where role = 'person' and parts like :like
        union select up.session, coalesce(t.route, ''), up.person from up join turns t on t.session = up.session""",
    "drill_waits": "select 1 from turns where session = :session and outcome is null limit 1",
    "drill_waiting_beside": """select distinct beside.route from turns t join turns beside on beside.session = t.session
      where t.message = :message and t.outcome is null and beside.outcome is null and beside.route <> ''""",
    "drill_on_its_way": "select 1 from turns where route like :home || '%' and outcome is null limit 1",
    "drill_sessions": "select id, owner from sessions",
    "drill_schedules": "select id from schedules",
    "drill_questions": "select id, person, words || choices, state = 'open' from questions where session is not null",
    "drill_own_questions": "select kind, lane from questions where session is null and state = 'open'",
    "drill_people": "select key, person from identities",
    "drill_owners": """select distinct s.owner from entries e join sessions s on s.id = e.session
        where e.parts like :like""",
}


Wish = ResumeRequest | HandoffRequest
"""A request by which a window moves a session."""


class Found(Value, frozen=True):
    """The outcome of some steps."""

    steps: int
    canaries: int
    shown: int
    """Canaries that somebody was shown."""
    wrong: tuple[str, ...]


class Bound(Value, frozen=True):
    """A lane and the session that it speaks to."""

    lane: str
    address: str
    kind: str
    session: str
    owner: str
    depth: int
    title: str


class Knowledge(defaultdict[str, set[str]]):
    """The canaries that each reader may read: a place by its address, a person by their name.

    While the den and the club are one chat, what is known in one is known in the other.
    """

    one = False

    def at(self, key: str) -> str:
        """The key by which a place goes now."""
        return key.replace(f"//{DEN}/", f"//{CLUB}/", 1) if self.one else key

    def __getitem__(self, key: str) -> set[str]:
        return super().__getitem__(self.at(key))

    def __setitem__(self, key: str, known: set[str]) -> None:
        super().__setitem__(self.at(key), known)

    def join(self) -> None:
        """The two chats are one."""
        self.one = True
        for key in [key for key in self if f"//{DEN}/" in key]:
            self[key] |= self.pop(key)

    def part(self) -> None:
        """They are two again: each knows what was known until then."""
        self.one = False
        for key in [key for key in self if f"//{CLUB}/" in key]:
            self[key.replace(f"//{CLUB}/", f"//{DEN}/", 1)] = set(self[key])


class Neighbourhood:
    """People, their places, and what each of them may read."""

    def __init__(
        self, gateway: Gateway, terminals: Local, parrot: Parrot, clock: HandClock, board: Board, approver: str
    ) -> None:
        self._gateway = gateway
        self._terminals = terminals
        self._parrot = parrot
        self._clock = clock
        self._board = board
        self._approver = approver
        """Who answers what the agent asks of anybody; empty if each does themselves."""
        self._count = 0
        self.canaries = 0
        self.shown = 0
        self.wrong: list[str] = []
        self._trail: deque[str] = deque(maxlen=_TRAIL)
        self._may = Knowledge(set, {ANN: {ERROR, HOME_NAME}})
        self._private: dict[str, str] = {ERROR: ANN, HOME_NAME: ANN}
        """Who said a canary first, if it was with nobody else around; empty if others heard it."""
        self._posts = 0
        self.messages: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """The messages of each person in each place."""
        self._before: set[tuple[str, str]] = set()
        self._people: dict[str, str] = {}
        """Whoever a person was from the beginning, by their id."""
        self._one = {who: frozenset({who}) for who in PEOPLE}
        """Those who are one person."""
        self._home = HOME.address
        self.alone = ANN
        """Who is alone in the room; nobody while it is a group."""
        self._in_lobby: set[str] = set()
        """Sessions that were spoken to in the lobby, whose name their agent was told."""
        self.open_questions: list[tuple[str, str]] = []
        """Questions of the agent that wait for an answer: their ids, and who is asked."""
        self.owned: dict[str, str] = {}
        """The owner of each session."""
        self.titles: defaultdict[str, list[str]] = defaultdict(lambda: ["none"])
        """The titles of each person's sessions."""

    @property
    def told(self) -> tuple[str, ...]:
        """All that is wrong, and what happened before it."""
        return (*self.wrong, *(f"    {step}" for step in self._trail)) if self.wrong else ()

    async def read(self, name: str, **arguments: Any) -> list[tuple[Any, ...]]:
        """Rows of a query of the drill's own."""

        def rows() -> Transaction[list[tuple[Any, ...]]]:
            found = yield Statement(name, arguments)
            return [tuple(row) for row in found]

        return await self._gateway.store.driver.read(rows)

    async def meet(self) -> None:
        """Learn who is who."""
        self._may[HOME.address.key].add(HOME_NAME)
        for who in PEOPLE:
            self._people[(await self._gateway.store.person(Identity(PLATFORM, ACCOUNT, who))).id] = who

    def canary(self) -> str:
        """A new one."""
        self.canaries += 1
        return f"zq{self.canaries:05}q"

    def one(self, who: str) -> frozenset[str]:
        """All who are one person with somebody."""
        return self._one[who]

    def room(self, thread: str = "") -> Place:
        """The room, or a thread in it, as it is now."""
        kind = Kind.DM if self.alone else Kind.GROUP
        return Place(Address(PLATFORM, ACCOUNT, chat=ROOM, thread=thread), kind, ROOM)

    def turns_into(self, alone: str) -> None:
        """The room is somebody's private chat from now on, or everybody's."""
        self._trail.append(f"{alone or 'nobody'} is alone in the room")
        if alone and not self.alone:
            # Who is left there was there before.
            self._may[alone] |= self._may[self.room().address.key] | self._may[self.room("t0").address.key]
        if self.alone and not alone and self._home.chat == ROOM:
            # A yes to those who read at home was none to those who came later.
            self._home = HOME.address
        self.alone = alone

    def posts_in(self, place: Place) -> list[str]:
        """The messages of the agent that stand in a place."""
        return [post.message or post.key for post in self._board.posts.values() if post.address == place.address]

    async def says(self, who: str, place: Place, text: str, *, agrees: bool = False, **more: Any) -> list[Delivery]:
        """Somebody says something; returns what is sent then. `agrees` if it is a yes to what is one's own."""
        self._count += 1
        identity = Identity(PLATFORM, ACCOUNT, who)
        message = f"m{self._count}"
        parts = (Text(text),) if text else ()
        arrival = Arrival(place, message, Speaker(identity, who), parts, self._clock.passes(1.0), **more)
        self.messages[who, place.address.key].append(message)
        self._trail.append(f"{message} {who} in {place.address.chat} {place.address.thread}: {text!r} {more or ''}")
        self._said(who, place, text)
        if text == "/home" and ANN in self.one(who):
            await self._moves_home(place.address)
        if text == "/yes" and not agrees:
            # Whatever the yes was meant for: an owner who was asked about readers has agreed to them.
            agrees = any(kind == READERS for kind, _ in await self.read("drill_own_questions"))
        if "edits" in more:
            await self._edits(more["edits"], text)
        await self._gateway.accept(arrival)
        return await self.settle(who, text, place, agrees=agrees)

    async def _edits(self, message: str, text: str) -> None:
        """Words that still wait are others now, at their place in the queue: whoever waits behind them reads those."""
        for (route,) in await self.read("drill_waiting_beside", message=message):
            self._may[self._reader(route, self._kind_at(route))].update(CANARY.findall(text))

    async def _moves_home(self, to: Address) -> None:
        """The host has another home; what is on its way to the old one arrives by the yes that stood until now."""
        if await self.read("drill_on_its_way", home=self._home.key):
            self._may[self._home.key] |= {canary for canary in self._private if self._knows(ANN, canary)}
        self._home = to

    async def opens_terminal(self, text: str, *wishes: Wish, user: str = ANN) -> None:
        """Ann opens a terminal, which chooses its session by itself, says something for nobody, and looks around.

        There she may turn to any session, and hand any one off.
        """
        frames: list[Shown] = []

        async def send(frame: Shown) -> None:
            frames.append(frame)

        asked = OpenRequest(page=4)
        window = await Window(self._gateway, self._terminals, Seat(user, ANN), send, self._clock).open(asked)
        showing = asyncio.create_task(window.show(asked))
        await self._until(lambda: any(isinstance(frame, WaitingFrame) for frame in frames), "a terminal opened")
        place = Place(Address(TERMINAL, self._terminals.account, chat=user))
        self._trail.append(f"{ANN} in the terminal of {user}: {text!r} {wishes or ''}")
        self._said(ANN, place, text)
        self._count += 1
        await window.say(SayRequest(f"m{self._count}", text))
        self._may[self._home.key].update(CANARY.findall(text))
        # Whoever is told that others read what the terminal can't leave talks to them.
        told = any(isinstance(frame, NoticeFrame) and "reads this session" in frame.text for frame in frames)
        await self.settle(ANN, text if told else "", place)
        for wish in wishes:
            match wish:
                case ResumeRequest():
                    await window.resume(wish.session)
                case HandoffRequest():
                    await window.hand_off(wish)
            own = isinstance(wish, ResumeRequest) or wish.yes or wish.destination == f"{PLATFORM}:{ANN}"
            await self.settle(ANN, "", place, agrees=own)
        await self._until(lambda: not window._sights, "a terminal had shown all")
        await window._refresh()
        await window._show_questions()
        await window.list_sessions()
        await window.search("zq")
        pages = [frame.earlier for frame in frames if isinstance(frame, TranscriptFrame) and frame.earlier]
        for cursor in pages[:1]:
            await window.earlier(cursor)
        showing.cancel()
        await asyncio.wait([showing])
        shown = " ".join(encode(frame) for frame in frames)
        await self._show([(ANN, shown)])

    async def _until(self, so: Callable[[], bool], what: str) -> None:
        """Wait until something is so."""
        until = time.monotonic() + _PATIENCE
        while not so():
            if time.monotonic() > until:
                self.wrong.append(f"never: {what}")
                return
            await asyncio.sleep(0.002)

    async def read_by_the_host(self, who: str) -> None:
        """The host reads somebody's words at the command line: among them is nothing that wasn't for their own eyes."""
        driver, at = self._gateway.store.driver, self._clock.passes(1.0)
        person = (await self._gateway.store.person(Identity(PLATFORM, ACCOUNT, who))).id
        read = await driver.write(register.read, person, (await self._gateway.store.person(HOSTS[0])).id, at)
        words = [encode_parts(entry.parts) for _, path in read.sessions for entry in path]
        await self._show([(who, " ".join([*words, *(note.text for note in read.notes)]))])

    async def speaks_to(self, who: str, place: Place) -> str:
        """Somebody's own session that a place speaks to, or their share of it; empty if it has none."""
        bound = [Bound(*row) for row in await self.read("drill_bound")]
        own = [one for one in bound if self._people[one.owner] in self.one(who)]
        here = self._may.at(place.address.key)
        return next((one.session for one in own if self._may.at(one.address) == here), "")

    async def private_lanes(self, who: str, session: str) -> list[Place]:
        """The private chat of somebody, and threads there, that speak to a session."""
        bound = [Bound(*row) for row in await self.read("drill_bound")]
        found = [Address.parse(one.address) for one in bound if one.session == session]
        return [Place(address, Kind.DM, who) for address in found if address.outside == private(who).address]

    def orders(self, session: str, name: str, arguments: dict[str, Any]) -> None:
        """The agent is to call a tool when it answers next in a session, with all that it knows as the words."""
        self._trail.append(f"the agent is to call {name} in {session} with {arguments}")
        self._parrot.orders[session] = (name, arguments)

    async def time_passes(self) -> None:
        """So much that scheduled work is due."""
        self._trail.append("an hour passes")
        await self._gateway.store.driver.write(questions.expire, self._clock.passes(_HOUR))
        await self._gateway._schedules.once()
        await self.settle("", "", Place(Address(PLATFORM, ACCOUNT)))

    async def imports(self, session: SessionId) -> None:
        """Ann exports a session of hers at the command line, and imports it."""
        self._trail.append(f"{ANN} imports {session}")
        store = self._gateway.store
        ann = await store.person(Identity(PLATFORM, ACCOUNT, ANN))
        await store.import_session(await store.export(session, ann), ann)
        await self.settle("", "", Place(Address(PLATFORM, ACCOUNT)))

    async def joins_chats(self) -> None:
        """The platform says that the den and the club are one chat; once they were parted, only the host can."""
        await self.says(BOB, DEN_FLAT, f"hello {self.canary()}")
        self._trail.append("two chats are one")
        self._may.join()
        await self.says(BOB, FLAT, f"hello {self.canary()}", chat_aliases=(DEN,))
        if not await self._gateway.store.driver.read(merges.within, FLAT.address):
            host, at = (await self._gateway.store.person(HOSTS[0])).id, self._clock.passes(1.0)
            id = f"join {self._count} {at}"
            await self._gateway.store.driver.write(merges.link, FLAT.address, DEN_FLAT.address, host, id, at)
            await self.settle("", "", FLAT)

    async def parts_chats(self) -> None:
        """The host says that they are two."""
        driver, at = self._gateway.store.driver, self._clock.passes(1.0)
        host = (await self._gateway.store.person(HOSTS[0])).id
        for merge in await driver.read(merges.within, FLAT.address):
            await driver.write(merges.part, merge.id, host, f"part {merge.id} {at}", at)
        self._trail.append("two chats are parted")
        self._may.part()
        await self.settle("", "", FLAT)

    @property
    def chats_are_one(self) -> bool:
        """Whether the den and the club are one chat."""
        return self._may.one

    def link(self, one: str, two: str) -> None:
        """Two people are one person: each reads what both may read."""
        self._trail.append(f"{one} is to be one with {two}")
        for who in (both := self.one(one) | self.one(two)):
            self._one[who] = both

    def part(self, who: str) -> None:
        """They are two again: what each may have read meanwhile they know, and no more than that."""
        self._trail.append(f"{who} is to be parted")
        both = self.one(who)
        known = {canary for canary in self._private if self._knows(who, canary)}
        for each in both:
            self._may[each] |= known
            self._one[each] = frozenset({each})
        if self._home.chat in PEOPLE and self._home.chat not in self.one(ANN):
            # A private chat that isn't the host's is no home: the one that is written in the settings is again.
            self._home = HOME.address

    async def unlinked_by_the_host(self, who: str) -> None:
        """The host parts somebody at the command line."""
        driver, at = self._gateway.store.driver, self._clock.passes(1.0)
        person = (await self._gateway.store.person(Identity(PLATFORM, ACCOUNT, who))).id
        for merge in await driver.read(persons.merges_within, person):
            if merge.why == "link":
                host = await self._gateway.store.person(HOSTS[0])
                await driver.write(persons.part_by, merge.id, host.id, f"part {self._count} {at}", at)

    def _said(self, who: str, place: Place, text: str) -> None:
        for canary in CANARY.findall(text):
            self._may[who].add(canary)
            self._private.setdefault(canary, who if place.kind is Kind.DM else "")
            if place.kind is not Kind.DM:
                self._may[place.address.key].add(canary)

    async def settle(self, who: str, text: str, place: Place, *, agrees: bool = False) -> list[Delivery]:
        """Wait until nothing is under way, then look at who speaks to what, and at what was sent."""
        until = time.monotonic() + _PATIENCE
        while (await self.read("drill_busy"))[0][0]:
            if time.monotonic() > until:
                pending = [f"{row}" for row in await self.read("drill_pending")]
                self.wrong += [f"never settled after {text!r} at {self._clock()}", *pending]
                return []
            await asyncio.sleep(0.002)
        await self._look_around()
        bound = [Bound(*row) for row in await self.read("drill_bound")]
        at = self._may.at(place.address.key)
        here = [one.session for one in bound if self._may.at(one.address) == at]
        for canary in CANARY.findall(text):
            await self._heard(canary, who, text, here, bound)
        for one in bound:
            reader, owner = self._reader(one.address, one.kind), self._people[one.owner]
            if one.kind == "dm" and reader not in self.one(owner):
                self.wrong.append(f"the private chat of {reader} speaks to {owner}'s {one.session}")
            if (one.lane, one.session) not in self._before:
                await self._came(one, who, text, agrees=agrees)
            self._may[reader].update(CANARY.findall(one.title))
            if one.session in self._in_lobby:
                self._may[reader].add(HOME_NAME)
            if one.title and one.title not in self.titles[owner]:
                self.titles[owner].append(one.title)
        self._before = {(one.lane, one.session) for one in bound}
        posts = list(self._board.posts.values())[self._posts :]
        self._posts += len(posts)
        await self._look(posts)
        return posts

    async def _look_around(self) -> None:
        """Look at who is one person with whom, at what is asked, and at what the agent can name."""
        found = await self.read("drill_sessions")
        self._parrot.sessions = [id for id, _ in found] or ["none"]
        self._parrot.schedules = [id for (id,) in await self.read("drill_schedules")] or ["none"]
        self.owned = {id: self._people[owner] for id, owner in found}
        asked = await self.read("drill_questions")
        self.open_questions = [(id, self._people[person]) for id, person, _, is_open in asked if is_open]
        if self._approver:
            self._may[self._approver].update(CANARY.findall(" ".join(words for _, _, words, _ in asked)))
        known = dict(await self.read("drill_people"))
        is_now = {who: known[Identity(PLATFORM, ACCOUNT, who).key] for who in PEOPLE}
        for who in PEOPLE:
            same = {other for other in PEOPLE if is_now[other] == is_now[who]}
            if same != self.one(who):
                self.wrong.append(f"{who} is one with {sorted(same)}, and should be with {sorted(self.one(who))}")

    async def _heard(self, canary: str, who: str, text: str, here: Sequence[str], bound: Sequence[Bound]) -> None:
        """Whoever reads the session that something is said in, or that asked for it, has heard it."""
        said_in = await self.read("drill_said_in", like=f"%{canary}%")
        within = {*here, *(session for session, _, _ in said_in)}
        for one in bound:
            if one.session in within:
                self._may[self._reader(one.address, one.kind)].add(canary)
        for person in {person for _, _, person in said_in if person}:
            self._may[self._people[person]].add(canary)
        for route in {route for _, route, _ in said_in if route}:
            self._may[self._reader(route, self._kind_at(route))].add(canary)
        if ANN in self.one(who):
            self._may[self._home.key].add(canary)
        if "--to" in text:
            # Whoever sends an answer elsewhere lets it name the place that they talk in.
            self._may[FLAT.address.key] |= {canary, *(self._may[self._home.key] & {HOME_NAME})}

    async def _came(self, one: Bound, who: str, text: str, *, agrees: bool) -> None:
        """A session came to a lane: by its owner's yes, or because everybody there has read it."""
        reader, home = self._reader(one.address, one.kind), self._is_home(one.address)
        path = set(CANARY.findall(" ".join(parts for (parts,) in await self.read("drill_path", session=one.session))))
        owns = who in self.one(self._people[one.owner])
        if owns and (agrees or (ANN in self.one(who) and home)):
            # Of a session of the host's the agent may know more than it has said: the home's name.
            self._may[reader] |= path | ({HOME_NAME} if ANN in self.one(who) else set())
            if await self.read("drill_waits", session=one.session):
                # The agent answers what was asked before with all that it knew then.
                self._may[reader] |= {canary for canary in self._private if self._knows(who, canary)}
            for lane in [Lane.parse(lane) for lane, session in self._before if session == one.session]:
                # Where a handoff comes from is left when the first words are said where it goes to.
                self._may[lane.address.key] |= path & {HOME_NAME}
        if Address.parse(one.address).chat == LOBBY:
            self._in_lobby.add(one.session)
        if one.depth and Address.parse(one.address).thread:
            # A thread that was opened for a child is read by those around it.
            chat = Address.parse(self._may.at(one.address)).outside
            around = [key for key in self._may if "/" in key and Address.parse(key).outside == chat]
            self._may[reader] |= set().union(*(self._may[key] for key in around))
        known = {HOME_NAME} if ANN in self.one(self._people[one.owner]) else set()
        unasked = sorted(canary for canary in path - known if not self._knows(reader, canary))
        if unasked:
            step = f"{who} said {text!r}{' in agreement' if agrees else ''}"
            whose = f"{self._people[one.owner]}'s {one.session} at depth {one.depth}"
            self.wrong.append(f"{whose} came to {one.lane} unasked, with {unasked}, when {step}")

    async def _look(self, posts: Sequence[Delivery]) -> None:
        """Look at what was sent."""
        shown: list[tuple[str, str]] = []
        for post in posts:
            reader = post.only or self._reader(post.address.key, self._kind_at(post.address.key))
            # Only what an agent tells of somebody else's session shows that it was told of the host's homes.
            hosts = not post.session or ANN in self.one(self.owned.get(post.session, ANN))
            text = post.text.replace(HOME_NAME, "") if hosts else post.text
            if self._is_home(post.address.key):
                text = " ".join([c for c in CANARY.findall(text) if not await self._hosts(c)])
            shown.append((reader, text))
        await self._show(shown)

    async def _show(self, shown: Sequence[tuple[str, str]]) -> None:
        """Look at what readers were shown."""
        for reader, text in shown:
            for canary in sorted(set(CANARY.findall(text))):
                self.shown += 1
                if not self._knows(reader, canary):
                    self.wrong.append(f"{reader} was shown {canary}: {text[:80]!r}")

    def _knows(self, reader: str, canary: str) -> bool:
        """Whether a reader may read it: a person also what any who is one with them said, or heard among others."""
        if reader not in self._one:
            return canary in self._may[reader]
        return not self._private[canary] or any(
            canary in self._may[who] or self._private[canary] == who or self._heard_among_others(who, canary)
            for who in self.one(reader)
        )

    def _heard_among_others(self, who: str, canary: str) -> bool:
        """Whether a place in which somebody talks knows it: what it knows, they may be told alone."""
        places = [place.address.key for place in (THREAD, FLAT, DEN_FLAT, HOME)]
        places += [] if self.alone else [self.room().address.key, self.room("t0").address.key]
        return any(self.messages[who, key] and canary in self._may[key] for key in places)

    async def _hosts(self, canary: str) -> bool:
        """Whether it is in a session of the host's, who has said yes to whoever reads at home."""
        owners = await self.read("drill_owners", like=f"%{canary}%")
        return any(ANN in self.one(self._people[owner]) for (owner,) in owners)

    def _is_home(self, address: str) -> bool:
        """Whether it is the home, or a thread in it."""
        at = Address.parse(self._may.at(address))
        return Address.parse(self._may.at(self._home.key)) in (at, at.outside)

    def _reader(self, address: str, kind: str) -> str:
        if kind != "dm":
            return address
        place = Address.parse(address)
        if place.chat == ROOM:
            return self.alone or address
        return place.chat if place.platform == PLATFORM else ANN

    def _kind_at(self, address: str) -> str:
        chat = Address.parse(address).chat
        return Kind.DM if chat in PEOPLE or (chat == ROOM and self.alone) else Kind.GROUP


class Steps:
    """The things that can happen, each now and then."""

    def __init__(self, around: Neighbourhood, dice: random.Random, often: float) -> None:
        self._around = around
        self._dice = dice
        self._often = often
        """How much more often than by itself something happens that takes several steps."""

    async def step(self) -> None:
        """Something happens."""
        around, dice = self._around, self._dice
        if dice.random() < 0.05:
            around.turns_into("" if around.alone else dice.choice((ANN, BOB, CEM)))
            # By a message the platform says who reads there.
            await around.says(around.alone or dice.choice(PEOPLE), around.room(), f"hello {around.canary()}")
        if around.open_questions and dice.random() < 0.4:
            await self._answers(*dice.choice(around.open_questions))
            return
        chance = dice.random()
        for share, happens in self._rare:
            chance -= share
            if chance < 0:
                await happens()
                return
        who = dice.choice((ANN, ANN, BOB, BOB, CEM, DEE))
        places = [private(who), private(who), THREAD, THREAD, FLAT, HOME]
        places += [around.room(), around.room("t0")] if around.alone in ("", who) else []
        place = dice.choice(places)
        posts = around.posts_in(place)
        mine = around.messages[who, place.address.key][-4:]
        if mine and dice.random() < 0.04:
            await around.says(who, place, f"rather {around.canary()}", edits=dice.choice(mine))
        elif mine and dice.random() < 0.02:
            await around.says(who, place, "", deletes=dice.choice(mine))
        elif dice.random() < 0.5:
            quotes = dice.choice(posts) if posts and dice.random() < 0.2 else ""
            begins = FAILS if dice.random() < 0.02 else "hello"
            await around.says(who, place, f"{begins} {around.canary()}", quotes=quotes)
        else:
            await self._types(who, place, posts)

    async def _types(self, who: str, place: Place, posts: Sequence[str]) -> None:
        """Somebody types a command, perhaps as a reply."""
        dice = self._dice
        [name] = dice.choices([*TYPED], [weight for weight, _ in TYPED.values()])
        rest = TYPED[name][1](self._around, who, dice)
        typed = f"/{name} {rest}".rstrip()
        quotes = dice.choice(posts[-6:]) if name in REPLIES and not rest and posts and dice.random() < 0.5 else ""
        agrees = name in (YES, "handoff", "answer")
        await self._around.says(who, place, typed, agrees=agrees, quotes=quotes)

    @property
    def _rare(self) -> tuple[tuple[float, Callable[[], Any]], ...]:
        around = self._around
        return (
            (0.05, around.time_passes),
            (0.04, self._opens_terminal),
            (0.01, self._imports),
            (0.01, lambda: around.read_by_the_host(self._dice.choice((BOB, CEM, DEE)))),
            (0.01 * self._often, self._leaves_work_behind),
            (0.01 * self._often, self._links),
            (0.02 * self._often, self._unlinks),
            (0.01 * self._often, self._cancels),
            (0.01 * self._often, self._takes_back_first),
            (0.01 * self._often, self._brings),
            (0.01 * self._often, self._opens_beside),
            (0.01 * self._often, self._writes_across),
            (0.01 * self._often, self._answers_aloud),
            (0.01 * self._often, self._moves_on),
            (0.01 * self._often, self._meets_elsewhere),
            (0.005 * self._often, self._chats_change),
            (0.01 * self._often, self._room_changes),
            (0.01 * self._often, self._fails),
        )

    async def _opens_terminal(self) -> None:
        """Ann opens a terminal, and may ask there for any session, also by an id that isn't hers to know."""
        around, dice = self._around, self._dice
        sessions = [SessionId(id) for id in around.owned]
        wishes: list[Wish] = []
        if sessions and dice.random() < 0.5:
            wishes.append(ResumeRequest(dice.choice(sessions)))
        if sessions and dice.random() < 0.3:
            # By her own yes what is hers may go to Bob, too, who is then in it with her.
            chat, yes = dice.choice(((CLUB, True), (CLUB, False), (ANN, False), (BOB, False)))
            wishes.append(HandoffRequest(dice.choice(sessions), dice.choice((PLATFORM, f"{PLATFORM}:{chat}")), yes))
        await around.opens_terminal(around.canary(), *wishes)

    async def _meets_elsewhere(self) -> None:
        """Somebody says something in the den, and looks around there."""
        around, who = self._around, self._dice.choice(PEOPLE)
        await around.says(who, DEN_FLAT, f"hello {around.canary()}")
        await around.says(
            who, DEN_FLAT, self._dice.choice(("/sessions", "/resume 1", "/search hello", "/tree", "/new"))
        )

    async def _chats_change(self) -> None:
        """Two chats turn out to be one, or not to be."""
        await (self._around.parts_chats() if self._around.chats_are_one else self._around.joins_chats())

    async def _room_changes(self) -> None:
        """Others come into a private chat, or somebody stays there alone; those who were there look around."""
        around, dice = self._around, self._dice
        if not around.alone:
            around.turns_into(dice.choice((ANN, BOB, CEM)))
        who, room = around.alone, around.room(dice.choice(("", "t0")))
        await around.says(who, room, f"hello {around.canary()}")
        if dice.random() < 0.5:
            await around.says(who, private(who), f"/new hello {around.canary()}")
            await around.says(who, private(who), f"/title {(title := around.canary())}")
            await around.says(who, room, f"/resume {title}", agrees=True)
        if dice.random() < 0.3:
            await around.says(who, room, f"/schedule in 1h tell {around.canary()}")
        around.turns_into(dice.choice(("", "", "", *(other for other in (ANN, BOB, CEM) if other != who))))
        for there in (around.alone,) if around.alone else (BOB, who, ANN):
            for typed in (f"hello {around.canary()}", "/sessions", "/sessions 1", "/search hello"):
                await around.says(there, around.room(room.address.thread), typed)

    async def _opens_beside(self) -> None:
        """Ann goes on among others with what she said alone, and opens a terminal in which she never was."""
        around, place = self._around, self._dice.choice((THREAD, FLAT))
        await around.says(ANN, private(ANN), f"/new hello {around.canary()}")
        await around.says(ANN, private(ANN), f"/title {(title := around.canary())}")
        await around.says(ANN, place, f"/resume {title}")
        for asked_in in (place, private(ANN)):
            await around.says(ANN, asked_in, "/yes", agrees=True)
        await around.opens_terminal(around.canary(), user=f"{ANN}{around.canaries}")
        await around.says(BOB, place, f"hello {around.canary()}")

    async def _writes_across(self) -> None:
        """The agent that somebody talks with alone is to write to the session that they have among others."""
        around, dice = self._around, self._dice
        who, place = dice.choice((ANN, BOB)), dice.choice((THREAD, FLAT))
        await around.says(who, place, f"/new hello {around.canary()}")
        await around.says(who, private(who), f"/new hello {around.canary()}")
        to, own = await around.speaks_to(who, place), await around.speaks_to(who, private(who))
        if to and own:
            around.orders(own, "sessions_send", {"session": to, "wait": 0})
            await around.says(who, private(who), f"hello {around.canary()}")

    async def _answers_aloud(self) -> None:
        """Somebody is asked something alone, and answers among others what isn't offered."""
        around, dice = self._around, self._dice
        who, place = dice.choice((ANN, BOB, CEM)), dice.choice((THREAD, FLAT))
        await around.says(who, private(who), f"/new hello {around.canary()}")
        before = set(around.open_questions)
        if own := await around.speaks_to(who, private(who)):
            around.orders(own, "ask", {})
            await around.says(who, private(who), f"hello {around.canary()}")
        for id, _ in set(around.open_questions) - before:
            await around.says(who, place, f"/answer {id} neither")

    async def _moves_on(self) -> None:
        """Somebody asks among others while the agent waits for a word from them alone, and begins something else."""
        around, dice = self._around, self._dice
        who, place = dice.choice((ANN, BOB)), dice.choice((THREAD, FLAT))
        await around.says(who, private(who), f"/new hello {around.canary()}")
        await around.says(who, private(who), f"/title {(title := around.canary())}")
        await around.says(who, place, f"/resume {title}")
        for asked_in in (place, private(who)):
            await around.says(who, asked_in, "/yes", agrees=True)
        before = set(around.open_questions)
        if own := await around.speaks_to(who, private(who)):
            around.orders(own, "ask", {})
            await around.says(who, private(who), f"hello {around.canary()}")
        await around.says(who, place, f"hello {around.canary()}")
        await around.says(who, place, "/new")
        for id, asked in sorted(set(around.open_questions) - before):
            await around.says(asked, private(asked), f"/answer {id} none")

    async def _leaves_work_behind(self) -> None:
        """Somebody schedules work among others, takes the conversation along and goes on alone until it is due.

        They may have begun something else by then, so that it has nowhere to go; they may take it back, and bring the
        rest to the others again.
        """
        around, dice = self._around, self._dice
        who, place = dice.choice((ANN, BOB, BOB, CEM)), dice.choice((THREAD, FLAT))
        await around.says(who, place, f"hello {around.canary()}")
        await around.says(who, place, f"/title {(title := around.canary())}")
        await around.says(who, place, f"/schedule in 1h tell {around.canary()}")
        session = await around.speaks_to(who, place)
        await around.says(who, place, f"/handoff {PLATFORM}:{who}", agrees=True)
        for there in await around.private_lanes(who, session):
            await around.says(who, there, f"hello {around.canary()}")
            if dice.random() < 0.7:
                await around.says(who, there, "/new")
        await around.time_passes()
        if dice.random() < 0.5:
            await around.says(who, private(who), f"/resume {title}")
            await around.says(who, private(who), "/undo 2")
            await around.says(who, place, f"/resume {title}")

    async def _cancels(self) -> None:
        """Somebody cancels among others what was listed for them alone."""
        around, who = self._around, self._dice.choice((ANN, BOB, CEM))
        await around.says(who, private(who), f"hello {around.canary()}")
        await around.says(who, private(who), f"/schedule in 1h tell {around.canary()}")
        place = self._dice.choice((THREAD, FLAT))
        await around.says(who, place, f"hello {around.canary()}")
        await around.says(who, place, "/schedules")
        await around.says(who, place, f"/schedules cancel {self._dice.randint(1, 2)}")

    async def _takes_back_first(self) -> None:
        """Somebody brings a session to others after taking something back, and one of them goes back to that."""
        around, dice = self._around, self._dice
        who, place = dice.choice((ANN, BOB)), dice.choice((THREAD, FLAT))
        await around.says(who, private(who), f"/new hello {around.canary()}")
        await around.says(who, private(who), "/undo")
        await around.says(who, private(who), f"hello {around.canary()}")
        await around.says(who, private(who), f"/title {(title := around.canary())}")
        await around.says(who, place, f"hello {around.canary()}")
        await around.says(who, place, f"/resume {title}")
        for asked_in in (place, private(who)):
            await around.says(who, asked_in, "/yes", agrees=True)
        await around.says(dice.choice((ANN, who)), place, f"/rewind {dice.randint(1, 3)}")
        await around.says(who, place, f"hello {around.canary()}")

    async def _brings(self) -> None:
        """Somebody wants to go on among others with what they said alone, who may have heard of it once."""
        around, dice = self._around, self._dice
        who, place = dice.choice((ANN, BOB, CEM)), dice.choice((THREAD, FLAT, HOME))
        await around.says(who, private(who), f"/new hello {around.canary()}")
        await around.says(who, private(who), f"/title {(title := around.canary())}")
        await around.says(who, place, f"/resume {title}")
        if dice.random() < 0.5:
            return
        for asked_in in (place, private(who)):
            await around.says(who, asked_in, "/yes", agrees=True)
        if who == ANN and dice.random() < 0.5:
            await around.opens_terminal(around.canary())
            await around.says(BOB, place, f"hello {around.canary()}")
            return
        await around.says(who, place, "/new")
        await around.says(who, private(who), f"hello {around.canary()}")
        if dice.random() < 0.5:
            await around.says(who, place, f"/resume {title}")
        else:
            await around.opens_terminal(around.canary())

    async def _fails(self) -> None:
        """The agent fails, and somebody asks why."""
        around, who = self._around, self._dice.choice((BOB, CEM))
        place = self._dice.choice((private(who), THREAD))
        await around.says(who, place, f"{FAILS} {around.canary()}")
        await around.says(who, place, "/why")

    async def _links(self) -> None:
        """Somebody gives a code away, and another types it and says yes; or no, or types it where others read."""
        around, dice = self._around, self._dice
        alone = [who for who in PEOPLE if len(around.one(who)) == 1]
        if len(alone) < 2 or around.open_questions:
            # Where several things are asked, a yes is to none of them.
            return
        gives, types = dice.sample(alone, 2)
        told = await around.says(gives, private(gives), "/link")
        codes = _CODE.findall(" ".join(post.text for post in told))
        if not codes or dice.random() < 0.2:
            return
        if dice.random() < 0.2:
            await around.says(types, FLAT, f"/link {codes[0]}")
        await around.says(types, private(types), f"/link {codes[0]}")
        answer = dice.choice(("/yes", "/yes", "/no"))
        lanes = [lane for kind, lane in await around.read("drill_own_questions") if kind == questions.LINK]
        asked = any(Lane.parse(lane).address == private(types).address for lane in lanes)
        if asked and types != ANN and answer == "/yes" and gives != ANN:
            around.link(gives, types)
        await around.says(types, private(types), answer)
        if gives == ANN and asked and answer == "/yes" and types != ANN:
            if dice.random() < 0.5:
                around.link(gives, types)
                await around.says(ANN, private(ANN), "/yes")
            else:
                await around.says(ANN, private(ANN), "/no")

    async def _unlinks(self) -> None:
        """Two who are one are parted, by one of them or by the host."""
        around, dice = self._around, self._dice
        if all(len(around.one(who)) == 1 for who in PEOPLE):
            await self._links()
        linked = [who for who in PEOPLE if len(around.one(who)) > 1]
        if not linked:
            return
        who = dice.choice(linked)
        other = dice.choice(sorted(around.one(who) - {who}))
        if dice.random() < 0.5:
            # What one of them has said alone goes on in the private chat of the other.
            await around.says(other, private(other), f"/new hello {around.canary()}")
            await around.says(other, private(other), f"/title {(title := around.canary())}")
            await around.says(who, private(who), f"/resume {title}")
        if dice.random() < 0.5:
            around.part(who)
            await around.unlinked_by_the_host(who)
            await around.settle("", "", private(who))
            return
        told = await around.says(who, private(who), "/unlink")
        lines = _BY_A_CODE.findall("\n".join(post.text for post in told))
        if lines:
            around.part(who)
            await around.says(who, private(who), f"/unlink {lines[0]}")

    async def _imports(self) -> None:
        own = [id for id, owner in self._around.owned.items() if ANN in self._around.one(owner)]
        if own:
            await self._around.imports(SessionId(self._dice.choice(own)))

    async def _answers(self, id: str, asked: str) -> None:
        """Somebody answers a question, who may be asked or not, in its place or in another."""
        around, dice = self._around, self._dice
        who = asked if dice.random() < 0.8 else dice.choice(PEOPLE)
        place = dice.choice((private(who), private(who), THREAD, FLAT, HOME))
        if dice.random() < 0.3:
            await around.says(who, place, "/questions")
        number = dice.randint(1, 3)
        typed = dice.choice(
            (f"/answer {number}", f"/answer 1 {number}", f"/answer {id} {number}", "/answer 1 nothing", "2")
        )
        typed = dice.choice((typed, f"/answer {id} red {around.canary()}"))
        quotes = dice.choice([*around.posts_in(place)[-4:], ""])
        await around.says(who, place, typed, agrees=True, quotes=quotes if not typed.startswith("/") else "")


def private(who: str) -> Place:
    """Somebody's private chat."""
    return Place(Address(PLATFORM, ACCOUNT, chat=who), Kind.DM, who)


THREAD = Place(Address(PLATFORM, ACCOUNT, chat=CLUB, thread="t0"), Kind.GROUP, CLUB)
FLAT = Place(Address(PLATFORM, ACCOUNT, chat=CLUB), Kind.GROUP, CLUB)
DEN_FLAT = Place(Address(PLATFORM, ACCOUNT, chat=DEN), Kind.GROUP, DEN)
HOME = Place(Address(PLATFORM, ACCOUNT, chat=LOBBY), Kind.GROUP, f"{LOBBY} {HOME_NAME}")


def _number(_around: Neighbourhood, _who: str, dice: random.Random) -> str:
    return str(dice.randint(1, 4))


def _perhaps_number(_around: Neighbourhood, _who: str, dice: random.Random) -> str:
    return dice.choice(("", str(dice.randint(1, 4))))


def _nothing(*_: object) -> str:
    return ""


def _resumes(around: Neighbourhood, who: str, dice: random.Random) -> str:
    titles = [title for each in sorted(around.one(who)) for title in around.titles[each][-3:]]
    return dice.choice(("", str(dice.randint(1, 4)), dice.choice(titles), dice.choice(titles)))


def _sessions(around: Neighbourhood, _who: str, dice: random.Random) -> str:
    number = dice.randint(1, 4)
    return dice.choice(("", str(number), str(number), f"new hello {around.canary()}", f"close {number}"))


def _hands_off(_around: Neighbourhood, who: str, dice: random.Random) -> str:
    return dice.choice((PLATFORM, f"{PLATFORM}:{CLUB} --yes", f"{PLATFORM}:{who}", f"{PLATFORM}:{who}", "cancel", ""))


def _schedules(around: Neighbourhood, _who: str, dice: random.Random) -> str:
    return f"in 1h tell {around.canary()}{dice.choice(('', f' --to {PLATFORM}:{CLUB}'))}"


TYPED: dict[str, tuple[int, Callable[[Neighbourhood, str, random.Random], str]]] = {
    "new": (4, _nothing),
    "resume": (12, _resumes),
    "sessions": (12, _sessions),
    "title": (5, lambda around, _who, dice: dice.choice(("", around.canary(), around.canary(), '""'))),
    "branch": (3, _nothing),
    "handoff": (6, _hands_off),
    "search": (3, lambda *_: "hello"),
    "export": (2, lambda _around, _who, dice: dice.choice(("", "jsonl"))),
    "agent": (2, lambda _around, _who, dice: dice.choice(("", "polly", "parrot"))),
    "undo": (6, lambda _around, _who, dice: dice.choice(("", "", "", "1", "2"))),
    "redo": (3, _nothing),
    "retry": (3, _nothing),
    "rewind": (3, _perhaps_number),
    "tree": (5, lambda _around, _who, dice: dice.choice(("", "a", "b"))),
    "compress": (1, _nothing),
    "forget": (2, lambda _around, _who, dice: dice.choice(("", str(dice.randint(1, 4)), "session"))),
    "stop": (1, _nothing),
    "yes": (9, _nothing),
    "no": (2, _nothing),
    "answer": (1, lambda _around, _who, dice: f"{dice.randint(1, 3)} {dice.randint(1, 3)}"),
    "questions": (2, lambda _around, _who, dice: dice.choice(("", "", "revoke 1"))),
    "schedule": (6, _schedules),
    "schedules": (4, lambda _around, _who, dice: dice.choice(("", "", f"cancel {dice.randint(1, 4)}"))),
    "who": (1, _nothing),
    "link": (1, _nothing),
    "unlink": (1, _nothing),
    "revoke": (1, _nothing),
    "home": (1, _nothing),
    "status": (3, _nothing),
    "notes": (2, lambda _around, _who, dice: dice.choice(("", "clear", "clear 1"))),
    "usage": (1, _nothing),
    "why": (4, _nothing),
    "help": (1, _nothing),
}
"""The commands, each with how often it is typed and with what behind it; linking and parting also have steps."""
REPLIES = ("rewind", "forget", "why")


def _with_queries(texts: dict[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    return texts | {(name, dialect): sql for name, sql in _SQL.items() for dialect in ("sqlite", "postgres")}


def _settings(dice: random.Random, approver: str) -> GatewaySettings:
    account = AccountSettings(
        public=True,
        streams=Streams.WHOLE,
        mentions=Mentions.OPTIONAL,
        home=HOME,
        agents=("polly",),
        approvers=(f"{PLATFORM}.{ACCOUNT}/{approver}",) if approver else (),
    )
    return GatewaySettings(
        hosts=(Identity(PLATFORM, ACCOUNT, ANN), *HOSTS),
        accounts={(PLATFORM, ACCOUNT): account},
        quotes=dice.choice((Quotes.OFF, Quotes.ONCE, Quotes.SWITCH)),
        routing=Settings(resets=dice.choice((Policies(), _IDLE)), limits=Limits(budget=6)),
        ending=dice.choice(("", "Note down what matters.")),
        questions=QuestionSettings(_HOUR / 2),
        limits=UNBOUNDED,
        poll=0.05,
    )


async def run(where: str, steps: int, seed: int, bug: Bug = Bug.NONE, often: float = 1.0) -> Found:
    """Let so many things happen; those that take several steps so much more often."""
    dice = random.Random(seed)
    files = Shelf()
    board, approver = dice.choice((Board, HushedBoard))(files), dice.choice(("", "", "", CEM))
    parrot, clock, terminals = Parrot(dice), HandClock(time.time()), Local(TERMINAL)
    agents, settings = {"parrot": parrot, "polly": parrot}, _settings(dice, approver)
    with planted(Patch(statements, "_TEXTS", _with_queries), *bug.patches):
        is_file = "://" not in where
        driver = await (Sqlite.open(where, running=RunsIn.INLINE) if is_file else open_driver(where))
        store = Store(driver)
        await meet_host(store)
        for who in PEOPLE:
            await store.person(Identity(PLATFORM, ACCOUNT, who), who)
        async with gateway_on(driver, agents, board, terminals, settings=settings, clock=clock, files=files) as gateway:
            around = Neighbourhood(gateway, terminals, parrot, clock, board, approver)
            await around.meet()
            happening = Steps(around, dice, often)
            for n in range(steps):
                await happening.step()
                if around.wrong:
                    return Found(n + 1, around.canaries, around.shown, around.told)
    return Found(steps, around.canaries, around.shown, ())
