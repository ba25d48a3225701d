"""The meter of an account whose platform counts its messages: looked at now and then, while messages go out."""

import time

from segue.changes.exchange import metering
from segue.core.contracts.adapters import Adapter, IsMetered
from segue.core.contracts.database import Clock
from segue.core.limits.meters import Metered
from segue.core.settings import GatewaySettings
from segue.runtime.retrying import Patient

_LOOK = 60.0
"""Seconds between two looks."""


class Meter:
    """Knows how many messages an account has had this month, as of a minute ago."""

    def __init__(self, store: Patient, adapter: Adapter, settings: GatewaySettings, clock: Clock) -> None:
        self._store = store
        self._adapter = adapter
        self._settings = settings
        self._clock = clock
        self._looked = float("-inf")
        self._found: Metered | None = None

    @property
    def trouble(self) -> str:
        """The words for a host whose free messages are about to end; empty while there are enough."""
        return self._found.warning if self._found is not None and self._found.low else ""

    async def look(self) -> None:
        """Count what went out, at most once a minute, and warn the host if that is due."""
        adapter = self._adapter
        if isinstance(adapter, IsMetered) and time.monotonic() - self._looked >= _LOOK:
            self._looked = time.monotonic()
            about = (adapter.platform, adapter.account, adapter.free_a_month, self._settings)
            self._found = await self._store.write(metering.look, *about, self._clock())
