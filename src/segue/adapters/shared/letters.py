"""Dead letters: what a platform told and can't be read is kept as it came, so that nobody fetches it for ever."""

import json
import logging
from collections.abc import Awaitable
from typing import TypeVar

from msgspec import ValidationError

from segue.core.contracts.adapters import Letter
from segue.errors import Disconnected, SegueError, SendError, StoreError

T = TypeVar("T")
log = logging.getLogger(__name__)

_PASSING = (Disconnected, SendError, StoreError, OSError)
"""Trouble of the platform or of the disk: the same can be read later."""

_WORDED = (SegueError, ValidationError)
"""Errors that say what is wrong with what came; what others say may be anything."""


async def or_letter(reading: Awaitable[T], raw: object, platform: str, account: str) -> T | Letter:
    """What something that came in is read as; a dead letter if it can't be read, whatever the reason."""
    try:
        return await reading
    except _PASSING:
        raise
    except Exception as error:
        kind = type(error).__name__
        if isinstance(error, _WORDED):
            return Letter(platform, account, _text(raw), str(error), kind)
        log.exception("something from %s.%s can't be read", platform, account)
        return Letter(platform, account, _text(raw), kind, kind)


def _text(raw: object) -> str:
    try:
        return json.dumps(raw)
    except (RecursionError, TypeError, ValueError):
        return "(what came can't be written as JSON)"
