"""Crowds: several processes do everything at once, and nothing is lost, doubled or out of order."""

import asyncio
import contextlib
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from segue.changes.accept import Duplicate, Queued
from segue.changes.exchange import deliveries, replicas, turns
from segue.core.messages import Text
from segue.core.moves import Fork, Release, Renew, Resume
from segue.core.turns import Run
from segue.errors import Invalid, Refused
from tests.changes.invariants import VIOLATIONS, violations
from tests.changes.world import Engine, World, answer, private, public


@pytest.fixture
async def world(engine: Engine, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A database of the test's own, since a deadlock in the shared one fails the run.

    One order of locks is still open: a message that links two persons locks their lanes before the names of its chats,
    and one that only tells another id of a chat locks them the other way round. PostgreSQL ends one, which runs again.
    """
    made = await World.open(
        engine, tmp_path / "segue.db" if engine is Engine.SQLITE else str(request.getfixturevalue("postgres_dsn"))
    )
    yield made
    await made.close()


async def together(world: World, count: int = 3) -> list[World]:
    return [world, *[await world.beside() for _ in range(count - 1)]]


async def test_every_violation_is_a_query_that_both_databases_understand(world: World) -> None:
    await world.hear("ann", "hello")
    assert await violations(world.raw) == []
    assert len(VIOLATIONS) == 16


async def test_the_first_message_of_a_lane_from_three_processes_opens_one_session(world: World) -> None:
    worlds = await together(world)
    for n in range(5):
        heard = await asyncio.gather(
            *(w.hear("ann", "hello", private(f"c{n}"), message=f"{i}") for i, w in enumerate(worlds))
        )
        assert len({queued.session for queued in heard}) == 1
        assert sorted(queued.turn for queued in heard) == [1, 2, 3]
        assert len(await world.store.history(heard[0].lane)) == 1
    assert await world.count("persons") == 1
    assert await violations(world.raw) == []


async def test_one_message_redelivered_to_three_processes_counts_once(world: World) -> None:
    worlds = await together(world)
    for n in range(10):
        arrivals = [w.arrival("ann", "hello", message=f"x{n}") for w in worlds]
        outcomes = await asyncio.gather(*(w.accept(a) for w, a in zip(worlds, arrivals, strict=True)))
        assert Counter(type(outcome) for outcome in outcomes) == {Queued: 1, Duplicate: 2}
    assert await world.count("turns") == 10


class Town:
    """People who talk, move and merge by the roll of dice."""

    users = ("ann", "bob", "carl")
    places = (private("a"), public("g"), public("g", "t"), public("h"))

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    async def talk(self, world: World, n: int) -> int:
        """Say something; often a message comes with aliases of its person or chat, as merges are where races are."""
        user, other = self.dice.sample(self.users, 2)
        aliases = (other,) if self.dice.random() < 0.3 else ()
        chats = ("h",) if self.dice.random() < 0.3 else ()
        place = self.dice.choice(self.places)
        await world.hear(user, str(n), place, message=f"talk {n}", aliases=aliases, chat_aliases=chats)
        return 1

    async def move(self, world: World, _n: int) -> int:
        """Try a move, which may be refused."""
        store = world.store
        person = await world.person(self.dice.choice(self.users))
        lane = await store.lane(self.dice.choice(self.places), person)
        mine = [session.id for session in await store.sessions(person)] or [store.new_session_id()]
        chosen, last = self.dice.choice(mine), await store.last_move(lane)
        moves: list[Callable[[], Awaitable[object]]] = [
            lambda: store.move(Renew(lane, store.new_session_id()), person),
            lambda: store.move(Resume(lane, chosen), person),
            lambda: store.move(Fork(lane, chosen, store.new_session_id(), title="plan"), person),
            lambda: store.move(Release(lane), person),
            lambda: store.close_session(chosen, person),
            lambda: store.set_title(chosen, self.dice.choice(["plan", "idea"]), person),
            lambda: store.undo_move(last.id if last else "none", person),
        ]
        with contextlib.suppress(Refused):
            await self.dice.choice(moves)()
        return 0

    async def part(self, world: World, _n: int) -> int:
        """Undo somebody's merges, which somebody else may be doing too."""
        person = await world.person(self.dice.choice(self.users))
        for merge in await world.store.merges(person):
            with contextlib.suppress(Invalid):
                await world.store.unlink(merge)
        return 0


@pytest.mark.parametrize("seed", range(3))
async def test_people_talk_move_and_merge_at_once(world: World, seed: int) -> None:
    """Whatever they do, what always holds still does, and each message is one turn."""
    town, worlds = Town(seed), await together(world)
    accepted = 0
    for n, (user, place) in enumerate(itertools.product(town.users, town.places[:3])):
        await world.hear(user, "hello", place, message=f"first {n}")
        accepted += 1
    steps = town.dice.choices([town.talk, town.move, town.part], [5, 5, 1], k=90)
    for start in range(0, len(steps), 9):
        batch = enumerate(steps[start : start + 9], start)
        accepted += sum(await asyncio.gather(*(step(worlds[n % 3], n) for n, step in batch)))
        assert await violations(world.raw) == []
    assert await world.count("turns") == accepted


async def test_three_replicas_answer_every_turn_once_and_in_order(world: World) -> None:
    """Turns of one session never overlap, also while more come in and replicas come and go."""
    worlds = await together(world)
    lanes = [public("g", f"t{n}") for n in range(4)]
    answered: dict[str, list[str]] = defaultdict(list)
    running: set[str] = set()

    async def ask() -> None:
        for n in range(12):
            await asyncio.gather(
                *(worlds[i % 3].hear(f"u{n % 2}", f"{n}", lane, message=f"{i} {n}") for i, lane in enumerate(lanes))
            )

    async def work(w: World, me: str) -> None:
        await w.store.driver.write(replicas.join, me, 60.0)
        while sum(map(len, answered.values())) < 48:
            for run in await w.store.driver.write(turns.claim, me, 2):
                await run_all(w, run)
            await asyncio.sleep(0)

    async def run_all(w: World, run: Run | None) -> None:
        while run is not None:
            session = run.held.session
            assert session not in running
            running.add(session)
            await asyncio.sleep(0)
            said = [part.text for turn in run.turns for part in turn.parts if isinstance(part, Text)]
            running.remove(session)
            done = await w.store.driver.write(turns.finish, run.held, answer(run, "+".join(said)), w.clock())
            answered[session] += said
            run = done.next

    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(ask())
        for n, w in enumerate(worlds):
            group.create_task(work(w, f"r{n}"))
    assert len(answered) == 4
    assert all(said == [str(n) for n in range(12)] for said in answered.values())
    for session in await world.raw("select id from sessions"):
        texts = "+".join(await world.said(session[0]))
        assert texts == "+".join(map(str, range(12)))
    assert await violations(world.raw) == []


async def test_three_senders_keep_the_order_of_every_address(world: World) -> None:
    worlds = await together(world)
    addresses = [private(f"c{n}").address for n in range(4)]
    sent: dict[str, list[str]] = {address.key: [] for address in addresses}
    sending: set[str] = set()

    async def write(w: World, me: int) -> None:
        for n, address in itertools.product(range(10), addresses):
            await w.store.driver.write(deliveries.notify, address, f"{me} {n}", w.ids(), (), w.clock())

    async def send(w: World, me: str) -> None:
        while sum(map(len, sent.values())) < 120:
            for out in await w.store.driver.write(deliveries.outgoing, me, "telegram", "bot", 3):
                key = out.delivery.address.key
                assert key not in sending
                sending.add(key)
                await asyncio.sleep(0)
                sending.remove(key)
                sent[key].append(out.delivery.text)
                await w.store.driver.write(deliveries.sent, out, "m", w.clock())
            await asyncio.sleep(0)

    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        for n, w in enumerate(worlds):
            group.create_task(write(w, n))
            group.create_task(send(w, f"r{n}"))
    for key, texts in sent.items():
        assert [(text,) for text in texts] == await world.raw(
            "select text from deliveries where address = $1 order by id", key
        )
        for me in range(3):
            assert [text for text in texts if text.startswith(f"{me} ")] == [f"{me} {n}" for n in range(10)]
