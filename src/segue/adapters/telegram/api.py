"""Telegram's Bot API: calls by name, with errors that say what became of them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from segue.adapters.shared.connections import Returned
from segue.adapters.shared.web import Upload, Web, form
from segue.core.messages import Sending
from segue.core.values import Secret
from segue.errors import MessageGone, SendError, SendLater, SendNever

PUBLIC = "https://api.telegram.org"
POLL = 25
"""Seconds that Telegram holds a call for updates open."""
UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")
_UNKNOWN, _CONFLICT, _TOO_MANY, _SERVER_ERROR = (401, 404), 409, 429, 500


class Api:
    """Calls Telegram as one bot; raises nothing but `SendError`s."""

    def __init__(self, token: Secret, base: str) -> None:
        self.base = base
        self._files = f"{base}/file/bot{token.reveal()}"
        self._web = Web("Telegram", f"{base}/bot{token.reveal()}", Sending.EDIT)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._web.close()

    async def call(
        self, method: str, files: Mapping[str, Upload] | None = None, slowest: float = 0.0, **fields: Any
    ) -> Any:
        """The result of a method; fields that are None are left out."""
        given = {name: value for name, value in fields.items() if value is not None}
        body, headers = form(given, files) if files else (given, {})
        answer = await self._web.call("POST", f"/{method}", body, headers, slowest)
        told = self._web.told(answer)
        if isinstance(told, dict) and told.get("ok") is True:
            return told.get("result")
        raise self._refused(answer, told if isinstance(told, dict) else {})

    async def updates(self, offset: int | None, wait: int = POLL) -> list[Any]:
        """Updates that wait, the oldest first; Telegram forgets those before the offset."""
        found = await self.call("getUpdates", None, wait + 10, timeout=wait, allowed_updates=UPDATES, offset=offset)
        return found if isinstance(found, list) else [found]

    async def file(self, id: str) -> str:
        """The address at which a file can be fetched."""
        found = await self.call("getFile", file_id=id)
        return f"{self._files}/{quote(str(found.get('file_path', '')))}"

    def _refused(self, answer: Returned, told: dict[str, Any]) -> SendError:
        why, more = str(told.get("description", "")), told.get("parameters") or {}
        if chat := more.get("migrate_to_chat_id"):
            return Migrated(str(chat))
        if answer.status in _UNKNOWN:
            return SendLater("Telegram doesn't know the token. Get one from @BotFather.")
        if answer.status == _CONFLICT:
            return SendLater("Somebody else uses this bot. Stop the other program, or revoke the token.")
        if answer.status == _TOO_MANY or answer.status >= _SERVER_ERROR:
            return self._web.refused(answer, more.get("retry_after"))
        kind = next((kind for words, kind in _REFUSALS.items() if words in why.casefold()), SendNever)
        return kind(f"Telegram refused it: {why}.")


class Migrated(SendNever):
    """The group is a supergroup now, and has another id."""

    def __init__(self, chat: str) -> None:
        super().__init__("Telegram refused it: the group has become a supergroup.")
        self.chat = chat


class Unchanged(SendNever):
    """The message says that already."""


class Unreadable(SendNever):
    """Telegram can't read its markup."""


class NoRichThere(SendNever):
    """A server of the Bot API's that doesn't know rich messages, and so misses the text."""


_REFUSALS: dict[str, type[SendNever]] = {
    "message is not modified": Unchanged,
    "can't parse entities": Unreadable,
    "message to edit not found": MessageGone,
    "message can't be edited": MessageGone,
    "message_id_invalid": MessageGone,
    "message text is empty": NoRichThere,
}
