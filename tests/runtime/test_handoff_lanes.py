"""Wherever a conversation is handed off to, the first reply there is in it: one lane for both."""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.adapters.http.adapter import HttpOpens
from segue.adapters.http.incoming import read
from segue.adapters.shared.account import Account
from segue.changes.accept import Queued
from segue.changes.exchange import handoffs
from segue.core.contracts.adapters import Accepted, Arrived, OpensThreads
from segue.core.handoffs import Patience
from segue.core.lanes import Address, Kind, Place, Rules, Sharing
from segue.core.messages import Arrival, Opening
from segue.core.moves import Limits
from segue.core.settings import Settings
from segue.core.values import Secret
from segue.errors import SendNever
from segue.testing import Shelf
from segue.testing.personas import PERSONAS, Persona
from tests.adapters.platform import platform as http_platform
from tests.changes.world import Engine, World, private

Opened = Callable[[], Awaitable[tuple[Place, Callable[[], Awaitable[Arrival]]]]]
"""Opens something to hand off to: returns the place, and how the next message there comes in."""

RULES = st.builds(Rules, st.sampled_from(Sharing), st.sampled_from(Sharing))
KINDS = st.sampled_from([Kind.DM, Kind.GROUP, Kind.CHANNEL])
IDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12).filter(
    str.strip
)


async def arrives(platform: Persona) -> Arrival:
    """What the adapter makes of the newest thing that the platform tells."""
    came: list[Arrival] = []

    async def accept(arrival: Arrived) -> Accepted:
        assert isinstance(arrival, Arrival)
        came.append(arrival)
        return Accepted.NEW

    await platform.adapter().take(platform.told[-1], accept)
    return came[0]


async def moves_in(home: Place, open_there: Opened, rules: Rules, folder: Path) -> None:
    """Hand a session off and say something in the new place: it comes to the same session, in the bound lane."""
    world = await World.open(Engine.SQLITE, folder / "segue.db")
    try:
        place, speak = await open_there()
        reply = await speak()
        ann = await world.store.person(reply.speaker.identity, "Ann", reply.speaker.aliases)
        origin = await world.store.lane(private("ann", platform="elsewhere"), ann)
        session = await world.renew(origin, ann, "about cats")
        write, patience = world.store.driver.write, Patience()
        await write(handoffs.request, "h", session, origin, home, ann.id, patience, world.clock())
        driven = await write(handoffs.claim, "h", "me", patience, world.clock())
        assert driven is not None
        lane = await write(
            handoffs.open_in, driven, place, rules, Limits(), patience, Opening("here", "there"), world.clock()
        )
        queued = await world.accept(reply, settings=Settings(rules))
        assert isinstance(queued, Queued)
        assert (queued.lane, queued.session) == (lane, session)
    finally:
        await world.close()


@pytest.mark.parametrize("persona", PERSONAS, ids=lambda persona: persona.name)
@settings(max_examples=15, deadline=None)
@given(rules=RULES, kind=KINDS, shown=st.integers(0, 1))
def test_on_every_platform(persona: type[Persona], rules: Rules, kind: Kind, shown: int) -> None:
    platform = persona()
    ann = platform.person("Ann")
    chat = platform.dm(ann) if kind is Kind.DM else platform.group("lobby", kind)
    # Of several ids that name one person, a platform may tell any first.
    ann.shows(*ann.ids[shown % len(ann.ids) :], *ann.ids[: shown % len(ann.ids)])

    async def open_there() -> tuple[Place, Callable[[], Awaitable[Arrival]]]:
        adapter, spot, place = platform.adapter(), chat, chat.place
        if isinstance(adapter, OpensThreads):
            try:
                thread = await adapter.open_thread(chat.address, "Cats", "handoff/h")
            except SendNever:
                """There are none in such a chat: it is the chat itself."""
            else:
                spot, place = platform.at(thread), Place(thread, kind, opened=True)

        async def speak() -> Arrival:
            ann.says("and dogs?", spot)
            return await arrives(platform)

        return place, speak

    with TemporaryDirectory() as folder:
        asyncio.run(moves_in(chat.place, open_there, rules, Path(folder)))


@settings(max_examples=12, deadline=None)
@given(rules=RULES, kind=KINDS, chat=IDS, space=st.just("") | IDS, user=IDS)
def test_over_http(rules: Rules, kind: Kind, chat: str, space: str, user: str) -> None:
    home = Place(Address("http", "alpha", space, chat), kind)
    numbers = itertools.count()

    async def run(folder: Path) -> None:
        async with http_platform() as there:
            adapter = HttpOpens("alpha", Secret("s"), there.url, Shelf())

            async def open_there() -> tuple[Place, Callable[[], Awaitable[Arrival]]]:
                thread = await adapter.open_thread(home.address, "Cats", "handoff/h")

                async def speak() -> Arrival:
                    body = {
                        "id": f"m{next(numbers)}",
                        "space": space,
                        "chat": chat,
                        "chat_kind": kind,
                        "thread": "t1",
                        "person": {"id": user, "name": "Ann"},
                        "text": "and dogs?",
                    }
                    return read(json.dumps(body).encode(), Account("http", "alpha"), 1.0)[0]

                return Place(thread, kind, opened=True), speak

            await moves_in(home, open_there, rules, folder)
            await adapter.close()

    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
