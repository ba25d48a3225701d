"""A great many messages that wait when a gateway starts: all of them are answered, in order."""

import asyncio
import time

from segue import Address, Identity, Kind, PersonId, Place, SessionId, Text, open_store
from segue.changes.accept import Fresh, FrontDoor
from segue.core.messages import Arrival, Speaker
from segue.core.settings import GatewaySettings
from segue.store import fresh_ids
from tests.drills.gateways import ACCOUNT, Plan, start
from tests.drills.town import Town
from tests.forge import kill

CHATS = [f"chat{n}" for n in range(20)]


async def run(where: str, messages: int) -> list[str]:
    """Leave so many messages in the database, start a gateway; returns what wasn't answered in order."""
    each = messages // len(CHATS)
    await _leave(where, each)
    town = Town(0, seed=7)
    async with town.platform():
        gateway = await asyncio.to_thread(start, Plan(where, town.port, town.callback))
        try:
            for chat in CHATS:
                await town.hears(chat, f"I am {chat}-message-{each - 1}")
        finally:
            await asyncio.to_thread(kill, gateway)
    answered = {chat: [said for call in town.calls(chat) for said in call["answers"]] for chat in CHATS}
    return [chat for chat in CHATS if answered[chat] != [f"{chat}-message-{n}" for n in range(each)]]


async def _leave(where: str, each: int) -> None:
    async with await open_store(where) as store:
        ids, door = fresh_ids(time.time), FrontDoor(GatewaySettings())

        async def leave(chat: str, n: int) -> None:
            fresh = Fresh(PersonId(ids()), SessionId(ids()), ids(), (ids(),), ids(), time.time())
            await store.driver.write(door.accept, _arrival(chat, n), fresh, None)

        for n in range(each):
            await asyncio.gather(*(leave(chat, n) for chat in CHATS))


def _arrival(chat: str, n: int) -> Arrival:
    place = Place(Address("http", ACCOUNT, "", chat), Kind.DM)
    speaker = Speaker(Identity("http", ACCOUNT, chat), chat)
    message = f"{chat}-message-{n}"
    return Arrival(place, message, speaker, (Text(f"I am {message}"),), time.time())
