"""Races: whatever comes between two statements of a transaction, it is as if one came after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import hypothesis
import pytest
from msgspec.structs import replace

from segue.changes.accept import Fresh, FrontDoor
from segue.changes.exchange import children, deliveries, handoffs, questions, replicas, turns
from segue.changes.exchange.children import Asker
from segue.changes.exchange.questions import Asking, Posed
from segue.changes.forgetting import erasure
from segue.changes.forgetting.erasure import Cause, Reason
from segue.changes.people import persons
from segue.changes.places import merges
from segue.changes.places.ways import Way
from segue.changes.sessions import moves, search, titles, transcripts
from segue.core.handoffs import Driven, Patience
from segue.core.lanes import Address, Identity, Lane, Person, Rules
from segue.core.messages import Opening, Outgoing, Speaker, Text
from segue.core.moves import Fork, Handoff, Limits, Move, Release, Renew, Resume, Spawn
from segue.core.resets import Policies, Policy, When
from segue.core.settings import GatewaySettings, Settings
from segue.core.transcripts import AGENT, Draft, Tip
from segue.core.turns import Finish, Reply, Run
from segue.core.values import PersonId, SessionId
from tests.changes.interleaving import Interleaving, Make, as_if_one_after_the_other
from tests.changes.world import Engine, World, answer, private, public
from tests.postgres import Postgres

IDLE = Settings(resets=Policies(Policy(When.IDLE, idle_minutes=10)))
LATER = 1_700_100_000.0


@dataclass
class Scene:
    """Two people with sessions in a shared group, a thread and private chats, and short words for what they do."""

    world: World
    ann: Person
    bob: Person
    lane: Lane
    mine: SessionId
    """What the private chat of ann speaks to."""
    earlier: SessionId
    """What it spoke to before."""
    shares: dict[PersonId, SessionId]

    def accept(self, user: str, place: Any = None, settings: Settings | None = None, **more: Any) -> Make:
        name = f"{user} {place and place.address.key}"
        arrival = self.world.arrival(user, "hello", place, **{"message": f"m {name}", **more})
        merges = tuple(f"merge {name} {n}" for n in range(4))
        fresh = Fresh(PersonId(f"person {name}"), SessionId(f"session {name}"), f"move {name}", merges, "trace", LATER)
        door = FrontDoor(GatewaySettings(routing=settings or Settings()))
        return lambda: door.accept(arrival, fresh, None)

    def move(self, move: Move, by: Person | None = None) -> Make:
        name = f"move {move!r}"
        return lambda: moves.make(move, (by or self.ann).id, Limits(), name, LATER)

    def close(self, session: SessionId, by: Person | None = None) -> Make:
        return lambda: moves.close(session, (by or self.ann).id, f"close {session}", LATER)

    def undo(self, move: str, name: str = "undo") -> Make:
        return lambda: moves.undo(move, self.ann.id, Limits(), name, LATER)

    def link(self, one: Person, two: Person) -> Make:
        name = f"merge {one.name} {two.name}"
        return lambda: persons.link(one.id, two.id, "link", one.id, name, LATER)

    def title(self, session: SessionId, title: str, by: Person | None = None) -> Make:
        return lambda: titles.entitle(session, title, (by or self.ann).id, LATER)

    def say(self, session: SessionId, text: str) -> Make:
        return lambda: transcripts.append(session, [Draft(AGENT, (Text(text),))], LATER)

    def settle(self, chat: str, *aliases: str) -> Make:
        place = public(chat)
        return lambda: merges.settle(place, aliases, self.ann.id, f"settle {chat}", LATER)


async def scene(world: World) -> Scene:
    ann, bob = await world.person("ann"), await world.person("bob")
    lane = await world.dm(ann, "ann")
    earlier, mine = await world.renew(lane, ann, "one"), await world.renew(lane, ann, "two")
    await world.store.set_title(earlier, "plan", ann)
    shares = {person.id: await world.renew(await world.group(person), person, "share") for person in (ann, bob)}
    await world.store.set_title(shares[bob.id], "plan", bob)
    return Scene(world, ann, bob, lane, mine, earlier, shares)


Pair = Callable[[Scene], Awaitable[tuple[Make, Make]]]
PAIRS: dict[str, Pair] = {}


def pair(make: Pair) -> Pair:
    PAIRS[make.__name__] = make
    return make


@pair
async def two_first_messages_of_a_lane(s: Scene) -> tuple[Make, Make]:
    return s.accept("ann", private("new"), message="1"), s.accept("ann", private("new"), message="2")


@pair
async def two_first_messages_of_a_person(s: Scene) -> tuple[Make, Make]:
    return s.accept("carl", private("carl")), s.accept("carl", private("other"))


@pair
async def the_same_message_twice(s: Scene) -> tuple[Make, Make]:
    return s.accept("ann", message="1", seen_as=("x", "y")), s.accept("ann", message="1", seen_as=("y", "x", "z"))


@pair
async def two_messages_when_a_reset_is_due(s: Scene) -> tuple[Make, Make]:
    return s.accept("ann", None, IDLE, message="1"), s.accept("ann", None, IDLE, message="2")


@pair
async def a_message_and_a_renew(s: Scene) -> tuple[Make, Make]:
    return s.accept("ann"), s.move(Renew(s.lane, SessionId("new")))


@pair
async def a_message_and_a_resume(s: Scene) -> tuple[Make, Make]:
    return s.accept("ann"), s.move(Resume(s.lane, s.earlier))


@pair
async def a_message_and_a_release(s: Scene) -> tuple[Make, Make]:
    return s.accept("ann"), s.move(Release(s.lane))


@pair
async def a_message_and_a_close(s: Scene) -> tuple[Make, Make]:
    return s.accept("ann"), s.close(s.mine)


@pair
async def a_message_and_a_fork(s: Scene) -> tuple[Make, Make]:
    return s.accept("ann"), s.move(Fork(s.lane, s.mine, SessionId("fork"), title="plan"))


@pair
async def a_message_and_a_handoff_of_its_session(s: Scene) -> tuple[Make, Make]:
    return s.accept("ann"), s.move(Handoff(s.lane, await s.world.dm(s.ann, "there")))


@pair
async def a_message_and_an_undo(s: Scene) -> tuple[Make, Make]:
    last = await s.world.store.last_move(s.lane)
    assert last is not None
    return s.accept("ann"), s.undo(last.id)


@pair
async def a_first_message_and_a_resume(s: Scene) -> tuple[Make, Make]:
    free = await s.world.dm(s.ann, "free")
    return s.accept("ann", private("free")), s.move(Resume(free, s.mine))


@pair
async def a_reset_and_a_renew(s: Scene) -> tuple[Make, Make]:
    return s.accept("ann", None, IDLE), s.move(Renew(s.lane, SessionId("new")))


@pair
async def a_thread_in_a_private_chat_and_a_renew_there(s: Scene) -> tuple[Make, Make]:
    return s.accept("ann", private("ann", "thread")), s.move(Renew(s.lane, SessionId("new")))


@pair
async def two_renews(s: Scene) -> tuple[Make, Make]:
    return s.move(Renew(s.lane, SessionId("one"))), s.move(Renew(s.lane, SessionId("two")))


@pair
async def two_handoffs_to_each_other(s: Scene) -> tuple[Make, Make]:
    other = await s.world.dm(s.ann, "other")
    await s.world.renew(other, s.ann, "other")
    return s.move(Handoff(s.lane, other)), s.move(Handoff(other, s.lane))


@pair
async def a_close_and_a_resume(s: Scene) -> tuple[Make, Make]:
    return s.close(s.mine), s.move(Resume(await s.world.dm(s.ann, "there"), s.mine))


@pair
async def a_close_and_a_resume_of_what_nobody_speaks_to(s: Scene) -> tuple[Make, Make]:
    return s.close(s.earlier), s.move(Resume(s.lane, s.earlier))


@pair
async def two_closes(s: Scene) -> tuple[Make, Make]:
    return s.close(s.mine), s.close(s.mine)


@pair
async def two_undos(s: Scene) -> tuple[Make, Make]:
    last = await s.world.store.last_move(s.lane)
    assert last is not None
    return s.undo(last.id, "one"), s.undo(last.id, "two")


@pair
async def an_undo_of_a_close_and_a_renew(s: Scene) -> tuple[Make, Make]:
    await s.world.store.close_session(s.mine, s.ann)
    last = await s.world.store.last_move(s.lane)
    assert last is not None
    return s.undo(last.id), s.move(Renew(s.lane, SessionId("new")))


@pair
async def two_children_of_one_label(s: Scene) -> tuple[Make, Make]:
    return s.move(Spawn(s.mine, SessionId("one"), "label")), s.move(Spawn(s.mine, SessionId("two"), "label"))


@pair
async def a_child_of_a_label_and_the_reopening_of_another(s: Scene) -> tuple[Make, Make]:
    child = SessionId("child")
    await s.world.store.move(Spawn(s.mine, child, "label"), s.ann)
    await s.world.store.close_session(child, s.ann)
    reopen = lambda: moves.reopen(child, s.ann.id, Limits())  # noqa: E731
    return s.move(Spawn(s.mine, SessionId("two"), "label")), reopen


@pair
async def two_titles_alike(s: Scene) -> tuple[Make, Make]:
    return s.title(s.mine, "plan"), s.title(s.shares[s.ann.id], "plan")


@pair
async def two_titles_of_one_session(s: Scene) -> tuple[Make, Make]:
    return s.title(s.mine, "one"), s.title(s.mine, "two")


@pair
async def a_title_and_a_fork_of_that_title(s: Scene) -> tuple[Make, Make]:
    return s.title(s.mine, "plan"), s.move(Fork(s.lane, s.mine, SessionId("fork"), title="plan"))


@pair
async def a_merge_and_a_message_of_who_goes(s: Scene) -> tuple[Make, Make]:
    return s.link(s.ann, s.bob), s.accept("bob", public())


@pair
async def a_merge_and_a_message_of_who_stays(s: Scene) -> tuple[Make, Make]:
    return s.link(s.ann, s.bob), s.accept("ann", public())


@pair
async def a_merge_and_a_first_message_of_who_goes(s: Scene) -> tuple[Make, Make]:
    return s.link(s.ann, s.bob), s.accept("bob", public("new group"))


@pair
async def a_merge_and_a_reset_of_who_goes(s: Scene) -> tuple[Make, Make]:
    return s.link(s.ann, s.bob), s.accept("bob", public(), IDLE)


@pair
async def a_merge_and_a_move_of_who_goes(s: Scene) -> tuple[Make, Make]:
    return s.link(s.ann, s.bob), s.move(Renew(await s.world.group(s.bob), SessionId("new")), s.bob)


@pair
async def a_merge_and_a_title_of_who_goes(s: Scene) -> tuple[Make, Make]:
    return s.link(s.ann, s.bob), s.title(s.shares[s.bob.id], "other", s.bob)


@pair
async def a_merge_and_a_title_of_who_stays(s: Scene) -> tuple[Make, Make]:
    return s.link(s.ann, s.bob), s.title(s.mine, "plan")


@pair
async def a_merge_and_a_close_of_who_goes(s: Scene) -> tuple[Make, Make]:
    return s.link(s.ann, s.bob), s.close(s.shares[s.bob.id], s.bob)


@pair
async def a_merge_and_an_alias_of_who_goes(s: Scene) -> tuple[Make, Make]:
    speaker = Speaker(Identity("telegram", "bot", "bob"), "bob", ("bob's phone",))
    return s.link(s.ann, s.bob), lambda: persons.meet(speaker, PersonId("new"), ("m1", "m2"), LATER)


@pair
async def two_merges_in_a_row_at_once(s: Scene) -> tuple[Make, Make]:
    carl = await s.world.person("carl")
    await s.world.renew(await s.world.group(carl), carl, "carl's")
    return s.link(s.ann, s.bob), s.link(s.bob, carl)


@pair
async def the_same_merge_twice(s: Scene) -> tuple[Make, Make]:
    both = s.accept("ann", public(), message="1", aliases=("bob",))
    return both, s.accept("bob", public(), message="2", aliases=("ann",))


@pair
async def the_undoing_of_a_merge_and_a_message(s: Scene) -> tuple[Make, Make]:
    merge = await s.world.store.link(s.ann, s.bob)
    return lambda: persons.part(merge.id, s.ann.id, "part", LATER), s.accept("bob", public())


@pair
async def the_undoing_of_a_merge_twice(s: Scene) -> tuple[Make, Make]:
    merge = await s.world.store.link(s.ann, s.bob)
    part = lambda: persons.part(merge.id, s.ann.id, "part", LATER)  # noqa: E731
    return part, part


@pair
async def the_undoing_of_a_merge_and_another_merge(s: Scene) -> tuple[Make, Make]:
    carl = await s.world.person("carl")
    merge = await s.world.store.link(s.bob, carl)
    return lambda: persons.part(merge.id, s.bob.id, "part", LATER), s.link(s.ann, s.bob)


@pair
async def two_ids_of_a_chat_in_either_order(s: Scene) -> tuple[Make, Make]:
    return s.settle("x", "y"), s.settle("y", "x")


@pair
async def three_ids_of_a_chat_in_two_pairs(s: Scene) -> tuple[Make, Make]:
    return s.settle("x", "y"), s.settle("y", "z")


@pair
async def another_id_of_a_chat_and_its_first_message(s: Scene) -> tuple[Make, Make]:
    return s.settle("g", "second"), s.accept("bob", public("second"))


@pair
async def another_id_of_a_chat_and_a_message_there(s: Scene) -> tuple[Make, Make]:
    s.world.clock.passes(10)
    await s.world.hear("bob", "known there", public("second"))
    return s.settle("g", "second"), s.accept("bob", public("second"))


async def two_chats(s: Scene) -> Lane:
    """A second group that both speak in; bob's share of it."""
    for person in (s.ann, s.bob):
        await s.world.renew(await s.world.group(person, "second"), person, "share")
    return await s.world.group(s.bob, "second")


@pair
async def a_merge_of_chats_and_a_move_in_the_one_that_goes(s: Scene) -> tuple[Make, Make]:
    return s.settle("g", "second"), s.move(Renew(await two_chats(s), SessionId("new")), s.bob)


@pair
async def a_merge_of_chats_and_a_move_taken_back_in_the_one_that_goes(s: Scene) -> tuple[Make, Make]:
    lane = await two_chats(s)
    await s.world.renew(lane, s.bob)
    last = await s.world.store.last_move(lane)
    assert last is not None
    return s.settle("g", "second"), lambda: moves.undo(last.id, s.bob.id, Limits(), "undo", LATER)


@pair
async def a_merge_of_chats_and_a_merge_of_people_who_speak_there(s: Scene) -> tuple[Make, Make]:
    await two_chats(s)
    return s.settle("g", "second"), s.link(s.ann, s.bob)


@pair
async def a_merge_of_chats_and_the_parting_of_people_who_spoke_there(s: Scene) -> tuple[Make, Make]:
    await two_chats(s)
    merge = await s.world.store.link(s.ann, s.bob)
    return s.settle("g", "second"), lambda: persons.part(merge.id, s.bob.id, "part", LATER)


async def merged_chats(s: Scene) -> Make:
    """Two groups in which both speak were taken for one; the undoing of that."""
    await two_chats(s)
    await s.world.group(s.ann, "g")
    await s.world.store.driver.write(merges.settle, public("g"), ("second",), s.ann.id, "settled", s.world.clock())
    return lambda: merges.part("settled", s.ann.id, "parted", LATER)


@pair
async def the_parting_of_chats_and_a_message_in_the_one_that_went(s: Scene) -> tuple[Make, Make]:
    return await merged_chats(s), s.accept("bob", public("second"))


@pair
async def the_parting_of_chats_and_a_message_in_the_one_that_stayed(s: Scene) -> tuple[Make, Make]:
    return await merged_chats(s), s.accept("bob", public())


@pair
async def the_parting_of_chats_and_a_reset_there(s: Scene) -> tuple[Make, Make]:
    return await merged_chats(s), s.accept("bob", public("second"), IDLE)


@pair
async def the_parting_of_chats_and_both_ids_told_again(s: Scene) -> tuple[Make, Make]:
    return await merged_chats(s), s.accept("bob", public("second"), chat_aliases=("g",))


@pair
async def the_parting_of_chats_and_an_id_more(s: Scene) -> tuple[Make, Make]:
    return await merged_chats(s), s.settle("second", "third")


@pair
async def the_parting_of_chats_twice(s: Scene) -> tuple[Make, Make]:
    part = await merged_chats(s)
    return part, part


@pair
async def the_parting_of_chats_and_a_resume_of_what_was_the_others(s: Scene) -> tuple[Make, Make]:
    part = await merged_chats(s)
    theirs = (await s.world.store.sessions_here(await s.world.group(s.bob)))[-1].id
    await s.world.renew(await s.world.group(s.bob), s.bob, "since")
    return part, s.move(Resume(await s.world.group(s.bob), theirs), s.bob)


@pair
async def the_parting_of_chats_and_a_merge_of_people_who_speak_there(s: Scene) -> tuple[Make, Make]:
    return await merged_chats(s), s.link(s.ann, s.bob)


@pair
async def the_parting_of_chats_and_the_end_of_a_turn_there(s: Scene) -> tuple[Make, Make]:
    part = await merged_chats(s)
    queued = await s.world.hear("bob", "run this", public("second"), me="r")
    assert queued.run is not None
    run = queued.run
    return part, lambda: turns.finish(run.held, answer(run, "done"), LATER)


@pair
async def a_handoff_that_is_done_and_the_parting_of_its_chat(s: Scene) -> tuple[Make, Make]:
    part = await merged_chats(s)
    return await sent(s), part


@pair
async def a_handoff_that_ends_and_the_parting_of_its_chat(s: Scene) -> tuple[Make, Make]:
    part = await merged_chats(s)
    await answered(s)
    return cancels(s), part


@pair
async def words_of_two_at_once(s: Scene) -> tuple[Make, Make]:
    return s.say(s.mine, "one"), s.say(s.mine, "two")


@pair
async def words_and_an_undo(s: Scene) -> tuple[Make, Make]:
    return s.say(s.mine, "one"), lambda: transcripts.undo(s.mine, 1, s.ann.id, LATER)


@pair
async def words_and_a_summary(s: Scene) -> tuple[Make, Make]:
    return s.say(s.mine, "one"), lambda: transcripts.compress(s.mine, "sum", Tip(s.mine, 1), s.ann.id, LATER)


@pair
async def words_and_a_fork(s: Scene) -> tuple[Make, Make]:
    return s.say(s.mine, "one"), s.move(Fork(s.lane, s.mine, SessionId("fork")))


async def running(s: Scene, me: str = "r") -> Run:
    queued = await s.world.hear("ann", "run this", me=me)
    assert queued.run is not None
    return queued.run


@pair
async def the_end_of_a_turn_and_a_message(s: Scene) -> tuple[Make, Make]:
    run = await running(s)
    return lambda: turns.finish(run.held, answer(run, "done"), LATER), s.accept("ann")


@pair
async def the_end_of_a_turn_and_a_renew(s: Scene) -> tuple[Make, Make]:
    run = await running(s)
    return lambda: turns.finish(run.held, answer(run, "done"), LATER), s.move(Renew(s.lane, SessionId("new")))


@pair
async def the_end_of_a_turn_twice(s: Scene) -> tuple[Make, Make]:
    run = await running(s)
    finish = lambda: turns.finish(run.held, answer(run, "done"), LATER)  # noqa: E731
    return finish, finish


@pair
async def the_end_of_a_turn_and_of_its_replica(s: Scene) -> tuple[Make, Make]:
    await s.world.store.driver.write(replicas.join, "alive", 60.0)
    run = await running(s, "dead")
    beat = lambda: replicas.beat("alive", 60.0)  # noqa: E731
    return lambda: turns.finish(run.held, answer(run, "done"), LATER), beat


@pair
async def the_end_of_a_turn_and_a_close(s: Scene) -> tuple[Make, Make]:
    run = await running(s)
    return lambda: turns.finish(run.held, answer(run, "done"), LATER), s.close(run.held.session)


@pair
async def the_end_of_a_turn_and_its_stop(s: Scene) -> tuple[Make, Make]:
    run = await running(s)
    stop = lambda: turns.stop(run.held.session, s.ann.id)  # noqa: E731
    return lambda: turns.finish(run.held, answer(run, "done"), LATER), stop


@pair
async def the_end_of_a_turn_and_an_edit_of_what_waits(s: Scene) -> tuple[Make, Make]:
    run = await running(s)
    await s.world.hear("ann", "waits", message="typo")
    return lambda: turns.finish(run.held, answer(run, "done"), LATER), s.accept("ann", edits="typo")


@pair
async def the_end_of_a_turn_and_a_message_with_another_id_of_its_chat(s: Scene) -> tuple[Make, Make]:
    run = await running(s)
    return lambda: turns.finish(run.held, answer(run, "done"), LATER), s.accept("ann", chat_aliases=("other",))


async def answers_both_here_and_there(s: Scene) -> Make:
    """The end of a turn of bob's with a message for ann's private chat and one for the second group."""
    run = (await s.world.hear("bob", "run this", private("bob"), me="r")).run
    assert run is not None
    replies = tuple(Reply(address, "done", 0) for address in (s.lane.address, public("second").address))
    return lambda: turns.finish(run.held, Finish((run.name,), (), replies), LATER)


@pair
async def the_end_of_a_turn_in_two_places_and_a_handoff_between_them_that_is_done(s: Scene) -> tuple[Make, Make]:
    done = await sent(s)
    return await answers_both_here_and_there(s), done


@pair
async def the_end_of_a_turn_in_two_places_and_a_question_in_both(s: Scene) -> tuple[Make, Make]:
    ways = Way(public("second").address, await two_chats(s)), Way(s.lane.address, s.lane)
    asked = Posed("q", Asking("key", "well?"))
    return await answers_both_here_and_there(s), lambda: questions.ask_for_program(s.bob.id, asked, ways, 9, LATER)


@pair
async def two_children_at_the_edge_of_a_budget(s: Scene) -> tuple[Make, Make]:
    def spawns(run: Run, name: str) -> Make:
        by = Asker(run.held, run.name, s.ann.id, "ann", "one cause", "trace")
        move = Spawn(by.session, SessionId(name), name)
        return lambda: children.spawn(
            by, name, move, "task", None, Settings(limits=Limits(budget=1)), (f"{name} 1", f"{name} 2"), LATER
        )

    there = (await s.world.hear("ann", "go", public(), me="r")).run
    assert there is not None
    return spawns(await running(s), "one"), spawns(there, "two")


async def driven(s: Scene) -> Driven:
    """A handoff of ann's private conversation to a second group, where bob speaks too, before anything is opened."""
    write, at = s.world.store.driver.write, s.world.clock()
    await two_chats(s)
    await write(replicas.join, "me", 1e6)
    await write(handoffs.request, "h", s.mine, s.lane, public("second"), s.ann.id, Patience(), at)
    claimed = await write(handoffs.claim, "h", "me", Patience(), at)
    assert claimed is not None
    return claimed


HELLO = Opening("here", "there")
SEQUEL = handoffs.OpeningSequel(Patience())


def opens(claimed: Driven) -> Make:
    arguments = (claimed, public("second"), Rules(), Limits(), Patience(), HELLO, LATER)
    return lambda: handoffs.open_in(*arguments)


async def answered(s: Scene) -> Outgoing:
    """The same when its opening is answered, and the message taken to be sent."""
    write, at = s.world.store.driver.write, s.world.clock()
    await write(handoffs.open_in, await driven(s), public("second"), Rules(), Limits(), Patience(), HELLO, at)
    [run] = await write(turns.claim, "me", 10)
    await write(SEQUEL.finish, run.held, answer(run, "here"), at)
    taken = await write(deliveries.outgoing, "me", "telegram", "bot", 10)
    return next(held for held in taken if held.sequel)


async def sent(s: Scene) -> Make:
    held = await answered(s)
    return lambda: SEQUEL.sent(held, "m1", LATER)


def cancels(s: Scene) -> Make:
    return lambda: handoffs.cancel("h", s.ann.id, LATER)


@pair
async def a_handoff_asked_for_and_a_message(s: Scene) -> tuple[Make, Make]:
    arguments = ("h", s.mine, s.lane, private("there"), s.ann.id, Patience(), LATER)
    return lambda: handoffs.request(*arguments), s.accept("ann")


@pair
async def a_handoff_asked_for_and_a_merge_of_who_asks(s: Scene) -> tuple[Make, Make]:
    arguments = ("h", s.mine, s.lane, private("there"), s.ann.id, Patience(), LATER)
    return lambda: handoffs.request(*arguments), s.link(s.bob, s.ann)


@pair
async def a_handoff_that_opens_and_its_end(s: Scene) -> tuple[Make, Make]:
    return opens(await driven(s)), cancels(s)


@pair
async def a_handoff_that_opens_and_a_merge_of_the_chat_where(s: Scene) -> tuple[Make, Make]:
    return opens(await driven(s)), s.settle("g", "second")


@pair
async def a_handoff_that_opens_and_a_merge_of_who_asked(s: Scene) -> tuple[Make, Make]:
    return opens(await driven(s)), s.link(s.bob, s.ann)


@pair
async def a_handoff_that_is_done_and_its_end(s: Scene) -> tuple[Make, Make]:
    return await sent(s), cancels(s)


@pair
async def a_handoff_that_is_done_and_too_late(s: Scene) -> tuple[Make, Make]:
    return await sent(s), lambda: handoffs.expire("h", LATER)


@pair
async def a_handoff_that_is_done_and_a_message_where_it_was(s: Scene) -> tuple[Make, Make]:
    return await sent(s), s.accept("ann", message="1")


@pair
async def a_handoff_that_is_done_and_a_message_where_it_goes(s: Scene) -> tuple[Make, Make]:
    return await sent(s), s.accept("ann", public("second"), message="1")


@pair
async def a_handoff_that_is_done_and_a_renew_where_it_goes(s: Scene) -> tuple[Make, Make]:
    lane = await s.world.group(s.ann, "second")
    return await sent(s), s.move(Renew(lane, SessionId("new")))


@pair
async def a_handoff_that_is_done_and_a_merge_of_its_chat(s: Scene) -> tuple[Make, Make]:
    return await sent(s), s.settle("g", "second")


@pair
async def a_handoff_that_is_done_and_a_merge_of_its_person(s: Scene) -> tuple[Make, Make]:
    return await sent(s), s.link(s.bob, s.ann)


@pair
async def a_handoff_that_ends_and_a_merge_of_its_chat(s: Scene) -> tuple[Make, Make]:
    await answered(s)
    return cancels(s), s.settle("g", "second")


@pair
async def a_handoff_that_ends_and_a_merge_of_its_person(s: Scene) -> tuple[Make, Make]:
    await answered(s)
    return cancels(s), s.link(s.bob, s.ann)


@pair
async def another_reader_of_a_private_chat_and_its_new_name_with_a_reset(s: Scene) -> tuple[Make, Make]:
    renamed = replace(private("ann"), name="another name")
    return s.accept("bob", private("ann")), s.accept("ann", renamed, IDLE)


@pair
async def another_reader_of_a_private_chat_and_a_group_that_it_becomes(s: Scene) -> tuple[Make, Make]:
    await s.world.renew(await s.world.dm(s.ann, "ann", "thread"), s.ann, "thread")
    return s.accept("bob", private("ann")), s.accept("ann", public("ann"))


@pair
async def two_streams_into_one_address(s: Scene) -> tuple[Make, Make]:
    run = await running(s)
    other = await s.world.hear("bob", "and this", public(), me="r")
    assert other.run is not None
    held, address = other.run.held, s.lane.address
    first = lambda: deliveries.open_stream(run.held, run.name, address, (), LATER)  # noqa: E731
    return first, lambda: deliveries.open_stream(held, 1, address, (), LATER)


@pytest.fixture
async def tool(postgres: Postgres, today: str) -> AsyncIterator[Interleaving]:
    made = await Interleaving.open(postgres.dsn(today, "postgres"))
    yield made
    await made.close()


@pytest.mark.parametrize("name", PAIRS)
async def test_it_is_as_if_one_came_after_the_other(name: str, today_dsn: str, tool: Interleaving) -> None:
    # In short runs every fifth pause is tried, in both orders; `make drill` tries them all.
    every = 1 if hypothesis.settings().max_examples > 1000 or "in_two_places" in name or "another_reader" in name else 5

    world = await World.open(Engine.POSTGRES, today_dsn)
    one, two = await PAIRS[name](await scene(world))
    await world.close()
    await tool.save()
    await as_if_one_after_the_other(tool, one, two, every)


async def test_deliveries_to_one_address_are_numbered_in_the_order_of_their_commits(
    today_dsn: str, tool: Interleaving
) -> None:
    """Else a sender would find the later one first, and send the earlier one after it or beside it."""
    world = await World.open(Engine.POSTGRES, today_dsn)
    here, there = private("here").address, private("there").address

    def notify(address: Address, text: str) -> Make:
        return lambda: deliveries.notify(address, text, text, (), LATER)

    await tool.serial(notify(here, "one"), notify(here, "two"), 2)
    assert tool.second_waited()
    await tool.serial(notify(here, "three"), notify(there, "elsewhere"), 2)
    assert not tool.second_waited()
    texts = await world.raw("select text from deliveries where address = $1 order by id", here.key)
    assert texts == [("one",), ("two",), ("three",)]
    await world.close()


async def test_the_index_never_waits_for_a_session_whose_words_are_forgotten(
    today_dsn: str, tool: Interleaving
) -> None:
    """The index locks entries, then sessions, and forgetting the other way round: one of them has to step back."""
    world = await World.open(Engine.POSTGRES, today_dsn)
    ann = await world.person("ann")
    session = await world.renew(await world.dm(ann), ann)
    await world.store.say(session, ann, "a secret")
    batches = await world.store.driver.read(search.unindexed, 64)
    reason = Reason(ann.id, Cause.ASKED, LATER)
    to_the_last = len(batches) + sum(len(batch.words) for batch in batches)
    await tool.serial(lambda: search.index(batches), lambda: erasure.session(session, reason), to_the_last)
    assert tool.second_waited()
    await world.store.index()
    assert await world.store.search("secret", ann) == []
    assert await world.raw("select id from sessions where indexed < length") == []
    await world.close()
