"""IngestWorkflow on the real server and a real database, with an endpoint that fails on purpose."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ApplicationError, CancelledError

from api.starter import TemporalStarter
from memory_plane.contracts import names
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.wire import AddFields
from memory_plane.contracts.workflows import IngestInput, IngestResult, IngestStatus
from memory_plane.dev.temporal import TemporalServer
from memory_plane.plane.engine import Engine
from tests.canaries import CANARY, leaks
from tests.embedding.corpus import embed_state, make_generation, store, tombstone
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Poison, Status
from tests.replay.recording import record
from tests.workflows.conftest import RunWorkers, running_workers
from tests.workflows.namespaces import new_namespace
from workflows import policies
from workflows.ingest import IngestWorkflow

TENANT = "acme"


@pytest.fixture
async def live(engine: Engine) -> str:
    return await make_generation(engine.pool, TENANT, engine.settings.default_recipe())


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "pause_after", lambda rounds: timedelta(milliseconds=10))


def ingest(client: Client, version_id: str) -> WorkflowHandle[IngestWorkflow, IngestResult]:
    return client.get_workflow_handle_for(IngestWorkflow.run, names.ingest_id(TENANT, version_id))


async def pending_failure(handle: WorkflowHandle[IngestWorkflow, IngestResult]) -> str:
    """What the last failed attempt of its pending activity said."""
    described = await handle.describe()
    return "".join(each.last_failure.message for each in described.raw_description.pending_activities)


async def test_what_was_captured_is_embedded(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers
) -> None:
    stored = await store(engine.pool, TENANT, live, ["one", "two"])

    async with workers():
        await starter.start_ingest(TENANT, [stored.version_id])
        assert await starter.wait_ingest(TENANT, [stored.version_id], 30)
        handle = ingest(client, stored.version_id)
        status = await handle.query(IngestWorkflow.status)

    assert await embed_state(engine.pool, stored.version_id) == "embedded"
    assert await handle.result() == IngestResult(
        document_id=stored.document_id, version_id=stored.version_id, chunks=2, embedded=1
    )
    assert status == IngestStatus(stage="done", versions=1, embedded=1)
    attributes = (await handle.describe()).typed_search_attributes
    assert attributes[SearchAttributeKey.for_keyword("MemoryTenant")] == TENANT
    assert attributes[SearchAttributeKey.for_keyword("MemoryStage")] == "done"
    await record(handle, "ingest-embedded")


async def test_an_operator_sees_what_it_is_doing_in_the_ui(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    stored = await store(engine.pool, TENANT, live, ["one"])
    hold = fake.hold(on="embed")
    async with workers():
        await starter.start_ingest(TENANT, [stored.version_id])
        await hold.reached(1)
        handle = ingest(client, stored.version_id)
        details: str = await handle.query("__temporal_workflow_metadata", result_type=dict)
        described = await handle.describe()
        assert await described.static_summary() == "Ingest 1 version for `acme`"
        assert "**embed** · 1 versions" in str(details)
        hold.release()
        await handle.result()


async def test_a_batch_is_embedded_in_full_requests(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    many = [await store(engine.pool, TENANT, live, [f"text {number}"]) for number in range(64)]
    ids = [each.version_id for each in many]
    fake.forget_calls()

    async with workers():
        await starter.start_ingest(TENANT, ids)
        assert await starter.wait_ingest(TENANT, ids, 30)

    handle = client.get_workflow_handle_for(IngestWorkflow.run, names.ingest_batch_id(TENANT, ids[0]))
    assert (await handle.result()).embedded == 64
    assert [len(call.texts) for call in fake.calls] == [32, 32]
    await record(handle, "ingest-batch")


async def test_a_large_document_makes_a_small_history(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers
) -> None:
    stored = await store(engine.pool, TENANT, live, [f"{number} " + "text " * 500 for number in range(600)])
    async with workers():
        await starter.start_ingest(TENANT, [stored.version_id])
        result = await ingest(client, stored.version_id).result()
    assert (result.chunks, result.embedded) == (600, 1)
    history = await ingest(client, stored.version_id).fetch_history()
    assert sum(event.ByteSize() for event in history.events) < 20_000


async def test_an_endpoint_that_is_down_is_waited_for_and_nothing_is_lost(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    many = [await store(engine.pool, TENANT, live, [f"text {number}"]) for number in range(4)]
    await fake.stop()

    async with workers():
        for each in many:
            await starter.start_ingest(TENANT, [each.version_id])
        first = ingest(client, many[0].version_id)

        async def told() -> bool:
            return "The model endpoint at 127.0.0.1" in await pending_failure(first)

        await eventually(told, what="the pending activity to say what is down")
        await fake.start(fake.port)
        for each in many:
            await ingest(client, each.version_id).result()

    assert [await embed_state(engine.pool, each.version_id) for each in many] == ["embedded"] * 4
    await record(first, "ingest-endpoint-down")


async def test_retry_after_is_honoured_with_few_calls(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    many = [await store(engine.pool, TENANT, live, [f"text {number}"]) for number in range(10)]
    fake.forget_calls()
    fake.fail(Status(429, retry_after="4"), times=1)

    async with workers():
        for each in many:
            await starter.start_ingest(TENANT, [each.version_id])
        for each in many:
            await ingest(client, each.version_id).result()

    # One asks, is told to wait, and all wait; those that had asked at the same moment are answered or share requests.
    assert fake.count("embed") <= 12


async def test_a_poisoned_version_ends_as_failed_and_its_neighbours_are_fine(
    engine: Engine,
    client: Client,
    live: str,
    starter: TemporalStarter,
    workers: RunWorkers,
    fake: FakeEndpoint,
    no_pauses: None,
) -> None:
    bad = await store(engine.pool, TENANT, live, [f"{CANARY} POISON"])
    good = [await store(engine.pool, TENANT, live, [f"good {number}"]) for number in range(3)]
    ids = [bad.version_id, *(each.version_id for each in good)]
    fake.fail(Poison())

    async with workers():
        await starter.start_ingest(TENANT, ids)
        assert await starter.wait_ingest(TENANT, ids, 60)

    handle = client.get_workflow_handle_for(IngestWorkflow.run, names.ingest_batch_id(TENANT, ids[0]))
    result = await handle.result()
    assert (result.embedded, result.failed, result.degraded) == (3, 1, ["embed_unavailable"])
    row = await engine.pool.fetchrow("SELECT * FROM memory.derivation WHERE version_id = $1", bad.version_id)
    assert row is not None
    assert (row["embed_state"], row["attempts"]) == ("failed", 5)
    await record(handle, "ingest-poisoned")
    assert await leaks(client) == []


async def test_what_is_forgotten_under_way_is_no_longer_to_be_done(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    stored = await store(engine.pool, TENANT, live, ["secret"])
    hold = fake.hold(on="embed")
    async with workers():
        await starter.start_ingest(TENANT, [stored.version_id])
        await hold.reached(1)
        await tombstone(engine.pool, stored.version_id)
        hold.release()
        result = await ingest(client, stored.version_id).result()
    assert (result.embedded, result.failed) == (0, 0)


async def test_a_version_that_is_gone_ends_its_ingest(
    engine: Engine, client: Client, starter: TemporalStarter, workers: RunWorkers
) -> None:
    async with workers():
        await starter.start_ingest(TENANT, ["kver_unknown"])
        result = await ingest(client, "kver_unknown").result()
    assert result == IngestResult(version_id="kver_unknown")


# A host's inline document


async def test_a_host_may_start_it_with_a_document(engine: Engine, client: Client, workers: RunWorkers) -> None:
    await allow(engine, "bob", Verb.ADD)
    given = IngestInput(
        tenant_id=TENANT, principal_id="bob", document=AddFields(title="A note", text="Some text of a host.")
    )
    async with workers():
        results = [
            await client.execute_workflow(
                IngestWorkflow.run,
                given.model_copy(update={"idempotency_key": "the same"}),
                id=f"host-{number}",
                task_queue=names.QUEUE,
            )
            for number in range(2)
        ]
    assert results[0].embedded == 1
    assert results[0].document_id == results[1].document_id  # the same key, so the same answer
    assert await engine.pool.fetchval("SELECT count(*) FROM memory.version") == 1
    await record(client.get_workflow_handle("host-0"), "ingest-inline-document")


async def test_a_host_without_the_grant_is_refused_for_good(client: Client, workers: RunWorkers) -> None:
    given = IngestInput(tenant_id=TENANT, principal_id="mallory", document=AddFields(title="A note", text="Text."))
    async with workers():
        with pytest.raises(WorkflowFailureError) as raised:
            await client.execute_workflow(IngestWorkflow.run, given, id="refused", task_queue=names.QUEUE)
    refusal = raised.value.cause.__cause__
    assert isinstance(refusal, ApplicationError)
    assert (refusal.type, refusal.non_retryable) == ("capability_missing", True)


async def allow(engine: Engine, principal: str, verb: Verb) -> None:
    await engine.pool.execute(
        """
        INSERT INTO memory.grant_rule (id, tenant_id, principal_id, resource, action, effect, origin)
        VALUES ('mgrt_1', $1, $2, 'memory', $3, 'allow', 'system')
        """,
        TENANT,
        principal,
        verb.value,
    )


# What stops it on the way


async def test_inv_32_cancelled_it_stops_the_embedding_and_leaves_the_work_to_the_reconciler(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    stored = await store(engine.pool, TENANT, live, ["text"], age_seconds=600)
    hold = fake.hold(on="embed")
    async with workers():
        await starter.start_ingest(TENANT, [stored.version_id])
        await hold.reached(1)
        handle = ingest(client, stored.version_id)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as raised:
            await handle.result()
        assert isinstance(raised.value.cause, CancelledError)
        await record(handle, "ingest-cancelled")
        assert await embed_state(engine.pool, stored.version_id) == "pending"
        hold.release()
        await restarted_by_the_reconciler(engine)
        await ingest(client, stored.version_id).result()
    assert await embed_state(engine.pool, stored.version_id) == "embedded"


async def test_inv_32_terminated_its_work_is_started_again(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    stored = await store(engine.pool, TENANT, live, ["text"], age_seconds=600)
    hold = fake.hold(on="embed")
    async with workers():
        await starter.start_ingest(TENANT, [stored.version_id])
        await hold.reached(1)
        await ingest(client, stored.version_id).terminate()
        hold.release()
        await restarted_by_the_reconciler(engine)
        await ingest(client, stored.version_id).result()
    assert await embed_state(engine.pool, stored.version_id) == "embedded"


async def restarted_by_the_reconciler(engine: Engine) -> None:
    await engine.pool.execute("UPDATE memory.derivation SET held_until = now()")  # as time would have it
    assert await engine.reconciling.start_stalled(timedelta(seconds=60), 100) == 1


async def test_workers_that_stop_hand_over(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    stored = await store(engine.pool, TENANT, live, ["text"])
    hold = fake.hold(on="embed")
    async with workers():
        await starter.start_ingest(TENANT, [stored.version_id])
        await hold.reached(1)
        hold.release()  # the activity under way is given time to end
    async with workers():
        await ingest(client, stored.version_id).result()
    assert await embed_state(engine.pool, stored.version_id) == "embedded"


async def test_bad_input_fails_at_once_instead_of_hanging(client: Client, workers: RunWorkers) -> None:
    async with workers():
        with pytest.raises(WorkflowFailureError) as raised:
            await client.execute_workflow(
                names.INGEST,
                {"tenant_id": TENANT, "version_ids": "not a list"},
                id="bad",
                task_queue=names.QUEUE,
                execution_timeout=timedelta(seconds=30),
            )
    assert isinstance(raised.value.cause, ApplicationError)
    assert raised.value.cause.type == "ValidationError"


async def test_every_task_replays_from_the_start_without_a_cache(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, fake: FakeEndpoint, no_pauses: None
) -> None:
    stored = await store(engine.pool, TENANT, live, ["fine", "POISON"])
    fake.fail(Poison())
    async with running_workers(client, engine, max_cached_workflows=0):
        await starter.start_ingest(TENANT, [stored.version_id])
        assert (await ingest(client, stored.version_id).result()).failed == 1


# Nudges


async def test_a_nudge_while_it_runs_is_not_lost(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    first = await store(engine.pool, TENANT, live, ["first"])
    hold = fake.hold(on="embed")
    async with workers():
        await starter.start_ingest(TENANT, [first.version_id])
        await hold.reached(1)
        await engine.pool.execute(
            "INSERT INTO memory.process_request (version_id, processor, tenant_id, state) "
            "VALUES ($1, 'nobody', $2, 'pending')",
            first.version_id,
            TENANT,
        )
        await starter.start_ingest(TENANT, [first.version_id])
        hold.release()

        async def tried() -> bool:
            return bool(await engine.pool.fetchval("SELECT attempts FROM memory.process_request"))

        await eventually(tried, what="the later request to be seen by the running ingest")
        await ingest(client, first.version_id).terminate()


@pytest.fixture
async def short_histories(tmp_path: Path) -> AsyncIterator[TemporalServer]:
    """A server that suggests continue-as-new after a few events."""
    server = TemporalServer(tmp_path / "temporal", dynamic_config={"limit.historyCount.suggestContinueAsNew": "30"})
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


async def test_nudges_are_not_lost_when_it_continues_as_new(
    engine: Engine, live: str, short_histories: TemporalServer, fake: FakeEndpoint, no_pauses: None
) -> None:
    client = await new_namespace(short_histories)
    starter = TemporalStarter(client)
    bad, other = [await store(engine.pool, TENANT, live, ["POISON"]) for _ in range(2)]
    later = [await store(engine.pool, TENANT, live, [f"later {number}"]) for number in range(8)]
    fake.fail(Poison())
    async with running_workers(client, engine):
        await starter.start_ingest(TENANT, [bad.version_id, other.version_id])
        handle = client.get_workflow_handle_for(IngestWorkflow.run, names.ingest_batch_id(TENANT, bad.version_id))
        for each in later:
            # As a second batch that begins with the same version: it finds the first one running.
            await starter.start_ingest(TENANT, [bad.version_id, each.version_id])
        await handle.result()

        async def all_embedded() -> bool:
            return [await embed_state(engine.pool, each.version_id) for each in later] == ["embedded"] * 8

        await eventually(all_embedded, what="every version of every nudge")
        runs = [each async for each in client.list_workflows("ExecutionStatus = 'ContinuedAsNew'")]
        assert runs
        await record(client.get_workflow_handle(runs[0].id, run_id=runs[0].run_id), "ingest-continued-as-new")


# Tenants beside each other


async def test_inv_34_a_busy_tenant_does_not_delay_anothers_ingest(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    """Stated bound: with everything queued at once, the other tenant is served within the first third."""
    quiet_generation = await make_generation(engine.pool, "quiet", engine.settings.default_recipe())
    noisy = [await store(engine.pool, TENANT, live, [f"noisy {number}"]) for number in range(120)]
    quiet = await store(engine.pool, "quiet", quiet_generation, ["quiet"])
    for each in noisy:
        await starter.start_ingest(TENANT, [each.version_id])
    await starter.start_ingest("quiet", [quiet.version_id])

    async with workers():
        assert await starter.wait_ingest("quiet", [quiet.version_id], 120)
        order = [text for call in fake.calls for text in call.texts]
        for each in noisy:
            await ingest(client, each.version_id).result()

    assert order.index("quiet") < 40


async def test_a_running_ingest_is_joined_not_doubled(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    stored = await store(engine.pool, TENANT, live, ["text"])
    fake.forget_calls()
    hold = fake.hold(on="embed")
    async with workers():
        await asyncio.gather(*(starter.start_ingest(TENANT, [stored.version_id]) for _ in range(8)))
        await hold.reached(1)
        hold.release()
        await ingest(client, stored.version_id).result()
    assert fake.embedded["text"] == 1
    assert (await ingest(client, stored.version_id).describe()).status == WorkflowExecutionStatus.COMPLETED


async def test_waiting_is_bounded(
    engine: Engine, client: Client, live: str, starter: TemporalStarter, workers: RunWorkers, fake: FakeEndpoint
) -> None:
    stored = await store(engine.pool, TENANT, live, ["text"])
    hold = fake.hold(on="embed")
    async with workers():
        await starter.start_ingest(TENANT, [stored.version_id])
        assert await starter.wait_ingest(TENANT, [stored.version_id], 0.2) is False
        hold.release()
        assert await starter.wait_ingest(TENANT, [stored.version_id], 30) is True
