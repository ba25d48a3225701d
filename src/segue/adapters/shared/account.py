"""An adapter's own account: makes the addresses, speakers and dead letters that it tells the gateway of."""

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
"""Trouble of the platform or of the disk: the same can be read later."""

_WORDED = (SegueError, DecodeError, UnicodeError)
"""Errors that say what is wrong with what came; what others say may be anything."""

_FOREIGN = "application/x-segue-foreign"


def foreign(kind: str) -> File:
    """Stands for content of a kind that no adapter reads, such as a poll.

    Like a file it is looked at once its sender is let in, and is a dead letter then.
    """
    return File(kind, _FOREIGN, "")


class Account(Value, frozen=True):
    """The account that an adapter speaks for."""

    platform: str
    name: str
    space: str = ""
    """The guild, workspace or homeserver that all its chats are in, if there is one."""

    def __str__(self) -> str:
        return f"{self.platform}.{self.name}"

    def address(self, chat: str, thread: str = "", space: str = "") -> Address:
        """A chat of the account, or a thread in one."""
        return Address(self.platform, self.name, space or self.space, chat, thread)

    def speaker(self, user: str, name: str = "", aliases: tuple[str, ...] = ()) -> Speaker:
        """Somebody on the platform, by their id there."""
        return Speaker(Identity(self.platform, self.name, user), name, aliases)

    def unfetched(
        self, arrival: Arrival, fetch: Callable[[], Awaitable[Iterable[File | str]]], raw: object
    ) -> Arrival | Unfetched:
        """An arrival that names files, with the way to fetch them: each as it is kept, or why it isn't."""

        async def whole() -> Arrival:
            for kind in (file.name for file in arrival.unfetched if file.media == _FOREIGN):
                raise Invalid(kind, "messages of this kind aren't understood", "Write it in words.")
            return arrival.with_files(await fetch())

        return Unfetched(arrival, lambda: self.or_letter(whole(), raw)) if arrival.unfetched else arrival

    async def or_letter(self, reading: Awaitable[T], raw: object) -> T | Letter:
        """The reading of something that came in; a dead letter if it can't be read, so that it comes no more."""
        try:
            return await reading
        except _PASSING:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever breaks its reader is kept, and told in `letter`
            return self.letter(raw, error)

    async def take(self, reading: Awaitable[Arrived | None], raw: object, accept: Accept) -> None:
        """Have accepted what came in, or a dead letter of it; what says nothing to anybody is nothing at all."""
        arrived = await self.or_letter(reading, raw)
        if arrived is not None:
            await accept(arrived)

    def letter(self, raw: object, error: Exception) -> Letter:
        """A dead letter of what came in, with the error that it came to."""
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
