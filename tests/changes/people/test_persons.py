"""Persons: who an identity is, and merges with all that follows from them."""

import pytest

from segue.changes.exchange import questions, replicas, turns
from segue.changes.exchange.questions import Asking, Posed
from segue.changes.people import notes
from segue.changes.places.ways import Way
from segue.changes.sessions import readings
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity, Person
from segue.core.moves import Consent, Resume, Spawn, Why
from segue.core.questions import ALWAYS, YES_OR_NO, Question
from segue.core.values import PersonId, SessionId
from segue.core.windows import HOSTS
from segue.database.statements import q
from segue.errors import Invalid, Refusal, Refused
from tests.changes.world import World, answer, private, public


async def test_an_identity_is_one_person_for_ever(world: World) -> None:
    ann = await world.person("ann")
    assert await world.person("ann") == ann
    assert (await world.person("Ann")).id != ann.id
    assert await world.store.identities(ann) == [Identity("telegram", "bot", "ann")]


async def test_the_same_user_id_on_another_platform_or_account_is_somebody_else(world: World) -> None:
    ann = await world.person("ann")
    assert (await world.person("ann", platform="slack")).id != ann.id
    assert (await world.store.person(Identity("telegram", "other", "ann"))).id != ann.id


async def test_a_name_is_kept_clean_and_is_the_newest_shown(world: World) -> None:
    await world.person("ann", name="Ann")
    assert (await world.person("ann", name="Ann\N{ZERO WIDTH SPACE}a\nB")).name == "Anna B"
    assert (await world.store.person(Identity("telegram", "bot", "ann"))).name == "Anna B"  # none shown: the last one


async def test_an_alias_that_appears_later_is_the_same_person(world: World) -> None:
    ann = await world.person("uuid")
    assert await world.person("uuid", "+100", name="uuid") == ann
    assert await world.person("+100", name="uuid") == ann
    assert [identity.user for identity in await world.store.identities(ann)] == ["uuid", "+100"]


async def test_when_both_aliases_were_persons_the_older_one_stays(world: World) -> None:
    older = await world.person("phone")
    younger = await world.person("uuid")
    assert (await world.person("uuid", "phone")).id == older.id
    assert (await world.person("uuid")).id == older.id
    [merge] = await world.store.merges(older)
    assert (merge.kept, merge.gone) == (older.id, younger.id)
    assert [i.user for i in await world.store.identities(older)] == ["phone", "uuid"]


async def test_a_blank_alias_is_nobody(world: World) -> None:
    ann, bob = await world.person("ann", "", " "), await world.person("bob", "", " ")
    assert ann.id != bob.id
    assert await world.store.identities(ann) == [Identity("telegram", "bot", "ann")]


async def test_three_aliases_that_were_three_persons_are_one(world: World) -> None:
    one, two, three = [await world.person(user) for user in ("lid", "jid", "id")]
    assert (await world.person("id", "jid", "lid")).id == one.id
    assert {merge.gone for merge in await world.store.merges(one)} == {two.id, three.id}


async def shares(world: World, *people: Person) -> None:
    """Everybody has a session of their own in one group, called plan; later people used theirs later."""
    for person in people:
        session = await world.renew(await world.group(person), person, f"hello from {person.name}")
        await world.store.set_title(session, "plan", person)


async def test_of_two_lanes_the_one_last_used_stays_and_the_other_binding_ends_as_merged(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await shares(world, ann, bob)
    here, theirs = await world.group(ann), await world.group(bob)
    mine, used_last = await world.store.bound(here), await world.store.bound(theirs)
    assert mine is not None
    assert used_last is not None
    merge = await world.store.link(ann, bob)

    assert merge.kept == ann.id
    now = await world.store.bound(here)
    assert now is not None
    assert (now.id, now.owner) == (used_last.id, ann.id)
    [ended] = [binding for binding in await world.store.history(here) if binding.session == mine.id]
    assert (ended.ended_why, ended.until) == (Why.MERGED, merge.since)
    # Nothing speaks from the other lane any more; who still holds on to it is in the one that stayed.
    assert await world.raw("select ended_why from bindings where lane = $1", theirs.key) == [("merged",)]
    assert await world.store.bound(theirs) == now
    assert await world.store.history(theirs) == await world.store.history(here)


async def test_the_older_persons_lane_keeps_its_session_if_that_was_used_last(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await shares(world, bob, ann)
    mine, theirs = await world.store.bound(await world.group(ann)), await world.store.bound(await world.group(bob))
    await world.store.link(bob, ann)
    assert mine is not None
    assert theirs is not None
    here = await world.group(ann)
    now = await world.store.bound(here)
    assert now is not None
    assert now.id == mine.id
    # What the other lane spoke to is resumable, and listed where it went on.
    assert {session.id for session in await world.store.sessions_here(here)} == {mine.id, theirs.id}
    await world.resume(here, theirs.id, ann)


async def test_what_counts_as_last_used_is_when_somebody_spoke_there(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await shares(world, ann, bob)
    spoke = await world.hear("ann", "me last", public())
    await world.store.link(ann, bob)
    now = await world.store.bound(await world.group(ann))
    assert now is not None
    assert now.id == spoke.session


async def test_equal_titles_take_the_next_number(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await shares(world, ann, bob)
    again = await world.renew(await world.group(bob), bob, "again")
    assert str(await world.store.set_title(again, "plan", bob)) == "plan #2"
    await world.store.link(ann, bob)
    titles = {session.title for session in await world.store.sessions(ann)}
    assert titles == {"plan #1", "plan #2", "plan #3"}
    assert await world.store.find("plan #3", ann) == again


async def test_a_lane_that_only_the_younger_person_had_goes_on_under_the_older(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    session = await world.renew(await world.group(bob, "only-bob"), bob, "hello")
    await world.store.link(ann, bob)
    now = await world.store.bound(await world.group(ann, "only-bob"))
    assert now is not None
    assert now.id == session


async def test_who_holds_on_to_a_person_from_before_a_merge_speaks_for_the_one_who_stayed(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    lane = await world.dm(bob)
    session = await world.renew(lane, bob, "hello")
    await world.store.link(ann, bob)
    assert [s.id for s in await world.store.sessions(bob)] == [session]
    assert (await world.store.session(session, bob)).owner == ann.id
    again = await world.renew(lane, bob, "from an old window")
    assert (await world.store.session(again, ann)).owner == ann.id
    assert await world.group(bob) == await world.group(ann)
    await world.store.set_title(again, "plan", bob)
    assert await world.store.find("plan", bob) == again
    assert [m.gone for m in await world.store.merges(bob)] == [bob.id]
    await world.store.close_session(again, bob)


async def test_an_undone_merge_gives_each_what_they_began(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await shares(world, ann, bob)
    before = {person.id: await world.store.bound(await world.group(person)) for person in (ann, bob)}
    merge = await world.store.link(ann, bob)
    await world.store.unlink(merge)

    assert (await world.person("bob")).id == bob.id
    assert await world.store.merges(ann) == []
    for person in (ann, bob):
        now, was = await world.store.bound(await world.group(person)), before[person.id]
        assert now is not None
        assert was is not None
        assert (now.id, now.owner, now.title) == (was.id, person.id, "plan")
        assert [s.id for s in await world.store.sessions(person)] == [was.id]
        assert (await world.store.history(await world.group(person)))[0].why is Why.UNDO


async def test_who_was_parted_has_still_read_what_they_said_in_their_own_chat(world: World) -> None:
    left = await world.hear("ann", "hello", me="r")
    assert left.run is not None
    await world.store.driver.write(turns.finish, left.run.held, answer(left.run, "hi"), world.clock())
    ann, bob = left.met.person, await world.person("bob")
    await world.renew(left.lane, ann, "something else")
    elsewhere = await world.dm(bob, "elsewhere")
    merge = await world.store.link(ann, bob)
    await world.store.move(Resume(elsewhere, left.session, consent=Consent.GIVEN), ann)
    await world.renew(elsewhere, ann, "something else")
    await world.store.unlink(merge)
    read = [
        await world.store.driver.read(readings.whole, lane.address, left.session) for lane in (left.lane, elsewhere)
    ]
    assert read == [True, False], "in the other chat only somebody else ever spoke"


async def test_what_was_begun_after_the_merge_stays_with_the_older_person(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    merge = await world.store.link(ann, bob)
    session = await world.renew(await world.dm(ann), bob, "as one")
    await world.store.unlink(merge)
    assert [s.id for s in await world.store.sessions(ann)] == [session]
    assert await world.store.sessions(bob) == []


async def test_nobody_goes_on_in_a_session_that_turned_out_to_be_somebody_elses(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await shares(world, ann, bob)
    theirs = await world.store.bound(await world.group(bob))
    assert theirs is not None
    merge = await world.store.link(ann, bob)
    elsewhere = await world.dm(ann, "elsewhere")
    await world.store.move(Resume(elsewhere, theirs.id, consent=Consent.GIVEN), ann)
    await world.store.unlink(merge)
    assert await world.store.bound(elsewhere) is None
    with pytest.raises(Refused, match=r"No session of yours"):
        await world.resume(elsewhere, theirs.id, ann)


async def test_a_lane_does_not_go_back_to_a_session_that_was_closed_since(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await shares(world, bob, ann)
    theirs = await world.store.bound(await world.group(bob))
    assert theirs is not None
    merge = await world.store.link(ann, bob)
    await world.store.close_session(theirs.id, ann)
    await world.store.unlink(merge)
    assert await world.store.bound(await world.group(bob)) is None


@pytest.mark.parametrize("said", ["", "a secret"], ids=["as it was", "gone on in private"])
async def test_a_lane_does_not_go_back_to_what_its_place_has_not_read(world: World, said: str) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await shares(world, bob, ann)
    theirs = await world.store.bound(await world.group(bob))
    assert theirs is not None
    merge = await world.store.link(ann, bob)
    await world.resume(await world.dm(ann), theirs.id, ann)
    if said:
        await world.exchange(theirs.id, ann, said, "kept")
    await world.store.unlink(merge)
    back = await world.store.bound(await world.group(bob))
    assert (back.id if back else None) == (None if said else theirs.id)


async def test_of_two_merges_in_a_row_the_first_can_be_undone_alone(world: World) -> None:
    one, two, three = [await world.person(user) for user in ("one", "two", "three")]
    await shares(world, one, two, three)
    third = await world.store.bound(await world.group(three))
    assert third is not None
    inner = await world.store.link(two, three)
    await world.store.link(one, two)
    assert {s.title for s in await world.store.sessions(one)} == {"plan #1", "plan #2", "plan #3"}
    await world.store.unlink(inner)
    assert (await world.person("three")).id == three.id
    assert (await world.person("two")).id == one.id
    assert [(s.id, s.title) for s in await world.store.sessions(three)] == [(third.id, "plan")]
    assert len(await world.store.sessions(one)) == 2


async def test_a_merge_can_be_undone_and_made_again(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await shares(world, ann, bob)
    for _ in range(2):
        merge = await world.store.link(bob, ann)
        assert {s.title for s in await world.store.sessions(ann)} == {"plan #1", "plan #2"}
        await world.store.unlink(merge)
        assert [s.title for s in await world.store.sessions(bob)] == ["plan"]


async def test_a_merge_that_does_not_hold_cannot_be_undone(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    merge = await world.store.link(ann, bob)
    await world.store.unlink(merge)
    with pytest.raises(Invalid, match=r"merge: .* doesn't hold"):
        await world.store.unlink(merge)
    with pytest.raises(Refused) as refused:  # nor is it a move of a lane
        await world.store.undo_move(merge.id, ann)
    assert refused.value.why is Refusal.NOTHING_TO_UNDO


async def test_a_person_cannot_be_merged_with_themselves_or_with_nobody(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    with pytest.raises(Invalid, match="person: both are the same person"):
        await world.store.link(ann, ann)
    with pytest.raises(Invalid, match="person: nobody is known as 'ghost'"):
        await world.store.link(ann, Person(PersonId("ghost"), "", 0.0))
    await world.store.link(ann, bob)
    with pytest.raises(Invalid, match="person: both are the same person"):
        await world.store.link(bob, ann)
    assert await world.count("merges") == 1


async def test_merged_sessions_resume_across_platforms(world: World) -> None:
    ann, there = await world.person("ann"), await world.person("ann", platform="slack")
    session = await world.renew(await world.dm(ann), ann, "hello")
    lane = await world.dm(there)
    with pytest.raises(Refused) as refused:
        await world.store.move(Resume(lane, session), there)
    assert refused.value.why is Refusal.NOT_FOUND
    await world.store.link(ann, there)
    await world.store.move(Resume(lane, session), there)


@pytest.mark.parametrize("first", ["ann", "bob"])
async def test_no_private_chat_goes_on_in_a_session_that_turned_out_to_be_another_persons(
    world: World, first: str
) -> None:
    second = {"ann": "bob", "bob": "ann"}[first]
    one, two = [await world.hear(user, "hello", private(user)) for user in (first, second)]
    merge = await world.store.link(one.met.person, two.met.person)
    ann, bob = (one, two) if first == "ann" else (two, one)
    await world.resume(bob.lane, ann.session, one.met.person)
    await world.store.unlink(merge)
    assert await world.store.bound(bob.lane) is None
    assert await world.store.lanes_of(ann.session) == [ann.lane]


@pytest.mark.parametrize("first", ["host", "bob"])
async def test_a_home_in_the_private_chat_of_who_was_taken_for_the_host_is_none_once_they_are_parted(
    world: World, first: str
) -> None:
    async def met(name: str) -> Person:
        world.clock.passes(10)
        return await (world.store.person(HOSTS[0], "Ann") if name == "host" else world.person("bob"))

    one, two = [await met(name) for name in (first, {"host": "bob", "bob": "host"}[first])]
    merge = await world.store.link(one, two)
    place = private("bob")
    await world.store.set_home(place, one)
    assert [home.place.address for home in await world.store.homes()] == [place.address]
    await world.store.unlink(merge)
    assert await world.store.homes() == []
    assert await world.store.home(place.address.platform, place.address.account) is None


@pytest.mark.parametrize("first", ["ann", "bob"])
async def test_what_each_began_while_they_were_one_is_theirs_once_parted(world: World, first: str) -> None:
    second = {"ann": "bob", "bob": "ann"}[first]
    merge = await world.store.link(await world.person(first), await world.person(second))
    began = {user: (await world.hear(user, f"hello, I am {user}", private(user))) for user in ("ann", "bob")}
    await world.store.unlink(merge)
    for user, queued in began.items():
        person = await world.person(user)
        assert [session.id for session in await world.store.sessions(person)] in ([queued.session], [])
        assert (await world.store.session(queued.session, person)).owner == person.id
        other = await world.person({"ann": "bob", "bob": "ann"}[user])
        with pytest.raises(Refused):
            await world.store.session(queued.session, other)
        assert await world.store.bound(queued.lane) is not None, "and each goes on in it"


async def test_a_child_goes_with_its_parent_when_two_are_parted(world: World) -> None:
    merge = await world.store.link(await world.person("ann"), await world.person("bob"))
    parent = (await world.hear("bob", "hello", private("bob"))).session
    ann, child = await world.person("ann"), world.store.new_session_id()
    await world.store.move(Spawn(parent, child, "helper"), ann)
    await world.store.unlink(merge)
    bob = await world.person("bob")
    assert (await world.store.session(child, bob)).owner == bob.id


@pytest.mark.parametrize("first", ["ann", "bob"])
async def test_a_childs_thread_in_a_private_chat_is_its_persons_when_two_are_parted(world: World, first: str) -> None:
    second = {"ann": "bob", "bob": "ann"}[first]
    said = {user: await world.hear(user, "hello", private(user)) for user in (first, second)}
    ann, bob = said["ann"], said["bob"]
    merge = await world.store.link(said[first].met.person, said[second].met.person)
    one = await world.person(first)
    await world.resume(bob.lane, ann.session, one)
    children = {}
    for user in ("ann", "bob"):
        thread = await world.store.lane(private(user, "opened"), one)
        children[user] = world.store.new_session_id()
        await world.store.move(Spawn(ann.session, children[user], user, thread), one)
    await world.store.unlink(merge)
    assert len(await world.store.lanes_of(children["ann"])) == 1
    assert await world.store.lanes_of(children["bob"]) == []


async def test_who_was_parted_isnt_joined_again_by_what_the_platform_tells(world: World) -> None:
    phone, uuid = await world.person("phone"), await world.person("uuid")
    assert (await world.person("uuid", "phone")).id == phone.id
    [merge] = await world.store.merges(phone)
    await world.store.unlink(merge)
    assert (await world.person("uuid", "phone")).id == uuid.id
    assert (await world.person("phone", "uuid")).id == phone.id
    assert await world.store.merges(phone) == []


async def test_who_was_parted_stays_so_also_as_a_part_of_somebody_else(world: World) -> None:
    old, phone, uuid = [await world.person(user) for user in ("old", "phone", "uuid")]
    assert (await world.person("uuid", "phone")).id == phone.id
    [merge] = await world.store.merges(phone)
    # Whoever was kept is one with somebody else when the two are parted, and the other is afterwards.
    await world.store.link(old, phone)
    await world.store.unlink(merge)
    assert (await world.person("uuid", "phone")).id == uuid.id
    new = await world.person("new")
    await world.store.link(uuid, new)
    assert (await world.person("new", "old")).id == uuid.id
    assert (await world.person("old", "uuid")).id == old.id
    # Somebody whom neither was ever taken for is joined as the platform tells.
    assert (await world.person("fresh")).id != uuid.id
    assert (await world.person("fresh", "new")).id == uuid.id


async def test_two_who_were_parted_from_a_third_one_after_the_other_may_be_one(world: World) -> None:
    third, one, two = [await world.person(user) for user in ("third", "one", "two")]
    for other in (one, two):
        merge = await world.store.link(third, other)
        world.clock.passes(1)
        await world.store.unlink(merge)
        world.clock.passes(1)
    assert (await world.person("two", "one")).id == one.id
    assert (await world.person("one", "third")).id == one.id


async def test_what_is_asked_of_two_who_are_parted_is_each_ones_own(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await world.store.driver.write(replicas.join, "r", 60.0)
    heard = await world.hear("bob", "hello", private("bob"), me="r")
    assert heard.run is not None
    way = Way(heard.lane.address, heard.lane)

    def asks(key: str, words: str) -> Transaction[Question]:
        assert heard.run is not None
        asking = Asking(key, words, YES_OR_NO, "tell")
        asked = Posed(world.ids(), asking, session=heard.run.held.session, turn=heard.run.name)
        return (yield from questions.ask_in_turn(heard.run, asked, [way], 9, world.clock()))

    question = await world.store.driver.write(asks, "1", "Tell bob's secret?")
    merge = await world.store.link(ann, bob)
    await world.store.driver.write(asks, "2", "And this?")
    assert await world.store.driver.write(questions.answer, question, ALWAYS, "Bob", world.ids(), world.clock())
    await world.store.driver.write(
        questions.ask,
        heard.lane,
        ann.id,
        Posed.by_command(world.ids(), "readers", "b", "Who may read “Diary”?"),
        world.clock(),
    )
    await world.store.unlink(merge)
    read = world.store.driver.read
    assert await read(questions.open_to, ann.id, heard.lane, world.clock()) == []
    [(left, _)] = await read(questions.open_to, bob.id, heard.lane, world.clock())
    assert left.words == "And this?"
    assert await read(questions.permissions, ann.id) == await read(questions.permissions, bob.id) == []


async def test_what_was_noted_of_two_who_are_parted_is_each_ones_own(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    merge = await world.store.link(ann, bob)

    def noted(text: str, session: SessionId) -> Transaction[None]:
        yield q.add_note(id=text, person=ann.id, agent="", call=text, text=text, at=world.clock())
        yield q.add_note_source(note=text, session=session, turn=1)

    for user in ("ann", "bob"):
        await world.store.driver.write(noted, f"of {user}", (await world.hear(user, "hello", private(user))).session)
    await world.store.unlink(merge)
    for person, text in ((ann, "of ann"), (bob, "of bob")):
        assert [note.text for note in await world.store.driver.read(notes.of, person.id)] == [text]
