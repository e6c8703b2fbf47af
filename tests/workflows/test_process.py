"""The process stage with a host's own activities and workflows."""

from datetime import timedelta

import pytest
from temporalio.client import Client

from api.starter import TemporalStarter
from memory_plane.contracts import names
from memory_plane.contracts.workflows import IngestResult, ProcessorSpec, ProcessResult
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from tests.canaries import CANARY, leaks
from tests.embedding.corpus import make_generation, store
from tests.replay.recording import record
from tests.workflows.conftest import RunWorkers
from tests.workflows.host import QUEUE, HostProcessors, host_worker, refusal
from workflows import policies
from workflows.ingest import IngestWorkflow

TENANT = "acme"


@pytest.fixture
def configured(configured: Settings) -> Settings:
    processors = {
        "tag": ProcessorSpec(kind="activity", type="host_tag", task_queue=QUEUE, timeout_seconds=10),
        "deep": ProcessorSpec(kind="workflow", type="HostTagWorkflow", task_queue=QUEUE, timeout_seconds=30),
    }
    return configured.model_copy(update={"memory_processors": processors})


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "pause_after", lambda rounds: timedelta(milliseconds=10))


async def ingested(
    engine: Engine,
    client: Client,
    starter: TemporalStarter,
    workers: RunWorkers,
    host: HostProcessors,
    *processors: str,
) -> tuple[str, IngestResult]:
    """One version that was captured with these processors, once its ingest has ended."""
    generation = await make_generation(engine.pool, TENANT, engine.settings.default_recipe())
    stored = await store(engine.pool, TENANT, generation, ["text"], processors=processors)
    if answer := host.answers.pop("*", None):
        host.answers[stored.version_id] = answer
    async with workers(), host_worker(client, host):
        await starter.start_ingest(TENANT, [stored.version_id])
        handle = client.get_workflow_handle_for(IngestWorkflow.run, names.ingest_id(TENANT, stored.version_id))
        result = await handle.result()
        await record(handle, f"ingest-processed-{'-'.join(processors)}-{outcome_of(host)}")
        return stored.version_id, result


def outcome_of(host: HostProcessors) -> str:
    """Of the one attempt, for the name of the recorded history."""
    answer = next(iter(host.answers.values()), {"outcome": "written"})
    return answer["outcome"] if isinstance(answer, dict) else "failed"


async def request(engine: Engine, processor: str = "tag") -> tuple[str, int, str | None]:
    row = await engine.pool.fetchrow(
        "SELECT state, attempts, last_error FROM memory.process_request WHERE processor = $1", processor
    )
    assert row is not None
    return row["state"], row["attempts"], row["last_error"]


async def test_activities_and_workflows_of_a_host_process_what_was_captured(
    engine: Engine, client: Client, starter: TemporalStarter, workers: RunWorkers
) -> None:
    _, result = await ingested(engine, client, starter, workers, HostProcessors(), "tag", "deep")
    assert (result.embedded, result.claims) == (1, 3)
    assert await request(engine, "tag") == ("done", 1, None)
    assert await request(engine, "deep") == ("done", 1, None)


@pytest.mark.parametrize(("outcome", "state"), [("skip", "skipped"), ("poison", "quarantined")])
async def test_a_processor_may_skip_a_version_or_call_it_poison(
    engine: Engine, client: Client, starter: TemporalStarter, workers: RunWorkers, outcome: str, state: str
) -> None:
    host = HostProcessors(answers={"*": {"outcome": outcome}})
    version_id, result = await ingested(engine, client, starter, workers, host, "tag")
    assert result.claims == 0
    assert (await request(engine))[0] == state
    assert host.calls[version_id] == 1


async def test_one_that_fails_is_tried_five_times_then_quarantined_without_its_words(
    engine: Engine, client: Client, starter: TemporalStarter, workers: RunWorkers
) -> None:
    host = HostProcessors(answers={"*": refusal("what the host says is in the host's own history")})
    version_id, _ = await ingested(engine, client, starter, workers, host, "tag")
    assert host.calls[version_id] == 5
    assert await request(engine) == ("quarantined", 5, "The processor failed (HostFault).")


async def test_an_answer_of_another_shape_counts_as_a_failure(
    engine: Engine, client: Client, starter: TemporalStarter, workers: RunWorkers
) -> None:
    host = HostProcessors(answers={"*": {"outcome": "whatever"}})
    await ingested(engine, client, starter, workers, host, "tag")
    assert await request(engine) == ("quarantined", 5, "The processor's answer is not {outcome, versionIds}.")


async def test_a_processor_that_is_not_configured_is_named(
    engine: Engine, client: Client, starter: TemporalStarter, workers: RunWorkers
) -> None:
    await ingested(engine, client, starter, workers, HostProcessors(), "nobody")
    state, _, reason = await request(engine, "nobody")
    assert state == "quarantined"
    assert "MEMORY_PROCESSORS" in str(reason)


async def test_an_attempt_of_another_ingest_is_not_begun_twice(engine: Engine) -> None:
    generation = await make_generation(engine.pool, TENANT, engine.settings.default_recipe())
    stored = await store(engine.pool, TENANT, generation, ["text"], processors=["tag"])
    found = (await engine.ingesting.remaining(TENANT, [stored.version_id])).process

    assert await engine.ingesting.begin_processes(TENANT, found) == found
    assert await engine.ingesting.begin_processes(TENANT, found) == found  # the same attempt: a retry, or a renewal
    assert (await engine.ingesting.remaining(TENANT, [stored.version_id])).process == []  # nobody else's meanwhile
    assert (await request(engine))[1] == 1


async def test_what_waits_to_be_processed_is_found_by_the_reconciler(engine: Engine) -> None:
    generation = await make_generation(engine.pool, TENANT, engine.settings.default_recipe())
    stored = await store(
        engine.pool, TENANT, generation, ["text"], embed_state="embedded", processors=["tag"], age_seconds=600
    )
    assert await engine.reconciling.start_stalled(timedelta(seconds=60), 100) == 1
    found = (await engine.ingesting.remaining(TENANT, [stored.version_id])).process
    await engine.ingesting.begin_processes(TENANT, found)
    assert await engine.reconciling.start_stalled(timedelta(seconds=60), 100) == 0


async def test_inv_30_a_processors_words_and_the_text_stay_out_of_our_histories(
    engine: Engine, client: Client, starter: TemporalStarter, workers: RunWorkers
) -> None:
    generation = await make_generation(engine.pool, TENANT, engine.settings.default_recipe())
    stored = await store(engine.pool, TENANT, generation, [f"{CANARY} text"], context=CANARY, processors=["tag"])
    host = HostProcessors(answers={stored.version_id: ProcessResult(outcome="written", version_ids=["kver_x"])})
    async with workers(), host_worker(client, host):
        await starter.start_ingest(TENANT, [stored.version_id])
        assert await starter.wait_ingest(TENANT, [stored.version_id], 30)
    assert await leaks(client) == []
