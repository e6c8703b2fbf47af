"""The reconciler and re-embedding: what was intended is done, whatever was down meanwhile."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError

from api.starter import TemporalStarter
from memory_plane.contracts import names
from memory_plane.contracts.enums import Degraded, Verb
from memory_plane.contracts.errors import Unavailable
from memory_plane.contracts.recipe import Recipe
from memory_plane.contracts.wire import AddRequest
from memory_plane.contracts.workflows import (
    ReconcileInput,
    ReconcileResult,
    ReembedInput,
    ReembedResult,
)
from memory_plane.core.caller import Caller
from memory_plane.dev.temporal import TemporalPorts, TemporalServer
from memory_plane.plane import reconciling
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from memory_plane.temporal import connect
from tests.canaries import CANARY, leaks
from tests.embedding.corpus import embed_state, make_generation, store, tombstone
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Poison
from tests.replay.recording import record
from tests.workflows.conftest import RunWorkers, running_workers
from workflows.reconcile import ReconcileWorkflow
from workflows.reembed import ReembedWorkflow

TENANT = "acme"
OLD = 600


async def live(engine: Engine, tenant: str = TENANT) -> str:
    return await make_generation(engine.pool, tenant, engine.settings.default_recipe())


async def reconcile(client: Client, **given: int) -> ReconcileResult:
    return await client.execute_workflow(
        ReconcileWorkflow.run, ReconcileInput(**given), id=names.RECONCILE_ID, task_queue=names.QUEUE
    )


async def all_embedded(engine: Engine) -> bool:
    return not await engine.pool.fetchval("SELECT count(*) FROM memory.derivation WHERE embed_state <> 'embedded'")


async def test_what_waits_is_started_in_batches_by_tenant(
    engine: Engine, client: Client, workers: RunWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "VERSIONS_AN_INGEST", 3)
    here, there = await live(engine), await live(engine, "other")
    for number in range(7):
        await store(engine.pool, TENANT, here, [f"text {number}"], age_seconds=OLD)
    await store(engine.pool, "other", there, ["theirs"], age_seconds=OLD)

    async with workers():
        result = await reconcile(client)
        assert result.ingests_started == 4
        await record(client.get_workflow_handle(names.RECONCILE_ID), "reconcile")
        await eventually(lambda: all_embedded(engine), what="everything to be embedded")


async def test_what_is_young_held_forgotten_or_of_another_generation_is_left_alone(
    engine: Engine, client: Client, workers: RunWorkers
) -> None:
    generation = await live(engine)
    archived = await make_generation(engine.pool, TENANT, engine.settings.default_recipe(), "archived")
    await store(engine.pool, TENANT, generation, ["young"])
    await store(engine.pool, TENANT, archived, ["of an archived generation"], age_seconds=OLD)
    gone = await store(engine.pool, TENANT, generation, ["forgotten"], age_seconds=OLD)
    await tombstone(engine.pool, gone.version_id)
    held = await store(engine.pool, TENANT, generation, ["held"], age_seconds=OLD)
    await engine.pool.execute(
        "UPDATE memory.derivation SET held_until = now() + interval '1 minute' WHERE version_id = $1", held.version_id
    )
    async with workers():
        assert (await reconcile(client)).ingests_started == 0


async def test_what_was_just_started_is_not_started_again(engine: Engine, client: Client) -> None:
    await store(engine.pool, TENANT, await live(engine), ["text"], age_seconds=OLD)
    assert await engine.reconciling.start_stalled(timedelta(seconds=60), 100) == 1
    assert await engine.reconciling.start_stalled(timedelta(seconds=60), 100) == 0  # no worker has come to it yet


async def test_a_tenant_that_waits_for_thousands_hides_no_other(engine: Engine) -> None:
    here, there = await live(engine), await live(engine, "other")
    for number in range(20):
        await store(engine.pool, TENANT, here, [f"text {number}"], age_seconds=OLD)
    quiet = await store(engine.pool, "other", there, ["theirs"], age_seconds=OLD)
    await engine.reconciling.start_stalled(timedelta(seconds=60), 5)
    assert await engine.pool.fetchval(
        "SELECT held_until IS NOT NULL FROM memory.derivation WHERE version_id = $1", quiet.version_id
    )


async def test_expired_keys_go(engine: Engine, client: Client, workers: RunWorkers) -> None:
    await engine.pool.execute(
        """
        INSERT INTO memory.idempotency_key
            (tenant_id, principal_id, key, body_hash, document_id, version_id, status, created_at, expires_at)
        SELECT $1, 'p', k.key, '', '', '', 'captured', now(), now() + k.left
        FROM (VALUES ('old', interval '-1 second'), ('new', interval '1 hour')) AS k (key, left)
        """.replace("k.left", 'k."left"').replace("(key, left)", '(key, "left")'),
        TENANT,
    )
    async with workers():
        assert (await reconcile(client)).keys_expired == 1
    assert await engine.pool.fetchval("SELECT key FROM memory.idempotency_key") == "new"


async def test_a_step_that_fails_keeps_no_other_from_running_and_is_seen(
    engine: Engine, client: Client, workers: RunWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(limit: int) -> int:
        raise KeyError(f"{CANARY} {limit}")

    monkeypatch.setattr(engine.reconciling, "expire_keys", broken)
    await store(engine.pool, TENANT, await live(engine), ["text"], age_seconds=OLD)
    async with workers():
        with pytest.raises(WorkflowFailureError) as raised:
            await reconcile(client)
        assert "idempotency keys expired" in str(raised.value.cause)
        await record(client.get_workflow_handle(names.RECONCILE_ID), "reconcile-failed-step")
        await eventually(lambda: all_embedded(engine), what="the ingest that it started")
    assert await leaks(client) == []


# Temporal down


@pytest.fixture
async def temporal(tmp_path: Path) -> AsyncIterator[TemporalServer]:
    """A server that a test may stop and start."""
    server = TemporalServer(tmp_path / "temporal")
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


async def test_inv_33_with_temporal_down_adds_succeed_and_are_ingested_after_it_returns(
    configured: Settings, temporal: TemporalServer, fake: FakeEndpoint
) -> None:
    settings = configured.model_copy(
        update={"temporal_address": temporal.address, "temporal_namespace": temporal.namespace}
    )
    starter = TemporalStarter(await connect(settings, lazy=True))
    async with Engine.open(settings, starter=starter) as engine:
        await engine.embedding.ensure_engine_model()
        await engine.pool.execute(
            """
            INSERT INTO memory.grant_rule (id, tenant_id, principal_id, resource, action, effect, origin)
            VALUES ('mgrt_1', $1, 'bob', 'memory', $2, 'allow', 'system')
            """,
            TENANT,
            Verb.ADD.value,
        )
        visibility = await engine.access.visibility(Caller(TENANT, "bob"))
        await temporal.kill()
        await fake.stop()

        for number in range(5):
            body = {"title": f"note {number}", "text": f"text {number}"}
            added = await engine.adding.add(visibility, AddRequest.model_validate(body), body, None)
            assert Degraded.INGEST_DELAYED in (added.response.degraded or [])

        await fake.start(fake.port)
        again = TemporalServer(temporal.directory, ports=TemporalPorts(temporal.ports.grpc, *(0, 0, 0)))
        await again.start()
        try:
            client = await connect(settings)
            async with running_workers(client, engine):

                async def reconciled() -> bool:
                    try:  # as the schedule would, until the starter's breaker lets it through
                        await engine.reconciling.start_stalled(timedelta(0), 100)
                    except Unavailable:
                        return False
                    return await all_embedded(engine)

                await eventually(reconciled, seconds=60, what="the five adds to be embedded")
        finally:
            await again.kill()
        assert await engine.pool.fetchval("SELECT count(*) FROM memory.derivation") == 5


# Re-embedding


async def reembed(client: Client) -> ReembedResult:
    return await client.execute_workflow(
        ReembedWorkflow.run, ReembedInput(tenant_id=TENANT), id=names.reembed_id(TENANT), task_queue=names.QUEUE
    )


async def test_a_lexical_tenant_that_gains_an_endpoint_is_filled_in_place(
    engine: Engine, client: Client, workers: RunWorkers
) -> None:
    generation = await make_generation(engine.pool, TENANT, Recipe())
    many = [
        await store(engine.pool, TENANT, generation, [f"text {number}"], embed_state="not_configured")
        for number in range(5)
    ]
    async with workers():
        assert await reembed(client) == ReembedResult(embedded=5)
        await record(client.get_workflow_handle(names.reembed_id(TENANT)), "reembed")
        assert await reembed(client) == ReembedResult()  # again: there is nothing to do
    assert [await embed_state(engine.pool, each.version_id) for each in many] == ["embedded"] * 5
    resolution = await engine.embedding.resolve(TENANT, generation)
    assert resolution is not None
    assert resolution.target is not None  # dense search has switched on


async def test_failed_embeds_are_driven_again_and_what_still_will_not_is_counted(
    engine: Engine, client: Client, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    generation = await live(engine)
    await store(engine.pool, TENANT, generation, ["cured"], embed_state="failed")
    await store(engine.pool, TENANT, generation, ["POISON"], embed_state="failed")
    fake.fail(Poison())
    async with workers():
        assert await reembed(client) == ReembedResult(embedded=1, failed=1)


async def test_without_any_endpoint_it_refuses_with_a_sentence(
    settings: Settings, client: Client, starter: TemporalStarter
) -> None:
    async with Engine.open(settings, starter=starter) as engine:
        await make_generation(engine.pool, TENANT, Recipe())
        async with running_workers(client, engine):
            with pytest.raises(WorkflowFailureError) as raised:
                await reembed(client)
    assert "set EMBED_BASE_URL and EMBED_MODEL" in str(raised.value.cause.__cause__)
