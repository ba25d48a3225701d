"""Two persons whom no test is about: whatever a test does, their rows stay as they are.

The keys of one sort before everybody else's, those of the other after. Each has what a missing scope would reach: a
turn that runs and one that waits, a former session, an ended binding, a lifted block, a reservation.
Every row of theirs has the word "bystander" in it. `World.raw` leaves those rows out.
"""

import asyncio
import re
from collections.abc import Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import apsw

from segue.changes.exchange import deliveries, turns
from segue.core.contracts.database import Ids
from segue.core.moves import Release
from segue.store import Store, open_driver
from tests.changes.world import (
    MARK,
    Clock,
    Engine,
    OfOthers,
    RawSql,
    World,
    answer,
    columns,
    private,
    raw_sql,
    without_bystanders,
)
from tests.today import file_of_today

Found = TypeVar("Found")

# What the store's own changes don't write. {M} is the name of one of the two, {P} the person, {S} their session, {O}
# their former one, {L} their lane, {A} its address, and {D} the day of the world's clock.
_ROWS = """
insert into replicas (id, expires) values ('{M}', 1e12)
update sessions set holder = '{M}', epoch = 1, running = 1 where id = '{S}'
update sessions set sweep = null, indexed = length, used = 1e12 where id like '{M}%'
insert into windows (address, replica, account) values ('{A}', '{M}', '{M}')
insert into connections (account, holder, epoch, cursor) values ('{M}', '{M}', 1, 'c')
insert into journal (session, turn, call, n, epoch, parts, at) values ('{S}', 1, 'c1', 1, 1, '[]', 1)
insert into partials (session, turn, epoch, text, at) values ('{S}', 1, 1, 'so far', 1)
insert into usage (session, turn, model, input, output, reasoning, cache_read, cache_write, cost, size, at)
  values ('{O}', 1, 'm', 7, 7, 7, 7, 7, 7.0, 99, 1)
insert into agent_states (session, agent, value, tip_session, tip, at) values ('{S}', 'agent', '"state"', '{S}', 1, 1)
insert into agent_states (session, agent, value, at) values ('{S}', '', '"state"', 1)
insert into contexts (session, lanes, summary, redaction, voices, section, agent, notes, since)
  values ('{S}', '["{L}"]', '', '', 'one', 'section', '', '', 1)
insert into reservations (session, turn, epoch, person, day, tokens) values ('{S}', 1, 1, '{P}', '{D}', 500)
insert into spendings (scope, turns, tokens, cost) values ('session/{S}', 1, 14, 7.0)
insert into spendings (scope, turns, tokens, cost) values ('person/{P}/{D}', 1, 14, 7.0)
insert into grants (account, person, place, since, why, by_person) values ('telegram/bot', '{P}', 'dm', 1, 'host', '')
insert into grants (account, person, place, since, until, why, by_person)
  values ('telegram/bot', '{P}', 'group', 1, 2, 'host', '')
insert into blocks (person, since, until, by_person) values ('{P}', 1, 2, '')
insert into codes (digest, kind, account, person, body, made, expires) values ('{M}', 'link', '{L}', '{P}', '', 1, 1e12)
insert into tries (person, at) values ('{P}', 1e12)
insert into lists (lane, person, kind, sessions, at) values ('{L}', '{P}', 'resume', '["{O}"]', 1)
insert into keeps (session, why, since, until) values ('{S}', 'process', 1, 1e12)
insert into schedules (id, call, session, lane, owner, task, line, zone, deliver, route, since, due)
  values ('{M}1', '{M}', '{S}', '{L}', '{P}', 'look', '0 * * * *', 'UTC', 'origin', '{A}', 1, 1e12)
insert into schedules (id, call, session, lane, owner, task, line, zone, deliver, route, since, ended)
  values ('{M}2', '{M}2', '{S}', '{L}', '{P}', 'look', '', 'UTC', 'origin', '{A}', 1, 2)
insert into runs (schedule, due, session, turn, missed, at, kept) values ('{M}1', 2, '{O}', 1, 0, 2, 2)
insert into handoffs (id, session, origin, destination, kind, lane, state, by_person, requested, progressed, settled)
  values ('{M}1', '{O}', '{L}', '{A}', 'dm', '{L}', 'done', '{P}', 1, 1, 2)
insert into handoffs (id, session, origin, destination, kind, state, by_person, requested, progressed, deadline,
  holder, epoch) values ('{M}2', '{O}', '{L}', '{A}', 'dm', 'claimed', '{P}', 1, 1, 1e12, '{M}', 1)
insert into questions (id, lane, person, kind, body, asked, deadline, words, choices, call)
  values ('{M}1', '{L}', '{P}', 'readers', 'b', 1, 1e12, '?', '["yes","no"]', '{M}')
insert into questions (id, lane, person, kind, body, asked, deadline, answer, answered, state)
  values ('{M}2', '{L}', '{P}', 'readers', 'b', 1, 2, 'yes', 1, 'answered')
insert into permissions (id, person, agent, what, session, since) values ('{M}1', '{P}', 'agent', 'run', '{S}', 1)
insert into permissions (id, person, agent, what, since, until) values ('{M}2', '{P}', 'agent', 'run', 1, 2)
insert into notes (id, person, agent, call, text, at) values ('{M}', '{P}', '', '{M}', 'likes cats', 1)
insert into note_sources (note, session, turn) values ('{M}', '{O}', 1)
insert into tokens (id, digest, person, scope, session, name, made, ends)
  values ('{M}', '{M}', '{P}', 'mcp', '{S}', 'laptop', 1, 1e12)
insert into addresses (key, kind, name, topic, since) values ('{A}-old', 'dm', '', '', 1)
insert into lanes (key, address, person, since) values ('{L}-old', '{A}-old', '', 1)
insert into aliases (alias, address, since) values ('{A}-old', '{A}', 1)
insert into chat_merges (id, kept, gone, since, why, by_person) values ('{M}', '{A}', '{A}-old', 1, 'alias', '{P}')
insert into lockers (account, name, value, version) values ('{M}', 'n', 'v', 1)
insert into letters (account, raw, why, at, retried, known) values ('telegram/bot', '"{M}"', 'broken', 1, 2, 1)
insert into deletions (session, n, by_person, since, until) values ('{O}', 1, '{P}', 1, 2)
insert into forgettings (kind, session, n, by_person, why, at, cleaned)
  values ('exchange', '{O}', 9, '{P}', 'asked', 1, 1)
"""

_MARKED = f"where x::text like '%{MARK}%'"
_TABLES = "select tablename from pg_tables where schemaname = 'segue' and tablename <> 'version' order by 1"
COME_BACK = """
do $$
declare found text;
begin
  for found in select tablename from pg_tables where schemaname = 'beside' loop
    execute format('insert into segue.%I overriding system value select * from beside.%I', found, found);
  end loop;
end $$;
"""
"""SQL that brings the bystanders back to an empty database."""


def file_with_bystanders(path: Path) -> str:
    """Write a SQLite file with today's schema and the bystanders; returns its address."""
    path.touch(0o600)
    path.write_bytes(_settled())
    # Their replica is alive: a file without its log would be taken for a copy that lacks what was said last.
    Path(f"{path}-wal").touch(0o600)
    return str(path)


def settle_in_postgres(dsn: str) -> None:
    """Add the bystanders to an empty database, a copy of their rows, and views of everybody else's rows."""

    async def settle() -> None:
        await _settle(Engine.POSTGRES, dsn)
        raw = await raw_sql(Engine.POSTGRES, dsn)
        await raw("create schema beside")
        await raw("create schema hidden")
        for (table,) in await raw(_TABLES):
            await raw(f"create table beside.{table} as select * from segue.{table} x {_MARKED}")
            await raw(f"create view hidden.{table} as select * from segue.{table} x where x::text not like '%{MARK}%'")
        await raw.close()

    _run(settle())


def changed_at(where: str, allowed: Collection[str] = ()) -> list[str]:
    """Find what changed in a database that nobody has open any more."""

    async def find() -> list[str]:
        engine = Engine.POSTGRES if where.startswith("postgresql://") else Engine.SQLITE
        raw = await without_bystanders(engine, where)
        try:
            return await changed(raw, allowed)
        finally:
            await raw.close()

    return _run(find())


async def changed(raw: RawSql, allowed: Collection[str] = ()) -> list[str]:
    """Find the bystanders' rows that are new or gone, but for tables in which a test changes them on purpose."""
    if isinstance(raw, OfOthers):
        now, before = raw.bystanders(), _rows()
    else:
        # What was there in the beginning is read once: planning these statements takes longer than running them.
        _in_postgres.update(() if _in_postgres else await _rows_in(raw, "beside"))
        now, before = await _rows_in(raw, "segue"), _in_postgres
    return sorted(row for row in now ^ before if row.partition(":")[0] not in allowed)


_in_postgres = set[str]()


async def _rows_in(raw: RawSql, schema: str) -> set[str]:
    tables = [table for (table,) in await raw(_TABLES)]
    each = (f"select '{table}', x::text from {schema}.{table} x {_MARKED}" for table in tables)
    return {f"{table}: {row}" for table, row in await raw(" union all ".join(each))}


@cache
def _settled() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "segue.db"
        _run(_settle(Engine.SQLITE, file_of_today(path)))
        connection = apsw.Connection(str(path))
        _count_down(connection)
        connection.close()
        return path.read_bytes()


@cache
def _rows() -> set[str]:
    with TemporaryDirectory() as folder:
        return OfOthers(file_with_bystanders(Path(folder) / "segue.db")).bystanders()


def _count_down(connection: apsw.Connection) -> None:
    """Make 0 the last number of each table that counts its rows: those of a test are counted from 1, as ever."""
    made = connection.execute("select type, name, sql from sqlite_master where sql is not null").fetchall()
    triggers = [(str(name), str(sql)) for kind, name, sql in made if kind == "trigger"]
    counted = {str(name) for _, name, sql in made if re.search(r"(id|seq) integer primary key", str(sql))}
    connection.execute("".join(f"drop trigger {name};" for name, _ in triggers))
    for table, (serial, *_) in columns(connection).items():
        if table in counted:
            connection.execute(f"update {table} set {serial} = {serial} - (select max({serial}) from {table})")
    connection.execute(";".join(sql for _, sql in triggers))


def _run(work: Coroutine[object, object, Found]) -> Found:
    # In a thread: a test that asks for a fixture while it runs has a loop already.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _ids(name: str) -> Ids:
    numbers = count(1)
    return lambda: f"{name}-{next(numbers)}"


async def _settle(engine: Engine, where: str) -> None:
    driver, raw = await open_driver(where), await raw_sql(engine, where)
    for sign in "!~":
        clock, ids = Clock(), _ids(sign + MARK)
        await _live(World(Store(driver, clock, ids), clock, ids, engine, where, raw), sign + MARK)
    await raw.close()
    await driver.close()


async def _live(world: World, name: str) -> None:
    driver, chat = world.store.driver, private(name)
    former = await world.hear(name, "hello", chat, me=name, message="m1")
    me, lane = former.met.person, former.lane
    assert former.run
    await driver.write(turns.finish, former.run.held, answer(former.run, "hello!"), world.clock())
    [held] = await driver.write(deliveries.outgoing, name, "telegram", "bot", 1)
    await driver.write(deliveries.sent, held, "m2", world.clock())
    await world.store.set_title(former.session, "trip", me)
    session = await world.renew(lane, me, "cats", "cats!")
    await world.hear(name, "and dogs?", chat, me=name, message="m3")
    await world.hear(name, "dogs?", chat, message="m4")
    other = await world.dm(me, f"{name}-elsewhere")
    await world.resume(other, former.session, me)
    third = await world.renew(other, me, "mice")
    await world.store.move(Release(other), me)
    await world.store.undo(third, me)
    await driver.write(deliveries.notify, chat.address, "a notice", f"notice/{name}", ("m4",), world.clock())
    await driver.write(deliveries.outgoing, name, "telegram", "bot", 9)
    names = {
        "P": me.id,
        "S": session,
        "O": former.session,
        "L": lane.key,
        "A": lane.address.key,
        "M": name,
        "D": "2023-11-14",
    }
    for statement in _ROWS.strip().replace("\n  ", " ").splitlines():
        await world.raw(re.sub(r"\{(\w)\}", lambda found: names[found[1]], statement))
