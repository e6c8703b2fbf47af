"""One trace from the request to the last statement, without a word of what was written."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from temporalio.client import Client

from api.app import create_app
from api.starter import TemporalStarter
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from memory_plane.store.database import StatementFailed, connection
from memory_plane.telemetry import tracing
from memory_plane.telemetry.export import provider_for
from memory_plane.temporal import connect
from tests.api.conftest import Facade, by_header, running
from tests.canaries import CANARY
from tests.workflows.conftest import running_workers


class Exported:
    """What has left the process so far."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = provider_for("memory-test", self._exporter)

    def spans(self) -> tuple[ReadableSpan, ...]:
        self.provider.force_flush()
        return self._exporter.get_finished_spans()


@pytest.fixture
async def exported(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Exported]:
    """Tracing on for this test alone, whatever comes after it in this process."""
    exported = Exported()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", exported.provider)
    yield exported
    exported.provider.shutdown()


async def test_a_request_its_workflow_activities_statements_and_endpoint_calls_are_one_trace(
    exported: Exported, configured: Settings, client: Client
) -> None:
    settings = configured.model_copy(
        update={
            "temporal_address": client.service_client.config.target_host,
            "temporal_namespace": client.namespace,
            "embed_inline_budget_ms": 0,
        }
    )
    traced = await connect(settings)
    async with (
        Engine.open(settings, starter=TemporalStarter(traced)) as engine,
        running_workers(traced, engine),
        running(create_app(engine=engine, caller_resolver=by_header)) as app,
    ):
        await engine.embedding.ensure_engine_model()
        facade = Facade(app, engine, f"t-{uuid4().hex[:12]}")
        await facade.allow("ann")
        async with facade.caller() as ann:
            added = await ann.post(
                f"/add?{CANARY}=1", json={"title": CANARY, "text": f"{CANARY} by the harbour", "wait": "embedded"}
            )
            assert added.status_code == 200
            assert "degraded" not in added.json() or added.json()["degraded"] is None
    spans = exported.spans()
    [request] = [span for span in spans if (span.attributes or {}).get("http.route", "").endswith("/add")]  # type: ignore[union-attr]
    assert request.context is not None
    of_it = [span for span in spans if span.context is not None and span.context.trace_id == request.context.trace_id]
    names = {span.name for span in of_it}
    assert {"RunWorkflow:IngestWorkflow", "RunActivity:memory_embed"} <= names
    assert any(span.name == "embed fake" for span in of_it), "the call to the model endpoint"
    by_id = {span.context.span_id: span for span in of_it if span.context is not None}
    statements = [span for span in of_it if (span.attributes or {}).get("db.system.name") == "postgresql"]
    callers = {by_id[span.parent.span_id].name for span in statements if span.parent is not None}
    assert "RunActivity:memory_embed" in callers
    assert request.name in callers
    assert CANARY not in "".join(span.to_json() for span in spans)


async def test_what_an_exception_says_stays_here(exported: Exported, settings: Settings) -> None:
    async with Engine.open(settings) as engine:
        with trace.get_tracer("test").start_as_current_span("ours"), pytest.raises(StatementFailed):
            async with connection(engine.pool) as conn:
                await conn.execute("SELECT $1::text::int", CANARY)
        with pytest.raises(ValueError, match=CANARY), trace.get_tracer("test").start_as_current_span("theirs"):
            raise ValueError(CANARY)
    spans = exported.spans()
    assert {span.name: span.status.status_code for span in spans if span.name in ("SELECT", "theirs")} == {
        "SELECT": StatusCode.ERROR,
        "theirs": StatusCode.ERROR,
    }
    assert CANARY not in "".join(span.to_json() for span in spans)


async def test_off_unless_an_endpoint_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tracing.ENDPOINT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    tracing.configure("memory-test")
    assert not tracing.enabled()
    assert tracing.temporal_interceptors() == []
