"""The chats of one bot: each is called by the id that it has now, and no faster than Telegram allows."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from telegram.error import ChatMigrated

from segue.adapters.shared.rates import Limiter, Rate
from segue.adapters.telegram.api import sent
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.values import Moment, Value
from segue.errors import SendLater, SendNever

T = TypeVar("T")

_PATIENCE = 1.0
"""Seconds that a call waits for its turn by itself; for longer, the gateway does."""


class Pace(Value, frozen=True):
    """What Telegram allows a bot."""

    overall: Rate = Rate(30, 1.0)
    chat: Rate = Rate(1, 1.0)
    group: Rate = Rate(20, 60.0)
    edits: Rate = Rate(1, 1.0)
    group_edits: Rate = Rate(1, 3.0)
    """As many as new messages, but apart: a reply that grows mustn't have to wait a minute for its end."""


class Chats:
    """Makes the calls that are for a chat."""

    def __init__(self, pace: Pace, clock: Clock) -> None:
        self._pace = pace
        self._clock = clock
        self._limiter = Limiter()
        self._moved: dict[str, str] = {}
        """Groups that became supergroups, and so have another id."""
        self._quiet: dict[str, Moment] = {}
        """Until when Telegram wants to hear nothing for a chat."""

    async def call(self, address: Address, call: Callable[[int], Awaitable[T]]) -> T:
        """Call for a chat, by the id that it has now."""
        try:
            return await self._heeding(address.chat, call(number(self._moved.get(address.chat, address.chat))))
        except ChatMigrated as moved:
            self.became(address.chat, str(moved.new_chat_id))
            return await self._heeding(address.chat, call(moved.new_chat_id))

    def became(self, old: str, new: str) -> None:
        """A group is a supergroup now."""
        self._moved[old] = new

    def aliases(self, chat: str) -> tuple[str, ...]:
        """Other ids of a chat."""
        return tuple(old if new == chat else new for old, new in self._moved.items() if chat in {old, new})

    async def turn_to_send(self, address: Address, kind: str = "sends") -> None:
        """Wait until Telegram allows one more message."""
        await self._turn(address, kind, self._pace.chat, self._pace.group)

    async def turn_to_edit(self, address: Address) -> None:
        """Wait until Telegram allows one more change of a message."""
        await self._turn(address, "edits", self._pace.edits, self._pace.group_edits)

    async def _turn(self, address: Address, kind: str, chat: Rate, group: Rate) -> None:
        wanted = {"overall": self._pace.overall, f"{kind}/{address.chat}": chat}
        if address.chat.startswith("-"):
            wanted[f"{kind}/group/{address.chat}"] = group
        while wait := self._quiet_for(address.chat) or self._limiter.take(wanted, self._clock()):
            if wait > _PATIENCE:
                raise SendLater("Telegram allows no more messages there for now.", wait)
            await asyncio.sleep(wait)

    def _quiet_for(self, chat: str) -> float:
        left = self._quiet.get(chat, 0.0) - self._clock()
        if left <= 0:
            self._quiet.pop(chat, None)
        return max(left, 0.0)

    async def _heeding(self, chat: str, call: Awaitable[T]) -> T:
        """A call; if Telegram asks for patience, the chat is left alone for as long."""
        try:
            return await sent(call)
        except SendLater as error:
            if error.seconds is not None:
                self._quiet[chat] = self._clock() + error.seconds
            raise


def number(id: str) -> int:
    """An id as Telegram has it."""
    try:
        return int(id)
    except ValueError as error:
        raise SendNever(f"{id!r} is no id of Telegram's.") from error


def thread(address: Address) -> int | None:
    """The topic of an address."""
    return number(address.thread) if address.thread else None
