"""OpenTelemetry spans of requests and hops."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from macaron.errors import ConfigError
from macaron.server.tracing import Tracing, tracing_from_environment
from tests.doubles.engine_double import EngineDouble, by_words
from tests.harness import serve, write_profile

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_a_request_and_its_hops_are_spans_below_the_callers(tmp_path: Path) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with EngineDouble(by_words({}, answer="hello")) as double:
        async with serve(write_profile(tmp_path, double.origin), tracing=Tracing(provider)) as running:
            await running.client.chat([{"role": "user", "content": "hi"}], headers={"traceparent": PARENT})
    spans = {span.name: span for span in exporter.get_finished_spans()}
    request = spans["POST /v1/chat/completions"]
    assert set(spans) == {"POST /v1/chat/completions", "hop route", "hop answer"}
    assert request.parent is not None
    assert f"{request.parent.trace_id:032x}" == PARENT.split("-")[1]
    for name in ("hop route", "hop answer"):
        parent = spans[name].parent
        assert parent is not None
        assert parent.span_id == request.context.span_id
        assert (spans[name].attributes or {})["macaron.hop.outcome"] == "ok"


def test_nothing_is_traced_unless_the_environment_names_an_endpoint() -> None:
    assert tracing_from_environment({}) is None


def test_an_endpoint_without_the_packages_is_an_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigError, match=r"macaron\[otel\]"):
        tracing_from_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
