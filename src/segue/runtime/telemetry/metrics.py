"""Counters of a gateway, named after what happened; labels never name a person, a chat or a session."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_SOON = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LONG = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


class Metrics:
    """The figures of one gateway, in a registry of its own."""

    MEDIA_TYPE = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        account, outcome = ("platform", "account"), ("platform", "account", "outcome")
        self.arrivals = Counter("segue_arrivals", "Messages that came in.", outcome, registry=registry)
        self.started = Histogram(
            "segue_accepted_to_started_seconds",
            "From a message accepted to its turn given to the agent.",
            buckets=_SOON,
            registry=registry,
        )
        self.turns = Counter("segue_turns", "Turns that ended.", ("outcome",), registry=registry)
        self.turn_seconds = Histogram("segue_turn_seconds", "How long turns took.", buckets=_LONG, registry=registry)
        self.deliveries = Counter("segue_deliveries", "Attempts to send a message.", outcome, registry=registry)
        self.delivery_seconds = Histogram(
            "segue_delivery_seconds", "How long attempts to send took.", account, buckets=_SOON, registry=registry
        )
        self._dead = Counter(
            "segue_dead_letters",
            "Messages that were given up, either way, by the type of the error.",
            (*account, "type"),
            registry=registry,
        )
        self._facts = Counter("segue_audit", "Facts written to the audit.", ("event",), registry=registry)
        self._store_errors = Counter(
            "segue_store_errors", "What the database couldn't do.", ("outcome",), registry=registry
        )
        self._stalls = Counter(
            "segue_event_loop_stalls", "Times that nothing went on for more than a second.", registry=registry
        )
        self._failures = Counter(
            "segue_failures", "Failures that nobody foresaw, by what failed.", ("place",), registry=registry
        )
        self._unproven = Counter(
            "segue_unproven_calls",
            "Calls with a wrong signature, secret or token, by path.",
            ("path",),
            registry=registry,
        )
        self._over = Counter(
            "segue_refusals",
            "Messages that were refused because their person has as much as they may, by the limit.",
            (*account, "limit"),
            registry=registry,
        )
        self._unfetched = Counter(
            "segue_files_left",
            "Files and polls that weren't taken in, since their message wasn't let in or wasn't for the agent.",
            account,
            registry=registry,
        )
        self._swept = Counter("segue_files_swept", "Kept files that nothing named, deleted.", registry=registry)
        self._live = Gauge("segue_turns_running", "Turns that run now.", registry=registry)
        self._slots = Gauge("segue_turn_slots", "Turns that may run at once.", registry=registry)
        self._refused = Gauge(
            "segue_writes_refused", "Writes about what another replica holds by now.", registry=registry
        )
        self._lease = Gauge(
            "segue_lease_left_seconds", "How long this replica is surely alive to the others.", registry=registry
        )

    def buried(self, platform: str, account: str, kind: str) -> None:
        """A message became a dead letter, by an error of this type."""
        self._dead.labels(platform, account, kind).inc()

    def failed(self, place: str) -> None:
        """Something failed in a way that nobody foresaw, and is retried."""
        self._failures.labels(place).inc()

    def noted(self, event: str) -> None:
        """A fact was written to the audit."""
        self._facts.labels(event).inc()

    def refused(self, platform: str, account: str, limit: str) -> None:
        """A message was over a limit of its person's."""
        self._over.labels(platform, account, limit).inc()

    def left(self, platform: str, account: str, files: int) -> None:
        """Files stay where they are: nobody's are taken in before they may speak."""
        self._unfetched.labels(platform, account).inc(files)

    def swept(self, files: int) -> None:
        """Files that nothing named are gone."""
        self._swept.inc(files)

    def store_failed(self, error: Exception) -> None:
        """The database couldn't do something."""
        self._store_errors.labels(type(error).__name__).inc()

    def stood_still(self) -> None:
        """The event loop did one thing for too long."""
        self._stalls.inc()

    def watch(
        self, running: Callable[[], float], slots: int, lease_left: Callable[[], float], refused: Callable[[], float]
    ) -> None:
        """Ask for these figures whenever somebody looks."""
        self._refused.set_function(refused)
        self._live.set_function(running)
        self._slots.set(slots)
        self._lease.set_function(lease_left)

    def unproven(self, path: str) -> None:
        """Count a call that didn't prove who makes it."""
        self._unproven.labels(path).inc()

    def text(self) -> bytes:
        """All figures, in the text format of Prometheus."""
        return generate_latest(self._registry)
