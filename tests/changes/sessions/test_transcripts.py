"""Transcripts: nothing that was said is changed or lost; tips move, and forks copy nothing."""

from typing import Any

import pytest

from segue.changes.sessions import transcripts
from segue.core.lanes import Person
from segue.core.messages import File, Notice, Reasoning, Summary, Text, ToolCall, ToolResult
from segue.core.transcripts import AGENT, GATEWAY, Author, Role, Tip, TipMove
from segue.core.values import SessionId
from segue.errors import Invalid, Refusal, Refused
from tests.changes.world import World, words


async def talk(world: World, *exchanges: tuple[str, str]) -> tuple[Person, SessionId]:
    """A session in which these exchanges took place."""
    ann = await world.person("ann")
    session = await world.renew(await world.dm(ann), ann)
    for asked, answered in exchanges:
        await world.exchange(session, ann, asked, answered)
    return ann, session


async def test_what_was_said_comes_back_as_it_was_said(world: World) -> None:
    ann, session = await talk(world)
    parts = (
        Text('q"uo\\te \N{PILE OF POO} \u202e\n\x01'),
        File("a.png", "image/png", "files/1", 3),
        Reasoning("p", {"deep": [1, 2.5, None, True, {"é": "ü"}], "big": 2**53}),
        ToolCall("c1", "find", {"q": ["x"]}),
        ToolResult("c1", "no\\u0000t a NUL", failed=True),
        Notice("mind"),
    )
    tip = await world.store.say(session, ann, parts)
    await world.store.say(session, AGENT, "second", "third")
    first, second, third = await world.store.path(session)
    assert first.parts == parts
    assert (first.tip, first.parent, first.at) == (tip, None, world.clock())
    assert first.author == Author(Role.PERSON, ann.id, "ann")
    assert (second.parent, third.parent) == (first.tip, second.tip)
    assert second.author == AGENT
    assert (await world.store.session(session, ann)).tip == third.tip


async def test_saying_nothing_leaves_the_tip(world: World) -> None:
    ann, session = await talk(world, ("a", "b"))
    before = await world.store.path(session)
    assert await world.store.say(session, ann) == before[-1].tip
    assert await world.store.path(session) == before


async def test_undo_takes_exchanges_back_and_deletes_nothing(world: World) -> None:
    ann, session = await talk(world, ("1", "one"), ("2", "two"), ("3", "three"))
    assert await world.store.undo(session, ann) == Tip(session, 4)
    assert await world.said(session) == ["1", "one", "2", "two"]
    await world.store.undo(session, ann, 2)
    assert await world.said(session) == []
    with pytest.raises(Refused) as refused:
        await world.store.undo(session, ann)
    assert refused.value.why is Refusal.NOTHING_TO_UNDO
    assert words([entry async for entry in world.store.entries(session)]) == ["1", "one", "2", "two", "3", "three"]
    await world.exchange(session, ann, "4", "four")
    assert await world.said(session) == ["4", "four"]
    assert await world.count("entries") == 8
    changes = await world.store.tip_changes(session)
    assert [(c.before, c.after, c.why, c.by) for c in changes] == [
        (Tip(session, 4), None, TipMove.UNDO, ann.id),
        (Tip(session, 6), Tip(session, 4), TipMove.UNDO, ann.id),
    ]


@pytest.mark.parametrize("count", [0, -1, 4, 10**9])
async def test_undo_of_more_than_there_is_changes_nothing(world: World, count: int) -> None:
    ann, session = await talk(world, ("1", "one"), ("2", "two"), ("3", "three"))
    before = await world.store.session(session, ann)
    with pytest.raises(Refused):
        await world.store.undo(session, ann, count)
    assert await world.store.session(session, ann) == before
    assert await world.store.tip_changes(session) == []


async def test_undo_reaches_far_back(world: World) -> None:
    ann, session = await talk(world)
    for n in range(150):
        await world.store.say(session, ann, f"q{n}")
        await world.store.say(session, AGENT, f"a{n}")
    await world.store.undo(session, ann, 149)
    assert await world.said(session) == ["q0", "a0"]


async def test_retry_gives_back_what_was_asked(world: World) -> None:
    ann, session = await talk(world, ("1", "one"))
    await world.store.say(session, ann, "2", "and")
    await world.store.say(session, AGENT, "two")
    asked = await world.store.retry(session, ann)
    assert words(asked) == ["2", "and"]
    assert await world.said(session) == ["1", "one"]
    assert (await world.store.tip_changes(session))[0].why is TipMove.RETRY


async def test_rewind_goes_back_to_an_entry_of_the_path_and_to_no_other(world: World) -> None:
    ann, session = await talk(world, ("1", "one"), ("2", "two"))
    bob = await world.person("bob")
    other = await world.renew(await world.dm(bob), bob, "secret")
    await world.store.rewind(session, Tip(session, 2), ann)
    assert await world.said(session) == ["1", "one"]
    for elsewhere in (Tip(session, 3), Tip(other, 1), Tip(session, 9)):
        with pytest.raises(Refused) as refused:
            await world.store.rewind(session, elsewhere, ann)
        assert refused.value.why is Refusal.NOT_FOUND
    assert await world.said(session) == ["1", "one"]


async def test_what_the_model_sees_is_the_path_from_the_newest_summary_on(world: World) -> None:
    ann, session = await talk(world, ("1", "one"), ("2", "two"), ("3", "three"))
    await world.store.compress(session, "so far: 1 and 2", Tip(session, 4), ann)
    await world.exchange(session, ann, "4", "four")
    seen = await world.store.visible(session)
    assert seen[0].parts == (Summary("so far: 1 and 2", session, 4),)
    assert words(seen[1:]) == ["3", "three", "4", "four"]
    # The persisted path has them all, and the summary in its place.
    path = await world.store.path(session)
    assert words(path) == ["1", "one", "2", "two", "3", "three", "4", "four"]
    assert path[6] == seen[0]
    await world.store.undo(session, ann, 2)
    assert words(await world.store.visible(session)) == ["1", "one", "2", "two"]
    assert [c.why for c in await world.store.tip_changes(session)] == [TipMove.UNDO, TipMove.COMPRESS]


async def test_a_summary_stands_only_for_what_was_said_in_its_session(world: World) -> None:
    ann, session = await talk(world, ("1", "one"), ("2", "two"))
    await world.store.undo(session, ann)
    before = await world.store.path(session)
    for upto in (Tip(session, 4), Tip(SessionId("none"), 1), Tip(session, 99)):
        with pytest.raises(Refused):
            await world.store.compress(session, "sum", upto, ann)
    assert await world.store.path(session) == before


async def test_a_summary_of_a_summary_and_far_back(world: World) -> None:
    ann, session = await talk(world)
    for n in range(100):
        await world.store.say(session, ann, f"q{n}")
        await world.store.say(session, AGENT, f"a{n}")
    await world.store.compress(session, "first", Tip(session, 20), ann)
    await world.store.compress(session, "second", Tip(session, 198), ann)
    seen = await world.store.visible(session)
    assert words(seen) == ["q99", "a99"]
    assert isinstance(seen[0].parts[0], Summary)
    assert seen[0].parts[0].text == "second"


async def test_a_path_over_forks_and_branches(world: World) -> None:
    ann, root = await talk(world, ("1", "one"), ("2", "two"))
    lane = await world.dm(ann)
    left = await world.fork(lane, root, ann)
    await world.exchange(left, ann, "left", "L")
    right = await world.fork(lane, root, ann, at=Tip(root, 2))
    await world.exchange(right, ann, "right", "R")
    deeper = await world.fork(lane, left, ann)
    await world.exchange(deeper, ann, "deeper", "D")
    await world.exchange(root, ann, "3", "three")
    assert await world.said(root) == ["1", "one", "2", "two", "3", "three"]
    assert await world.said(left) == ["1", "one", "2", "two", "left", "L"]
    assert await world.said(right) == ["1", "one", "right", "R"]
    assert await world.said(deeper) == ["1", "one", "2", "two", "left", "L", "deeper", "D"]
    # An undo may go back over the point where the fork began, and the source doesn't notice.
    await world.store.undo(deeper, ann, 3)
    assert await world.said(deeper) == ["1", "one"]
    await world.exchange(deeper, ann, "again", "A")
    assert await world.said(deeper) == ["1", "one", "again", "A"]
    assert await world.said(left) == ["1", "one", "2", "two", "left", "L"]
    assert words(await world.store.path(Tip(deeper, 2))) == ["1", "one", "2", "two", "left", "L", "deeper", "D"]


async def test_a_path_skips_other_branches_of_its_own_session(world: World) -> None:
    ann, session = await talk(world, ("0", "zero"))
    for n in range(40):
        await world.exchange(session, ann, f"bad {n}", "no")
        await world.store.undo(session, ann)
        if n % 10 == 0:
            await world.exchange(session, ann, f"good {n}", "yes")
    assert await world.said(session) == [
        *("0", "zero", "good 0", "yes", "good 10", "yes"),
        *("good 20", "yes", "good 30", "yes"),
    ]


async def test_a_fork_of_ten_thousand_entries_writes_no_entry(world: World) -> None:
    ann, session = await talk(world)
    for start in range(0, 10_000, 2_500):
        await world.store.say(session, AGENT, *(f"entry {n}" for n in range(start, start + 2_500)))
    before = await world.count("entries")
    fork = await world.fork(await world.dm(ann), session, ann)
    again = await world.fork(await world.dm(ann), fork, ann)
    assert await world.count("entries") == before == 10_000
    await world.store.say(again, ann, "mine")
    path = await world.store.path(again)
    assert words(path) == [*(f"entry {n}" for n in range(10_000)), "mine"]
    assert {entry.tip.session for entry in path} == {session, again}


async def test_an_entry_that_does_not_exist_has_no_path(world: World) -> None:
    _, session = await talk(world, ("1", "one"))
    for tip in (Tip(session, 3), Tip(session, 0), Tip(SessionId("none"), 1)):
        with pytest.raises(Invalid, match=f"entry: {tip.session}/{tip.n} doesn't exist"):
            await world.store.path(tip)


async def test_a_session_that_does_not_exist_is_refused_everywhere(world: World) -> None:
    ann, _ = await talk(world, ("1", "one"))
    none = SessionId("none")
    store = world.store
    attempts: list[Any] = [
        *(store.say(none, ann, "x"), store.path(none), store.visible(none), store.undo(none, ann)),
        *(store.retry(none, ann), store.rewind(none, Tip(none, 1), ann), store.compress(none, "x", Tip(none, 1), ann)),
    ]
    for attempt in attempts:
        with pytest.raises(Refused) as refused:
            await attempt
        assert refused.value.why is Refusal.NOT_FOUND
    assert await world.count("entries") == 2
    assert [entry async for entry in store.entries(none)] == []


async def test_all_entries_of_a_session_come_in_order_whatever_their_branch(world: World) -> None:
    ann, session = await talk(world)
    await world.store.say(session, AGENT, *map(str, range(1100)))
    await world.store.rewind(session, Tip(session, 1), ann)
    await world.store.say(session, ann, "branch")
    found = [entry async for entry in world.store.entries(session)]
    assert [entry.tip.n for entry in found] == list(range(1, 1102))
    assert found[-1].parent == Tip(session, 1)


async def test_what_was_said_is_counted_along_the_path_also_into_what_was_forked(world: World) -> None:
    ann, session = await talk(world, ("one", "1"), ("two", "2"))
    await world.store.say(session, GATEWAY, "a notice")
    fork = await world.fork(await world.dm(ann), session, ann)
    await world.exchange(fork, ann, "three", "3")
    await world.store.undo(session, ann)
    assert await world.store.driver.read(transcripts.count_said, session) == 2
    assert await world.store.driver.read(transcripts.count_said, fork) == 6
    empty = await world.renew(await world.dm(ann), ann)
    assert await world.store.driver.read(transcripts.count_said, empty) == 0
