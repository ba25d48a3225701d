"""Turns: one at a time per session, in order, fenced, finished all or nothing."""

import pytest

from segue.changes import accept
from segue.changes.accept import Queued
from segue.changes.exchange import deliveries, replicas, turns
from segue.changes.sessions import usage
from segue.core.contracts.agents import Usage
from segue.core.lanes import Address
from segue.core.messages import Text, ToolCall, ToolResult, encode_parts
from segue.core.transcripts import AGENT, Draft
from segue.core.turns import Claim, Finish, Finished, Outcome, Reply, Room, Run, draft_of
from segue.errors import Fenced, StoreConflict
from tests.changes.world import World, answer, private, public


async def finish(world: World, run: Run, *texts: str) -> Finished:
    return await world.store.driver.write(turns.finish, run.held, answer(run, *texts), world.clock())


async def claim(world: World, me: str = "r", count: int = 10) -> list[Run]:
    return await world.store.driver.write(turns.claim, me, count)


def run_of(queued: Queued) -> Run:
    assert queued.run is not None
    return queued.run


def texts(run: Run | None) -> list[str]:
    return [part.text for turn in (run.turns if run else ()) for part in turn.parts if isinstance(part, Text)]


async def test_what_waits_is_one_turn_up_to_a_megabyte_and_the_rest_the_next(world: World) -> None:
    run = run_of(await world.hear("ann", "first", me="r"))
    long = [f"{n}" * 400_000 for n in range(5)]
    for text in ("short", *long, "x" * 3_000_000, "last"):
        await world.hear("ann", text)
    gathered = list[list[str]]()
    while (run_next := (await finish(world, run, "done")).next) is not None:
        run = run_next
        gathered.append(texts(run))
    assert gathered == [["short", *long[:2]], long[2:4], long[4:], ["x" * 3_000_000], ["last"]]
    # Whoever claims it gathers no more either.
    for text in long:
        await world.hear("ann", text)
    [claimed] = await claim(world)
    assert texts(claimed) == long[:2]
    assert (await world.store.driver.read(turns.backlog, run.held.session)).count == 5


async def test_exactly_a_megabyte_is_one_turn(world: World) -> None:
    run = run_of(await world.hear("ann", "first", me="r"))
    around = len(encode_parts((Text(""),)))
    half = (1 << 19) - around
    for text in ("x" * half, "y" * half, "z" * half, "z" * (half + 1)):
        await world.hear("ann", text)
    run_next = (await finish(world, run, "done")).next
    assert run_next is not None
    assert len(run_next.turns) == 2
    run_next = (await finish(world, run_next, "done")).next
    assert run_next is not None
    assert len(run_next.turns) == 1


async def test_an_entry_has_the_time_at_which_it_was_said(world: World) -> None:
    asked = world.clock()
    run = run_of(await world.hear("ann", "hello", me="r"))
    world.clock.passes(100)
    drafts = (*(draft_of(turn) for turn in run.turns), Draft(AGENT, (Text("hi"),)))
    done = Finish((run.name,), drafts, (), outcome=Outcome.ANSWERED)
    await world.store.driver.write(turns.finish, run.held, done, answered := world.clock())
    said = {entry.text: entry.at for entry in await world.store.path(run.held.session)}
    assert asked <= said["hello"] < asked + 100 <= said["hi"] == answered


async def test_an_idle_session_is_held_by_whoever_accepts_for_it(world: World) -> None:
    run = run_of(await world.hear("ann", "hello", me="r"))
    assert texts(run) == ["hello"]
    assert run.held.epoch == 1
    assert await claim(world) == []
    done = await finish(world, run, "hi")
    assert done.next is None
    assert await world.said(run.held.session) == ["hi"]
    assert run_of(await world.hear("ann", "again", me="r2")).held.epoch == 2


async def test_what_nobody_holds_is_claimed_once_oldest_first(world: World) -> None:
    first, second = await world.hear("ann", "one"), await world.hear("bob", "two")
    [run] = await claim(world, count=1)
    assert run.held.session == first.session
    [other] = await claim(world, "r2")
    assert other.held.session == second.session
    assert await claim(world, "r3") == []


async def test_what_one_person_has_waiting_is_one_turn_and_others_stay_apart(world: World) -> None:
    thread = public("g", "t")
    run = run_of(await world.hear("ann", "1", thread, me="r"))
    for user, text in (("ann", "2"), ("ann", "3"), ("bob", "4"), ("ann", "5")):
        await world.hear(user, text, thread)
    done = await finish(world, run, "one")
    assert texts(done.next) == ["2", "3"]
    assert done.next is not None
    done = await finish(world, done.next, "two and three")
    assert texts(done.next) == ["4"]
    assert done.next is not None
    done = await finish(world, done.next, "four")
    assert texts(done.next) == ["5"]
    rows = await world.raw("select seq, outcome, within from turns order by seq")
    assert rows == [
        (1, "answered", None),
        (2, "answered", None),
        (3, "answered", 2),
        (4, "answered", None),
        (5, None, None),
    ]


async def test_one_persons_words_from_two_places_stay_apart(world: World) -> None:
    ann = await world.person("ann")
    lanes = [await world.dm(ann, "a"), await world.dm(ann, "b")]
    session = await world.renew(lanes[0], ann)
    await world.resume(lanes[1], session, ann)
    run = run_of(await world.hear("ann", "1", private("a"), me="r"))
    await world.hear("ann", "2", private("a"))
    await world.hear("ann", "3", private("b"))
    done = await finish(world, run, "x")
    assert texts(done.next) == ["2"]
    assert done.next is not None
    done = await finish(world, done.next, "y")
    assert done.next is not None
    assert [turn.route for turn in done.next.turns] == [lanes[1].address.key]


async def test_the_reply_goes_where_it_was_asked_whatever_moved_since(world: World) -> None:
    queued = await world.hear("ann", "hello", me="r")
    await world.renew(queued.lane, queued.met.person, "elsewhere now")
    [turn] = run_of(queued).turns
    assert turn.route == queued.lane.address.key
    await finish(world, run_of(queued), "late")
    assert await world.raw("select address, session, text from deliveries") == [
        (queued.lane.address.key, queued.session, "late\n\n(This is from the session before.)")
    ]
    assert await world.said(queued.session) == ["late"]


async def test_a_long_reply_of_a_session_that_was_left_is_followed_by_a_line_that_says_so(world: World) -> None:
    queued = await world.hear("ann", "hello", me="r")
    await world.store.set_title(queued.session, "Cats", queued.met.person)
    await world.renew(queued.lane, queued.met.person, "elsewhere now")
    await finish(world, run_of(queued), "long " * 400)
    texts = await world.raw("select text from deliveries order by id")
    assert texts == [("long " * 400,), ("(This is from “Cats”.)",)]


async def test_a_finish_that_names_a_later_turn_passes_over_none(world: World) -> None:
    thread = public("g", "t")
    run = run_of(await world.hear("ann", "1", thread, me="r"))
    await world.hear("bob", "2", thread)
    await world.hear("ann", "3 steered into the first", thread)
    done = await world.store.driver.write(
        turns.finish, run.held, Finish((1, 3), (Draft(AGENT, (Text("both"),)),)), world.clock()
    )
    assert texts(done.next) == ["2"]
    assert done.next is not None
    done = await finish(world, done.next, "two")
    assert done.next is None
    assert await world.raw("select head, tail, holder from sessions") == [(3, 3, None)]


async def test_a_claimed_turn_has_the_mark_of_its_own_sessions_lanes(world: World) -> None:
    first = run_of(await world.hear("ann", "1", me="r"))
    await world.hear("bob", "hello", private("bob"))
    await world.hear("ann", "2")
    await world.store.driver.write(turns.let_go, first.held, 0, 0.0)
    [mark] = [run.bound for run in await claim(world) if run.held.session == first.held.session]
    assert mark == first.bound != ""


async def test_a_try_that_broke_off_is_made_again_with_no_more_than_it_took(world: World) -> None:
    run = run_of(await world.hear("ann", "1", me="r"))
    await world.hear("ann", "2")
    await world.store.driver.write(turns.let_go, run.held, 1, 0.0)
    [again] = await world.store.driver.write(turns.claim, "r", 10)
    assert texts(again) == ["1"]
    await world.hear("ann", "3")
    # Its replica dies.
    await world.raw("delete from replicas where id = 'r'")
    await world.store.driver.write(replicas.join, "s", 60.0)
    await world.store.driver.write(replicas.beat, "s", 60.0)
    [again] = await world.store.driver.write(turns.claim, "s", 10)
    assert texts(again) == ["1"]
    assert texts((await finish(world, again, "one")).next) == ["2", "3"]


async def test_a_try_that_never_began_is_made_with_all_that_waits_by_then(world: World) -> None:
    run = run_of(await world.hear("ann", "1", me="r"))
    await world.hear("ann", "2")
    await world.store.driver.write(turns.let_go, run.held, 0, 0.0, began=False)
    [again] = await world.store.driver.write(turns.claim, "r", 10)
    assert texts(again) == ["1", "2"]


async def test_what_an_end_took_is_given_back_once_though_that_is_not_heard_either(world: World) -> None:
    run = run_of(await world.hear("ann", "1", me="r"))
    reply = Reply(private("ann").address, "hello", 1)
    done = Finish((1,), (Draft(AGENT, (Text("hello"),)),), (reply,))
    write = world.store.driver.write
    [taken] = (await write(turns.finish, run.held, done, world.clock(), sends=True)).taken
    await write(turns.left_behind, run.held, run.name)
    address = taken.delivery.address
    [again] = await write(deliveries.outgoing, "r", address.platform, address.account, 10)
    assert again.delivery.doubtful == 0, "nobody has sent it"
    await write(turns.left_behind, run.held, run.name)
    assert await write(deliveries.outgoing, "r", address.platform, address.account, 10) == []
    await write(deliveries.sent, again, "m1", world.clock())


async def test_half_of_the_turns_over_which_processes_died_run_at_once_and_others_beside_them(world: World) -> None:
    for name in ("ann", "bob", "cid", "dan", "eve", "fay"):
        await world.hear(name, "hello")
    await world.raw("update sessions set deaths = 2 where owner not in (select id from persons where name = 'fay')")
    first = await world.store.driver.write(turns.claim, "r", 10)
    assert sorted(run.deaths for run in first) == [0, 2, 2, 2]
    room = Room(10)
    for run in first:
        room = room.without(run)
    assert await world.store.driver.write(turns.claim, "r", 10, room) == []
    for run in first:
        assert (await finish(world, run, "fine")).next is None
    for left in (2, 1):
        [run] = await world.store.driver.write(turns.claim, "r", 10)
        assert await world.raw("select count(*) from sessions where deaths = 2") == [(left,)]
        assert (await finish(world, run, "fine")).next is None


async def test_a_turn_over_which_processes_died_more_often_runs_alone(world: World) -> None:
    for name in ("ann", "bob", "cid"):
        await world.hear(name, "hello")
    await world.raw("update sessions set deaths = 3")
    [first] = await world.store.driver.write(turns.claim, "r", 10)
    await world.raw("update sessions set deaths = 2 where holder is null")
    room = Room(10).without(first)
    assert await world.store.driver.write(turns.claim, "r", 10, room) == []


async def test_claims_leave_out_who_has_as_much_as_they_may(world: World) -> None:
    for n in range(5):
        await world.accept(world.arrival("hog", "hello", private(f"sty {n}")))
    await world.hear("ann", "hello")
    runs = await world.store.driver.write(turns.claim, "r", 4, Room(2))
    assert [run.turns[0].name for run in runs] == ["hog", "hog", "ann"]
    hog, ann = runs[0].turns[0].person, runs[2].turns[0].person
    assert await world.store.driver.write(turns.claim, "r", 4, Room(2, {hog: 2})) == []
    assert await world.store.driver.write(turns.claim, "r", 4, Room(2, only=ann)) == []
    assert len(await world.store.driver.write(turns.claim, "r", 9, Room(2, {hog: 2}, host=hog))) == 3


async def everything(world: World) -> list[object]:
    tables = ("sessions", "turns", "entries", "deliveries", "usage", "journal")
    return [sorted(map(repr, await world.raw(f"select * from {table}"))) for table in tables]


async def test_who_lost_the_epoch_can_neither_journal_nor_finish_nor_let_go(world: World) -> None:
    await world.store.driver.write(replicas.join, "dead", -1.0)
    await world.store.driver.write(replicas.join, "alive", 60.0)
    run = run_of(await world.hear("ann", "hello", me="dead"))
    await world.store.driver.write(replicas.beat, "alive", 60.0)

    async def refused(held: Claim) -> None:
        before = await everything(world)
        parts = (ToolResult("c", "x"),)
        for write in (
            lambda: world.store.driver.write(turns.journal, held, 1, "c", parts, world.clock()),
            lambda: world.store.driver.write(turns.finish, held, answer(run, "zombie"), world.clock()),
            lambda: world.store.driver.write(turns.let_go, held, 1, 0.0),
        ):
            with pytest.raises(Fenced, match="held by another replica"):
                await write()
        assert await everything(world) == before

    await refused(run.held)  # nobody holds it yet
    [taken] = await claim(world, "alive")
    assert taken.held.epoch == run.held.epoch + 1
    assert taken.deaths == 1
    await refused(run.held)
    await refused(Claim(run.held.session, "alive", run.held.epoch))
    await refused(Claim(run.held.session, "dead", taken.held.epoch))
    await finish(world, taken, "the only answer")
    await refused(taken.held)
    assert await world.said(run.held.session) == ["the only answer"]


async def test_a_turn_is_finished_once_also_when_its_first_commit_was_in_doubt(world: World) -> None:
    run = run_of(await world.hear("ann", "1", me="r"))
    await world.hear("ann", "2")
    await finish(world, run, "one")
    before = await everything(world)
    with pytest.raises(Fenced, match="turn 1"):
        await finish(world, run, "one")
    assert await everything(world) == before


async def test_a_finish_that_fails_half_way_leaves_nothing(world: World) -> None:
    run = run_of(await world.hear("ann", "1", me="r"))
    route = Address.parse(run.turns[0].route)
    drafts = (Draft(AGENT, (Text("said"),)),)
    before = await everything(world)
    broken = [
        Finish((1,), (*drafts, Draft(AGENT, (Text("\0"),))), (Reply(route, "said", 1),)),
        Finish((1,), drafts, (Reply(route, "said", 1), Reply(route, "\ud800", 0))),
        Finish((1,), drafts, (Reply(route, "said", 1),), (Usage("m", 1), Usage("\0", 1))),
    ]
    for done in broken:
        with pytest.raises(Exception, match=r"NUL|surrogate"):
            await world.store.driver.write(turns.finish, run.held, done, world.clock())
        assert await everything(world) == before
    await finish(world, run, "said")
    assert await world.count("deliveries") == 1


async def test_entries_deliveries_and_usage_come_with_the_turn(world: World) -> None:
    run = run_of(await world.hear("ann", "1", me="r"))
    route = Address.parse(run.turns[0].route)
    call, result = ToolCall("c1", "find", {}), ToolResult("c1", "found")
    drafts = (Draft(AGENT, (call,)), Draft(AGENT, (result,)), Draft(AGENT, (Text("done"),)))
    replies = (Reply(route, "done", 3, ("m1",)), Reply(route, "a notice", 0))
    usage = (Usage("small", 10, 5, 1, 2, 3, 0.5), Usage("large", 100))
    done = Finish((1,), drafts, replies, usage)
    finished = await world.store.driver.write(turns.finish, run.held, done, world.clock())
    told, *path = await world.store.path(run.held.session)
    assert [entry.parts for entry in path] == [draft.parts for draft in drafts]
    assert {entry.turn for entry in path} == {1}
    assert (finished.before, finished.tip) == (told.tip, path[-1].tip)
    assert await world.raw("select key, entry, text, answers, turn from deliveries order by id") == [
        (f"{run.held.session}/1/0", 4, "done", '["m1"]', 1),
        (f"{run.held.session}/1/1", 0, "a notice", "[]", 1),
    ]
    spent = await world.store.usage(run.held.session)
    assert [(one.usage, one.turns) for one in spent] == [(usage[1], 1), (usage[0], 1)]


async def test_usage_adds_up_over_turns(world: World) -> None:
    for n in range(3):
        run = run_of(await world.hear("ann", str(n), me="r"))
        done = answer(run, "x", usage=(Usage("m", 10, 1, cost=0.25), Usage("m", 1)))
        await world.store.driver.write(turns.finish, run.held, done, world.clock())
    [session] = await world.store.sessions(await world.person("ann"))
    [spent] = await world.store.usage(session.id)
    assert (spent.usage, spent.turns) == (Usage("m", 33, 3, cost=0.75), 3)
    other = run_of(await world.hear("bob", "hello", private("bob"), me="r"))
    await world.store.driver.write(turns.finish, other.held, answer(other, "x", usage=(Usage("m", 99),)), world.clock())
    assert await world.store.driver.read(usage.last_size, other.held.session) == usage.Size(1, 99)


async def test_finished_tool_calls_are_seen_by_the_next_attempt_once_and_in_order(world: World) -> None:
    run = run_of(await world.hear("ann", "1", me="r"))
    for n in range(12):
        parts = (ToolCall(f"c{n}", "f", {}), ToolResult(f"c{n}", n))
        for _ in range(2):
            await world.store.driver.write(turns.journal, run.held, run.name, f"c{n}", parts, world.clock())
    await world.store.driver.write(turns.let_go, run.held, 1, 0.0)
    [again] = await claim(world, "r2")
    assert [part.content for part in again.journal if isinstance(part, ToolResult)] == list(range(12))
    assert (again.name, again.fails) == (run.name, 1)
    with pytest.raises(StoreConflict):
        await world.store.driver.write(turns.journal, again.held, 99, "c", (), world.clock())


async def test_a_session_that_is_let_go_waits_out_its_delay(world: World) -> None:
    run = run_of(await world.hear("ann", "1", me="r"))
    assert await world.store.driver.write(turns.let_go, run.held, 1, 1000.0) == 1
    assert await claim(world) == []
    queued = await world.hear("ann", "2", me="r")
    assert queued.run is None
    await world.raw("update sessions set due = 0")
    [run] = await claim(world)
    assert texts(run) == ["1"]
    assert await world.store.driver.write(turns.let_go, run.held, 1, 0.0) == 2
    [run] = await claim(world)
    following = (await finish(world, run, "at last")).next
    assert texts(following) == ["2"]
    assert following is not None
    await finish(world, following, "and this")
    run = run_of(await world.hear("ann", "3", me="r"))
    assert await world.store.driver.write(turns.let_go, run.held, 0, 0.0) == 0


async def test_a_session_of_which_all_waiting_turns_were_withdrawn_is_idle(world: World) -> None:
    gone = await world.hear("ann", "1")
    other = await world.hear("bob", "2")
    await world.raw("update turns set outcome = 'withdrawn', finished = 0 where session = $1", gone.session)
    [run] = await claim(world)
    assert run.held.session == other.session
    assert await world.raw("select head, tail, holder from sessions where id = $1", gone.session) == [(1, 1, None)]
    assert texts(run_of(await world.hear("ann", "3", me="r"))) == ["3"]


async def test_a_withdrawn_turn_in_between_is_passed_over(world: World) -> None:
    run = run_of(await world.hear("ann", "1", me="r"))
    await world.hear("ann", "2")
    await world.hear("ann", "3")
    await world.raw("update turns set outcome = 'withdrawn', finished = 0 where seq = 2")
    done = await finish(world, run, "one")
    assert texts(done.next) == ["3"]
    assert done.next is not None
    assert (await finish(world, done.next, "three")).next is None


async def test_people_stop_their_own_running_turn_and_no_other(world: World) -> None:
    thread = public("g", "t")
    run = run_of(await world.hear("ann", "1", thread, me="r"))
    bob = await world.hear("bob", "2", thread)
    driver = world.store.driver
    ann = await world.person("ann")
    assert not await driver.write(turns.stop, bob.session, bob.met.person.id)
    assert not await driver.read(turns.stopped, bob.session)
    assert await driver.write(turns.stop, bob.session, ann.id)
    assert await driver.read(turns.stopped, bob.session)
    done = answer(run, "cut", outcome=Outcome.STOPPED)
    finished = await driver.write(turns.finish, run.held, done, world.clock())
    assert texts(finished.next) == ["2"]
    assert not await driver.read(turns.stopped, bob.session)
    assert await world.raw("select outcome from turns order by seq") == [("stopped",), (None,)]


async def test_what_runs_in_a_session_that_was_left_is_found_where_it_was_asked_for_and_by_its_person(
    world: World,
) -> None:
    queued = await world.hear("ann", "1", private("a"), me="r")
    ann, bob, driver = queued.met.person, await world.person("bob"), world.store.driver
    other = await world.dm(ann, "b")
    await world.resume(other, queued.session, ann)
    for lane in (queued.lane, other):
        await world.renew(lane, ann, "elsewhere now")
    assert await driver.read(turns.left_running, queued.lane, ann.id) == queued.session
    assert await driver.read(turns.left_running, other, ann.id) is None
    assert await driver.read(turns.left_running, queued.lane, bob.id) is None
    await finish(world, run_of(queued), "done")
    assert await driver.read(turns.left_running, queued.lane, ann.id) is None


async def test_a_failed_turn_is_told_and_the_session_goes_on(world: World) -> None:
    run = run_of(await world.hear("ann", "1", me="r"))
    for text in ("2", "3"):
        await world.hear("ann", text)
    done = answer(run, "sorry", outcome=Outcome.FAILED, error="boom")
    finished = await world.store.driver.write(turns.finish, run.held, done, world.clock())
    assert texts(finished.next) == ["2", "3"]
    assert await world.raw("select outcome, error from turns where seq = 1") == [("failed", "boom")]
    assert finished.next is not None
    done = answer(finished.next, "sorry", outcome=Outcome.FAILED, error="bang")
    await world.store.driver.write(turns.finish, run.held, done, world.clock())
    assert await world.raw("select outcome, error from turns where seq > 1") == [("failed", "bang")] * 2


async def test_half_an_album_waits_for_the_rest_though_its_session_is_free_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accept, "ALBUM", 600.0)
    driver = world.store.driver
    begun = await world.hear("ann", "look", me="r")
    assert begun.run is not None
    one = await world.hear("ann", "1.jpg", me="r", album="a")
    done = await driver.write(turns.finish, begun.run.held, answer(begun.run, "at what?"), world.clock())
    two = await world.hear("ann", "2.jpg", me="r", album="a")
    assert (one.run, done.next, two.run) == (None, None, None)
    assert await driver.write(turns.claim, "r", 9) == []
    monkeypatch.setattr(accept, "ALBUM", 0.0)
    other = await world.hear("bob", "3.jpg", private("bob"), me="r", album="b")
    assert other.run is None
    [run] = await driver.write(turns.claim, "r", 9)
    assert run.held.session == other.session, "an album that is due is taken, and no other"
    waiting = await driver.read(turns.waiting, one.session, 9, begun.turn)
    assert [turn.seq for turn in waiting] == [one.turn, two.turn]
