"""Words keep their readers: people talk, move, hand off and schedule at random, and nobody is shown what isn't theirs.

Everything that somebody says has a canary in it. The agent repeats every canary that it can get hold of, by its
transcript, by its context and by every tool, with any session's id. A model knows who may read which canary: whoever
heard it said, who reads the session that it was said in, and whom its owner agreed to.
"""

import asyncio
import random
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from segue.core.contracts.adapters import Connection, Intake
from segue.core.contracts.agents import Event, Work
from segue.core.contracts.database import Statement, Transaction
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Delivery, Sending, Speaker, Text, ToolCall, encode_parts
from segue.core.moves import Limits
from segue.core.settings import AccountSettings, GatewaySettings, Mentions, Quotes, Settings, Streams
from segue.core.values import Value
from segue.core.windows import HOSTS, TERMINAL
from segue.database import statements
from segue.database.sqlite import RunsIn, Sqlite
from segue.runtime.gateway import Gateway
from segue.runtime.windows.frames import OpenRequest, Shown
from segue.runtime.windows.local import Local
from segue.runtime.windows.window import Seat, Window, meet_host
from segue.store import Store
from segue.testing import HandClock, Shelf
from tests.drills.planting import Bug, Patch, planted

PLATFORM, ACCOUNT = "wall", "alpha"
ANN, BOB, CEM = "ann", "bob", "cem"
"""Ann is the host."""
CLUB, LOBBY = "club", "lobby"
"""The lobby is the host's home."""
CANARY = re.compile(r"zq\d{5}q")
ASIDE = ("/export", "/export jsonl", "/usage", "/who", "/help", "/compress", "/stop", "/link", "/unlink", "/revoke")
"""Commands that move nothing."""
_PATIENCE = 20.0
_SQL = {
    "drill_busy": """select (select count(*) from sessions where head < tail)
        + (select count(*) from deliveries where sent is null and dead is null)
        + (select count(*) from handoffs where settled is null)""",
    "drill_bound": """select b.lane, l.address, a.kind, b.session, s.owner, s.depth, coalesce(t.name, '')
        from bindings b join lanes l on l.key = b.lane join addresses a on a.key = l.address
        join sessions s on s.id = b.session
        left join titles t on t.session = s.id and t.until is null where b.until is null""",
    "drill_path": """with recursive path (session, n) as (
          select tip_session, tip from sessions where id = :session and tip is not null
          union all
          select e.parent_session, e.parent from path p join entries e on e.session = p.session and e.n = p.n
          where e.parent is not null)
        select e.parts from path p join entries e on e.session = p.session and e.n = p.n""",
    "drill_said_in": "select distinct session from entries where role = 'person' and parts like :like",
    "drill_sessions": "select id from sessions",
    "drill_owners": """select distinct s.owner from entries e join sessions s on s.id = e.session
        where e.parts like :like""",
}


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


class Board:
    """A platform that keeps what is sent, takes files, opens threads, and its adapter."""

    platform = PLATFORM
    account = ACCOUNT
    sending = Sending.KEYED
    connection = Connection.ANY
    largest_file = 2**30

    def __init__(self, files: Shelf) -> None:
        self._files = files
        self.posts: dict[str, Delivery] = {}
        self.threads: dict[str, Address] = {}

    async def run(self, intake: Intake) -> None:
        intake.connected()
        await asyncio.Event().wait()

    def fits(self, text: str) -> bool:
        return len(text) <= 100_000

    async def send(self, delivery: Delivery) -> str:
        if delivery.file is not None:
            content = (await self._files.read(delivery.file)).decode()
            delivery = replace(delivery, text=f"{delivery.text}\n{content}")
        self.posts.setdefault(delivery.key, delivery)
        return delivery.key

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        del title
        name = f"t{len(self.threads) + 1}"
        return self.threads.setdefault(key, Address(PLATFORM, ACCOUNT, chat=parent.chat, thread=name))


class HushedBoard(Board):
    """One on which a single person can be told something among others."""

    whispers: Literal[True] = True


class Parrot:
    """An agent that tells all that it knows, and asks every tool for more."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.sessions: list[str] = []
        self._children: defaultdict[str, list[str]] = defaultdict(list)
        """The lasting sessions that each session has started."""
        self._calls = 0

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        said = [entry.parts for entry in work.transcript] + [draft.parts for draft in work.asked]
        words = [work.context, *map(encode_parts, said)]
        heard = set(CANARY.findall(" ".join(words)))
        for _ in range(self._dice.choice((0, 0, 1, 1, 2))):
            self._calls += 1
            name, arguments = self._wish(" ".join(sorted(heard)) or "nothing", self._children[work.session])
            result = await work.tools.call(ToolCall(f"call {self._calls}", name, arguments))
            if name == "sessions_spawn" and not result.failed and arguments["mode"] == "session":
                self._children[work.session].append(result.content["session"])
            heard |= set(CANARY.findall(str(result.content)))
        yield Text(f"I know {' '.join(sorted(heard)) or 'nothing'}")

    def _wish(self, all_of_it: str, children: Sequence[str]) -> tuple[str, dict[str, Any]]:
        dice = self._dice
        session = dice.choice(self.sessions) if self.sessions else "none"
        if children and dice.random() < 0.5:
            session = dice.choice(children)
        match dice.randrange(12):
            case 0 | 1 | 2:
                return "sessions_list", {}
            case 3 | 4 | 5:
                return "sessions_history", {"session": session}
            case 6 | 7:
                return "sessions_send", {"session": session, "message": all_of_it, "wait": dice.choice((0, 0, 0.1))}
            case 8:
                return "schedules_list", {}
            case 9:
                to = dice.choice(("origin", PLATFORM, f"{PLATFORM}:{dice.choice((CLUB, LOBBY, ANN, BOB))}"))
                return "schedule", {"task": all_of_it[:1000], "when": "in 1h", "deliver": to}
            case _:
                mode, thread = dice.choice(("run", "session")), dice.choice((False, False, True))
                start = dice.choice(("fresh", "fork"))
                return "sessions_spawn", {"task": all_of_it, "mode": mode, "thread": thread, "start": start}


class Neighbourhood:
    """People, their places, and what each of them may read."""

    def __init__(self, gateway: Gateway, terminals: Local, parrot: Parrot, clock: HandClock, board: Board) -> None:
        self._gateway = gateway
        self._terminals = terminals
        self._parrot = parrot
        self._clock = clock
        self._board = board
        self._count = 0
        self.canaries = 0
        self.shown = 0
        self.wrong: list[str] = []
        self._may: defaultdict[str, set[str]] = defaultdict(set)
        """The canaries that each reader may read: a place by its address, a person by their name."""
        self._private: dict[str, str] = {}
        """Who said a canary first, if it was with nobody else around; empty if others heard it."""
        self._posts = 0
        self._messages: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """The messages of each person in each place."""
        self._before: set[tuple[str, str]] = set()
        self._people: dict[str, str] = {}
        self._titles: defaultdict[str, list[str]] = defaultdict(lambda: ["none"])
        """The titles of each person's sessions."""

    async def read(self, name: str, **arguments: Any) -> list[tuple[Any, ...]]:
        """Rows of a query of the drill's own."""

        def rows() -> Transaction[list[tuple[Any, ...]]]:
            found = yield Statement(name, arguments)
            return [tuple(row) for row in found]

        return await self._gateway.store.driver.read(rows)

    async def meet(self) -> None:
        """Learn who is who."""
        for who in (ANN, BOB, CEM):
            self._people[(await self._gateway.store.person(Identity(PLATFORM, ACCOUNT, who))).id] = who

    def canary(self) -> str:
        """A new one."""
        self.canaries += 1
        return f"zq{self.canaries:05}q"

    async def says(self, who: str, place: Place, text: str, *, agrees: bool = False, **more: Any) -> list[str]:
        """Somebody says something; returns what is wrong then. `agrees` if it is a yes to what is one's own."""
        self._count += 1
        identity = Identity(PLATFORM, ACCOUNT, who)
        message = f"m{self._count}"
        parts = (Text(text),) if text else ()
        arrival = Arrival(place, message, Speaker(identity, who), parts, self._clock.passes(1.0), **more)
        self._messages[who, place.address.key].append(message)
        self._said(who, place, text)
        await self._gateway.accept(arrival)
        return await self.settle(who, text, place, agrees=agrees)

    async def opens_terminal(self, text: str) -> list[str]:
        """Ann opens a terminal, which chooses its session by itself, and says something that is for nobody else."""
        frames: list[Shown] = []

        async def send(frame: Shown) -> None:
            frames.append(frame)

        asked = OpenRequest()
        window = Window(self._gateway, self._terminals, Seat(ANN, ANN), send, self._clock)
        await window.open(asked)
        await window._begin(asked)
        self._count += 1
        place = Place(Address(TERMINAL, self._terminals.account, chat=ANN))
        self._said(ANN, place, text)
        speaker = Speaker(next(host for host in HOSTS if host.platform == TERMINAL), ANN)
        await self._gateway.accept(Arrival(place, f"m{self._count}", speaker, (Text(text),), self._clock.passes(1.0)))
        self._may[HOME.address.key].update(CANARY.findall(text))
        return await self.settle(ANN, "", place)

    async def time_passes(self) -> list[str]:
        """So much that scheduled work is due."""
        self._clock.passes(3700.0)
        await self._gateway._schedules.once()
        return await self.settle("", "", Place(Address(PLATFORM, ACCOUNT)))

    def _said(self, who: str, place: Place, text: str) -> None:
        for canary in CANARY.findall(text):
            self._may[who].add(canary)
            self._private.setdefault(canary, who if place.kind is Kind.DM else "")
            if place.kind is not Kind.DM:
                self._may[place.address.key].add(canary)

    async def settle(self, who: str, text: str, place: Place, *, agrees: bool = False) -> list[str]:
        """Wait until nothing is under way, then look at who speaks to what, and at what was sent."""
        until = time.monotonic() + _PATIENCE
        while (await self.read("drill_busy"))[0][0]:
            if time.monotonic() > until:
                return [f"never settled after {text!r}"]
            await asyncio.sleep(0.002)
        self._parrot.sessions = [id for (id,) in await self.read("drill_sessions")]
        bound = [Bound(*row) for row in await self.read("drill_bound")]
        here = [one.session for one in bound if one.address == place.address.key]
        for canary in CANARY.findall(text):
            await self._heard(canary, who, text, here, bound)
        wrong: list[str] = []
        for one in bound:
            if (one.lane, one.session) not in self._before:
                wrong += await self._came(one, who, agrees=agrees)
            self._may[self._reader(one.address, one.kind)].update(CANARY.findall(one.title))
            owner = self._people[one.owner]
            if one.title and one.title not in self._titles[owner]:
                self._titles[owner].append(one.title)
        self._before = {(one.lane, one.session) for one in bound}
        return wrong + await self._look()

    async def _heard(self, canary: str, who: str, text: str, here: Sequence[str], bound: Sequence[Bound]) -> None:
        """Whoever reads the session that something is said in has heard it."""
        within = {*here, *(session for (session,) in await self.read("drill_said_in", like=f"%{canary}%"))}
        for one in bound:
            if one.session in within:
                self._may[self._reader(one.address, one.kind)].add(canary)
        if who == ANN:
            self._may[HOME.address.key].add(canary)
        if "--to" in text:
            self._may[FLAT.address.key].add(canary)

    async def _came(self, one: Bound, who: str, *, agrees: bool) -> list[str]:
        """A session came to a lane: by its owner's yes, or because everybody there has read it."""
        reader = self._reader(one.address, one.kind)
        path = set(CANARY.findall(" ".join(parts for (parts,) in await self.read("drill_path", session=one.session))))
        owns = self._people.get(one.owner) == who
        if owns and (agrees or (who == ANN and reader == HOME.address.key)):
            self._may[reader] |= path
        if one.depth and Address.parse(one.address).thread:
            # A thread that was opened for a child is read by those around it.
            chat = Address.parse(one.address).outside
            around = [key for key in self._may if "/" in key and Address.parse(key).outside == chat]
            self._may[reader] |= set().union(*(self._may[key] for key in around))
        alone = {c for c in path if self._private[c] in ("", reader) or self._heard_among_others(reader, c)}
        unasked = path - self._may[reader] - (alone if one.kind == "dm" else set())
        return [f"{one.session} came to {reader} unasked, with {sorted(unasked)}"] if unasked else []

    async def _look(self) -> list[str]:
        """Look at what was sent since."""
        wrong = []
        posts = list(self._board.posts.values())
        for post in posts[self._posts :]:
            dm = post.address.chat in (ANN, BOB, CEM)
            reader = post.only or (post.address.chat if dm else post.address.key)
            for canary in sorted(set(CANARY.findall(post.text))):
                self.shown += 1
                others = self._private[canary] not in ("", reader) if dm or post.only else True
                known = canary in self._may[reader] or self._heard_among_others(reader, canary)
                if others and not known and not await self._at_home(post.address, canary):
                    wrong.append(f"{reader} was shown {canary}: {post.text[:80]!r}")
        self._posts = len(posts)
        return wrong

    def _heard_among_others(self, who: str, canary: str) -> bool:
        """Whether a place in which somebody talks knows it: what it knows, they may be told alone."""
        places = (place.address.key for place in (THREAD, FLAT, HOME))
        return any(self._messages[who, key] and canary in self._may[key] for key in places)

    async def _at_home(self, address: Address, canary: str) -> bool:
        """Whether it is the home, for which the host has said yes to all that is in sessions of their own."""
        owners = await self.read("drill_owners", like=f"%{canary}%") if address == HOME.address else []
        return ANN in {self._people.get(owner) for (owner,) in owners}

    def _reader(self, address: str, kind: str) -> str:
        if kind != "dm":
            return address
        place = Address.parse(address)
        return place.chat if place.platform == PLATFORM else ANN

    async def step(self, dice: random.Random) -> None:
        """Something happens."""
        if dice.random() < 0.1:
            self.wrong += await (self.time_passes() if dice.random() < 0.6 else self.opens_terminal(self.canary()))
            return
        if dice.random() < 0.01:
            self.wrong += await self._leaves_work_behind(dice)
            return
        who = dice.choice((ANN, ANN, BOB, BOB, CEM))
        place = dice.choice((private(who), private(who), THREAD, THREAD, FLAT, HOME))
        posts = [post.message or post.key for post in self._board.posts.values() if post.address == place.address]
        mine = self._messages[who, place.address.key][-4:]
        if mine and dice.random() < 0.04:
            self.wrong += await self.says(who, place, f"rather {self.canary()}", edits=dice.choice(mine))
            return
        if mine and dice.random() < 0.02:
            self.wrong += await self.says(who, place, "", deletes=dice.choice(mine))
            return
        if dice.random() < 0.5:
            quotes = dice.choice(posts) if posts and dice.random() < 0.2 else ""
            self.wrong += await self.says(who, place, f"hello {self.canary()}", quotes=quotes)
            return
        typed = self._command(who, dice)
        agrees = typed == "/yes" or typed.startswith("/handoff")
        self.wrong += await self.says(who, place, typed, agrees=agrees)

    async def _leaves_work_behind(self, dice: random.Random) -> list[str]:
        """Somebody schedules work among others, takes the conversation along and goes on alone until it is due."""
        who, place = dice.choice((ANN, BOB)), dice.choice((THREAD, FLAT))
        wrong = await self.says(who, place, f"hello {self.canary()}")
        wrong += await self.says(who, place, f"/schedule in 1h tell {self.canary()}")
        wrong += await self.says(who, place, f"/handoff {PLATFORM}:{who}", agrees=True)
        wrong += await self.says(who, private(who), f"hello {self.canary()}")
        return wrong + await self.time_passes()

    def _command(self, who: str, dice: random.Random) -> str:
        number, place = dice.randint(1, 4), dice.choice((PLATFORM, f"{PLATFORM}:{CLUB} --yes", f"{PLATFORM}:{who}"))
        if dice.random() < 0.12:
            return dice.choice((*ASIDE, f"/rewind {number}", f"/forget {number}", f"/schedules cancel {number}"))
        return dice.choice(
            (
                *("/sessions", f"/sessions {number}", f"/sessions {number}", "/resume", f"/resume {number}"),
                f"/resume {dice.choice(self._titles[who][-3:])}",
                *(f"/resume {dice.choice(self._titles[who][-3:])}", "/yes", "/yes", "/yes", "/no", "/new"),
                *(f"/title {self.canary()}", "/branch", "/undo", "/undo", "/redo", "/retry", "/search hello"),
                *("/tree", f"/tree {dice.choice('ab')}", "/status", "/why", "/title", "/schedules"),
                *(f"/schedule in 1h tell {self.canary()}", f"/schedule in 1h tell {self.canary()} --to wall:{CLUB}"),
                *(f"/handoff {place}", f"/handoff {place}", f"/sessions new hello {self.canary()}"),
            )
        )


def private(who: str) -> Place:
    """Somebody's private chat."""
    return Place(Address(PLATFORM, ACCOUNT, chat=who), Kind.DM, who)


THREAD = Place(Address(PLATFORM, ACCOUNT, chat=CLUB, thread="t0"), Kind.GROUP, CLUB)
FLAT = Place(Address(PLATFORM, ACCOUNT, chat=CLUB), Kind.GROUP, CLUB)
HOME = Place(Address(PLATFORM, ACCOUNT, chat=LOBBY), Kind.GROUP, LOBBY)


def _with_queries(texts: dict[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    return texts | {(name, dialect): sql for name, sql in _SQL.items() for dialect in ("sqlite", "postgres")}


async def run(where: str, steps: int, seed: int, bug: Bug = Bug.NONE) -> Found:
    """Let so many things happen."""
    dice = random.Random(seed)
    files = Shelf()
    board = dice.choice((Board, HushedBoard))(files)
    parrot, clock, terminals = Parrot(dice), HandClock(time.time()), Local(TERMINAL)
    account = AccountSettings(
        public=True, streams=Streams.WHOLE, mentions=Mentions.OPTIONAL, home=Place(HOME.address, HOME.kind, HOME.name)
    )
    settings = GatewaySettings(
        hosts=(Identity(PLATFORM, ACCOUNT, ANN), *HOSTS),
        accounts={(PLATFORM, ACCOUNT): account},
        quotes=dice.choice((Quotes.OFF, Quotes.ONCE, Quotes.SWITCH)),
        routing=Settings(limits=Limits(budget=6)),
        poll=0.05,
        grace=0.0,
    )
    with planted(Patch(statements, "_TEXTS", _with_queries), *bug.patches):
        async with Store(await Sqlite.open(where, running=RunsIn.INLINE)) as store:
            await meet_host(store)
            for who in (ANN, BOB, CEM):
                await store.person(Identity(PLATFORM, ACCOUNT, who), who)
            async with Gateway(store, parrot, [board, terminals], settings, clock=clock, files=files) as gateway:
                around = Neighbourhood(gateway, terminals, parrot, clock, board)
                await around.meet()
                for n in range(steps):
                    await around.step(dice)
                    if around.wrong:
                        return Found(n + 1, around.canaries, around.shown, tuple(around.wrong))
    return Found(steps, around.canaries, around.shown, ())
