"""Promote and demote come to the same end whatever dies, however often they are started, and never interleave."""

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import WorkflowAlreadyStartedError

from memory_plane.contracts import names
from memory_plane.contracts.transforms import TransformInput
from memory_plane.dev.postgres import PostgresServer
from memory_plane.dev.temporal import TemporalServer
from memory_plane.plane import cutover
from memory_plane.plane.engine import Engine
from memory_plane.store.database import connection
from memory_plane.store.locks import share_cutover
from memory_plane.store.migrate import migrate
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.fixtures.database import FTS_LANGUAGE, MIGRATIONS
from tests.generations.conftest import configured
from tests.generations.driving import Run, attend, cut_over, reaches, refusal, run_of, tell
from tests.generations.killing import Doorkeeper, Killer
from tests.generations.world import OTHER_MODEL, Tenant
from tests.workflows.conftest import running_workers
from tests.workflows.namespaces import new_namespace
from workflows.transform import TransformWorkflow

CUTOVER = {
    "memory_cutover_check",
    "memory_transform_step",
    "memory_cutover_require_derived",
    "memory_build_index",
    "memory_cutover_cut",
    "memory_cutover_embed_stragglers",
    "memory_cutover_verify",
}
RUN = {
    "memory_transform_create",
    "memory_transform_standing",
    "memory_transform_prepare",
    "memory_transform_step",
    "memory_build_index",
    "memory_transform_finish",
    "memory_transform_review",
    "memory_transform_check",
    "memory_transform_cancel",
    "memory_transform_reopen",
    "memory_retire",
}
"""All but the question which cutover is under way; see the test of one that is started again."""


@pytest.fixture
async def client(temporal_server: TemporalServer) -> Client:
    return await new_namespace(temporal_server)


@pytest.fixture
async def tenant(engine: Engine) -> Tenant:
    opened = Tenant(engine, f"t-{uuid4().hex[:12]}")
    await opened.allow("ann")
    return opened


async def whole(tenant: Tenant, live: str, documents: set[str], query: str = "otter") -> None:
    """One generation is live, it is this one, and it holds and serves every document, by meaning too."""
    states = await tenant.engine.pool.fetch(
        "SELECT id FROM memory.generation WHERE tenant_id = $1 AND state = 'live'", tenant.tenant
    )
    assert [row["id"] for row in states] == [live]
    await tenant.embed_live()
    answer = await tenant.search(query, limit=50)
    assert {item.document_id for item in answer.items} == documents and answer.degraded is None
    doubled = await tenant.engine.pool.fetch(
        "SELECT version_id, ordinal FROM memory.chunk WHERE generation_id = $1 GROUP BY 1, 2 HAVING count(*) > 1", live
    )
    assert doubled == []


async def test_inv_21_every_activity_of_a_cutover_is_killed(client: Client, tenant: Tenant) -> None:
    documents = {(await tenant.add(f"the otter swims {n}")).document_id for n in range(5)}
    old = await tenant.live()
    staged = await tenant.staged()
    killer = Killer()
    async with running_workers(client, tenant.engine, interceptors=[killer]):
        documents.add((await tenant.capture("the otter dives")).document_id)
        promoted = await (await cut_over(client, "promote", tenant, staged)).result()
        assert (promoted.live, promoted.down, promoted.verified) == (staged, old, True)
        await whole(tenant, staged, documents)
        documents.add((await tenant.capture("the otter sleeps")).document_id)
        demoted = await (await cut_over(client, "demote", tenant, staged)).result()
        assert (demoted.live, demoted.down, demoted.verified) == (old, staged, True)
        await whole(tenant, old, documents)
        assert await tenant.state(staged) == "staged"
        await (await cut_over(client, "promote", tenant, staged)).result()
        await whole(tenant, staged, documents)
    assert set(killer.killed) == CUTOVER
    row = await tenant.engine.pool.fetchrow("SELECT * FROM memory.transform_run WHERE id = $1", staged)
    assert row is not None and row["archived_live_generation"] == old and row["archived_live_model_key"] is not None


async def test_inv_21_every_activity_of_a_run_is_killed(client: Client, tenant: Tenant) -> None:
    documents = {(await tenant.add(f"the otter swims {n}")).document_id for n in range(5)}
    old = await tenant.live()
    config = await tenant.engine.transforms.create_config(tenant.tenant, "other", OTHER_MODEL)
    killer, keeper = Killer(), Doorkeeper("memory_transform_step")
    async with running_workers(client, tenant.engine, interceptors=[keeper, killer]):
        begun = await client.execute_workflow(
            TransformWorkflow.run,
            TransformInput(tenant_id=tenant.tenant, config_id=config.id),
            id=f"begin-{tenant.tenant}",
            task_queue=names.QUEUE,
        )
        assert begun.workflow_id is not None
        run = client.get_workflow_handle_for(TransformWorkflow.run, begun.workflow_id)
        await keeper.gate.reached.wait()
        await tell(run, "cancel")
        keeper.gate.open.set()
        assert (await run.result()).outcome == "cancelled" and await tenant.state(begun.run_id) == "failed"
        run = await attend(client, tenant, begun.run_id)
        await tell(run, "retry_failures")
        standing = await reaches(run, "staged")
        assert (standing.versions, standing.failed) == (5, 0)
        await tell(run, "promote")
        await reaches(run, "live")
        await whole(tenant, run_of(run), documents)
        await tell(run, "finalize")
        assert (await run.result()).outcome == "finalized"
    assert await tenant.chunks(old) == 0
    await whole(tenant, run_of(run), documents)
    assert set(killer.killed) >= RUN


async def test_inv_21_the_same_cutover_started_again_attaches_and_another_is_refused(
    client: Client, tenant: Tenant
) -> None:
    await tenant.add("the otter swims")
    first, second = await tenant.staged(), await tenant.staged({"chunk": {"maxTokens": 32}})
    killer, keeper = Killer(), Doorkeeper("memory_cutover_cut")
    async with running_workers(client, tenant.engine, interceptors=[keeper, killer]):
        one = await cut_over(client, "promote", tenant, first)
        await keeper.gate.reached.wait()
        with pytest.raises(WorkflowAlreadyStartedError):
            await cut_over(client, "promote", tenant, first)
        other = await cut_over(client, "promote", tenant, second, f"other-{tenant.tenant}")
        assert await refusal(other.result()) == "cutover_in_progress"

        run = await reattend(client, tenant, second)
        assert await refusal(tell(run, "promote")) == "cutover_in_progress"
        same = await reattend(client, tenant, first)
        assert await tell(same, "promote") == "started"
        assert await tell(same, "promote") == "started"
        keeper.gate.open.set()
        assert (await one.result()).live == first
        await reaches(same, "live")
        again = await cut_over(client, "promote", tenant, first)
        assert await refusal(again.result()) == "generation_is_live"
    assert "memory_cutover_running" in killer.killed


async def reattend(client: Client, tenant: Tenant, run_id: str) -> Run:
    run = await attend(client, tenant, run_id)

    async def known() -> bool:
        return await run.query("status") is not None

    await eventually(known)
    return run


async def test_inv_21_cutovers_that_race_in_process_never_interleave(tenant: Tenant) -> None:
    """Even without Temporal's one id a tenant: checked at the same time, one flips and the other is refused."""
    documents = {(await tenant.add(f"the otter swims {n}")).document_id for n in range(3)}
    runs = [await tenant.staged(), await tenant.staged({"chunk": {"maxTokens": 32}})]
    plans = [await tenant.check("promote", run_id) for run_id in runs]
    results = await asyncio.gather(*(tenant.engine.cutover.cut(plan) for plan in plans), return_exceptions=True)
    refused = [each for each in results if isinstance(each, BaseException)]
    assert len(refused) == 1 and getattr(refused[0], "code", None) == "live_moved"
    await whole(tenant, await tenant.live(), documents)
    down = await tenant.engine.pool.fetchval(
        "SELECT count(*) FROM memory.generation WHERE tenant_id = $1 AND state = 'archived'", tenant.tenant
    )
    assert down == 1


async def test_inv_21_a_capture_that_takes_long_makes_the_cut_wait_and_not_the_other_captures(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutover, "LOCK_MS", 30)
    await tenant.add("the otter swims")
    staged = await tenant.staged()
    plan = await tenant.check("promote", staged)
    await tenant.catch_up(plan)
    async with connection(tenant.engine.pool) as conn:
        capture = conn.transaction()
        await capture.start()
        await share_cutover(conn, tenant.tenant)
        cutting = asyncio.create_task(tenant.engine.cutover.cut(plan))
        added = [await tenant.capture(f"the otter dives {n}") for n in range(5)]
        assert not cutting.done() and await tenant.live() == plan.source
        await capture.rollback()
    while not (await cutting).flipped:
        await tenant.catch_up(plan)
        cutting = asyncio.create_task(tenant.engine.cutover.cut(plan))
    held = await tenant.engine.pool.fetchval(
        "SELECT count(*) FROM memory.derivation WHERE generation_id = $1 AND version_id = ANY ($2::text[])",
        staged,
        [each.version_id for each in added],
    )
    assert (await tenant.live(), held) == (staged, 5)


async def test_inv_21_a_cutover_that_is_cancelled_has_changed_nothing_or_all(client: Client, tenant: Tenant) -> None:
    documents = {(await tenant.add("the otter swims")).document_id}
    old = await tenant.live()
    staged = await tenant.staged()
    keeper = Doorkeeper("memory_cutover_cut")
    async with running_workers(client, tenant.engine, interceptors=[keeper]):
        handle = await cut_over(client, "promote", tenant, staged)
        await keeper.gate.reached.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert await tenant.live() == old
        # The attempt that nobody waits for goes on all the same: a zombie, which may still flip.
        keeper.gate.open.set()

        async def flipped() -> bool:
            return await tenant.live() == staged

        await eventually(flipped)
        await whole(tenant, staged, documents)
        demoted = await (await cut_over(client, "demote", tenant, staged)).result()
        assert demoted.live == old


async def test_inv_21_postgres_is_restarted_in_the_middle(tmp_path: Path, temporal_server: TemporalServer) -> None:
    client = await new_namespace(temporal_server)
    server = PostgresServer(tmp_path / "pg", durable=True)
    await server.start()
    try:
        dsn = await server.ensure_database("memory")
        await migrate(dsn, FTS_LANGUAGE, MIGRATIONS)
        async with (
            FakeEndpoint(models={"one": 64, "two": 96}) as fake,
            Engine.open(configured(dsn, fake)) as engine,
        ):
            await engine.embedding.ensure_engine_model()
            tenant = Tenant(engine, "t")
            await tenant.allow("ann")
            documents = {(await tenant.add(f"the otter swims {n}")).document_id for n in range(5)}
            staged = await tenant.staged(OTHER_MODEL)
            documents.add((await tenant.capture("the otter dives")).document_id)
            for name in ("memory_transform_step", "memory_cutover_cut", "memory_cutover_verify"):
                keeper = Doorkeeper(name)
                async with running_workers(client, engine, interceptors=[keeper]):
                    handle = await cut_over(client, "promote", tenant, staged)
                    await keeper.gate.reached.wait()
                    await server.stop()
                    keeper.gate.open.set()
                    await server.start()
                    assert (await handle.result()).live == staged
                    await whole(tenant, staged, documents)
                    await (await cut_over(client, "demote", tenant, staged)).result()
    finally:
        await server.stop()
