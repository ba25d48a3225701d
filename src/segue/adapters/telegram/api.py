"""The calls to Telegram: its own library's, with errors that say what became of a call."""

import json
import ssl
from collections.abc import Awaitable
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from telegram import Bot
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)
from telegram.request import HTTPXRequest

from segue.core.values import Secret
from segue.errors import Disconnected, MessageGone, SendLater, SendNever, SendUnsure

T = TypeVar("T")
PUBLIC = "https://api.telegram.org"
POLL = 25
"""Seconds that Telegram holds a call for updates open."""
UPDATES = ["message", "edited_message", "callback_query", "my_chat_member"]
_CALL = 110.0
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@cache
def _trust() -> ssl.SSLContext:
    """The authorities that Telegram's library trusts, read once for all lines of all bots."""
    return httpx.create_ssl_context()


class _Request(HTTPXRequest):
    """Talks HTTP, and writes no answer to a log."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(payload)
        except ValueError as error:
            raise TelegramError("The answer isn't JSON.") from error
        if not isinstance(answer, dict):
            raise TelegramError("The answer isn't an object.")
        return answer


class Api(Bot):
    """A bot, as Telegram's library has it; what comes in is left as it came, for one garbled update harms no other."""

    def __init__(self, token: Secret, base: str) -> None:
        # A proxy that the environment names can't reach this machine's own loopback.
        direct = {"trust_env": urlsplit(base).hostname not in _LOOPBACK, "verify": _trust()}
        polls = _Request(connect_timeout=5, pool_timeout=_CALL, httpx_kwargs=direct)
        calls = _Request(connect_timeout=5, read_timeout=_CALL, pool_timeout=_CALL, httpx_kwargs=direct)
        super().__init__(token.reveal(), f"{base}/bot", f"{base}/file/bot", calls, polls)
        self._lines = polls, calls

    async def hang_up(self) -> None:
        """Let go of the connections."""
        for line in self._lines:
            await line.shutdown()

    async def updates(self, offset: int | None, wait: int = POLL) -> list[Any]:
        """What waits, the oldest first; what lies before the offset is forgotten."""
        wanted = {"timeout": wait, "allowed_updates": UPDATES} | ({} if offset is None else {"offset": offset})
        found = await self._post("getUpdates", wanted, read_timeout=wait + 10)
        return found if isinstance(found, list) else [found]


class Unchanged(SendNever):
    """The message says that already."""


class Unreadable(SendNever):
    """Telegram can't read its markup."""


class NoFileThere(SendNever):
    """A server of the Bot API's that is too old to put a file into a text."""


async def sent(call: Awaitable[T]) -> T:
    """A call that sends something; its errors say what became of that."""
    try:
        return await call
    except RetryAfter as error:
        raise SendLater("Telegram wants fewer messages.", _seconds(error.retry_after)) from error
    except ChatMigrated:
        raise
    except (BadRequest, Forbidden) as error:
        why = f"Telegram refused it: {error.message}."
        kind = next((kind for words, kind in _REFUSALS.items() if words in error.message.casefold()), SendNever)
        raise kind(why) from error
    except InvalidToken as error:
        raise SendLater("Telegram doesn't know the token.") from error
    except NetworkError as error:
        if isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
            raise SendLater("Telegram can't be reached.") from error
        raise SendUnsure("The call to Telegram broke off.") from error
    except TelegramError as error:
        raise SendUnsure("Telegram's answer can't be understood.") from error


async def reached(call: Awaitable[T]) -> T:
    """A call that keeps the connection; its errors say why there is none."""
    try:
        return await call
    except BadRequest:
        raise
    except InvalidToken as error:
        raise Disconnected("Telegram doesn't know the token. Get one from @BotFather.") from error
    except Conflict as error:
        raise Disconnected("Somebody else uses this bot. Stop the other program, or revoke the token.") from error
    except TelegramError as error:
        raise Disconnected(f"Telegram can't be reached ({type(error).__name__}).") from error


_REFUSALS: dict[str, type[SendNever]] = {
    "message is not modified": Unchanged,
    "can't parse entities": Unreadable,
    "message to edit not found": MessageGone,
    "message can't be edited": MessageGone,
    "message_id_invalid": MessageGone,
    "there is no media in the message": NoFileThere,
}


def _seconds(given: float | timedelta) -> float:
    return given.total_seconds() if isinstance(given, timedelta) else float(given)
