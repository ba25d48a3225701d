"""Telegram's Bot API: calls by name, with errors that say what became of them.

What is for a chat goes to the id that it has now, and no faster than Telegram allows.
"""

import time
from collections.abc import Mapping
from typing import Any, Literal, get_args
from urllib.parse import quote

from msgspec.structs import replace

from segue.adapters.shared.connections import Returned
from segue.adapters.shared.rates import Limiter, Rate
from segue.adapters.shared.web import Upload, Web, form
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import Sending
from segue.core.values import Secret, Value
from segue.errors import MessageGone, SendError, SendLater, SendNever

PUBLIC = "https://api.telegram.org"
POLL = 25
"""Seconds that Telegram holds a call for updates open."""
UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")
Turn = Literal["sends", "files", "edits"]
"""What is counted apart in each chat."""
EPHEMERAL, PRIVATE = "ephemeral", "private"
"""Messages in a group that one person alone sees: there, or in their private chat. `Api.change` reads their ids."""
_FIXES = {
    **dict.fromkeys((401, 404), "Telegram doesn't know the token. Get one from @BotFather."),
    409: "Somebody else uses this bot. Stop the other program, or revoke the token.",
}
"""What the host is told to do, by the status of an answer."""


class Pace(Value, frozen=True):
    """The rates that Telegram allows a bot."""

    overall: Rate = Rate(30, 1.0)
    chat: Rate = Rate(1, 1.0)
    group: Rate = Rate(20, 60.0)
    edits: Rate = Rate(1, 1.0)
    group_edits: Rate = Rate(1, 3.0)
    """As many as new messages, but apart: a reply that grows mustn't have to wait a minute for its end."""


class Api:
    """Calls Telegram as one bot; raises nothing but `SendError`s."""

    def __init__(self, token: Secret, base: str, pace: Pace = Pace(), clock: Clock = time.monotonic) -> None:  # noqa: B008 -- frozen
        self.base = base
        self._files = f"{base}/file/bot{token.reveal()}"
        self._web = Web("Telegram", f"{base}/bot{token.reveal()}", Sending.EDIT)
        self._pace = pace
        self._limiter = Limiter(clock, patience=1.0)
        self.moved: dict[str, str] = {}
        """Groups that became supergroups, and so have another id."""
        self.close = self._web.close

    async def call(
        self, method: str, files: Mapping[str, Upload] | None = None, slowest: float = 0.0, **fields: Any
    ) -> Any:
        """The result of a method; fields that are None are left out."""
        given = {name: value for name, value in fields.items() if value is not None}
        body, headers = form(given, files) if files else (given, {})
        answer = await self._web.call("POST", f"/{method}", body, headers, slowest)
        found = self._web.told(answer)
        told = found if isinstance(found, dict) else {}
        if told.get("ok") is True:
            return told.get("result")
        why, more = str(told.get("description", "")), told.get("parameters") or {}
        if (chat := more.get("migrate_to_chat_id")) and "chat_id" in given:
            self.moved[str(given["chat_id"])] = str(chat)
            return await self.call(method, files, slowest, **(given | {"chat_id": chat}))
        raise self._refused(answer, why, more.get("retry_after"))

    def _refused(self, answer: Returned, why: str, seconds: float | None) -> SendError:
        if answer.status in _FIXES:
            return SendLater(_FIXES[answer.status])
        if answer.status == 429 or answer.status >= 500:
            return self._web.refused(answer, seconds)
        kind = next((kind for words, kind in _REFUSALS.items() if words in why.casefold()), SendNever)
        return kind(f"Telegram refused it: {why}.")

    async def updates(self, offset: int | None, wait: int = POLL) -> tuple[list[Any], int | None]:
        """Updates that wait, the oldest first, and the next offset: Telegram forgets those before it."""
        found = await self.call("getUpdates", None, wait + 10, timeout=wait, allowed_updates=UPDATES, offset=offset)
        told = found if isinstance(found, list) else [found]
        ids = [raw["update_id"] for raw in told if isinstance(raw, dict) and isinstance(raw.get("update_id"), int)]
        # After an empty answer nothing is left to forget; the ids may begin anew after a quiet week.
        return told, ids[-1] + 1 if ids else None

    async def file(self, id: str) -> str:
        """The address at which a file can be fetched."""
        found = await self.call("getFile", file_id=id)
        return f"{self._files}/{quote(str(found.get('file_path', '')))}"

    async def call_in(self, address: Address, method: str, **fields: Any) -> Any:
        """Call for a chat; if Telegram asks for patience, the chat is left alone."""
        chat = address.chat
        try:
            return await self.call(method, chat_id=self.moved.get(chat, chat), **fields)
        except SendLater as error:
            self._limiter.quiet(error.seconds, *(f"{kind}/{chat}" for kind in get_args(Turn)))
            raise

    async def change(self, address: Address, message: str, verb: str, what: str = "", **fields: Any) -> Any:
        """Call for a message of ours: `edit` its `Text`, `Media` or `ReplyMarkup`, or `delete` it."""
        kind, _, rest = message.partition(".")
        user, _, id = rest.partition(".")
        if kind == EPHEMERAL:
            ids = {"receiver_user_id": user, "ephemeral_message_id": id}
            return await self.call_in(address, f"{verb}EphemeralMessage{what}", **ids, **fields)
        if kind == PRIVATE:
            address, message = replace(address, chat=user, thread=""), id
        return await self.call_in(address, f"{verb}Message{what}", message_id=message, **fields)

    async def turn(self, address: Address, kind: Turn) -> None:
        """Wait until Telegram allows one more message, file or edit there."""
        pace, chat = self._pace, address.chat
        wanted = {"overall": pace.overall, f"{kind}/{chat}": pace.edits if kind == "edits" else pace.chat}
        if chat.startswith("-"):
            wanted[f"{kind}/group/{chat}"] = pace.group_edits if kind == "edits" else pace.group
        await self._limiter.turn(wanted)

    def aliases(self, chat: str) -> tuple[str, ...]:
        """Other ids of a chat."""
        return tuple(old if new == chat else new for old, new in self.moved.items() if chat in {old, new})


class Unchanged(SendNever):
    """The message says that already."""


class Unreadable(SendNever):
    """Telegram can't read its markup."""


class NoPhoto(SendNever):
    """It isn't a picture that can be shown."""


_REFUSALS: dict[str, type[SendNever]] = {
    "message is not modified": Unchanged,
    "can't parse entities": Unreadable,
    "message to edit not found": MessageGone,
    "message can't be edited": MessageGone,
    "message_id_invalid": MessageGone,
    "photo_": NoPhoto,
    "image_process_failed": NoPhoto,
}
