"""Spans: how long a turn and a call took, for whoever collects traces; without a collector they cost nothing."""

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Protocol

from segue.core.contracts.agents import Usage
from segue.core.values import SessionId
from segue.errors import NotInstalled


class Span(Protocol):
    """Something that takes time."""

    def spent(self, usage: Usage) -> None:
        """It cost this much."""
        ...


class Tracing(Protocol):
    """Makes spans; an error that leaves one marks it as failed."""

    def turn(self, session: SessionId, turn: int, trace: str) -> AbstractContextManager[Span]:
        """An agent answers."""
        ...

    def delivery(self, platform: str, account: str, session: str) -> AbstractContextManager[Span]:
        """A message is sent."""
        ...


class NoSpan:
    """Nobody watches."""

    def spent(self, usage: Usage) -> None:
        """Keep nothing."""


class NoTracing:
    """Makes spans that nobody sees."""

    def turn(self, session: SessionId, turn: int, trace: str) -> AbstractContextManager[Span]:
        """An agent answers."""
        del session, turn, trace
        return nullcontext(_NO_SPAN)

    def delivery(self, platform: str, account: str, session: str) -> AbstractContextManager[Span]:
        """A message is sent."""
        del platform, account, session
        return nullcontext(_NO_SPAN)


_NO_SPAN = NoSpan()


def open_tracing(kind: str) -> Tracing:
    """The tracing that the host chose: "none" or "otel", which its usual OTEL_ variables set up."""
    if kind == "none":
        return NoTracing()
    try:
        # The one import that hides: OpenTelemetry is an extra.
        otel = import_module("segue.runtime.telemetry.otel")
    except ModuleNotFoundError as error:
        raise NotInstalled("tracing", "OpenTelemetry", "otel") from error
    opened: Tracing = otel.OtelTracing.from_environment()
    return opened
