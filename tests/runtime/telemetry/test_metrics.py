import asyncio
from pathlib import Path
from typing import Any, NoReturn

import pytest
from prometheus_client.parser import text_string_to_metric_families

from segue.changes.exchange import letters
from segue.core.contracts.adapters import Accepted
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Speaker, Text
from segue.database.none import Absent
from segue.errors import StoreFull
from segue.runtime.gateway import Gateway
from segue.runtime.retrying import Patient
from segue.runtime.telemetry.metrics import Metrics
from segue.store import Store
from segue.testing import EchoAgent
from tests.in_process import gateway_on

Sample = tuple[str, frozenset[tuple[str, str]]]


def samples(metrics: Metrics) -> dict[Sample, float]:
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def figure(metrics: Metrics, name: str, **labels: str) -> float | None:
    return samples(metrics).get((name, frozenset(labels.items())))


def busy() -> Metrics:
    metrics = Metrics()
    metrics.arrivals.labels("http", "alpha", Accepted.NEW).inc()
    metrics.arrivals.labels("http", "alpha", Accepted.NEW).inc()
    metrics.arrivals.labels("http", "alpha", Accepted.DUPLICATE).inc()
    metrics.started.observe(0.003)
    for outcome, seconds in (("done", 1.5), ("failed", 2.5)):
        metrics.turns.labels(outcome).inc()
        metrics.turn_seconds.observe(seconds)
    metrics.deliveries.labels("http", "alpha", "sent").inc()
    metrics.delivery_seconds.labels("http", "alpha").observe(0.02)
    metrics.buried("http", "alpha", "KeyError")
    metrics.store_failed(StoreFull("full"))
    return metrics


def test_what_happened_is_counted() -> None:
    metrics = busy()
    account = {"platform": "http", "account": "alpha"}
    assert figure(metrics, "segue_arrivals_total", **account, outcome="new") == 2
    assert figure(metrics, "segue_arrivals_total", **account, outcome="duplicate") == 1
    assert figure(metrics, "segue_accepted_to_started_seconds_bucket", le="0.005") == 1
    assert figure(metrics, "segue_accepted_to_started_seconds_bucket", le="0.0025") == 0
    assert figure(metrics, "segue_turns_total", outcome="done") == 1
    assert figure(metrics, "segue_turn_seconds_sum") == 4.0
    assert figure(metrics, "segue_deliveries_total", **account, outcome="sent") == 1
    assert figure(metrics, "segue_delivery_seconds_count", **account) == 1
    assert figure(metrics, "segue_dead_letters_total", **account, type="KeyError") == 1
    assert figure(metrics, "segue_store_errors_total", outcome="StoreFull") == 1


def test_what_is_now_is_asked_for_when_somebody_looks() -> None:
    metrics, running = Metrics(), [1.0]
    metrics.watch(running=lambda: running[0], slots=64, lease_left=lambda: 4.5, refused=lambda: 3)
    assert figure(metrics, "segue_turns_running") == 1
    running[0] = 7
    assert figure(metrics, "segue_turns_running") == 7
    assert figure(metrics, "segue_turn_slots") == 64
    assert figure(metrics, "segue_lease_left_seconds") == 4.5
    assert figure(metrics, "segue_writes_refused") == 3


def test_two_gateways_count_apart() -> None:
    busy()
    assert figure(Metrics(), "segue_turn_seconds_count") == 0


def test_labels_name_no_person_chat_or_session() -> None:
    names = {name for _, labels in samples(busy()) for name, _ in labels}
    assert names == {"platform", "account", "outcome", "type", "le"}


async def test_what_the_store_could_not_do_is_counted_where_it_happens() -> None:
    metrics, troubles = Metrics(), [StoreFull("full"), StoreFull("full")]

    class Failing(Absent):
        async def read(self, transaction: Any, /, *args: Any, **kwargs: Any) -> Any:
            if troubles:
                raise troubles.pop()

    await Patient(Failing(), metrics.store_failed).read(letters.newest, 1)
    assert figure(metrics, "segue_store_errors_total", outcome="StoreFull") == 2


async def test_a_message_that_could_not_be_made_durable_is_counted_as_the_stores_failure() -> None:
    class Full(Absent):
        async def write(self, transaction: object, /, *args: object, **kwargs: object) -> NoReturn:
            raise StoreFull("full")

    gateway = Gateway(Store(Full()))
    gateway._inbox.open = True
    address, speaker = Address("http", "alpha", chat="c1"), Speaker(Identity("http", "alpha", "u1"))
    with pytest.raises(StoreFull):
        await gateway.accept(Arrival(Place(address, Kind.DM), "m1", speaker, (Text("hello"),), 0.0))
    assert figure(gateway.metrics, "segue_store_errors_total", outcome="StoreFull") == 1


async def test_facts_of_the_audit_are_counted_once_committed(tmp_path: Path) -> None:
    address, eve = Address("http", "alpha", chat="c1"), Speaker(Identity("http", "alpha", "eve"))
    async with gateway_on(tmp_path, EchoAgent()) as gateway:
        for id in ("m1", "m2"):
            await gateway.accept(Arrival(Place(address, Kind.DM), id, eve, (Text("hello"),), 0.0))
        await asyncio.sleep(0)  # wake-ups come right after the answer
        assert figure(gateway.metrics, "segue_audit_total", event="refused") == 2
