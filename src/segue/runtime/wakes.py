"""An event that tells a loop to look at the database, and the slow poll behind it."""

from __future__ import annotations

import asyncio
import contextlib


class Wake:
    """Set by whoever has work; a loop waits for it, but never longer than the poll."""

    def __init__(self, poll: float) -> None:
        self._poll = poll
        self._event = asyncio.Event()

    def set(self) -> None:
        """There may be work."""
        self._event.set()

    async def wait(self) -> None:
        """Return when there may be work, at the latest when the poll is due."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._poll):
                await self._event.wait()
        self._event.clear()
