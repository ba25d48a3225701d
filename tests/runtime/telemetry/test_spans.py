import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from segue.core.contracts.agents import Usage
from segue.core.values import SessionId
from segue.errors import Invalid, SendNever
from segue.runtime.telemetry.otel import OtelTracing
from segue.runtime.telemetry.spans import Tracing, open_tracing


def watched() -> tuple[Tracing, InMemorySpanExporter]:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return OtelTracing(provider), spans


def test_a_turn_is_a_span_with_its_session_and_its_cost() -> None:
    tracing, spans = watched()
    spent: list[Usage] = []
    with tracing.turn(SessionId("s1"), 3, "t1", spent):
        spent.append(Usage("a-model", input=100, output=20, reasoning=5, cache_read=80, cache_write=10))
    [finished] = spans.get_finished_spans()
    assert finished.name == "invoke_agent segue"
    assert finished.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "segue",
        "gen_ai.conversation.id": "s1",
        "session.id": "s1",
        "segue.turn": 3,
        "segue.trace": "t1",
        "gen_ai.response.model": "a-model",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 80,
        "gen_ai.usage.cache_creation.input_tokens": 10,
    }


def test_a_failure_is_marked_without_its_words() -> None:
    tracing, spans = watched()
    with pytest.raises(SendNever), tracing.delivery("http", "alpha", "s1"):
        raise SendNever("what somebody wrote")
    [finished] = spans.get_finished_spans()
    assert finished.status.status_code is StatusCode.ERROR
    assert finished.attributes is not None
    assert finished.attributes["error.type"] == "SendNever"
    assert "somebody" not in finished.to_json()


def test_without_a_collector_spans_are_nothing() -> None:
    assert open_tracing("none") is None


def test_the_extra_is_named_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "segue.runtime.telemetry.otel", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(Invalid, match="segue install otel"):
        open_tracing("otel")
