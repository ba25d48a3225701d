"""Several people, several places, one session."""

import asyncio
from itertools import pairwise

from segue import AGENT, Address, Identity, Kind, Place, Resume, Role, open_store
from segue.core.transcripts import GATEWAY
from tests.drills.gateways import ACCOUNT
from tests.stories.conftest import Stage


async def test_two_people_at_once_in_one_thread_share_a_session_and_are_told_apart(stage: Stage) -> None:
    town = stage.town
    place = {"chat_kind": "group", "thread": "t1"}
    async with stage.gateway(pace=0.05):
        said = []
        for n in range(5):
            for name in ("ann", "bob"):
                message = f"{name}-message-{n}"
                said.append(town.say("club", message, person={"id": name, "name": name.title()}, **place))
        await asyncio.gather(*said)
        for n in range(5):
            for name in ("ann", "bob"):
                await town.hears("club", f"I am {name}-message-{n}")
    calls = town.calls("club")
    assert len({call["session"] for call in calls}) == 1
    assert all(len({message.split("-")[0] for message in call["answers"]}) == 1 for call in calls)
    async with await open_store(stage.where) as store:
        path = await store.path(calls[0]["session"])
    spoken = [(entry.author.name, entry.text) for entry in path if entry.author.role is Role.PERSON]
    assert sorted(spoken) == sorted((n.title(), f"I am {n}-message-{i}") for i in range(5) for n in ("ann", "bob"))


async def test_one_session_in_two_places_answers_where_it_was_asked(stage: Stage) -> None:
    town = stage.town
    ann = {"id": "ann", "name": "Ann"}
    async with stage.gateway(pace=0.05):
        await town.say("laptop", "laptop-message-0", person=ann)
        await town.hears("laptop", "I am laptop-message-0")
        async with await open_store(stage.where) as store:
            person = await store.person(Identity("http", ACCOUNT, "ann"))
            laptop = await store.lane(Place(Address("http", ACCOUNT, "", "laptop"), Kind.DM), person)
            phone = await store.lane(Place(Address("http", ACCOUNT, "", "phone"), Kind.DM), person)
            session = await store.bound(laptop)
            assert session is not None
            await store.move(Resume(phone, session.id), person)
            await asyncio.gather(
                *(town.say(c, f"{c}-message-{n}", person=ann) for n in range(1, 4) for c in ("laptop", "phone"))
            )
            for n in range(1, 4):
                await town.hears("laptop", f"I am laptop-message-{n}")
                await town.hears("phone", f"I am phone-message-{n}")
            path = await store.path(session.id)
    assert not any("phone" in text for text in town.texts("laptop"))
    assert not any("laptop" in text for text in town.texts("phone"))
    asked = sum(entry.author.role is Role.PERSON for entry in path)
    assert asked == 7
    # One turn at a time: what was asked is followed by its answer before anything else is asked.
    said = [entry for entry in path if entry.author != GATEWAY]
    assert all(AGENT in (a.author, b.author) or a.turn == b.turn for a, b in pairwise(said))


async def test_a_long_turn_delays_no_other_session(stage: Stage) -> None:
    town = stage.town
    async with stage.gateway():
        await town.say("ann", "ann-message-0", text="please hang")
        for n in range(20):
            await town.say("bob", f"bob-message-{n}")
            await town.hears("bob", f"I am bob-message-{n}")
        assert not town.texts("ann")
