"""Traces from the request over workflow and activity to statements and model endpoints, by OpenTelemetry.

Off unless OTEL_EXPORTER_OTLP_ENDPOINT is set; sampling and the service's name follow the standard variables. Spans
hold names, ids and the text of our statements, never their parameters, nor what an exception says.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry import trace
from opentelemetry.trace import ProxyTracerProvider, SpanKind, StatusCode

if TYPE_CHECKING:
    from temporalio.contrib.opentelemetry import TracingInterceptor

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def configure(service: str) -> None:
    """Send this process's spans where the environment says; nothing where it says nothing. Once a process."""
    if not any(os.environ.get(name) for name in ENDPOINT_VARIABLES):
        return
    # The SDK takes its time to import, and most processes never need it.
    from memory_plane.telemetry.export import provider_for

    trace.set_tracer_provider(provider_for(os.environ.get("OTEL_SERVICE_NAME", service)))


def enabled() -> bool:
    return not isinstance(trace.get_tracer_provider(), ProxyTracerProvider)


def temporal_interceptors() -> Sequence["TracingInterceptor"]:
    """For `Client.connect`, whose workers take them over."""
    if not enabled():
        return []
    from temporalio.contrib.opentelemetry import TracingInterceptor

    return [TracingInterceptor()]


@contextmanager
def endpoint_span(use: str, host: str, model: str) -> Iterator[None]:
    """Around one call to a model endpoint."""
    attributes = {"server.address": host, "gen_ai.request.model": model}
    with _tracer().start_as_current_span(
        f"{use} {model}",
        kind=SpanKind.CLIENT,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except Exception as fault:
            span.set_status(StatusCode.ERROR)
            span.set_attribute("error.type", type(fault).__name__)
            raise


class Watchable(Protocol):
    def add_query_logger(self, callback: Any) -> None: ...


def watch_statements(connection: Watchable) -> None:
    """Have each statement of this connection be a span of whatever is under way."""
    if enabled():
        connection.add_query_logger(_statement)


class _Statement(Protocol):
    """asyncpg's LoggedQuery; its `args` are left alone."""

    query: str
    elapsed: float
    exception: BaseException | None


def _statement(statement: _Statement) -> None:
    if not trace.get_current_span().get_span_context().is_valid:
        return  # nothing asked for it: a span for each poll of our own would be noise
    end = time.time_ns()
    span = _tracer().start_span(
        statement.query.split(None, 1)[0].rstrip(";").upper(),
        kind=SpanKind.CLIENT,
        attributes={"db.system.name": "postgresql", "db.query.text": " ".join(statement.query.split())[:2000]},
        start_time=end - int(statement.elapsed * 1e9),
    )
    if statement.exception is not None:
        span.set_status(StatusCode.ERROR)
        span.set_attribute("error.type", type(statement.exception).__name__)
    span.end(end)


def trace_id() -> str | None:
    """Of the span that is under way, as log lines name it."""
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else None


def _tracer() -> trace.Tracer:
    return trace.get_tracer("memory_plane")
