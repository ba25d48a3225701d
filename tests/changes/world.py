"""What the tests of the store stand on: a clock moved by hand, ids from a seed, and short words for common steps."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, TypeVar

import apsw
import asyncpg

from segue.changes.accept import Duplicate, Fresh, FrontDoor, Handled, Judge, OverLimit, Queued, RunCommand
from segue.changes.people.access import anybody
from segue.core.lanes import Address, Identity, Kind, Lane, Person, Place
from segue.core.messages import Arrival, Parts, Speaker, Text
from segue.core.moves import Fork, Limits, Renew, Resume
from segue.core.settings import GatewaySettings, Settings
from segue.core.transcripts import AGENT, Draft, Entry
from segue.core.turns import Finish, Reply, Run
from segue.core.values import PersonId, SessionId, make_id
from segue.store import Store, open_driver
from tests.today import file_of_today

Row = TypeVar("Row")
BEGINNING = 1_700_000_000.0


class Engine(Enum):
    """The databases that everything is tried on."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = BEGINNING

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> float:
        self.now += seconds
        return self.now


def seeded_ids(clock: Clock, seed: int = 0) -> Callable[[], str]:
    """Ids that are the same in every run."""
    dice = random.Random(seed)
    return lambda: make_id(clock(), dice.randbytes(10))


class RawSql(Protocol):
    """A database as it is, without Segue in between: statements with their arguments as `$1`, `$2`."""

    async def __call__(self, sql: str, *arguments: Any) -> list[tuple[Any, ...]]: ...

    async def close(self) -> None: ...


MARK = "bystander"
"""Stands in every row of the bystanders, and in no other one."""

_WORD = re.compile(r"\w+")
_WRITES = re.compile(r"^\s*(insert into|update|delete from) (\w+)(.*)$", re.DOTALL)

REFUSED_BY_SCHEMA = (apsw.ConstraintError, asyncpg.IntegrityConstraintViolationError)


class RawSqlite:
    """A SQLite file as it is."""

    def __init__(self, path: str) -> None:
        self._connection = apsw.Connection(path)
        self._connection.set_busy_timeout(5000)
        self._connection.execute("pragma foreign_keys = on")

    async def __call__(self, sql: str, *arguments: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql.replace("$", "?"), arguments or None).fetchall()

    async def close(self) -> None:
        self._connection.close()


class OfOthers(RawSqlite):
    """A SQLite file as it is, without the bystanders: a view of each table stands in its place."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._columns = columns(self._connection)
        self._hidden: set[str] = set()

    async def __call__(self, sql: str, *arguments: Any) -> list[tuple[Any, ...]]:
        for table in _WORD.findall(sql):
            if table in self._columns and table not in self._hidden:
                self._hidden.add(table)
                view = f"select * from main.{table} where not {marked(self._columns[table])}"
                self._connection.execute(f"create temp view {table} as {view}")
        return await super().__call__(_WRITES.sub(self._main, sql), *arguments)

    def bystanders(self) -> set[str]:
        """All rows of theirs."""
        return {
            f"{table}: {row}"
            for table, names in self._columns.items()
            for row in self._connection.execute(f"select * from main.{table} where {marked(names)}")
        }

    def _main(self, found: re.Match[str]) -> str:
        """A statement that changes a table, in place of its view."""
        verb, table, rest = found.groups()
        if verb.startswith("insert"):
            return f"{verb} main.{table}{rest}"
        changes, _, where = rest.partition(" where ")
        return f"{verb} main.{table}{changes} where not {marked(self._columns[table])} and ({where or 'true'})"


def columns(connection: apsw.Connection) -> dict[str, list[str]]:
    """The names of the columns of each table of a SQLite file."""
    found: dict[str, list[str]] = {}
    for table, name in connection.execute(
        "select t.name, c.name from main.sqlite_master t, pragma_table_info(t.name) c where t.type = 'table' "
        "and t.name not like 'search%' order by t.name, c.cid"
    ):
        found.setdefault(table, []).append(name)
    return found


def marked(names: Iterable[str]) -> str:
    """What is true in SQLite of the bystanders' rows alone."""
    return "(" + " || ' ' || ".join(f"coalesce({name}, '')" for name in names) + f") like '%{MARK}%'"


class RawPostgres:
    """A PostgreSQL database as it is."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def __call__(self, sql: str, *arguments: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self._connection.fetch(sql, *arguments)]

    async def close(self) -> None:
        await self._connection.close()


async def raw_sql(engine: Engine, where: str) -> RawSql:
    """A database as it is."""
    if engine is Engine.SQLITE:
        return RawSqlite(where)
    return RawPostgres(await asyncpg.connect(where, server_settings={"search_path": "segue"}))


async def without_bystanders(engine: Engine, where: str) -> RawSql:
    """A database as if nobody lived in it but those of the test."""
    if engine is Engine.SQLITE:
        return OfOthers(where)
    return RawPostgres(await asyncpg.connect(where, server_settings={"search_path": "hidden, segue"}))


@dataclass
class World:
    """A store with people in it."""

    store: Store
    clock: Clock
    ids: Callable[[], str]
    engine: Engine
    where: str
    raw: RawSql
    changed: set[str] = field(default_factory=set)
    """Tables in which this test changes rows of the bystanders on purpose."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _beside: list[Store] = field(default_factory=list)

    @classmethod
    async def open(cls, engine: Engine, where: str | Path, limits: Limits | None = None) -> World:
        clock = Clock()
        ids = seeded_ids(clock)
        where = file_of_today(Path(where)) if engine is Engine.SQLITE else where
        store = Store(await open_driver(where), clock, ids, limits)
        return cls(store, clock, ids, engine, str(where), await without_bystanders(engine, str(where)))

    async def beside(self) -> World:
        """Another process on the same database."""
        ids = seeded_ids(self.clock, next(self._numbers))
        store = Store(await open_driver(self.where), self.clock, ids)
        self._beside.append(store)
        return World(store, self.clock, ids, self.engine, self.where, self.raw, _numbers=self._numbers)

    async def close(self) -> None:
        for store in (*self._beside, self.store):
            await store.close()
        await self.raw.close()

    async def person(self, user: str, *aliases: str, platform: str = "telegram", name: str = "") -> Person:
        self.clock.passes(1)
        return await self.store.person(Identity(platform, "bot", user), name or user, aliases)

    async def dm(self, person: Person, chat: str = "", thread: str = "") -> Lane:
        return await self.store.lane(private(chat or person.id, thread), person)

    async def group(self, person: Person, chat: str = "g") -> Lane:
        return await self.store.lane(public(chat), person)

    async def thread(self, person: Person, thread: str = "t", chat: str = "g") -> Lane:
        return await self.store.lane(public(chat, thread), person)

    async def renew(self, lane: Lane, by: Person, *said: str) -> SessionId:
        """A new session in a lane, with something said in it."""
        self.clock.passes(1)
        session = self.store.new_session_id()
        await self.store.move(Renew(lane, session), by)
        if said:
            await self.store.say(session, by, *said)
        return session

    async def resume(self, lane: Lane, session: SessionId, by: Person) -> None:
        self.clock.passes(1)
        await self.store.move(Resume(lane, session), by)

    async def fork(self, lane: Lane, source: SessionId, by: Person, **more: Any) -> SessionId:
        self.clock.passes(1)
        session = self.store.new_session_id()
        await self.store.move(Fork(lane, source, session, **more), by)
        return session

    async def exchange(self, session: SessionId, by: Person, asked: str, answered: str) -> None:
        """Somebody says something, and the agent answers."""
        self.clock.passes(1)
        await self.store.say(session, by, asked)
        await self.store.say(session, AGENT, answered)

    async def said(self, session: SessionId) -> list[str]:
        """The words up to a session's tip."""
        return words(await self.store.path(session))

    async def count(self, table: str) -> int:
        [(number,)] = await self.raw(f"select count(*) from {table}")
        return int(number)

    def arrival(
        self,
        user: str,
        text: str | Parts,
        place: Place | None = None,
        message: str = "",
        *,
        aliases: tuple[str, ...] = (),
        chat_aliases: tuple[str, ...] = (),
        **more: Any,
    ) -> Arrival:
        return Arrival(
            place or private(user),
            message or f"m{next(self._numbers)}",
            Speaker(Identity("telegram", "bot", user), user, aliases),
            (Text(text),) if isinstance(text, str) else text,
            self.clock(),
            chat_aliases=chat_aliases,
            **more,
        )

    async def accept(
        self, arrival: Arrival, me: str | None = None, settings: Settings | GatewaySettings | None = None
    ) -> Queued | Handled | Duplicate:
        """Take an arrival in."""
        self.clock.passes(1)
        whole = settings if isinstance(settings, GatewaySettings) else GatewaySettings(routing=settings or Settings())
        door = FrontDoor(whole)
        taken = await self.store.driver.write(door.accept, arrival, self.fresh(arrival), me)
        assert not isinstance(taken, OverLimit)
        return taken

    def door(self, judge: Judge = anybody, run: RunCommand | None = None) -> FrontDoor:
        """A front door that lets everybody in as a participant, unless a judge says otherwise."""
        return FrontDoor(GatewaySettings(), judge, run)

    async def hear(
        self,
        user: str,
        text: str,
        place: Place | None = None,
        *,
        me: str | None = None,
        settings: Settings | GatewaySettings | None = None,
        **more: Any,
    ) -> Queued:
        """Somebody says something that becomes a turn."""
        queued = await self.accept(self.arrival(user, text, place, **more), me, settings)
        assert isinstance(queued, Queued)
        return queued

    def fresh(self, arrival: Arrival) -> Fresh:
        merges = tuple(self.ids() for _ in range(1 + len(arrival.speaker.aliases)))
        return Fresh(PersonId(self.ids()), SessionId(self.ids()), self.ids(), merges, "trace", self.clock())


def private(chat: str, thread: str = "", platform: str = "telegram") -> Place:
    return Place(Address(platform, "bot", chat=chat, thread=thread), Kind.DM)


def public(chat: str = "g", thread: str = "", **more: Any) -> Place:
    return Place(Address("telegram", "bot", chat=chat, thread=thread), Kind.GROUP, **more)


def words(entries: list[Entry]) -> list[str]:
    """The texts of entries."""
    return [part.text for entry in entries for part in entry.parts if isinstance(part, Text)]


def of_the_test(found: Iterable[Row]) -> list[Row]:
    """What isn't the bystanders', of something that concerns everybody."""
    return [each for each in found if MARK not in repr(each)]


def answer(run: Run, *texts: str, **more: Any) -> Finish:
    """What a turn leaves behind that asked nothing but to be answered in these words."""
    route = Address.parse(run.turns[0].route)
    replies = tuple(Reply(route, text, entry) for entry, text in enumerate(texts, 1))
    drafts = tuple(Draft(AGENT, (Text(text),)) for text in texts)
    return Finish(tuple(turn.seq for turn in run.turns), drafts, replies, **more)
