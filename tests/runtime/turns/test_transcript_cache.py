"""The cache of transcripts: one more message costs what is new, whatever was said before it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path as FilePath
from typing import Any

import pytest
from msgspec.structs import replace

from segue import AccountSettings, Store, open_store
from segue.changes.sessions import transcripts
from segue.core.contracts.agents import Work
from segue.core.contracts.database import Driver, Row, Statement, Transaction
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Summary, Text
from segue.core.moves import Fork, Renew
from segue.core.settings import Redaction, Streams
from segue.core.transcripts import AGENT, GATEWAY, Author, Draft, Entries, Entry, Path, Role, Tip
from segue.core.turns import Claim, Run, Turn, TurnKind
from segue.core.values import SessionId
from segue.database.transactions import one_by_one
from segue.runtime.retrying import Patient
from segue.runtime.turns.transcript_cache import TranscriptCache
from segue.store import open_driver
from segue.testing import EchoAgent, Telegram
from segue.testing.chats import Chat, Someone
from tests.in_process import gateway_on

S = SessionId("s")


class Counting:
    """A driver that counts the rows of entries that are read."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    async def read(self, transaction: Callable[..., Transaction[Any]], /, *args: Any, **kwargs: Any) -> Any:
        """Read, and count."""
        return await self._driver.read(self._counted, transaction, args, kwargs)

    async def write(self, transaction: Callable[..., Transaction[Any]], /, *args: Any, **kwargs: Any) -> Any:
        """Write, and count."""
        return await self._driver.write(self._counted, transaction, args, kwargs)

    def _counted(self, transaction: Callable[..., Transaction[Any]], args: Any, kwargs: Any) -> Transaction[Any]:
        running = one_by_one(transaction(*args, **kwargs))
        rows: list[Row] | None = None
        while True:
            try:
                wanted = next(running) if rows is None else running.send(rows)
            except StopIteration as end:
                return end.value
            rows = yield wanted
            if isinstance(wanted, Statement) and wanted.name == "entries_upto":
                self.rows += len(rows)


class Touched(Entry, frozen=True):
    """An entry that tells when somebody looks at it."""

    looks = 0

    def __getattribute__(self, name: str) -> Any:
        if name in {"author", "parts", "tip"}:
            Touched.looks += 1
        return super().__getattribute__(name)


def entry(n: int, text: str = "x") -> Touched:
    return Touched(Tip(S, n), Tip(S, n - 1) if n > 1 else None, Author(Role.PERSON, "p"), (Text(text),), 0.0)


def summary(n: int, upto: int) -> Entry:
    return Entry(Tip(S, n), Tip(S, n - 1), GATEWAY, (Summary("so far", S, upto),), 0.0)


@pytest.mark.parametrize("length", [10, 20_000])
def test_one_entry_more_looks_at_no_entry_before_it(length: int) -> None:
    path = Path([entry(n) for n in range(1, length + 1)])
    before, Touched.looks = path.visible, 0
    longer = Path([entry(length + 1)], path)
    seen = longer.visible
    assert Touched.looks <= 2
    assert (len(before), len(seen), seen.follows(before)) == (length, length + 1, True)


def test_after_a_summary_too() -> None:
    path = Path([*(entry(n) for n in range(1, 1001)), summary(1001, 990)])
    Touched.looks = 0
    longer = Path([entry(1002)], path)
    assert Touched.looks <= 2
    assert [e.tip.n for e in longer.visible] == [1001, *range(991, 1001), 1002]
    assert longer.visible.follows(path.visible)
    assert [e.tip.n for e in path.visible] == [1001, *range(991, 1001)]


def test_two_that_go_on_from_one_path_do_not_mix() -> None:
    path = Path([entry(1), entry(2)])
    one, two = Path([entry(3, "one")], path), Path([entry(4, "two")], path)
    assert ([e.tip.n for e in path], [e.tip.n for e in one], [e.tip.n for e in two]) == ([1, 2], [1, 2, 3], [1, 2, 4])
    assert one.follows(path)
    assert not two.follows(path)
    assert (one[-1], one[1:], len(one)) == (one[2], (path[1], one[2]), 3)
    with pytest.raises(IndexError):
        path[2]


def a_lot(count: int) -> list[Draft]:
    return [Draft((Author(Role.PERSON, "p", "Ann"), AGENT)[n % 2], (Text(f"said {n}"),)) for n in range(count)]


class Remembers(EchoAgent):
    """Keeps the transcripts that it was given."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    async def answer(self, work: Work) -> AsyncIterator[Any]:
        """The same words again."""
        self.given.append(work.transcript)
        async for event in super().answer(work):
            yield event


@asynccontextmanager
async def long_talk(path: FilePath, redaction: Redaction) -> AsyncIterator[tuple[Counting, Remembers, Someone, Chat]]:
    """A gateway in which Ann has said two things, and much was said between them."""
    platform, agent = Telegram(), Remembers()
    ann = platform.person("Ann")
    chat = platform.dm(ann)
    account = AccountSettings(public=True, streams=Streams.WHOLE)
    counting = Counting(await open_driver(path / "s.db"))
    async with gateway_on(counting, agent, platform, account=account, redaction=redaction) as gateway:
        ann.says("begin", chat)
        await chat.reads("begin")
        [standing] = await gateway.store.lanes()
        assert standing.session is not None
        await counting.write(transcripts.append, standing.session, a_lot(3000), 0.0)
        ann.says("warm", chat)
        await chat.reads("warm")
        yield counting, agent, ann, chat


@pytest.mark.parametrize("redaction", list(Redaction))
async def test_a_message_in_a_long_session_reads_no_entry_and_copies_none(
    tmp_path: FilePath, redaction: Redaction
) -> None:
    async with long_talk(tmp_path, redaction) as (counting, agent, ann, chat):
        counting.rows = 0
        for n in range(3):
            ann.says(f"more {n}", chat)
            await chat.reads(f"more {n}")
    assert counting.rows == 0
    before, after = agent.given[-2:]
    assert isinstance(before, Entries)
    assert isinstance(after, Entries)
    assert len(after) - 2 == len(before) > 3000
    assert after.follows(before)


async def test_what_others_wrote_meanwhile_is_all_that_is_read(tmp_path: FilePath) -> None:
    async with long_talk(tmp_path, Redaction.NONE) as (counting, agent, ann, chat):
        [standing] = await Store(counting).lanes()
        assert standing.session is not None
        await counting.write(transcripts.append, standing.session, a_lot(2), 0.0)
        counting.rows = 0
        ann.says("and now?", chat)
        await chat.reads("and now?")
        assert counting.rows <= 64
        assert len(agent.given[-1]) == len(agent.given[-2]) + 4


async def test_a_session_that_was_taken_back_is_read_from_where_it_is_known(tmp_path: FilePath) -> None:
    async with await open_store(tmp_path / "s.db") as store:
        counting = Counting(store.driver)
        session = await session_of(store, a_lot(500))
        cache = TranscriptCache(Patient(counting))
        whole = await cache.path(run_of(session, 500))
        counting.rows = 0
        shorter = await cache.path(run_of(session, 480))
        assert (len(whole), len(shorter), list(shorter) == list(whole[:480])) == (500, 480, True)
        assert counting.rows <= 64


async def session_of(store: Store, drafts: list[Draft]) -> SessionId:
    """A session in which this was said."""
    person = await store.person(Identity("telegram", "bot", "ann"), "Ann")
    session = store.new_session_id()
    lane = await store.lane(Place(Address("telegram", "bot", chat=session), Kind.DM), person)
    await store.move(Renew(lane, session), person)
    await store.driver.write(transcripts.append, session, drafts, 0.0)
    return session


def run_of(session: SessionId, tip: int) -> Run:
    """A turn that found its session with so many entries."""
    turn = Turn(session, 1, TurnKind.ARRIVAL, None, "", "p", "Ann", "", "", (), 0.0, "")
    return Run(Claim(session, "me", 1), (turn,), Tip(session, tip))


async def test_the_session_in_use_stays_however_long_and_others_make_room(tmp_path: FilePath) -> None:
    async with await open_store(tmp_path / "s.db") as store:
        counting = Counting(store.driver)
        cache = TranscriptCache(Patient(counting), most=100_000)
        one, two = await session_of(store, a_lot(500)), await session_of(store, a_lot(500))
        await cache.path(run_of(one, 500))
        counting.rows = 0
        await cache.path(run_of(one, 500))
        assert counting.rows == 0
        await cache.path(run_of(two, 500))
        counting.rows = 0
        await cache.path(run_of(two, 500))
        assert counting.rows == 0
        await cache.path(run_of(one, 500))
        assert counting.rows == 500


async def test_a_hidden_message_drops_the_paths_through_its_session_alone(tmp_path: FilePath) -> None:
    async with await open_store(tmp_path / "s.db") as store:
        counting = Counting(store.driver)
        cache = TranscriptCache(Patient(counting))
        one, other = await session_of(store, a_lot(20)), await session_of(store, a_lot(20))
        ann = await store.person(Identity("telegram", "bot", "ann"), "Ann")
        lane, fork = await store.lane(Place(Address("telegram", "bot", chat="c"), Kind.DM), ann), store.new_session_id()
        await store.move(Fork(lane, one, fork), ann)
        forked = replace(run_of(fork, 20), tip=Tip(one, 20))
        for run in (run_of(one, 20), run_of(other, 20), forked):
            await cache.path(run)
        cache.drop(one)
        for run, read in ((run_of(other, 20), 0), (run_of(one, 20), 20), (forked, 20)):
            counting.rows = 0
            assert len(await cache.path(run)) == 20
            assert counting.rows == read
