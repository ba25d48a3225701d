"""Prunes rows that decide nothing any more, each kind by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from segue.changes import audit, run_days
from segue.changes.exchange import letters, questions
from segue.changes.people import browsers, codes, strangers, tokens
from segue.changes.places import merges
from segue.core.contracts.database import Clock
from segue.core.lanes import account_key
from segue.core.settings import GatewaySettings
from segue.runtime.lifecycle.failures import Failures, ItemGuard
from segue.runtime.retrying import Patient

_PACE = 600.0


class Pruner:
    """Deletes old keys of arrivals, codes, tokens, questions, refusals and strangers."""

    def __init__(
        self,
        store: Patient,
        accounts: Iterable[tuple[str, str]],
        settings: GatewaySettings,
        clock: Clock,
        failures: Failures,
    ) -> None:
        self._store = store
        self._accounts = tuple(accounts)
        self._settings = settings
        self._clock = clock
        self._guard = ItemGuard("Pruning", failures)
        self._kinds: dict[str, Callable[[], Awaitable[object]]] = {
            "keys of arrivals": self._keys,
            "letters of strangers": self._letters,
            "codes": lambda: store.write(codes.forget, clock()),
            "questions": lambda: store.write(questions.expire, clock()),
            "audit": lambda: store.write(audit.forget, clock()),
            "browsers": lambda: store.write(browsers.forget, clock()),
            "tokens": lambda: store.write(tokens.forget, clock()),
            "strangers": self._strangers,
            "links of chats": self._links,
        }

    async def run(self) -> None:
        """Prune now and then until cancelled."""
        while True:
            await self._guard.for_each_item(self._kinds, lambda kind: self._kinds[kind](), str)
            await asyncio.sleep(_PACE)

    async def _keys(self) -> None:
        while await self._store.write(letters.forget, self._clock()):
            """Until none is left, a batch at a time: others go on between."""

    async def _letters(self) -> None:
        for platform, account in self._accounts:
            await self._store.write(letters.forget_strangers, account_key(platform, account), self._clock())

    async def _strangers(self) -> None:
        """Once a day, since each person must be looked for in all that may mention them."""
        if not await self._store.write(run_days.begin_daily, "strangers", self._clock()):
            return
        after, more = "", True
        while more:
            page = await self._store.read(strangers.find, after, self._clock())
            for person in page.strangers:
                await self._store.write(strangers.forget, person, self._settings.hosts, self._clock())
            after, more = page.last, bool(page.last)

    async def _links(self) -> None:
        """Once a day, since all links are looked at."""
        if not await self._store.write(run_days.begin_daily, "links", self._clock()):
            return
        while unspoken := await self._store.read(merges.unspoken, self._clock()):
            await self._store.write(merges.forget, unspoken, self._clock())
