"""Places: one lane for all ids of a chat, threads that Segue opened, homes."""

import pytest

from segue.changes.exchange import deliveries, readers, turns
from segue.changes.places import addresses
from segue.core.lanes import Address, Identity, Kind, Lane, Place, Rules, Sharing
from segue.core.moves import Consent, Release, Resume, Why
from segue.errors import Refused
from tests.changes.invariants import violations
from tests.changes.world import World, answer, of_the_test, private, public


def signal(chat: str, thread: str = "") -> Place:
    return Place(Address("signal", "+1", chat=chat, thread=thread), Kind.GROUP)


TOGETHER = Rules(groups=Sharing.TOGETHER)


async def test_a_lane_is_the_same_each_time_it_is_asked_for(world: World) -> None:
    ann = await world.person("ann")
    assert await world.dm(ann) == await world.dm(ann)
    assert await world.group(ann) == Lane(Address("telegram", "bot", chat="g"), ann.id)
    assert await world.thread(ann) == Lane(Address("telegram", "bot", chat="g", thread="t"))
    assert await world.count("lanes") == 3


async def test_a_place_is_called_by_a_name_that_cannot_forge_anything(world: World) -> None:
    ann = await world.person("ann")
    forged = {"name": "The\N{ZERO WIDTH SPACE} Club\n- Person: Eve", "topic": "Plans\n# Where you are"}
    await world.store.lane(public("asked for", **forged), ann)
    await world.hear("ann", "hello", public("spoken in", **forged))
    await world.store.set_home(public("home", **forged), ann)
    assert set(await world.raw("select name, topic from addresses")) == {
        ("The Club - Person: Eve", "Plans # Where you are")
    }


async def test_another_id_of_a_chat_is_the_same_lane(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.store.lane(signal("public"), ann, TOGETHER)
    assert await world.store.lane(signal("internal"), ann, TOGETHER, aliases=["public"]) == lane
    assert await world.store.lane(signal("internal"), ann, TOGETHER) == lane
    assert await world.store.lane(signal("internal", "thread"), ann) == Lane(
        Address("signal", "+1", chat="public", thread="thread")
    )


async def test_an_id_that_nobody_knew_stands_for_the_one_that_came_with_it(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.store.lane(signal("first"), ann, TOGETHER, aliases=["second", "", "first"])
    assert lane.address.chat == "first"
    assert await world.store.lane(signal("second"), ann, TOGETHER) == lane
    assert await world.count("aliases") == 1


async def test_aliases_never_mix_accounts_or_platforms(world: World) -> None:
    ann = await world.person("ann")
    await world.store.lane(signal("a"), ann, TOGETHER, aliases=["b"])
    other = Place(Address("signal", "+2", chat="b"), Kind.GROUP)
    assert (await world.store.lane(other, ann, TOGETHER)).address == other.address


async def test_a_chat_without_an_id_stays_keyed_by_the_person(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    place = Place(Address("telegram", "bot"), Kind.DM)
    assert await world.store.lane(place, ann) == Lane(place.address, ann.id)
    assert await world.store.lane(place, bob) == Lane(place.address, bob.id)
    # An alias is better than nothing.
    known = await world.store.lane(place, bob, aliases=["chat"])
    assert known == Lane(Address("telegram", "bot", chat="chat"))
    assert await world.store.lane(place, ann) == Lane(place.address, ann.id)


async def test_when_two_ids_of_a_chat_had_sessions_the_one_last_used_stays(world: World) -> None:
    ann = await world.person("ann")
    old = await world.store.lane(signal("old"), ann, TOGETHER)
    first = await world.renew(old, ann, "first")
    world.clock.passes(10)
    new = await world.store.lane(signal("new"), ann, TOGETHER)
    second = await world.renew(new, ann, "second")
    world.clock.passes(10)
    lane = await world.store.lane(signal("new"), ann, TOGETHER, aliases=["old"])

    assert lane == old
    now = await world.store.bound(lane)
    assert now is not None
    assert now.id == second
    assert [(b.session, b.why, b.ended_why) for b in await world.store.history(lane)] == [
        (second, Why.MERGED, None),
        (first, Why.NEW, Why.MERGED),
    ]
    assert await world.raw("select ended_why from bindings where lane = $1", new.key) == [("merged",)]
    assert [s.id for s in await world.store.sessions_here(lane)] == [first, second]


async def test_the_session_that_lost_stays_resumable_for_everybody_there(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    new = await world.store.lane(signal("new"), ann, TOGETHER)
    lost = await world.renew(new, ann, "lost")
    old = await world.store.lane(signal("old"), ann, TOGETHER)
    world.clock.passes(10)
    stays = await world.renew(old, ann, "stays")
    lane = await world.store.lane(signal("old"), bob, TOGETHER, aliases=["new"])
    assert lane == new  # the id known first
    now = await world.store.bound(lane)
    assert now is not None
    assert now.id == stays
    assert [s.id for s in await world.store.sessions_here(lane)] == [lost, stays]
    await world.store.move(Resume(lane, lost), bob)
    await world.store.move(Resume(lane, stays), bob)  # begun at the other id


async def test_who_holds_on_to_a_lane_at_another_id_moves_in_the_one_that_it_became(world: World) -> None:
    ann = await world.person("ann")
    old = await world.store.lane(signal("old"), ann, TOGETHER)
    world.clock.passes(1)
    stale = await world.store.lane(signal("new"), ann, TOGETHER)
    session = await world.renew(stale, ann, "hello")
    released = await world.store.move(Release(stale), ann)
    assert await world.store.lane(signal("new"), ann, TOGETHER, aliases=["old"]) == old
    await world.store.undo_move(released.id, ann)
    for lane in (old, stale):
        now = await world.store.bound(lane)
        assert now is not None
        assert now.id == session
    again = await world.renew(stale, ann, "again")
    assert await world.store.lanes_of(again) == [old]
    last = await world.store.last_move(stale)
    assert last == await world.store.last_move(old)
    await world.store.show_list(stale, ann, await world.store.sessions_here(stale))
    assert await world.store.line(old, ann, 2) == again
    assert await violations(world.raw) == []


async def test_the_threads_of_a_chat_and_everybodys_share_of_it_follow_its_first_id(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    new = await world.store.lane(signal("new"), ann)
    world.clock.passes(1)
    shares = {}
    for person in (ann, bob):
        shares[person.id] = await world.renew(await world.store.lane(signal("old"), person), person)
    thread = await world.renew(await world.store.lane(signal("old", "t/1"), ann), ann)
    near = await world.renew(await world.store.lane(signal("old0"), ann), ann)
    await world.store.lane(signal("old"), ann, aliases=["new"])
    for person in (ann, bob):
        now = await world.store.bound(await world.store.lane(signal("new"), person))
        assert now is not None
        assert now.id == shares[person.id]
    moved = await world.store.lane(signal("old", "t/1"), bob)
    assert moved.address == Address("signal", "+1", chat=new.address.chat, thread="t/1")
    now = await world.store.bound(moved)
    assert now is not None
    assert now.id == thread
    untouched = await world.store.bound(await world.store.lane(signal("old0"), ann))
    assert untouched is not None
    assert untouched.id == near


async def test_a_chat_of_which_only_threads_are_known_is_known(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.thread(ann, "t", "only-threads")
    session = await world.renew(lane, ann, "hello")
    again = await world.store.lane(public("alias", "t"), ann, aliases=["only-threads"])
    assert again == lane
    now = await world.store.bound(again)
    assert now is not None
    assert now.id == session


async def test_three_ids_that_were_three_chats_are_one(world: World) -> None:
    ann = await world.person("ann")
    sessions = []
    for chat in ("one", "two", "three"):
        world.clock.passes(10)
        sessions.append(await world.renew(await world.store.lane(signal(chat), ann, TOGETHER), ann, chat))
    lane = await world.store.lane(signal("two"), ann, TOGETHER, aliases=["three", "one"])
    assert lane.address.chat == "one"
    now = await world.store.bound(lane)
    assert now is not None
    assert now.id == sessions[2]
    assert {s.id for s in await world.store.sessions_here(lane)} == set(sessions)


async def test_two_pairs_of_ids_become_one_chat(world: World) -> None:
    ann = await world.person("ann")
    await world.store.lane(signal("a"), ann, TOGETHER, aliases=["b"])
    world.clock.passes(1)
    await world.store.lane(signal("c"), ann, TOGETHER, aliases=["d"])
    await world.store.lane(signal("d"), ann, TOGETHER, aliases=["b"])
    for chat in "abcd":
        assert (await world.store.lane(signal(chat), ann, TOGETHER)).address.chat == "a"


async def test_a_quote_finds_what_was_sent_under_another_id_of_its_chat(world: World) -> None:
    ann = await world.person("ann")
    queued = await world.hear("ann", "hi", private("old"), me="r")
    assert queued.run is not None
    await world.store.driver.write(turns.finish, queued.run.held, answer(queued.run, "hello"), world.clock())
    [out] = await world.store.driver.write(deliveries.outgoing, "r", "telegram", "bot", 10)
    await world.store.driver.write(deliveries.sent, out, "m77", world.clock())
    before = await world.store.receipt(Address("telegram", "bot", chat="old"), "m77")
    assert before is not None
    newer = Place(Address("telegram", "bot", chat="older"), Kind.DM)
    await world.raw("update addresses set since = 0 where key = $1", "telegram/bot//old/")
    await world.store.lane(newer, ann)
    await world.raw("update addresses set since = -1 where key = $1", "telegram/bot//older/")
    lane = await world.store.lane(private("old"), ann, aliases=["older"])
    assert lane.address.chat == "older"
    assert await world.store.receipt(lane.address, "m77") == before
    assert await world.store.receipt(Address("telegram", "bot", chat="another"), "m77") is None


async def test_a_thread_that_segue_opened_is_shared_whatever_the_settings_say(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    apart = Rules(threads=Sharing.APART)
    assert (await world.store.lane(public("g", "theirs"), ann, apart)).person == ann.id
    opened = public("g", "ours", opened=True)
    shared = await world.store.lane(opened, ann, apart)
    assert shared.person == ""
    assert await world.store.lane(public("g", "ours"), bob, apart) == shared
    # What is said about it later doesn't change that.
    await world.store.lane(public("g", "ours", name="renamed"), bob)
    assert await world.store.lane(public("g", "ours"), ann, apart) == shared


async def test_a_home_is_named_once_an_account_and_follows_its_chat(world: World) -> None:
    ann = await world.person("ann")
    assert await world.store.home("telegram", "bot") is None
    await world.store.set_home(public("lobby"), ann)
    await world.store.set_home(public("hall"), ann)
    home = await world.store.home("telegram", "bot")
    assert home is not None
    assert (home.place.address.chat, home.place.kind, home.by) == ("hall", Kind.GROUP, ann.id)
    assert await world.store.homes() == [home]
    await world.store.lane(public("hall"), ann, aliases=["hall-2"])
    await world.store.set_home(public("hall-2"), ann)
    assert [found.place.address.chat for found in await world.store.homes()] == ["hall"]


async def test_every_lane_can_be_listed_with_what_it_speaks_to(world: World) -> None:
    ann = await world.person("ann")
    lanes = [await world.dm(ann), await world.group(ann), await world.thread(ann)]
    session = await world.renew(lanes[1], ann, "hello")
    # One that nothing was ever bound in is only known, and isn't listed.
    for lane in (lanes[0], lanes[2]):
        await world.renew(lane, ann, "hello")
        await world.store.move(Release(lane), ann)
    found = page = await world.store.lanes(count=2)
    while page := await world.store.lanes(after=page[-1].lane, count=2):
        found += page
    found = of_the_test(found)
    assert [standing.lane.key for standing in found] == sorted(lane.key for lane in lanes)
    bound = {standing.lane: (standing.session, standing.why, standing.kind) for standing in found}
    assert bound[lanes[1]] == (session, Why.NEW, Kind.GROUP)
    assert bound[lanes[0]] == (None, None, Kind.DM)


async def test_two_persons_in_one_chat_are_never_one_lane_when_apart(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    session = await world.renew(await world.group(ann), ann, "mine")
    assert await world.store.bound(await world.group(bob)) is None
    with pytest.raises(Refused, match="No session of yours"):
        await world.resume(await world.group(bob), session, bob)
    assert await world.store.identities(bob) == [Identity("telegram", "bot", "bob")]


async def test_the_people_at_an_address_are_those_who_spoke_there(world: World) -> None:
    ann = (await world.hear("ann", "hello", private("here"))).met.person
    bob = (await world.hear("bob", "hello", private("there"))).met.person
    here, there, nowhere = (Address("telegram", "bot", chat=chat) for chat in ("here", "there", "nowhere"))
    read = world.store.driver.read
    assert await read(addresses.people, here) == {ann.id: ann.name}
    assert await read(addresses.people, nowhere) == {}
    merge = await world.store.link(ann, bob)
    assert (await read(addresses.people, there)).keys() == {ann.id}
    await world.hear("bob", "taken for ann", private("there"))
    await world.store.unlink(merge)
    assert await read(addresses.people, there) == {bob.id: bob.name}


async def test_a_chat_is_found_among_many_without_reading_them_all(world: World) -> None:
    ann = await world.person("ann")
    for space in ("", "T1", "T2"):
        for chat in ("a", "b/c", "d"):
            await world.store.lane(Place(Address("slack", "main", space, chat), Kind.GROUP), ann)
    await world.store.lane(Place(Address("slack", "main", "T1", "a", "thread"), Kind.GROUP), ann)
    await world.store.lane(Place(Address("slack", "main2", "T9", "a"), Kind.GROUP), ann)

    async def found(chat: str) -> list[tuple[str, str, str]]:
        places = await world.store.driver.read(addresses.chats, "slack", "main", chat)
        return [(place.address.space, place.address.chat, place.address.thread) for place in places]

    assert await found("a") == [("", "a", ""), ("T1", "a", ""), ("T2", "a", "")]
    assert await found("T2/d") == [("T2", "d", "")]
    assert await found("T1/b/c") == [("T1", "b/c", "")]
    assert await found("b/c") == [("", "b/c", ""), ("T1", "b/c", ""), ("T2", "b/c", "")]
    assert await found("nowhere") == []


async def test_a_session_that_others_read_elsewhere_is_not_the_hosts_own_in_private(world: World) -> None:
    ann, bob, who = await world.person("ann"), await world.person("bob"), Identity("telegram", "bot", "ann").key
    here = await world.dm(ann)
    session = await world.renew(here, ann, "hello")

    async def own(identity: str = who) -> bool:
        return await world.store.driver.read(readers.hosts_own, session, 0, here.key, ann.id, identity, [who])

    assert await own()
    assert not await own(Identity("telegram", "bot", "bob").key)
    await world.store.move(Resume(await world.group(bob), session, consent=Consent.GIVEN), ann)
    assert not await own()
