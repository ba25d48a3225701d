"""Hints inside one process: who wants to know that something changed."""

import asyncio
from collections.abc import Callable

from segue.core.contracts.wakes import Hearers, Wake


class Hints:
    """Calls every listener of this process."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[str], None]] = {}

    def listen(self, heard: Callable[[str], None]) -> Callable[[], None]:
        """Call back for each hint; returns how to stop."""
        mark = object()
        self._listeners[mark] = heard

        def stop() -> None:
            self._listeners.pop(mark, None)

        return stop

    def tell(self, topic: str) -> None:
        """Call the listeners, each in a step of its own, so that one that fails keeps nobody from hearing."""
        loop = asyncio.get_running_loop()
        for heard in self._listeners.values():
            loop.call_soon(heard, topic)

    def wake(self, wake: Wake) -> None:
        """Send a wake-up to whom it is for, as `TOPIC` or `TOPIC ABOUT`."""
        send = self.tell if wake.hearers is Hearers.HERE else self.send
        send(f"{wake.topic} {wake.about}".rstrip())

    def send(self, topic: str) -> None:
        """Tell whoever shares the database; here that is this process alone."""
        self.tell(topic)

    async def close(self) -> None:
        """Let go of what reaches other processes."""
