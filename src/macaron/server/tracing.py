"""OpenTelemetry traces, where the operator asks for them: a span a request, and one for each of its hops.

Asked for by the standard variables (`OTEL_EXPORTER_OTLP_ENDPOINT` and its kin); nothing is imported otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from macaron.conversation import Hop
from macaron.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Tracing:
    """Writes spans to a provider, which it ends with `close`."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer = provider.get_tracer("macaron")
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def request(self, path: str, headers: Mapping[bytes, bytes]) -> Iterator[None]:
        """The span of a request, below the caller's where it sent a `traceparent`."""
        carrier = {
            name: headers[name.encode()].decode("latin-1") for name in ("traceparent",) if name.encode() in headers
        }
        context = self._propagator.extract(carrier)
        with self._tracer.start_as_current_span(f"POST {path}", context=context):
            yield

    def hop(self, hop: Hop) -> None:
        """The span of a hop that has ended, below the request that caused it; a summary's may end after its parent."""
        start = int(hop.started * 1e9)
        span = self._tracer.start_span(f"hop {hop.kind}", start_time=start)
        span.set_attributes(
            {
                "macaron.hop.adapter": hop.label,
                "macaron.hop.revision": hop.revision,
                "macaron.hop.outcome": hop.outcome,
                "macaron.hop.queued_seconds": hop.queued,
                "gen_ai.usage.input_tokens": hop.usage.prompt,
                "gen_ai.usage.output_tokens": hop.usage.completion,
            }
        )
        span.end(start + int(hop.seconds * 1e9))

    def close(self) -> None:
        """Send what is left; it blocks."""
        self._provider.shutdown()


def tracing_from_environment(environment: Mapping[str, str] = os.environ) -> Tracing | None:
    """Tracing to the endpoint that the environment names, None where it names none.

    Raises:
        ConfigError: it names one and the packages are not installed.
    """
    endpoint = next((name for name in ENDPOINTS if environment.get(name)), None)
    if endpoint is None:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ConfigError(f"{endpoint} is set, but the packages are missing: pip install 'macaron[otel]'.") from None
    provider = TracerProvider(resource=Resource.create({"service.name": "macaron"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)
