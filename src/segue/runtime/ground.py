"""What every part of one gateway stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from segue.core.contracts import Adapter, Clock, Ids, Probe
from segue.runtime.metrics import Metrics
from segue.runtime.patience import Patient
from segue.runtime.replica import Replica
from segue.runtime.settings import GatewaySettings
from segue.runtime.tracing import Tracing
from segue.runtime.watches import Watches


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
    tracing: Tracing
    watches: Watches
    probe: Probe
