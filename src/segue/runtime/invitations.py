"""Invitations: a code that lets somebody in on another platform, links them and brings the conversation along."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping

from segue.changes.people import codes
from segue.changes.sessions import sessions
from segue.core.contracts.adapters import Adapter, HasStartLinks
from segue.core.contracts.database import Clock, Driver
from segue.core.destinations import shown
from segue.core.lanes import Lane, Person
from segue.core.people import RANDOMNESS, make_code
from segue.core.values import Value
from segue.core.windows import ShowsWindows
from segue.errors import SendError
from segue.runtime.lifecycle.failures import Failures

log = logging.getLogger(__name__)

_CALL = 10.0
"""Seconds that a platform has to make a link: somebody waits for the code."""


class Invitation(Value, frozen=True):
    """A code, the links that type it where they are opened, and the accounts where it has to be typed."""

    code: str
    links: Mapping[str, str]
    """By account, as people name it."""
    typed: tuple[str, ...]


class Inviting:
    """Gives whoever sits at a terminal or a page a way to bring the conversation to their phone."""

    def __init__(
        self,
        driver: Driver,
        adapters: Mapping[tuple[str, str], Adapter],
        clock: Clock,
        failures: Failures,
        randomness: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._driver = driver
        self._adapters = adapters
        self._clock = clock
        self._failures = failures
        self._randomness = randomness

    async def invite(self, lane: Lane, person: Person) -> Invitation | None:
        """A way out of this lane; None if it speaks to nothing, or nothing else is connected."""
        others = {account: a for account, a in sorted(self._adapters.items()) if not isinstance(a, ShowsWindows)}
        bound = await self._driver.read(sessions.bound, lane)
        if bound is None or not others:
            return None
        code, secret = make_code(self._randomness(RANDOMNESS)), self._randomness(32).hex()
        await self._driver.write(codes.give_handoff, person.id, lane, bound.id, code, secret, self._clock())
        links: dict[str, str] = {}
        for account, adapter in others.items():
            if isinstance(adapter, HasStartLinks):
                try:
                    async with asyncio.timeout(_CALL):
                        with self._failures.adapter_call(*account, "making a start link"):
                            links[shown(*account)] = await adapter.start_link(code)
                except (SendError, TimeoutError) as error:
                    why = str(error) or "no answer came in time"
                    log.info("%s gives no start link now: %s", shown(*account), why)
        return Invitation(code, links, tuple(shown(*account) for account in others if shown(*account) not in links))
