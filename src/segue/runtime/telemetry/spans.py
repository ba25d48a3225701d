"""Spans: how long a turn and a call took, for whoever collects traces; without a collector they cost nothing."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Protocol

from segue.core.contracts.agents import Usage
from segue.core.values import SessionId
from segue.errors import NotInstalled


class Tracing(Protocol):
    """Makes spans; an error that leaves one marks it as failed."""

    def turn(self, session: SessionId, turn: int, trace: str, spent: Sequence[Usage]) -> AbstractContextManager[object]:
        """An agent answers; `spent` is read at the end."""
        ...

    def delivery(self, platform: str, account: str, session: str) -> AbstractContextManager[object]:
        """A message is sent."""
        ...


def open_tracing(kind: str) -> Tracing | None:
    """The tracing that the host chose: "none" or "otel", which its usual OTEL_ variables set up."""
    if kind == "none":
        return None
    try:
        # The one import that hides: OpenTelemetry is an extra.
        otel = import_module("segue.runtime.telemetry.otel")
    except ModuleNotFoundError as error:
        raise NotInstalled("tracing", "OpenTelemetry", "otel") from error
    opened: Tracing = otel.OtelTracing.from_environment()
    return opened
