"""Spans for OpenTelemetry, named by its conventions for generative AI."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.trace import SpanKind, Status, StatusCode

from segue.core.contracts.agents import Usage
from segue.core.values import SessionId


class OtelTracing:
    """Makes spans and gives them to a provider of OpenTelemetry's."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("segue")

    @classmethod
    def from_environment(cls) -> "OtelTracing":
        """Send spans to where the OTEL_ variables say."""
        provider = TracerProvider(resource=Resource.create({"service.name": "segue"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    @contextmanager
    def turn(self, session: SessionId, turn: int, trace: str, spent: Sequence[Usage]) -> Iterator[None]:
        """An agent answers; `spent` is read at the end."""
        said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "segue", "segue.trace": trace}
        with self._span("invoke_agent segue", SpanKind.INTERNAL, session, said | {"segue.turn": turn}) as span:
            yield
            for usage in spent:
                span.set_attributes(
                    {
                        "gen_ai.response.model": usage.model,
                        "gen_ai.usage.input_tokens": usage.input,
                        "gen_ai.usage.output_tokens": usage.output,
                        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
                        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
                        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
                    }
                )

    @contextmanager
    def delivery(self, platform: str, account: str, session: str) -> Iterator[None]:
        """A message is sent."""
        said = {"segue.platform": platform, "segue.account": account}
        with self._span(f"send {platform}", SpanKind.CLIENT, session, said):
            yield

    @contextmanager
    def _span(self, name: str, kind: SpanKind, session: str, said: Mapping[str, str | int]) -> Iterator[OtelSpan]:
        of = {"gen_ai.conversation.id": session, "session.id": session}
        # An error's words may quote a message: only its type is recorded.
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes={**of, **said}, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(Status(StatusCode.ERROR))
                raise

    async def close(self) -> None:
        """Send what is left."""
        await asyncio.to_thread(self._provider.shutdown)
