"""What both databases do alike, whatever runs beneath: one suite, three ways to run."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from segue.core.contracts.database import Driver
from segue.database.sqlite import RunsIn
from segue.database.transactions import ATTEMPTS, Moved
from segue.errors import Fenced, Invalid, StoreClosed, StoreConflict, StoreLocked, StoreReadOnly
from tests.changes.small import (
    ask,
    change,
    everything,
    mark,
    open_postgres,
    open_sqlite,
    put,
    put_after,
    put_then_give_up,
)
from tests.postgres import Postgres

_numbers = itertools.count()


@pytest.fixture(scope="module")
def dsn(postgres: Postgres) -> Iterator[str]:
    """One database for all of these tests; each has a schema of its own."""
    database = postgres.create_database()
    yield postgres.dsn(database)
    postgres.drop_database(database)


@pytest.fixture(params=["sqlite", "sqlite-inline", "postgres"])
async def db(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Driver]:
    opened: Driver
    match request.param:
        case "sqlite":
            opened = await open_sqlite(tmp_path / "segue.db")
        case "sqlite-inline":
            opened = await open_sqlite(tmp_path / "segue.db", running=RunsIn.INLINE)
        case _:
            opened = await open_postgres(request.getfixturevalue("dsn"), schema=f"segue_{next(_numbers)}")
    yield opened
    await opened.close()


async def test_a_write_returns_its_result_and_a_read_sees_it(db: Driver) -> None:
    assert await db.write(put, 1, word="café") == "café"
    assert await db.read(everything) == {0: "first", 1: "café"}


async def test_an_error_takes_everything_back_and_reaches_the_caller(db: Driver) -> None:
    with pytest.raises(Fenced):
        await db.write(put_then_give_up, 1)
    assert await db.read(everything) == {0: "first"}


async def test_one_that_was_overtaken_runs_again_from_its_start(db: Driver) -> None:
    overtaken: list[int] = []
    assert await db.write(put_after, 1, overtaken, 3) == "through"
    assert len(overtaken) == 4
    assert await db.read(everything) == {0: "first", 1: "word"}


async def test_one_that_is_always_overtaken_is_told_so(db: Driver) -> None:
    overtaken: list[int] = []
    with pytest.raises(StoreLocked, match="Try again"):
        await db.write(put_after, 1, overtaken, ATTEMPTS)
    assert len(overtaken) == ATTEMPTS
    assert await db.read(everything) == {0: "first"}


async def test_the_last_attempt_counts(db: Driver) -> None:
    assert await db.write(put_after, 1, [], ATTEMPTS - 1) == "through"


async def test_a_read_that_was_overtaken_runs_again(db: Driver) -> None:
    times: list[int] = []

    def look():  # type: ignore[no-untyped-def]  # noqa: ANN202
        yield from everything()
        times.append(1)
        if len(times) < 3:
            raise Moved
        return len(times)

    assert await db.read(look) == 3


async def test_a_rule_of_the_schema_is_named(db: Driver) -> None:
    with pytest.raises(StoreConflict, match="words"):
        await db.write(put, 0)
    with pytest.raises(StoreConflict):
        await db.write(mark, 99)
    assert await db.write(put, 1) == "word"


async def test_a_conflict_tells_nothing_of_what_was_written(db: Driver) -> None:
    with pytest.raises(StoreConflict, match="not_thirteen") as caught:
        await db.write(put, 1, "private words")
    shown: BaseException | None = caught.value
    while shown is not None and not (shown.__suppress_context__ and shown.__cause__ is None):
        assert "private" not in str(shown)
        shown = shown.__cause__ or shown.__context__


@pytest.mark.parametrize("word", ["nul\0", "\ud800", "fine \U0001f600 until \udfff"])
async def test_text_that_one_of_them_could_not_keep_is_refused_by_both(db: Driver, word: str) -> None:
    with pytest.raises(Invalid, match="word") as caught:
        await db.write(put, 1, word)
    assert caught.value.field == "word"
    assert await db.read(everything) == {0: "first"}


@pytest.mark.parametrize("word", ["", "\U0001f600 ü \u202e \ufeff", "x" * 1_000_000, "'; drop table words; --"])
async def test_every_other_text_comes_back_as_it_was(db: Driver, word: str) -> None:
    assert await db.write(put, 1, word) == word


async def test_a_read_can_not_write(db: Driver) -> None:
    with pytest.raises(StoreReadOnly):
        await db.read(put, 1)
    assert await db.read(everything) == {0: "first"}


async def test_a_mistake_in_our_sql_or_in_a_name_reaches_the_caller(db: Driver) -> None:
    with pytest.raises(Exception, match="nowhere"):
        await db.write(ask, "nonsense")
    with pytest.raises(KeyError, match="no such query"):
        await db.write(ask, "no such query")
    assert await db.write(put, 1) == "word"


async def test_many_at_once_all_get_through(db: Driver) -> None:
    words = await asyncio.gather(*(db.write(put, n, f"word {n}") for n in range(1, 101)))
    assert words == [f"word {n}" for n in range(1, 101)]
    assert len(await db.read(everything)) == 101


async def test_closing_finishes_what_was_accepted(db: Driver) -> None:
    accepted = [asyncio.create_task(db.write(put, n)) for n in range(1, 33)]
    await asyncio.sleep(0)
    await db.close()
    assert await asyncio.gather(*accepted) == ["word"] * 32


async def test_what_was_accepted_may_still_tell_others_about_it(db: Driver) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    db.listen(heard.put_nowait)

    async def write_and_tell() -> None:
        await db.write(put, 1)
        await db.hint("written")

    writing = asyncio.create_task(write_and_tell())
    await asyncio.sleep(0)
    await db.close()
    await writing
    assert await heard.get() == "written"
    await db.hint("nobody else hears this, and nobody minds")


async def test_after_closing_nothing_is_accepted(db: Driver) -> None:
    await db.close()
    await db.close()
    with pytest.raises(StoreClosed, match="closed"):
        await db.write(put, 1)
    with pytest.raises(StoreClosed, match="closed"):
        await db.read(everything)


async def test_whoever_is_cancelled_harms_nobody(db: Driver) -> None:
    tasks = [asyncio.create_task(db.write(change, 0, f"word {n}")) for n in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert outcomes[1::2] == [None] * 10
    assert await db.write(put, 1) == "word"


async def test_the_clock_is_the_databases(db: Driver) -> None:
    ((before,),) = await db.read(ask, "now")
    ((after,),) = await db.read(ask, "now")
    assert 1_700_000_000 < before < after


async def test_a_process_hears_its_own_hints_until_it_stops_listening(db: Driver) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    stop = db.listen(heard.put_nowait)
    await db.hint("session 1")
    assert await heard.get() == "session 1"
    stop()
    stop()
    last: asyncio.Queue[str] = asyncio.Queue()
    db.listen(last.put_nowait)
    await db.hint("session 2")
    assert await last.get() == "session 2"
    assert heard.empty()


async def test_a_listener_that_fails_keeps_nobody_from_hearing(db: Driver) -> None:
    failures: asyncio.Queue[dict[str, object]] = asyncio.Queue()
    heard: asyncio.Queue[str] = asyncio.Queue()
    asyncio.get_running_loop().set_exception_handler(lambda _, failure: failures.put_nowait(failure))

    def fail(topic: str) -> None:
        raise ValueError(topic)

    db.listen(fail)
    db.listen(heard.put_nowait)
    await db.hint("session")
    assert await heard.get() == "session"
    assert isinstance((await failures.get())["exception"], ValueError)


async def test_a_hint_that_can_not_travel_is_refused(db: Driver) -> None:
    with pytest.raises(Invalid, match="topic"):
        await db.hint("nul\0")
