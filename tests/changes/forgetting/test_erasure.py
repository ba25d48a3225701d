"""Erasures: an entry changes once for each row that says so, to a stone, and nothing else about it does."""

import msgspec
import pytest

from segue.changes.exchange import letters
from segue.changes.forgetting import erasure, named_files
from segue.changes.forgetting.erasure import Cause, Reason
from segue.changes.forgetting.named_files import Naming
from segue.core.contracts.database import Transaction
from segue.core.lanes import Person
from segue.core.messages import File, Stone, encode_parts
from segue.core.transcripts import Tip
from segue.database.statements import q
from segue.errors import StoreConflict
from tests.changes.world import World

STONE = encode_parts((Stone(1.0),))


def changed(tip: Tip, parts: str, rows: int) -> Transaction[None]:
    """Change an entry, after so many rows that allow it."""
    [(id,)] = yield q.add_forgetting(
        kind="exchange", session=tip.session, n=tip.n, by="", why="asked", at=1.0, address="", answers="[]", taken="{}"
    )
    for _ in range(rows):
        yield q.add_erasure(forgetting=id, session=tip.session, n=tip.n)
    yield q.lay_stone(session=tip.session, n=tip.n, parts=parts, nameless=0)


async def spoken(world: World) -> tuple[Person, Tip]:
    ann = await world.person("ann")
    session = await world.renew(await world.dm(ann), ann)
    tip = await world.store.say(session, ann, "a secret")
    assert tip is not None
    return ann, tip


async def test_an_entry_changes_only_with_its_erasure_and_only_to_a_stone(world: World) -> None:
    _, tip = await spoken(world)
    with pytest.raises(StoreConflict):
        await world.store.driver.write(changed, tip, STONE, 0)
    with pytest.raises(StoreConflict):
        await world.store.driver.write(changed, tip, '[{"type":"text","text":"other words"}]', 1)
    await world.store.driver.write(changed, tip, STONE, 1)
    [entry] = await world.store.path(tip)
    assert entry.parts == (Stone(1.0),)
    with pytest.raises(StoreConflict):
        # That row has been used.
        await world.store.driver.write(changed, tip, STONE, 0)


async def test_a_person_goes_with_all_that_they_said_and_their_name(world: World) -> None:
    ann, tip = await spoken(world)
    await world.store.index()
    reason = Reason(ann.id, Cause.HOST, world.clock())
    while await world.store.driver.write(erasure.person_step, ann.id, reason):
        """There is more."""
    await world.store.driver.write(erasure.person_end, ann.id, reason)
    [entry] = await world.store.path(tip)
    assert entry.parts == (Stone(reason.at, ann.id),)
    assert await world.store.sessions(ann) == []
    assert await world.store.search("secret", ann) == []


async def named(world: World) -> set[str]:
    """The files that dead letters name."""
    found, _ = await world.store.driver.read(named_files.page, Naming.LETTERS, None)
    return found


async def test_a_file_that_only_a_dead_letter_names_stays_until_it_was_taken_in_again(world: World) -> None:
    where = f"files/ab/{'ab' * 32}"
    arrival = world.arrival("ann", (File("a.png", "image/png", where, 3),))
    raw = msgspec.json.encode(arrival).decode()
    assert await named(world) == set()
    await world.store.driver.write(letters.bury, "telegram/bot", raw, "it broke", 1.0)
    assert await named(world) == {where}
    [letter] = await world.store.driver.read(letters.newest, 9)
    assert await world.store.driver.write(letters.begin_again, letter, arrival, 2.0)
    assert await named(world) == set()
