"""Watchdog: notices that the event loop stands still, and says what it stands at.

Law: what stands is named by its task and by places in the code, never by what anybody said.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from types import FrameType

from segue.runtime.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

_MOST_FRAMES = 20


class Watchdog:
    """A thread that expects to hear from the event loop all the time."""

    def __init__(self, metrics: Metrics, patience: float = 1.0) -> None:
        self._metrics = metrics
        self._patience = patience
        self._heard = 0.0

    async def run(self) -> None:
        """Let the thread hear from this loop until cancelled."""
        ended, loop = threading.Event(), asyncio.get_running_loop()
        self._heard = time.monotonic()
        watch = threading.Thread(
            target=self._watch, args=(ended, loop, threading.get_ident()), name="watchdog", daemon=True
        )
        watch.start()
        try:
            while True:
                self._heard = time.monotonic()
                await asyncio.sleep(self._patience / 4)
        finally:
            ended.set()

    def _watch(self, ended: threading.Event, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        told = 0.0
        while not ended.wait(self._patience / 4):
            heard = self._heard
            if heard != told and time.monotonic() - heard > self._patience:
                told = heard
                self._tell(loop, thread)

    def _tell(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        self._metrics.stood_still()
        task = asyncio.current_task(loop)
        frames = sys._current_frames()  # noqa: SLF001 -- the only way to see where another thread is
        # A thread beside the loop that lets nobody else run holds the loop up too.
        beside = [place for id, frame in frames.items() if id != thread for place in _places(frame)[-1:]]
        log.warning(
            "the event loop stands still in %s",
            task.get_name() if task else "no task",
            extra={"stack": _places(frames.get(thread)), "beside": beside},
        )


def _places(frame: FrameType | None) -> list[str]:
    found = traceback.extract_stack(frame)[-_MOST_FRAMES:] if frame else []
    return [f"{place.filename}:{place.lineno} in {place.name}" for place in found]
