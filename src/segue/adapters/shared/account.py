"""An adapter's own account: makes the addresses, speakers and dead letters that it reports to the gateway."""

import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from msgspec import DecodeError

from segue.core.contracts.adapters import Accept, Arrived, Letter, Unfetched
from segue.core.lanes import Address, Identity
from segue.core.messages import Arrival, File, Speaker
from segue.core.values import Value
from segue.errors import Disconnected, Invalid, SegueError, SendError, StoreError

T = TypeVar("T")
log = logging.getLogger(__name__)

_PASSING = (Disconnected, SendError, StoreError, OSError)
"""Temporary errors of the platform or the disk. A later attempt may succeed."""

_WORDED = (SegueError, DecodeError, UnicodeError)
"""Errors whose text describes the problem. The text of other errors may contain anything."""

_FOREIGN = "application/x-segue-foreign"


def foreign(kind: str) -> File:
    """Return a stand-in for content that no adapter reads, such as a poll.

    The gateway handles it like a file: once it admits the sender, the arrival becomes a dead letter.
    """
    return File(kind, _FOREIGN, "")


class Account(Value, frozen=True):
    """The account that an adapter speaks for."""

    platform: str
    name: str
    space: str = ""
    """The guild, workspace or homeserver of all its chats, if the platform has one."""

    def __str__(self) -> str:
        return f"{self.platform}.{self.name}"

    def address(self, chat: str, thread: str = "", space: str = "") -> Address:
        """Return the address of a chat or thread of the account."""
        return Address(self.platform, self.name, space or self.space, chat, thread)

    def speaker(self, user: str, name: str = "", aliases: tuple[str, ...] = ()) -> Speaker:
        """Return the speaker for a user id of the platform."""
        return Speaker(Identity(self.platform, self.name, user), name, aliases)

    def unfetched(
        self, arrival: Arrival, fetch: Callable[[], Awaitable[Iterable[File | str]]], raw: object
    ) -> Arrival | Unfetched:
        """Attach the way to fetch an arrival's files.

        `fetch` returns each file that was stored, or the reason why it wasn't. An arrival without files is returned
        unchanged.
        """

        async def whole() -> Arrival:
            for kind in (file.name for file in arrival.unfetched if file.media == _FOREIGN):
                raise Invalid(kind, "messages of this kind aren't understood", "Write it in words.")
            return arrival.with_files(await fetch())

        return Unfetched(arrival, lambda: self.or_letter(whole(), raw)) if arrival.unfetched else arrival

    async def or_letter(self, reading: Awaitable[T], raw: object) -> T | Letter:
        """Await a reading; turn an unreadable update into a dead letter, so that it isn't delivered again."""
        try:
            return await reading
        except _PASSING:
            raise
        except Exception as error:  # noqa: BLE001 -- every error of a reader is stored, and described in `letter`
            return self.letter(raw, error)

    async def take(self, reading: Awaitable[Arrived | None], raw: object, accept: Accept) -> None:
        """Accept an update, or a dead letter if it is unreadable. Drop updates without content."""
        arrived = await self.or_letter(reading, raw)
        if arrived is not None:
            await accept(arrived)

    def letter(self, raw: object, error: Exception) -> Letter:
        """Return a dead letter for an unreadable update, with its error."""
        kind = why = type(error).__name__
        if isinstance(error, UnicodeError):
            why = "it has half of a UTF-16 pair in it"
        elif isinstance(error, _WORDED):
            why = str(error)
        else:
            log.error("something from %s can't be read", self, exc_info=error)
        return Letter(self.platform, self.name, _text(raw), why, kind)


def _text(raw: object) -> str:
    if isinstance(raw, bytes):
        return raw.decode(errors="backslashreplace")
    try:
        return json.dumps(raw)
    except (RecursionError, TypeError, ValueError):
        return "(what came can't be written as JSON)"
