"""A gateway in this very process with people around it, who keep every word that it gave them."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

from segue.core.contracts.adapters import Accepted, Connection, Intake
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Delivery, Sending, Speaker, Text
from segue.core.people import UNBOUNDED
from segue.core.settings import AccountSettings, GatewaySettings, Streams
from segue.errors import StoreError

PLATFORM, ACCOUNT = "wall", "alpha"

Tell = Callable[[str, str], Any]
"""Called with what somebody outside learnt, and of which message or delivery."""
MESSAGE, DELIVERY = "the message was accepted", "the delivery was sent"


class Wall:
    """A platform on which everything is kept by its key, and its adapter."""

    platform = PLATFORM
    account = ACCOUNT
    sending = Sending.KEYED
    connection = Connection.ANY

    def __init__(self, tell: Tell, slowest: float = 0.0) -> None:
        self._tell = tell
        self._slowest = slowest
        """Seconds that a call may take."""
        self.posts: dict[str, Delivery] = {}

    async def run(self, intake: Intake) -> None:
        intake.connected()
        await asyncio.Event().wait()

    def fits(self, text: str) -> bool:
        return len(text) <= 4096

    async def send(self, delivery: Delivery) -> str:
        self._tell(DELIVERY, delivery.key)
        if self._slowest:
            await asyncio.sleep(random.uniform(0.0, self._slowest))
        self.posts.setdefault(delivery.key, delivery)
        return delivery.key

    def answers(self, message: str) -> list[Delivery]:
        """What was sent in answer to a message."""
        return [post for post in self.posts.values() if message in post.answers]


def settings(lease: float = 5.0) -> GatewaySettings:
    """What such a gateway is told by its host."""
    account = AccountSettings(public=True, streams=Streams.WHOLE)
    return GatewaySettings(
        limits=UNBOUNDED,
        accounts={(PLATFORM, ACCOUNT): account},
        lease=lease,
        poll=min(lease / 2, 0.5),
        grace=2.0,
        deaths=1000,
    )


def said(chat: str, message: str, text: str = "") -> Arrival:
    """One person says one thing in their own chat."""
    address = Address(PLATFORM, ACCOUNT, chat=chat)
    speaker = Speaker(Identity(PLATFORM, ACCOUNT, f"person of {chat}"), chat)
    return Arrival(Place(address, Kind.DM), message, speaker, (Text(text or f"I am {message}"),), 0.0)


async def talk(
    accept: Callable[[Arrival], Any], chat: str, messages: int, tell: Tell, dice: random.Random
) -> list[str]:
    """Say one thing after the other, each until it is accepted, some of it twice; returns what was accepted."""
    accepted: list[str] = []
    for n in range(messages):
        message = f"{chat}-{n}"
        await insist(accept, said(chat, message), tell)
        accepted.append(message)
        if dice.random() < 0.2:
            await insist(accept, said(chat, dice.choice(accepted)), tell)
        if dice.random() < 0.5:
            await asyncio.sleep(0)
    return accepted


async def insist(accept: Callable[[Arrival], Any], arrival: Arrival, tell: Tell) -> Accepted:
    """Send one message until it is accepted, as platforms do."""
    while True:
        try:
            accepted: Accepted = await accept(arrival)
        except StoreError:
            await asyncio.sleep(0.01)
        else:
            tell(MESSAGE, arrival.message)
            return accepted
