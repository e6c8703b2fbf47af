"""SweepWorkflow on the real server: all tenants or one, resumable, idempotent."""

from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowFailureError

from memory_plane.contracts import names
from memory_plane.contracts.workflows import SweepInput, SweepResult
from memory_plane.plane import retention
from memory_plane.plane.engine import Engine
from memory_plane.store.database import connection
from schedules import declared
from tests.canaries import CANARY, leaks
from tests.feed.facts import capture
from tests.replay.recording import record
from tests.workflows.conftest import RunWorkers
from workflows.sweep import SweepWorkflow


async def expire(engine: Engine, tenant: str, count: int) -> None:
    for _ in range(count):
        await capture(engine.pool, tenant=tenant, title=CANARY, retention_class="ephemeral")
    async with connection(engine.pool) as conn:
        await conn.execute("UPDATE memory.version SET ingested_at = ingested_at - interval '8 days'")


async def deprecated(engine: Engine) -> dict[str, int]:
    async with connection(engine.pool) as conn:
        rows = await conn.fetch(
            "SELECT tenant_id, count(*) AS number FROM memory.version WHERE status = 'deprecated' GROUP BY 1"
        )
    return {row["tenant_id"]: row["number"] for row in rows}


async def sweep(client: Client, tenant: str | None = None) -> SweepResult:
    return await client.execute_workflow(
        SweepWorkflow.run, SweepInput(tenant_id=tenant), id=f"sweep-{uuid4().hex}", task_queue=names.QUEUE
    )


async def test_it_sweeps_one_tenant_or_all_and_nothing_twice(
    engine: Engine, client: Client, workers: RunWorkers
) -> None:
    await expire(engine, "a", 3)
    await expire(engine, "b", 2)
    async with workers():
        assert await sweep(client, "b") == SweepResult(deprecated=2)
        assert await deprecated(engine) == {"b": 2}
        assert await sweep(client) == SweepResult(deprecated=3)
        assert await sweep(client) == SweepResult(deprecated=0)
    assert await deprecated(engine) == {"a": 3, "b": 2}
    assert await leaks(client) == []


async def test_a_page_that_is_over_in_time_goes_on_in_the_next(
    engine: Engine, client: Client, workers: RunWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "SWEEP_SECONDS", -1.0)
    monkeypatch.setattr(retention, "SWEEP_TENANTS", 1)
    for tenant in ("a", "b", "c"):
        await expire(engine, tenant, 2)
    async with workers():
        handle = await client.start_workflow(
            SweepWorkflow.run, SweepInput(), id=names.SCHEDULE_SWEEP, task_queue=names.QUEUE
        )
        assert await handle.result() == SweepResult(deprecated=6)
        assert await handle.query(SweepWorkflow.status) == SweepResult(deprecated=6)
        await record(handle, "sweep")
    events = (await handle.fetch_history()).events
    assert sum(event.HasField("activity_task_scheduled_event_attributes") for event in events) >= 3


async def test_inv_32_cancelled_before_a_worker_came_it_has_done_nothing_and_the_next_does_all(
    engine: Engine, client: Client, workers: RunWorkers
) -> None:
    await expire(engine, "a", 2)
    handle = await client.start_workflow(
        SweepWorkflow.run, SweepInput(), id=f"sweep-{uuid4().hex}", task_queue=names.QUEUE
    )
    await handle.cancel()
    async with workers():
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert await deprecated(engine) == {}
        assert await sweep(client) == SweepResult(deprecated=2)


async def test_it_is_scheduled_each_hour(engine: Engine) -> None:
    [schedule] = [each.schedule for each in declared(engine.settings) if each.id == names.SCHEDULE_SWEEP]
    assert schedule.spec.intervals[0].every.total_seconds() == 3600
