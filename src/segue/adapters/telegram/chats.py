"""The chats of one bot: each is called by the id that it has now, and no faster than Telegram allows."""

from typing import Any

from segue.adapters.shared.rates import Limiter, Rate
from segue.adapters.telegram.api import Api, Migrated
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.values import Value
from segue.errors import SendLater, SendNever

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

    def __init__(self, api: Api, pace: Pace, clock: Clock) -> None:
        self._api = api
        self._pace = pace
        self._limiter = Limiter(clock, _PATIENCE)
        self._moved: dict[str, str] = {}
        """Groups that became supergroups, and so have another id."""

    async def call(self, address: Address, method: str, **fields: Any) -> Any:
        """Call for a chat, by the id that it has now; if Telegram asks for patience, the chat is left alone."""
        chat = address.chat
        try:
            return await self._api.call(method, chat_id=number(self._moved.get(chat, chat)), **fields)
        except Migrated as moved:
            self.became(chat, moved.chat)
            return await self.call(address, method, **fields)
        except SendLater as error:
            self._limiter.quiet(error.seconds, f"sends/{chat}", f"files/{chat}", f"edits/{chat}")
            raise

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
        await self._limiter.turn(wanted)


def number(id: str) -> int:
    """An id as Telegram has it."""
    try:
        return int(id)
    except ValueError as error:
        raise SendNever(f"{id!r} is no id of Telegram's.") from error


def thread(address: Address) -> int | None:
    """The topic of an address."""
    return number(address.thread) if address.thread else None
