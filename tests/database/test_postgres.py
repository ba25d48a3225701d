"""PostgreSQL alone: wires that are cut, servers that vanish, and what several machines see of each other."""

import asyncio
import contextlib
import gc
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import asyncpg
import pytest

from segue.changes.exchange import letters, replicas
from segue.core.contracts.database import Statement, Transaction
from segue.database.postgres import Pool, _Kind
from segue.database.postgres import Postgres as Driver
from segue.database.statements import POSTGRES, Compiled, compile_for
from segue.errors import (
    Invalid,
    OutcomeUnknown,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnreachable,
)
from tests.changes.small import ask, change, change_and_look, everything, open_postgres, put, steps
from tests.database.wire import Fault, Wire
from tests.postgres import Postgres


@contextlib.asynccontextmanager
async def beside(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the test's own."""
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def driver(dsn: str, **options: Any) -> AsyncIterator[Driver]:
    db = await open_postgres(dsn, **options)
    try:
        yield db
    finally:
        await db.close()


PATIENCE = 90.0


async def until(condition: Callable[[], Awaitable[Any]]) -> None:
    """Ask the server until it says yes: nothing tells us."""
    async with asyncio.timeout(PATIENCE):
        while not await condition():
            pass


async def waiting_for_a_lock(connection: asyncpg.Connection) -> None:
    # Others' databases are on the same server; whoever waits for a row waits for a transaction, which has no database.
    here = "select pid from pg_locks join pg_database on oid = database where datname = current_database()"
    await until(lambda: connection.fetchval(f"select count(*) > 0 from pg_locks where not granted and pid in ({here})"))


async def test_connections_that_were_ended_while_idle_are_replaced(postgres_dsn: str) -> None:
    async with driver(postgres_dsn) as db, beside(postgres_dsn) as other:
        await asyncio.gather(*(db.write(put, n) for n in range(1, 11)))
        ours = "from pg_stat_activity where application_name = 'segue' and datname = current_database()"
        await other.fetch(f"select pg_terminate_backend(pid) {ours}")
        words = await asyncio.gather(*(db.write(put, n) for n in range(11, 21)))
        assert words == ["word"] * 10


@pytest.mark.parametrize("word", ["begin isolation", "select word from words"])
async def test_a_wire_that_is_cut_before_the_commit_costs_a_second_try(postgres_dsn: str, word: str) -> None:
    async with Wire.to(postgres_dsn) as wire, driver(wire.dsn, connections=1) as db:
        wire.fail(word, Fault.CUT_BEFORE)
        assert await db.write(put, 1) == "word"
        assert wire.left == 0
        assert await db.read(everything) == {0: "first", 1: "word"}


async def test_a_wire_that_is_cut_again_and_again_is_unreachable(postgres_dsn: str) -> None:
    async with Wire.to(postgres_dsn) as wire, driver(wire.dsn) as db:
        wire.fail("begin isolation", Fault.CUT_BEFORE, times=100)
        with pytest.raises(StoreUnreachable, match="doesn't answer"):
            await db.write(put, 1)
        assert wire.left == 98
        wire.left = 0
        assert await db.write(put, 1) == "word"


@pytest.mark.parametrize(("fault", "kept"), [(Fault.CUT_BEFORE, False), (Fault.CUT_AFTER, True)])
async def test_a_wire_that_is_cut_during_the_commit_leaves_the_outcome_unknown(
    postgres_dsn: str, fault: Fault, *, kept: bool
) -> None:
    async with Wire.to(postgres_dsn) as wire, driver(wire.dsn) as db:
        wire.fail("commit\0", fault)
        with pytest.raises(OutcomeUnknown, match="Look before you repeat it"):
            await db.write(put, 1)
        assert wire.left == 0
        assert (1 in await db.read(everything)) is kept


async def test_a_read_has_no_outcome_to_be_unsure_of(postgres_dsn: str) -> None:
    async with Wire.to(postgres_dsn) as wire, driver(wire.dsn) as db:
        wire.fail("commit\0", Fault.CUT_AFTER)
        assert await db.read(everything) == {0: "first"}
        assert wire.left == 0


async def test_whoever_freezes_in_a_transaction_does_not_hold_its_locks_for_ever(postgres_dsn: str) -> None:
    async with Wire.to(postgres_dsn) as wire, driver(wire.dsn, patience=0.3) as frozen, driver(postgres_dsn) as db:
        wire.fail("commit\0", Fault.FREEZE)
        stuck = asyncio.create_task(frozen.write(change_and_look, 0, "from the frozen one"))
        await wire.failing.wait()
        await db.write(change, 0, "from the other one")
        with pytest.raises(OutcomeUnknown):
            await stuck
        assert await db.read(everything) == {0: "from the other one"}


@pytest.mark.parametrize("fault", [Fault.CUT_BEFORE, Fault.CUT_AFTER])
async def test_a_wire_that_is_cut_during_the_only_call_leaves_the_outcome_unknown(
    postgres_dsn: str, fault: Fault
) -> None:
    async with Wire.to(postgres_dsn) as wire, driver(wire.dsn) as db:
        wire.fail("cut here", fault)
        with pytest.raises(OutcomeUnknown):
            await db.write(change, 0, "cut here")
        assert await db.read(everything) == {0: "cut here" if fault is Fault.CUT_AFTER else "first"}


async def test_a_server_that_went_away_is_named_and_found_again(durable_postgres: Postgres) -> None:
    dsn = durable_postgres.dsn(durable_postgres.create_database())
    async with driver(dsn) as db:
        await db.write(put, 1)
        leaving = await open_postgres(dsn)
        await leaving.write(put, 3)
        heard: asyncio.Queue[str] = asyncio.Queue()
        db.listen(heard.put_nowait)
        await asyncio.to_thread(durable_postgres.stop)
        with pytest.raises(StoreUnreachable, match="See whether it runs"):
            await db.write(put, 2)
        with pytest.raises(StoreUnreachable, match="See whether it runs"):
            await db.read(everything)
        with pytest.raises(StoreUnreachable, match="See whether it runs"):
            await open_postgres(dsn)
        await leaving.hint("goodbye")
        await leaving.close()  # nobody is there to hear it
        await asyncio.to_thread(durable_postgres.start)
        assert await heard.get() == ""  # it listens again by itself, and says that something may have been missed
        assert await db.write(put, 2) == "word"
        assert await db.read(everything) == {0: "first", 1: "word", 2: "word", 3: "word"}


async def test_a_name_that_is_held_in_one_schema_is_free_in_another(postgres_dsn: str) -> None:
    hold = compile_for(POSTGRES)["hold_name"].sql
    settings = {"search_path": "segue", "lock_timeout": "100ms"}
    async with driver(postgres_dsn), driver(postgres_dsn, schema="other"), beside(postgres_dsn) as other:
        here, beside_it = [await asyncpg.connect(postgres_dsn, server_settings=settings) for _ in range(2)]
        await other.execute("set search_path to other; set lock_timeout to '100ms'")
        async with here.transaction():
            await here.fetch(hold, "telegram/bot//1/")
            await other.fetch(hold, "telegram/bot//1/")
            with pytest.raises(asyncpg.LockNotAvailableError):
                await beside_it.fetch(hold, "telegram/bot//1/")
        await here.close()
        await beside_it.close()


async def test_machines_wake_each_other(postgres_dsn: str) -> None:
    async with driver(postgres_dsn) as one, driver(postgres_dsn) as two, driver(postgres_dsn, schema="other") as three:
        heard = {db: asyncio.Queue[str]() for db in (one, two, three)}
        for db, queue in heard.items():
            db.listen(queue.put_nowait)
        await one.hint("session 1")
        assert await heard[two].get() == "session 1"
        await two.hint("session 2")
        assert [await heard[one].get() for _ in range(2)] == ["session 1", "session 2"]
        await two.hint("x" * 9000)
        assert await heard[one].get() == ""
        assert heard[three].empty()


async def test_a_hint_just_before_closing_still_goes_out(postgres_dsn: str) -> None:
    async with driver(postgres_dsn) as other:
        heard: asyncio.Queue[str] = asyncio.Queue()
        other.listen(heard.put_nowait)
        async with driver(postgres_dsn) as db:
            await db.hint("goodbye")
        assert await heard.get() == "goodbye"


async def test_whoever_lost_hints_is_told_to_look_at_everything(postgres_dsn: str) -> None:
    async with driver(postgres_dsn) as db, driver(postgres_dsn) as two, beside(postgres_dsn) as other:
        heard: asyncio.Queue[str] = asyncio.Queue()
        db.listen(heard.put_nowait)
        listening = "from pg_stat_activity where query ilike 'listen%' and datname = current_database()"
        assert await other.fetchval(f"select count(pg_terminate_backend(pid)) {listening}") == 2
        assert await heard.get() == ""
        await until(lambda: other.fetchval(f"select count(*) = 2 {listening}"))
        await two.hint("session")
        assert await heard.get() == "session"


async def test_a_lock_is_waited_for_then_named(postgres_dsn: str) -> None:
    async with driver(postgres_dsn, patience=0.05) as db, beside(postgres_dsn) as other:
        async with other.transaction():
            await other.execute("update segue.words set word = 'theirs' where n = 0")
            with pytest.raises(StoreLocked, match="Try again"):
                await db.write(change, 0, "ours")
        await db.write(change, 0, "ours")


async def test_a_heartbeat_waits_for_no_other_work(postgres_dsn: str) -> None:
    db = await Driver.open(postgres_dsn, connections=1, patience=PATIENCE)
    await db.write(replicas.join, "r1", 60.0)
    async with beside(postgres_dsn) as other:
        async with other.transaction():
            await other.execute("lock table segue.letters")
            working = [asyncio.create_task(db.write(letters.bury, "a", "b", "c", float(n))) for n in range(3)]
            await waiting_for_a_lock(other)
            async with asyncio.timeout(PATIENCE / 2):
                assert (await db.write(replicas.beat, "r1", 60.0)).dead == 0
            assert not any(work.done() for work in working)
        await asyncio.gather(*working)
    await db.close()


async def test_a_read_is_one_snapshot(postgres_dsn: str) -> None:
    def look_twice() -> Transaction[tuple[dict[int, str], dict[int, str]]]:
        first = yield from everything()
        yield Statement("wait", {})
        return first, (yield from everything())

    async with driver(postgres_dsn) as db, beside(postgres_dsn) as other:
        wait = Compiled("select 1 from (select pg_advisory_xact_lock(7)) as waited", ())
        db._kinds = {**db._kinds, "wait": _Kind(wait.sql, wait.order, wait.silent, wait.reads)}
        await other.execute("select pg_advisory_lock(7)")
        looking = asyncio.create_task(db.read(look_twice))
        await waiting_for_a_lock(other)
        await db.write(put, 1)
        await other.execute("select pg_advisory_unlock(7)")
        assert await looking == ({0: "first"}, {0: "first"})


async def test_whoever_is_cancelled_inside_a_statement_leaves_the_connection_usable(postgres_dsn: str) -> None:
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, complaint: complaints.append(complaint))
    async with driver(postgres_dsn, connections=1) as db, beside(postgres_dsn) as other:
        async with other.transaction():
            await other.execute("update segue.words set word = 'theirs' where n = 0")
            write = asyncio.create_task(db.write(change_and_look, 0, "ours"))
            await waiting_for_a_lock(other)
            write.cancel()
            with pytest.raises(asyncio.CancelledError):
                await write
        assert await db.write(put, 1) == "word"
        assert (await db.read(everything))[0] == "theirs"
    assert complaints == []


@pytest.mark.parametrize("asked", ["synchronous_commit", "begin isolation"], ids=["made ready", "in use"])
async def test_whoever_is_cancelled_before_the_server_answered_takes_the_connection_along(
    postgres_dsn: str, asked: str
) -> None:
    async with Wire.to(postgres_dsn) as wire, driver(wire.dsn, connections=1) as db:
        wire.fail(asked, Fault.FREEZE)
        write = asyncio.create_task(db.write(put, 1))
        await wire.failing.wait()
        write.cancel()
        with pytest.raises(asyncio.CancelledError):
            await write
        del write
        gc.collect()  # what was left behind complains, which fails a test
        assert db._pool._idle == []
        assert await db.write(put, 1) == "word"


async def test_a_connection_that_comes_back_in_a_transaction_is_not_lent_again(postgres_dsn: str) -> None:
    pool = Pool(lambda: asyncpg.connect(postgres_dsn), 1)
    async with pool.lend() as first:
        await first.execute("select 1")
    async with pool.lend() as second:
        assert second is first
        await second.execute("begin")
    async with pool.lend() as third:
        assert third is not second
    assert second.is_closed()
    await pool.close()


@contextlib.asynccontextmanager
async def tripping(dsn: str, code: str, times: int) -> AsyncIterator[Driver]:
    """A driver whose query `trip` fails with this code so many times; the sequence doesn't roll back."""
    async with beside(dsn) as connection:
        await connection.execute(f"""
            create schema segue;
            create sequence segue.tries;
            create function segue.trip() returns integer language plpgsql as $$ begin
              if nextval('segue.tries') <= {times} then raise exception 'tripped' using errcode = '{code}'; end if;
              return 1;
            end $$;
        """)
    db = await Driver.open(dsn, queries={"trip": Compiled("select trip()", ())}, steps=steps(POSTGRES))
    try:
        yield db
    finally:
        await db.close()


@pytest.mark.parametrize("code", ["40P01", "40001"])
async def test_whoever_loses_a_deadlock_runs_again(postgres_dsn: str, code: str) -> None:
    async with tripping(postgres_dsn, code, times=3) as db:
        assert [tuple(row) for row in await db.write(ask, "trip")] == [(1,)]


MEANINGS: dict[str, type[StoreError]] = {
    "53100": StoreFull,
    "25006": StoreReadOnly,
    "42501": StoreReadOnly,
    "55P03": StoreLocked,
    "57014": StoreLocked,
    "XX001": StoreCorrupt,
    "XX002": StoreCorrupt,
    "53200": StoreUnreachable,
    "58030": StoreUnreachable,
}


@pytest.mark.parametrize("code", MEANINGS)
async def test_what_the_server_complains_of_has_a_name(postgres_dsn: str, code: str) -> None:
    async with tripping(postgres_dsn, code, times=1) as db:
        with pytest.raises(MEANINGS[code], match=r"PostgreSQL at .*tripped"):
            await db.write(ask, "trip")
        assert [tuple(row) for row in await db.write(ask, "trip")] == [(1,)]


async def test_a_database_that_only_reads_says_so(postgres_dsn: str) -> None:
    async with driver(postgres_dsn):
        pass
    async with beside(postgres_dsn) as other:
        name = await other.fetchval("select current_database()")
        await other.execute(f"alter database {name} set default_transaction_read_only = on")
    async with driver(postgres_dsn) as db:
        with pytest.raises(StoreReadOnly, match="primary"):
            await db.write(put, 1)
        assert await db.read(everything) == {0: "first"}
    with pytest.raises(StoreReadOnly, match="primary"):
        await open_postgres(postgres_dsn, schema="fresh")


async def test_a_commit_waits_for_the_disk_whatever_the_server_was_told(postgres_dsn: str) -> None:
    async with beside(postgres_dsn) as other:
        name = await other.fetchval("select current_database()")
        await other.execute(f"alter database {name} set synchronous_commit = off")
    db = await Driver.open(
        postgres_dsn, queries={"ask": Compiled("show synchronous_commit", ())}, steps=steps(POSTGRES)
    )
    assert [tuple(row) for row in await db.write(ask, "ask")] == [("on",)]
    await db.close()


@pytest.fixture
def narrow_dsn(postgres: Postgres) -> Iterator[str]:
    """A database that can keep Latin letters only."""
    postgres.do("create database narrow encoding 'LATIN1' template template0 owner segue")
    yield postgres.dsn("narrow")
    postgres.drop_database("narrow")


async def test_a_database_that_can_not_keep_every_language_is_refused(narrow_dsn: str) -> None:
    with pytest.raises(StoreUnreachable, match="encoding UTF8"):
        await open_postgres(narrow_dsn)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("test_", "gone_"), "no such database"),
        (("segue:", "stranger:"), "user or password"),
        (("127.0.0.1:", "127.0.0.1:1"), "address"),
    ],
)
async def test_an_address_where_nothing_answers_is_named_without_its_password(
    postgres_dsn: str, change: tuple[str, str], text: str
) -> None:
    async with Wire.to(postgres_dsn) as wire:
        with pytest.raises((StoreUnreachable, Invalid)) as caught:
            await open_postgres(wire.dsn.replace(*change))
    shown = "".join(traceback.format_exception(caught.value))
    assert text in str(caught.value)
    assert "127.0.0.1" in str(caught.value) or text == "address"
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    "address",
    [
        "segue.db",
        "mysql://segue:hunter2@localhost/segue",
        "postgresql://segue:hunter2/x@localhost/segue",
        "postgresql://segue:hunter2#x@localhost/segue",
        "postgresql://segue:hunter2?x@localhost/segue",
        "postgresql://segue:hunter2[@localhost/segue",
        "postgresql://segue:hunter2@x@localhost/segue",
        "postgresql://localhost:hunter2/segue",
        "postgresql://localhost/segue?hunter2",
    ],
)
async def test_an_address_that_can_not_be_one_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(Invalid, match="postgresql://USER@HOST/NAME") as caught:
        await open_postgres(address)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("schema", ["", "Segue", "a b", 'x"; drop table words; --', "x" * 64, "1st"])
async def test_a_name_that_can_not_be_a_schemas_is_refused(schema: str) -> None:
    with pytest.raises(Invalid, match="schema"):
        await open_postgres("postgresql://localhost/segue", schema=schema)


async def test_of_many_who_scrub_at_once_one_does_and_none_fails(today_dsn: str) -> None:
    drivers = [await Driver.open(today_dsn) for _ in range(4)]
    for _ in range(3):
        assert any(await asyncio.gather(*(driver.scrub() for driver in drivers)))
    for driver in drivers:
        await driver.close()


async def test_two_schemas_know_nothing_of_each_other(postgres_dsn: str) -> None:
    async with driver(postgres_dsn) as one, driver(postgres_dsn, schema="other") as two:
        await one.write(put, 1)
        assert await two.read(everything) == {0: "first"}
