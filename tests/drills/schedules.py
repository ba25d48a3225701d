"""Two replicas; one is killed at the very moment when scheduled work is due. Each piece is done once all the same."""

import asyncio
import random
import time

from segue import Address, Identity, Kind, Place, Store, open_store
from segue.changes.exchange import schedules
from segue.changes.exchange.schedules import Order
from segue.core.schedules import ONCE, Plan
from segue.core.values import Value
from segue.store import fresh_ids
from tests.drills.gateways import ACCOUNT, start
from tests.drills.gateways import Plan as Running
from tests.drills.town import Town
from tests.forge import kill
from tests.ports import free_port


class Found(Value, frozen=True):
    """What came of it."""

    due: int
    """Times that were due."""
    done: int
    """Answers that came."""
    doubled: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether each was done once."""
        return self.due == self.done and not self.doubled and not self.lost


async def run(where: str, rounds: int, seed: int) -> Found:
    """Let work be due in every chat and kill a replica at that moment, again and again."""
    chance, town = random.Random(seed), Town(4, seed)
    ids = fresh_ids(time.time)
    async with town.platform():
        plans = [Running(where, port, town.callback) for port in (town.port, free_port())]
        gateways = [await asyncio.to_thread(start, plan) for plan in plans]
        try:
            await town.ready()
            for chat in town.chats:
                await town.say(chat, f"{chat}-message-0")
                await town.hears(chat, f"I am {chat}-message-0")
            tasks = []
            async with await open_store(where) as store:
                for round_ in range(rounds):
                    due = time.time() + 0.3
                    for chat in town.chats:
                        tasks.append((chat, f"task {round_} of {chat}."))
                        await _schedule(store, *tasks[-1], due, ids())
                    await asyncio.sleep(max(0.0, due - time.time() + chance.uniform(-0.05, 0.3)))
                    victim = chance.randrange(2)
                    await asyncio.to_thread(kill, gateways[victim])
                    gateways[victim] = await asyncio.to_thread(start, plans[victim])
                for chat, task in tasks:
                    await town.hears(chat, task)
        finally:
            for gateway in gateways:
                await asyncio.to_thread(kill, gateway)
    answers = {task: sum(task in text for text in town.texts(chat)) for chat, task in tasks}
    return Found(
        len(tasks),
        sum(map(bool, answers.values())),
        tuple(task for task, times in answers.items() if times > 1),
        tuple(task for task, times in answers.items() if not times),
    )


async def _schedule(store: Store, chat: str, task: str, due: float, id: str) -> None:
    """Have something done in a chat at that moment."""
    person = await store.person(Identity("http", ACCOUNT, f"person of {chat}"))
    lane = await store.lane(Place(Address("http", ACCOUNT, "", chat), Kind.DM), person)
    session = await store.bound(lane)
    assert session is not None
    order = Order(session.id, lane.key, person.id, task, Plan(due, ONCE, "UTC"), "origin", lane.address.key)
    await store.driver.write(schedules.make, order, id, task, time.time())
