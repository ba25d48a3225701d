"""Erasures: an entry changes once for each row that says so, to a stone, and nothing else about it does."""

import msgspec
import pytest

from segue.changes.exchange import letters, turns
from segue.changes.forgetting import erasure, named_files
from segue.changes.forgetting.erasure import Cause, Reason
from segue.changes.forgetting.named_files import Naming
from segue.core.contracts.database import Transaction
from segue.core.lanes import Person
from segue.core.messages import Arrival, File, Stone, encode_parts
from segue.core.transcripts import Tip
from segue.database.statements import q
from segue.errors import StoreConflict
from tests.changes.world import World, answer, private

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
    while step := await world.store.driver.read(erasure.next_of_person, ann.id, 0):
        await world.store.driver.write(erasure.person_step, step, reason)
    await world.store.driver.write(erasure.person_end, ann.id, reason)
    [entry] = await world.store.path(tip)
    assert entry.parts == (Stone(reason.at, ann.id),)
    assert await world.store.sessions(ann) == []
    assert await world.store.search("secret", ann) == []


async def test_a_waiting_message_is_forgotten_beside_what_runs(world: World) -> None:
    running, waiting = await world.hear("ann", "1", me="r"), await world.hear("ann", "a secret", message="secret")
    bob = await world.hear("bob", "1", private("bob"), me="r")
    await world.hear("bob", "2", private("bob"))
    write, at = world.store.driver.write, world.clock()
    assert running.run is not None
    assert bob.run is not None
    other = (await write(turns.finish, bob.run.held, answer(bob.run, "one"), at)).next
    assert other is not None
    assert other.name == waiting.turn, "a turn of that number runs elsewhere"
    await write(erasure.deleted, "secret", waiting.lane.address, waiting.met.person, at)
    assert (await write(turns.finish, running.run.held, answer(running.run, "answered"), at)).next is None


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


@pytest.mark.parametrize("naming", Naming)
async def test_pages_of_rows_that_name_files_come_to_an_end(
    world: World, naming: Naming, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_files, "_PAGE", 1)
    for n in range(3):
        await bury(world, f"{n}")
    seen, after = set[named_files.FileRow](), None
    while (after := (await world.store.driver.read(named_files.page, naming, after))[1]) is not None:
        assert after not in seen
        seen.add(after)


async def bury(world: World, letter: Arrival | str) -> None:
    raw = letter if isinstance(letter, str) else msgspec.json.encode(letter).decode()
    await world.store.driver.write(letters.bury, "telegram/bot", raw, "it broke", 1.0)


async def dead(world: World) -> list[str]:
    """What stands in the dead letters, the oldest first."""
    return [letter.raw for letter in reversed(await world.store.driver.read(letters.newest, 99))]


async def test_a_forgotten_message_takes_only_the_dead_letters_that_name_it(world: World) -> None:
    await world.hear("1", "a secret", message="12")
    ann = await world.person("1")
    [session] = await world.store.sessions(ann)
    others = (
        world.arrival("1", "at 12.5", message="112"),
        world.arrival("3", "12", message="7", quotes="120"),
        world.arrival("12", "its chat and sender are 12", message="8"),
        world.arrival("3", "another chat's message 12", message="12"),
        world.arrival("3", "an answer in another chat", message="9", quotes="12"),
    )
    unread = (
        '{"at":1700000012.5,"id":112,"date":"2026-12-12","text":"x12"}',
        '{"at":12.5,"text":"12th"}',
        "Report(message='112')",
    )
    for letter in (*others, *unread):
        await bury(world, letter)
    kept = await dead(world)
    gone = (
        world.arrival("1", "it came twice", message="12"),
        world.arrival("1", "an answer to it", private("1", "thread"), message="13", quotes="12"),
        world.arrival("1", "an edit of it", message="14", edits="12"),
        '{"message":{"message_id":12,"text":"a secret"}}',
        "Report(message='12')",
    )
    for letter in gone:
        await bury(world, letter)
    await world.store.driver.write(erasure.session, session.id, Reason(ann.id, Cause.ASKED, world.clock()))
    assert await dead(world) == kept


async def test_a_forgotten_person_takes_only_the_dead_letters_that_they_sent(world: World) -> None:
    ann = await world.person("42")
    await bury(world, world.arrival("420", "it is 42 outside", private("42"), message="42", quotes="42"))
    await bury(world, world.arrival("7", "by an alias of another", aliases=("1042",)))
    await bury(world, '{"from":{"id":142},"at":42.1}')
    kept = await dead(world)
    await bury(world, world.arrival("42", "a secret"))
    await bury(world, world.arrival("uuid", "under another id", aliases=("42",)))
    await bury(world, '{"from":{"id":42}}')
    reason = Reason(ann.id, Cause.HOST, world.clock())
    await world.store.driver.write(erasure.person_end, ann.id, reason)
    assert await dead(world) == kept
