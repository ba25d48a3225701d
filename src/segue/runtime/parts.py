"""The objects that all parts of one gateway share."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from segue.changes.exchange.turns import Sequel
from segue.core.contracts.adapters import Adapter
from segue.core.contracts.database import Clock, Ids
from segue.core.contracts.probes import Probe
from segue.core.settings import GatewaySettings
from segue.runtime.lifecycle.failures import Failures
from segue.runtime.replica import Replica
from segue.runtime.retrying import Patient
from segue.runtime.telemetry.metrics import Metrics
from segue.runtime.telemetry.spans import Tracing
from segue.runtime.tools.lent import Lent
from segue.runtime.windows.watchers import Watches


@dataclass(frozen=True)
class Ground:
    """One store, one replica and the host's settings, with what tells the time, makes ids and watches."""

    store: Patient
    adapters: Mapping[tuple[str, str], Adapter]
    replica: Replica
    settings: GatewaySettings
    clock: Clock
    ids: Ids
    metrics: Metrics
    tracing: Tracing | None
    watches: Watches
    probe: Probe
    sequel: Sequel
    failures: Failures
    lent: Lent = field(default_factory=Lent)
