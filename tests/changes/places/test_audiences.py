"""Places whose audience changes: what was said in private stays its person's, whoever comes to read the place."""

import pytest
from msgspec.structs import replace

from segue.changes.accept import Queued
from segue.changes.exchange import readers, turns
from segue.changes.exchange.readers import Reader
from segue.changes.sessions import readings
from segue.core.lanes import Address, Kind, Lane, Place, Rules, Sharing
from segue.core.moves import Consent, Resume, Why
from segue.core.settings import Settings
from segue.core.values import SessionId
from segue.errors import Refusal, Refused
from tests.changes.world import World, answer, private, public

ROOM = private("room")
GROUP = replace(ROOM, kind=Kind.GROUP)
BESIDE = private("beside")
RULES = [Settings(rules=Rules(groups=sharing)) for sharing in Sharing]
both_ways = pytest.mark.parametrize("settings", RULES, ids=lambda settings: settings.rules.groups.value)


async def talks(world: World, user: str, text: str, place: Place, settings: Settings | None = None) -> Queued:
    """Somebody says something, and the agent answers."""
    queued = await world.hear(user, text, place, me="me", settings=settings)
    assert queued.run is not None
    await world.store.driver.write(turns.finish, queued.run.held, answer(queued.run, f"re {text}"), world.clock())
    return queued


async def unread(world: World, address: Address, session: SessionId) -> int:
    return (await world.store.driver.read(readings.unread, address, session)).said


@both_ways
async def test_a_private_chat_that_becomes_a_group_starts_afresh(world: World, settings: Settings) -> None:
    other = await talks(world, "ann", "the secret elsewhere", BESIDE)
    secret = await talks(world, "ann", "a secret", ROOM, settings)
    await world.store.move(Resume(Lane(ROOM.address), other.session), secret.met.person)
    joined = await talks(world, "bob", "hello", GROUP, settings)
    assert joined.session not in (secret.session, other.session)
    again = await talks(world, "ann", "hello all", GROUP, settings)
    assert again.session not in (secret.session, other.session)
    for session in (secret.session, other.session):
        assert await unread(world, ROOM.address, session) > 0
        for lane, person in ((again.lane, again.met.person), (joined.lane, joined.met.person)):
            with pytest.raises(Refused) as refused:
                await world.store.move(Resume(lane, session), person)
            assert refused.value.why in (Refusal.NEEDS_YES, Refusal.NOT_FOUND)
    listed = await world.store.sessions_here(again.lane)
    assert not {secret.session, other.session} & {session.id for session in listed}
    # What isn't there is as it was.
    assert (await world.store.bound(other.lane)).id == other.session  # type: ignore[union-attr]
    # With her yes she goes on there with what she said alone.
    await world.store.move(Resume(again.lane, secret.session, consent=Consent.GIVEN), again.met.person)


async def test_threads_of_a_chat_that_becomes_a_group_start_afresh_with_it(world: World) -> None:
    thread = private("room", "t1")
    secret = await talks(world, "ann", "a secret", thread)
    await talks(world, "bob", "hello", GROUP)
    assert await world.store.bound(secret.lane) is None
    joined = await talks(world, "bob", "hello there", public("room", "t1"))
    assert joined.session != secret.session
    assert joined.lane == secret.lane


async def test_the_record_says_why_a_lane_was_released(world: World) -> None:
    secret = await talks(world, "ann", "a secret", ROOM)
    await talks(world, "bob", "hello", GROUP)
    [ended] = await world.store.history(secret.lane)
    assert (ended.session, ended.ended_why) == (secret.session, Why.AUDIENCE)
    [(move,)] = await world.raw("select id from moves where kind = 'audience'")
    with pytest.raises(Refused):
        await world.store.undo_move(move, secret.met.person)


async def test_an_answer_to_what_was_asked_in_private_is_not_told_to_a_group(world: World) -> None:
    asked = await world.hear("ann", "a secret", ROOM, me="me")
    await talks(world, "bob", "hello", GROUP)
    assert asked.run is not None
    await world.store.driver.write(turns.finish, asked.run.held, answer(asked.run, "the secret"), world.clock())
    assert await world.raw("select text from deliveries where session = $1", asked.session) == []
    assert await world.said(asked.session) == ["the secret"]


async def test_what_waits_to_be_sent_to_a_private_chat_is_not_sent_to_a_group(world: World) -> None:
    secret = await talks(world, "ann", "a secret", ROOM)
    beside = await talks(world, "ann", "another", BESIDE)
    await talks(world, "bob", "hello", GROUP)
    unsent = await world.raw("select session from deliveries where sent is null order by session")
    assert (secret.session,) not in unsent
    assert (beside.session,) in unsent


async def test_searches_in_a_group_find_nothing_that_was_said_there_in_private(world: World) -> None:
    secret = await talks(world, "ann", "a secret", ROOM)
    said = await talks(world, "ann", "hello all", GROUP)
    reader = Reader((ROOM.address,))
    for queued, found in ((secret, 0), (said, 1)):
        path = await world.store.path(queued.session)
        assert len(await world.store.driver.read(readers.seen, reader, path)) == found * len(path)
    assert not await world.store.driver.read(readers.knows, reader, secret.session)


async def test_the_home_of_a_private_chat_is_none_in_a_group(world: World) -> None:
    ann = await world.person("ann")
    await world.store.set_home(ROOM, ann)
    await world.store.set_home(replace(BESIDE, address=replace(BESIDE.address, account="other")), ann)
    await talks(world, "ann", "hello", ROOM)
    await talks(world, "bob", "hello", GROUP)
    assert await world.store.home("telegram", "bot") is None
    assert await world.store.home("telegram", "other") is not None


async def test_a_private_chat_that_speaks_to_somebody_elses_session_starts_afresh(world: World) -> None:
    secret = await talks(world, "ann", "a secret", ROOM)
    bobs = await talks(world, "bob", "hello", ROOM)
    assert bobs.session != secret.session
    assert await unread(world, ROOM.address, secret.session) > 0
    again = await talks(world, "ann", "again", ROOM)
    assert again.session not in (secret.session, bobs.session)


async def test_a_group_that_becomes_private_keeps_only_its_persons_session(world: World) -> None:
    anns, bobs = await talks(world, "ann", "mine", GROUP), await talks(world, "bob", "his", GROUP)
    await talks(world, "ann", "alone", ROOM)
    assert (await world.store.bound(anns.lane)).id == anns.session  # type: ignore[union-attr]
    assert await world.store.bound(bobs.lane) is None


async def test_a_private_chat_that_turns_out_to_be_a_group_brings_it_nothing(world: World) -> None:
    secret = await talks(world, "ann", "a secret", ROOM)
    club = await talks(world, "bob", "hello", public("club"))
    merged = await world.hear("bob", "hello again", public("club"), chat_aliases=("room",))
    assert merged.session != secret.session
    assert await unread(world, merged.lane.address, secret.session) > 0
    assert await world.store.bound(secret.lane) is None
    assert club.session
