"""The chats of one bot: each is called by the id that it has now, and no faster than Telegram allows."""

from typing import Any

from msgspec.structs import replace

from segue.adapters.shared.lookups import Lookups
from segue.adapters.shared.rates import Limiter, Rate
from segue.adapters.telegram.api import Api, Migrated
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.values import Value
from segue.errors import SendLater, SendNever

SENDS, FILES, EDITS = "sends", "files", "edits"
EPHEMERAL, PRIVATE = "ephemeral", "private"
"""Messages in a group that one person alone sees: there, or in their private chat. `located` reads their ids."""
_ADMINS = {"creator", "administrator"}
_PATIENCE = 1.0
"""Seconds that a call waits for its turn by itself; for longer, the gateway does."""


class Pace(Value, frozen=True):
    """The rates that Telegram allows a bot."""

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
        self._ranks = Lookups("Telegram", clock)

    async def is_admin(self, chat: int, bot: int) -> bool:
        """Whether the bot is an admin of a group, who is shown all that is said there; no, if Telegram doesn't tell."""

        async def ask() -> str:
            return str((await self._api.call("getChatMember", chat_id=chat, user_id=bot)).get("status"))

        return await self._ranks.get(_rank(chat), ask, "") in _ADMINS

    def ranked(self, chat: int) -> None:
        """The bot may do more or less in a group than before."""
        self._ranks.forget(_rank(chat))

    async def call(self, address: Address, method: str, **fields: Any) -> Any:
        """Call for a chat, by the id that it has now; if Telegram asks for patience, the chat is left alone."""
        chat = address.chat
        try:
            return await self._api.call(method, chat_id=number(self._moved.get(chat, chat)), **fields)
        except Migrated as moved:
            self.became(chat, moved.chat)
            return await self.call(address, method, **fields)
        except SendLater as error:
            self._limiter.quiet(error.seconds, *(f"{kind}/{chat}" for kind in (SENDS, FILES, EDITS)))
            raise

    async def change(self, address: Address, message: str, verb: str, what: str = "", **fields: Any) -> Any:
        """Call for a message of ours: `edit` its `Text` or `Media`, or `delete` it."""
        address, ids = located(address, message)
        kind = "EphemeralMessage" if EPHEMERAL in message else "Message"
        return await self.call(address, f"{verb}{kind}{what}", **ids, **fields)

    def became(self, old: str, new: str) -> None:
        """A group is a supergroup now."""
        self._moved[old] = new

    def aliases(self, chat: str) -> tuple[str, ...]:
        """Other ids of a chat."""
        return tuple(old if new == chat else new for old, new in self._moved.items() if chat in {old, new})

    async def turn(self, address: Address, kind: str) -> None:
        """Wait until Telegram allows one more message, file or edit there."""
        pace, chat = self._pace, address.chat
        wanted = {"overall": pace.overall, f"{kind}/{chat}": pace.edits if kind == EDITS else pace.chat}
        if chat.startswith("-"):
            wanted[f"{kind}/group/{chat}"] = pace.group_edits if kind == EDITS else pace.group
        await self._limiter.turn(wanted)


def located(address: Address, message: str) -> tuple[Address, dict[str, int]]:
    """The chat that a message of ours is in, and what Telegram knows it by."""
    kind, _, rest = message.partition(".")
    user, _, id = rest.partition(".")
    if kind == EPHEMERAL:
        return address, {"receiver_user_id": number(user), "ephemeral_message_id": number(id)}
    if kind == PRIVATE:
        return replace(address, chat=user, thread=""), {"message_id": number(id)}
    return address, {"message_id": number(message)}


def _rank(chat: int) -> str:
    return f"the bot's rank in {chat}"


def number(id: str) -> int:
    """An id as Telegram has it."""
    try:
        return int(id)
    except ValueError as error:
        raise SendNever(f"{id!r} is no id of Telegram's.") from error


def thread(address: Address) -> int | None:
    """The topic of an address."""
    return number(address.thread) if address.thread else None
