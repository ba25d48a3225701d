"""Arrivals: each message once, in the right lane and session, as a turn with its route."""

import asyncio

import pytest
from msgspec.structs import replace

from segue.changes.accept import Duplicate, Handled, Queued
from segue.changes.commands.request import Answer, Request
from segue.changes.exchange import deliveries, letters, turns
from segue.changes.people import persons
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Identity, Kind, Lane, Place, Rules, Sharing
from segue.core.messages import Arrival, Aside, Text, decode_parts
from segue.core.moves import Limits, Release, Renew, Spawn, Why
from segue.core.prompt.section import RESET
from segue.core.resets import Due, Policies, Policy, When
from segue.core.settings import AccountSettings, DmThreads, GatewaySettings, Settings
from segue.core.transcripts import AGENT, Role
from segue.core.turns import TurnKind
from segue.errors import Invalid
from tests.changes.sessions.test_moves import hands_off, settles
from tests.changes.world import World, answer, private, public, words


async def answered(world: World, queued: Queued, *texts: str) -> None:
    assert queued.run is not None
    await world.store.driver.write(turns.finish, queued.run.held, answer(queued.run, *texts), world.clock())


async def test_a_first_message_meets_its_person_opens_its_lane_and_waits_as_a_turn(world: World) -> None:
    queued = await world.hear("ann", "hello")
    assert queued.lane == Lane(Address("telegram", "bot", chat="ann"))
    assert queued.met.new
    [turn] = await world.store.driver.read(turns.waiting, queued.session, 10)
    assert (turn.seq, turn.kind, turn.lane, turn.route) == (1, "arrival", queued.lane.key, queued.lane.address.key)
    assert (turn.person, turn.name, turn.message, turn.parts) == (queued.met.person.id, "ann", "m1", (Text("hello"),))
    assert (turn.accepted, turn.trace) == (world.clock(), "trace")
    [binding] = await world.store.history(queued.lane)
    assert (binding.session, binding.why, binding.by) == (queued.session, Why.FIRST, queued.met.person.id)
    again = await world.hear("ann", "again")
    assert (again.session, again.turn, again.met.new) == (queued.session, 2, False)


async def test_the_same_message_counts_once(world: World) -> None:
    arrival = world.arrival("ann", "hello", message="77")
    assert isinstance(await world.accept(arrival), Queued)
    for _ in range(2):
        assert isinstance(await world.accept(arrival), Duplicate)
    assert await world.count("turns") == 1


async def test_any_of_several_keys_tells_a_redelivery_and_all_are_remembered(world: World) -> None:
    def posted(message: str, *keys: str) -> Arrival:
        return world.arrival("ann", "hello", message=message, seen_as=keys)

    assert isinstance(await world.accept(posted("ts1", "event 1")), Queued)
    assert isinstance(await world.accept(posted("ts1", "event 2")), Duplicate)
    assert isinstance(await world.accept(posted("ts2", "event 2")), Duplicate)
    assert isinstance(await world.accept(posted("ts2", "event 3")), Duplicate)
    assert isinstance(await world.accept(posted("ts3", "event 4")), Queued)


async def test_message_ids_are_told_apart_by_chat_and_keys_by_account(world: World) -> None:
    assert isinstance(await world.accept(world.arrival("ann", "x", private("a"), "5")), Queued)
    assert isinstance(await world.accept(world.arrival("ann", "x", private("b"), "5")), Queued)
    assert isinstance(await world.accept(world.arrival("ann", "x", private("a", "thread"), "5")), Duplicate)
    other = Place(Address("telegram", "other", chat="a"), Kind.DM)
    assert isinstance(await world.accept(world.arrival("ann", "x", other, "5")), Queued)


async def test_a_message_without_any_id_cannot_be_a_redelivery(world: World) -> None:
    for _ in range(2):
        arrival = world.arrival("ann", "hello")
        nameless = Arrival(arrival.place, "", arrival.speaker, arrival.parts, arrival.at)
        assert isinstance(await world.accept(nameless), Queued)


async def test_keys_are_forgotten_when_no_platform_redelivers_any_more(world: World) -> None:
    world.changed = {"seen"}
    arrival = world.arrival("ann", "hello", message="77")
    await world.accept(arrival)
    await world.store.driver.write(letters.forget, world.clock())
    # Nobody was there for a month: what is redelivered after it is known.
    world.clock.passes(30 * 86400)
    for _ in range(letters.DAYS - 1):
        assert not await world.store.driver.write(letters.forget, world.clock())
        assert isinstance(await world.accept(arrival), Duplicate)
        world.clock.passes(86400)
    await world.store.driver.write(letters.forget, world.clock())
    assert await world.raw("select count(*) from seen") == [(0,)]


async def test_a_clock_that_goes_nine_days_forward_and_back_makes_no_key_old(world: World) -> None:
    arrival = world.arrival("ann", "hello", message="77")
    await world.accept(arrival)
    for days in (9, -9) * letters.DAYS:
        assert not await world.store.driver.write(letters.forget, world.clock())
        world.clock.passes(days * 86400)
    # The jumps count as one day together: what the most patient platform redelivers is known.
    for _ in range(letters.DAYS - 2):
        assert not await world.store.driver.write(letters.forget, world.clock())
        assert isinstance(await world.accept(arrival), Duplicate)
        world.clock.passes(86400)


async def test_keys_are_forgotten_as_fast_as_they_come(world: World) -> None:
    world.changed = {"seen"}
    for n in range(3 * letters.AT_ONCE):
        await world.raw("insert into seen (account, key, at) values ('a', $1, $2)", f"k{n}", world.clock())
    await world.raw("insert into seen (account, key, at) values ('a', 'young', $1)", world.clock() + 9 * 86400.0)
    for day in range(letters.DAYS):
        assert not await world.store.driver.write(letters.forget, world.clock() + day * 86400.0)
    rounds = 1
    while await world.store.driver.write(letters.forget, world.clock() + letters.DAYS * 86400.0):
        rounds += 1
    # A younger key among the oldest stays, and the last round finds nothing more.
    assert rounds == 5
    assert await world.raw("select key from seen") == [("young",)]


async def test_letters_of_strangers_are_bounded_and_those_of_others_stay(world: World) -> None:
    bury, at = letters.bury, world.clock()
    for n in range(letters.MOST + 5):
        await world.raw("insert into letters (account, raw, why, at) values ('http/a', $1, 'why', $2)", str(n), at)
    await world.store.driver.write(bury, "http/a", "of the host", "why", at - 99 * 86400.0, 1)
    await world.store.driver.write(bury, "http/b", "another account's", "why", at)
    newest = await world.store.driver.read(letters.newest, 2)
    assert [letter.raw for letter in newest] == ["another account's", "of the host"]
    assert await world.store.driver.write(letters.forget_strangers, "http/a", at) == 5
    assert await world.raw("select count(*) from letters") == [(letters.MOST + 2,)]
    assert await world.raw("select raw from letters order by id limit 1") == [("5",)]
    assert await world.store.driver.write(letters.forget_strangers, "http/a", at + 31 * 86400.0) == letters.MOST
    assert await world.raw("select raw from letters order by id") == [("of the host",), ("another account's",)]
    assert await world.raw("select value from settings where name like 'letters%'") == [(str(letters.MOST + 5),)]


async def test_an_arrival_that_is_refused_half_way_leaves_nothing(world: World) -> None:
    nowhere = Place(Address("telegram", "bot"), Kind.DM)
    arrival = world.arrival("ann", "a\0b", private("a"), "5")
    with pytest.raises(Invalid, match="NUL"):
        await world.accept(arrival)
    for table in ("seen", "persons", "lanes", "sessions", "turns", "moves"):
        assert await world.count(table) == 0
    assert isinstance(await world.accept(world.arrival("ann", "fine", private("a"), "5")), Queued)
    assert (await world.hear("ann", "no chat id", nowhere)).lane.person


async def test_what_names_nobody_is_kept_by_the_widest_part_that_is_known_or_not_at_all(world: World) -> None:
    nowhere = Place(Address("telegram", "bot"), Kind.DM)
    with pytest.raises(Invalid, match="neither its chat nor its person"):
        await world.hear("", "who am I, and where?", nowhere)
    assert (await world.hear("", "an alias will do", nowhere, aliases=("ann",))).lane.person
    assert (await world.hear("", "in private", private("a"))).lane == Lane(private("a").address)
    assert (await world.hear("", "in a group", public("g"))).lane == Lane(public("g").address)


async def test_people_in_a_group_are_apart_and_in_a_thread_together(world: World) -> None:
    ann, bob = await world.hear("ann", "a", public()), await world.hear("bob", "b", public())
    assert ann.session != bob.session
    ann, bob = await world.hear("ann", "a", public("g", "t")), await world.hear("bob", "b", public("g", "t"))
    assert ann.session == bob.session
    both = Settings(Rules(groups=Sharing.TOGETHER, threads=Sharing.APART))
    ann = await world.hear("ann", "a", public("g2"), settings=both)
    bob = await world.hear("bob", "b", public("g2"), settings=both)
    assert ann.session == bob.session
    ann = await world.hear("ann", "a", public("g2", "t"), settings=both)
    bob = await world.hear("bob", "b", public("g2", "t"), settings=both)
    assert ann.session != bob.session


async def test_a_thread_that_segue_opened_is_shared_though_threads_are_apart(world: World) -> None:
    apart = Settings(Rules(threads=Sharing.APART))
    person = await world.person("ann")
    await world.store.lane(public("g", "ours", opened=True), person)
    ann = await world.hear("ann", "a", public("g", "ours"), settings=apart)
    bob = await world.hear("bob", "b", public("g", "ours"), settings=apart)
    assert ann.session == bob.session


async def test_aliases_that_come_with_a_message_bring_persons_and_chats_together(world: World) -> None:
    one = await world.hear("uuid", "from one id", private("uuid"))
    two = await world.hear("phone", "from the other", private("phone"))
    assert one.met.person != two.met.person
    both = await world.hear("uuid", "from both", private("uuid"), aliases=("phone",), chat_aliases=("phone",))
    assert both.met.person.id == one.met.person.id
    assert (both.lane, both.session) == (one.lane, two.session)  # the lane known first, the session last used
    again = await world.hear("phone", "again", private("phone"))
    assert (again.session, again.lane, again.met.person.id) == (two.session, one.lane, one.met.person.id)
    assert [s.id for s in await world.store.sessions_here(one.lane)] == [one.session, two.session]


async def test_a_place_is_remembered_as_it_was_last_described(world: World) -> None:
    await world.hear("ann", "hello", Place(Address("telegram", "bot", chat="g"), Kind.GROUP, "Old", "topic"))
    await world.hear("ann", "hello", Place(Address("telegram", "bot", chat="g"), Kind.CHANNEL, "New"))
    assert await world.raw("select kind, name, topic from addresses") == [("channel", "New", "")]


IDLE = Settings(resets=Policies(Policy(When.IDLE, idle_minutes=10)))


async def test_an_idle_session_is_renewed_by_the_next_message(world: World) -> None:
    first = await world.hear("ann", "one", me="r", settings=IDLE)
    await answered(world, first, "hi")
    world.clock.passes(599)
    second = await world.hear("ann", "two", me="r", settings=IDLE)
    assert second.reset is Due.IDLE
    assert second.session != first.session
    now, before = await world.store.history(first.lane)
    assert (now.why, before.ended_why) == (Why.IDLE, Why.IDLE)
    await answered(world, second, "hi")
    world.clock.passes(590)
    third = await world.hear("ann", "three", settings=IDLE)
    assert (third.session, third.reset) == (second.session, None)
    # The old one stays resumable.
    await world.resume(first.lane, first.session, first.met.person)


async def test_no_reset_while_a_turn_waits_a_child_works_or_a_handoff_runs(world: World) -> None:
    first = await world.hear("ann", "one", me="r", settings=IDLE)
    ann = first.met.person
    world.clock.passes(86400)
    waiting = await world.hear("ann", "two", settings=IDLE)
    assert waiting.session == first.session
    assert first.run is not None
    done = await world.store.driver.write(turns.finish, first.run.held, answer(first.run, "hi"), world.clock())
    assert done.next is not None
    await world.store.driver.write(turns.finish, done.next.held, answer(done.next, "hi"), world.clock())

    child = world.store.new_session_id()
    await world.store.move(Spawn(first.session, child, "search"), ann)
    thread = await world.thread(ann)
    await world.store.move(Spawn(first.session, world.store.new_session_id(), "other", lane=thread), ann)
    at_work = await world.hear("ann", "to the child", public("g", "t"), me="r")
    world.clock.passes(86400)
    third = await world.hear("ann", "three", me="r", settings=IDLE)
    assert third.session == first.session
    await answered(world, third, "hi")
    await answered(world, at_work, "done")

    world.clock.passes(86400)
    await hands_off(world, first.session, first.lane)
    fourth = await world.hear("ann", "four", me="r", settings=IDLE)
    assert fourth.session == first.session
    await answered(world, fourth, "hi")
    await settles(world)
    world.clock.passes(86400)
    assert (await world.hear("ann", "five", settings=IDLE)).reset is Due.IDLE


async def test_a_limit_on_live_sessions_turns_no_message_away(world: World) -> None:
    limited = Settings(resets=IDLE.resets, limits=Limits(live_per_lane=1))
    sessions = set()
    for n in range(3):
        queued = await world.hear("ann", str(n), me="r", settings=limited)
        await answered(world, queued, "hi")
        sessions.add(queued.session)
        world.clock.passes(86400)
    assert len(sessions) == 3


async def begun(world: World) -> Queued:
    """A private chat in which two exchanges took place; the agent's first message is m-1, its second m-2."""
    queued = await world.hear("ann", "q1", private("dm"), me="r")
    await answered(world, queued, "a1")
    [out] = await world.store.driver.write(deliveries.outgoing, "r", "telegram", "bot", 1)
    await world.store.driver.write(deliveries.sent, out, "m-1", world.clock())
    second = await world.hear("ann", "q2", private("dm"), me="r")
    await answered(world, second, "a2")
    return queued


async def test_a_thread_in_a_private_chat_forks_it_where_it_stands(world: World) -> None:
    queued = await begun(world)
    entries = await world.count("entries")
    thread = await world.hear("ann", "aside", private("dm", "topic"))
    assert thread.session != queued.session
    assert await world.said(thread.session) == ["a1", "a2"]
    assert await world.count("entries") == entries
    assert (await world.store.session(thread.session, queued.met.person)).parent == queued.session
    assert (await world.store.history(thread.lane))[0].why is Why.FORK
    assert (await world.hear("ann", "more", private("dm", "topic"))).session == thread.session


async def test_a_thread_forks_at_the_entry_that_its_root_shows(world: World) -> None:
    await begun(world)
    by_thread = await world.hear("ann", "aside", private("dm", "m-1"))
    assert await world.said(by_thread.session) == ["a1"]
    by_quote = await world.hear("ann", "aside", private("dm", "other"), quotes="m-1")
    assert await world.said(by_quote.session) == ["a1"]
    unknown = await world.hear("ann", "aside", private("dm", "third"), quotes="m-404")
    assert await world.said(unknown.session) == ["a1", "a2"]


async def test_a_root_of_an_earlier_session_forks_that_one(world: World) -> None:
    queued = await begun(world)
    await world.renew(queued.lane, queued.met.person, "something else")
    thread = await world.hear("ann", "aside", private("dm", "m-1"))
    assert await world.said(thread.session) == ["a1"]
    assert (await world.store.session(thread.session, queued.met.person)).parent == queued.session
    # Also when the private chat speaks to nobody any more: what was said in it is still to be seen there.
    await world.store.move(Release(queued.lane), queued.met.person)
    again = await world.hear("ann", "aside", private("dm", "other"), quotes="m-1")
    assert await world.said(again.session) == ["a1"]
    unknown = await world.hear("ann", "aside", private("dm", "third"))
    assert await world.said(unknown.session) == []


async def test_a_root_is_found_under_another_id_of_its_chat(world: World) -> None:
    queued = await begun(world)
    await world.store.lane(private("known first"), queued.met.person)
    await world.raw("update addresses set since = 0 where key like '%known first%'")
    thread = await world.hear("ann", "aside", private("dm", "m-1"), chat_aliases=("known first",))
    assert thread.lane.address.chat == "known first"
    assert await world.said(thread.session) == ["a1"]


async def test_threads_begin_fresh_if_set_so_or_if_there_is_nothing_to_fork(world: World) -> None:
    fresh = await world.hear("bob", "aside", private("empty", "topic"))
    assert (await world.store.session(fresh.session, fresh.met.person)).parent is None
    await begun(world)
    of_account = AccountSettings(public=True, dm_threads=DmThreads.FRESH)
    account = (fresh.lane.address.platform, fresh.lane.address.account)
    everywhere, there = Settings(dm_threads=DmThreads.FRESH), GatewaySettings(accounts={account: of_account})
    fresh = await world.hear("ann", "aside", private("dm", "x"), settings=everywhere)
    assert await world.said(fresh.session) == []
    fresh = await world.hear("ann", "aside", private("dm", "y"), settings=there)
    assert await world.said(fresh.session) == []


async def test_a_thread_begins_fresh_after_it_was_let_go(world: World) -> None:
    await begun(world)
    thread = await world.hear("ann", "aside", private("dm", "topic"))
    await world.store.move(Release(thread.lane), thread.met.person)
    again = await world.hear("ann", "again", private("dm", "topic"))
    assert await world.said(again.session) == []
    assert (await world.store.history(thread.lane))[0].why is Why.FIRST


async def test_a_thread_in_a_chat_that_speaks_to_somebody_elses_session_begins_fresh(world: World) -> None:
    await begun(world)
    thread = await world.hear("stranger", "aside", private("dm", "topic"))
    assert await world.said(thread.session) == []
    assert (await world.store.session(thread.session, thread.met.person)).parent is None


async def test_of_two_turns_of_one_message_the_newer_is_edited(world: World) -> None:
    first = await world.hear("ann", "teh", message="typo")
    second = await world.hear("ann", "running")
    await world.raw("update turns set message = 'typo' where session = $1 and seq = $2", second.session, second.turn)
    assert await world.accept(world.arrival("ann", "the", edits="typo")) == Handled.EDITED
    waiting = await world.store.driver.read(turns.waiting, first.session, 9)
    assert [turn.parts for turn in waiting] == [(Text("teh"),), (Text("the"),)]


async def test_an_edit_replaces_what_still_waits(world: World) -> None:
    await world.hear("ann", "running", me="r")
    await world.hear("ann", "teh", message="typo")
    edited = await world.accept(world.arrival("ann", "the", edits="typo"))
    assert edited == Handled.EDITED
    queued = await world.hear("ann", "next")
    assert [t.parts for t in await world.store.driver.read(turns.waiting, queued.session, 9)] == [
        (Text("running"),),
        (Text("the"),),
        (Text("next"),),
    ]


async def test_a_deletion_by_its_author_withdraws_what_still_waits(world: World) -> None:
    running = await world.hear("ann", "running", me="r")
    await world.hear("ann", "secret", message="slip")
    ben = await world.accept(world.arrival("ben", (), private("ann"), deletes="slip"))
    assert ben == Handled.NOTHING_SAID
    assert await world.accept(world.arrival("ann", (), deletes="slip")) == Handled.WITHDRAWN
    assert await world.accept(world.arrival("ann", (), deletes="slip")) == Handled.NOTHING_SAID
    queued = await world.hear("ann", "next")
    waiting = await world.store.driver.read(turns.waiting, queued.session, 9)
    assert [turn.parts for turn in waiting] == [(Text("running"),), (Text("next"),)]
    assert running.run is not None
    done = await world.store.driver.write(turns.finish, running.run.held, answer(running.run, "yes"), world.clock())
    assert done.next is not None
    assert [turn.parts for turn in done.next.turns] == [(Text("next"),)]


async def test_a_deletion_of_which_nobody_knows_whose_it_is_counts_as_its_authors(world: World) -> None:
    await world.hear("ann", "running", me="r")
    await world.hear("ann", "secret", message="slip")
    gone = world.arrival("", (), private("ann"), deletes="slip")
    elsewhere = replace(gone, place=private("ben"))
    assert await world.accept(elsewhere) == Handled.NOTHING_SAID
    assert await world.accept(replace(gone, message="another")) == Handled.WITHDRAWN
    assert await world.accept(replace(gone, message="again")) == Handled.NOTHING_SAID
    nobody = Identity("telegram", "bot", "")
    assert await world.store.driver.read(persons.who, nobody) is None, "a person was made of nobody"


async def test_a_deletion_of_what_runs_takes_no_entry_and_no_turn(world: World) -> None:
    queued = await world.hear("ann", "running", message="m-run", me="r")
    assert await world.accept(world.arrival("ann", (), deletes="m-run")) == Handled.HIDDEN
    await answered(world, queued, "yes")
    assert await world.accept(world.arrival("ann", (), deletes="m-run")) == Handled.NOTHING_SAID
    assert words(await world.store.path(queued.session)) == ["yes"]


async def test_a_later_edit_is_an_entry_of_its_own_without_a_turn(world: World) -> None:
    queued = await world.hear("ann", "teh", message="typo", me="r")
    await answered(world, queued, "hi")
    edited = await world.accept(world.arrival("ann", "the", edits="typo"))
    assert edited == Handled.EDITED_LATER
    path = await world.store.path(queued.session)
    assert words(path) == ["hi", "the"]
    assert (path[-1].author.role, path[-1].author.person) == (Role.PERSON, queued.met.person.id)
    assert await world.store.driver.read(turns.waiting, queued.session, 9) == []


async def test_an_edit_of_what_runs_waits_for_the_answer(world: World) -> None:
    queued = await world.hear("ann", "teh", message="typo", me="r")
    assert await world.accept(world.arrival("ann", "the", edits="typo")) == Handled.EDITED_LATER
    assert queued.run is not None
    assert await world.said(queued.session) == []
    done = await world.store.driver.write(turns.finish, queued.run.held, answer(queued.run, "hi"), world.clock())
    assert done.next is not None
    [edit] = done.next.turns
    assert (edit.kind, edit.lane, edit.message) == (TurnKind.EDIT, None, "")
    assert (edit.person, edit.identity, edit.route) == (queued.met.person.id, "telegram/bot/ann", "telegram/bot//ann/")


async def test_an_edit_of_what_runs_in_a_session_that_was_closed_is_not_lost(world: World) -> None:
    queued = await world.hear("ann", "teh", message="typo", me="r")
    await world.raw("update sessions set closed = 1")
    assert await world.accept(world.arrival("ann", "the", edits="typo")) == Handled.EDITED_LATER
    assert await world.said(queued.session) == ["the"]


async def test_an_edit_finds_what_its_person_said_before_two_ids_were_one(world: World) -> None:
    await world.hear("uuid", "hello", private("uuid"))
    queued = await world.hear("phone", "running", private("phone"), me="r")
    await world.hear("phone", "teh", private("phone"), message="typo")
    edit = world.arrival("uuid", "the", private("uuid"), edits="typo", aliases=("phone",), chat_aliases=("phone",))
    assert await world.accept(edit) == Handled.EDITED
    said = [t.parts for t in await world.store.driver.read(turns.waiting, queued.session, 9)]
    assert said == [(Text("running"),), (Text("the"),)]


async def test_nobody_edits_what_somebody_else_said(world: World) -> None:
    await world.hear("ann", "mine", public("g", "t"), message="x")
    await world.hear("ann", "waits", public("g", "t"), message="y")
    queued = await world.hear("bob", "forged", public("g", "t"), edits="y")
    said = [t.parts for t in await world.store.driver.read(turns.waiting, queued.session, 9)]
    assert said == [(Text("mine"),), (Text("waits"),), (Text("forged"),)]


async def test_a_message_to_a_session_that_moved_goes_where_its_lane_speaks_now(world: World) -> None:
    first = await world.hear("ann", "one")
    await world.store.move(Renew(first.lane, world.store.new_session_id()), first.met.person)
    second = await world.hear("ann", "two")
    assert second.session != first.session
    assert [t.seq for t in await world.store.driver.read(turns.waiting, first.session, 9)] == [1]


async def test_what_cannot_be_understood_is_kept(world: World) -> None:
    await world.store.driver.write(letters.bury, "telegram/bot", "raw", "no chat", world.clock())
    [letter] = await world.store.driver.read(letters.newest, 10)
    assert (letter.account, letter.raw, letter.why, letter.at) == ("telegram/bot", "raw", "no chat", world.clock())


async def test_what_the_agent_said_before_is_what_a_turn_starts_from(world: World) -> None:
    ann = await world.person("ann")
    session = await world.renew(await world.dm(ann, "ann"), ann, "hello")
    tip = await world.store.say(session, AGENT, "hi")
    queued = await world.hear("ann", "go on", me="r")
    assert queued.run is not None
    assert queued.run.tip is not None
    [*_, said, told] = await world.store.path(queued.run.tip)
    assert said.tip == tip
    assert told.parts == (Aside('"ann" speaks to you for the first time ever.'),)


async def asides(world: World) -> list[str]:
    rows = await world.raw("select parts from entries where role = 'gateway' order by seq")
    return [part.text for (parts,) in rows for part in decode_parts(parts) if isinstance(part, Aside)]


async def test_somebody_is_new_once_also_when_they_speak_in_two_places_at_once(world: World) -> None:
    other = await world.beside()
    await world.person("ann")
    await asyncio.gather(world.hear("ann", "here", private("one")), other.hear("ann", "there", private("two")))
    await world.hear("ann", "again", private("three"))
    assert await asides(world) == ['"ann" speaks to you for the first time ever.']


async def test_who_turns_out_to_be_known_is_not_new(world: World) -> None:
    older, ann = await world.person("older"), await world.person("ann")
    await world.hear("ann", "hello")
    await world.store.link(older, ann)
    await world.hear("older", "hello")
    assert await asides(world) == ['"ann" speaks to you for the first time ever.']


async def test_only_who_asks_something_is_heard(world: World) -> None:
    await world.person("ann")
    assert await world.count("heard") == 0
    await world.hear("ann", "hello")
    assert await world.count("heard") == 1


async def test_who_has_only_typed_a_command_is_still_to_be_heard(world: World) -> None:
    queued = await world.hear("ann", "hello", public("g", "t"))

    def run(_: Request) -> Transaction[Answer]:
        yield from ()
        return Answer(ask=(Text(""),), kind=TurnKind.COMPRESS, session=queued.session)

    typed = world.arrival("bob", "/compress", public("g", "t"))
    await world.store.driver.write(world.door(run=run).accept, typed, world.fresh(typed), None)
    assert await asides(world) == ['"ann" speaks to you for the first time ever.']
    await world.hear("bob", "hello", public("g", "t"))
    assert await asides(world) == [f'"{name}" speaks to you for the first time ever.' for name in ("ann", "bob")]


async def test_people_are_told_of_a_reset_if_the_host_says_so_and_anything_was_said(world: World) -> None:
    def settings(notice: bool) -> Settings:  # noqa: FBT001 -- the host's own setting
        return Settings(resets=Policies(Policy(When.DAILY, hour=4, notice=notice)))

    async def told() -> list[tuple[str, str]]:
        rows = await world.raw("select address, text from deliveries where key like 'reset/%' order by id")
        return [(Address.parse(address).chat, text) for address, text in rows]

    ann = await world.person("ann")
    # Nothing at all was said in the first, and nothing by people or the agent in the second.
    await world.renew(await world.dm(ann, "a"), ann)
    for chat in ("a", "a", "b"):
        world.clock.passes(86400)
        queued = await world.hear("ann", "hello", private(chat), me="r", settings=settings(notice=True))
        assert (queued.reset is Due.DAILY) == (chat == "a")
        await answered(world, queued)
    assert await told() == []
    for chat, notice in (("a", False), ("b", True)):
        session = await world.store.bound(await world.dm(ann, chat))
        assert session is not None
        await world.store.say(session.id, AGENT, "hi")
        world.clock.passes(86400)
        assert (await world.hear("ann", "hello", private(chat), settings=settings(notice))).reset is Due.DAILY
    assert await told() == [
        ("b", "This is a new session: a new day began. The old one is kept: /undo goes back to it.")
    ]


async def test_an_agent_is_told_once_why_it_starts_over(world: World) -> None:
    settings = Settings(resets=Policies(Policy(When.IDLE, 60)))
    first = await world.hear("ann", "hello", me="r", settings=settings)
    await answered(world, first, "hi")
    world.clock.passes(3601)
    again = await world.hear("ann", "hello?", me="r", settings=settings)
    [told] = await world.store.path(again.session)
    assert told.parts == (Aside(RESET[Due.IDLE]),)
    await world.hear("ann", "and?", settings=settings)
    assert len(await asides(world)) == 2


@pytest.mark.parametrize("unseen", ["\u3164", "\u2800 \u115f", "\U000e0041\ufe0f", "\u200d\n"])
async def test_a_message_that_nobody_can_see_says_nothing(world: World, unseen: str) -> None:
    arrival = world.arrival("ann", unseen)
    taken = await world.store.driver.write(world.door().accept, arrival, world.fresh(arrival), None)
    assert taken == Handled.NOTHING_SAID


async def test_joiners_come_through_in_words(world: World) -> None:
    said = "می\u200cکنم 👩\u200d👧 ❤\ufe0f"
    queued = await world.hear("ann", said)
    assert [turn.parts for turn in await world.store.driver.read(turns.waiting, queued.session, 9)] == [(Text(said),)]
