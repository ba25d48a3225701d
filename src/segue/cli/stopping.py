"""Signals: the first asks to stop, the second stops at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Whether somebody asked this process to stop."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()

    def listen(self) -> None:
        """Hear the signals from now on."""
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._heard, number)

    async def wait(self) -> None:
        """Until somebody asks."""
        await self._asked.wait()

    def _heard(self, number: int) -> None:
        if self._asked.is_set():
            # What is durable stays so; the rest is taken over like that of any process that died.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        log.info("stopping; a second signal stops at once")
        self._asked.set()
