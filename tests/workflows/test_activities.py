"""Each activity run twice equals once, and no failure of one carries content."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

import worker
from activities.failures import LONGEST_PAUSE, translated
from activities.ingest import IngestActivities
from activities.reconcile import ReconcileActivities
from activities.reembed import ReembedActivities
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import Conflict, Invalid, NotFound, Unavailable
from memory_plane.contracts.wire import AddFields
from memory_plane.contracts.workflows import (
    BeginProcess,
    CaptureInput,
    PendingProcess,
    ProcessOutcome,
    ReconcileInput,
    ReembedInput,
    ReembedPage,
    VersionsInput,
)
from memory_plane.models.errors import EndpointUnavailable
from memory_plane.plane.engine import Engine
from memory_plane.store.database import Pool
from tests.canaries import CANARY
from tests.embedding.corpus import make_generation, store
from tests.fakes.endpoint import FakeEndpoint

TENANT = "acme"
_TABLES = ("document", "version", "raw_capture", "chunk", "derivation", "process_request", "generation", "feed_event")


async def rows(pool: Pool) -> dict[str, list[str]]:
    """Everything that activities write, less the times at which they did."""
    found: dict[str, list[str]] = {}
    vector_tables = [row["table_name"] for row in await pool.fetch("SELECT table_name FROM memory.embed_model")]
    for table in (*_TABLES, *vector_tables):
        listed = await pool.fetch(
            f"SELECT (to_jsonb(t) - ARRAY['updated_at', 'held_until', 'last_seen_at'])::text AS row "
            f"FROM memory.{table} t ORDER BY 1"
        )
        found[table] = [row["row"] for row in listed]
    return found


async def scene(engine: Engine) -> dict[str, tuple[Any, Any]]:
    """For each activity, its function and an input that gives it something to do."""
    await engine.pool.execute(
        """
        INSERT INTO memory.grant_rule (id, tenant_id, principal_id, resource, action, effect, origin)
        VALUES ('mgrt_1', $1, 'bob', 'memory', $2, 'allow', 'system')
        """,
        TENANT,
        Verb.ADD.value,
    )
    generation = await make_generation(engine.pool, TENANT, engine.settings.default_recipe())
    stored = await store(engine.pool, TENANT, generation, ["one", "two"], processors=["tag"], age_seconds=600)
    await store(engine.pool, TENANT, generation, ["failed"], embed_state="failed")
    request = PendingProcess(version_id=stored.version_id, processor="tag")
    ingest, reconcile, reembed = IngestActivities(engine), ReconcileActivities(engine), ReembedActivities(engine)
    capture = CaptureInput(
        tenant_id=TENANT, principal_id="bob", document=AddFields(title="t", text="x"), idempotency_key="k"
    )
    versions = VersionsInput(tenant_id=TENANT, version_ids=[stored.version_id])
    outcome = ProcessOutcome(
        tenant_id=TENANT, version_id=stored.version_id, processor="tag", outcome="written", claims=2
    )
    return {
        "memory_capture": (ingest.capture, capture),
        "memory_remaining": (ingest.remaining, versions),
        "memory_embed": (ingest.embed, versions),
        "memory_begin_processes": (ingest.begin_processes, BeginProcess(tenant_id=TENANT, requests=[request])),
        "memory_finish_process": (ingest.finish_process, outcome),
        "memory_start_stalled": (reconcile.start_stalled, ReconcileInput()),
        "memory_expire_keys": (reconcile.expire_keys, ReconcileInput()),
        "memory_retire_due": (reconcile.retire_due, ReconcileInput()),
        "memory_reembed_prepare": (reembed.prepare, ReembedInput(tenant_id=TENANT)),
        "memory_reembed_page": (reembed.page, ReembedPage(tenant_id=TENANT, generation_id=generation)),
    }


ACTIVITIES = (
    "memory_capture",
    "memory_remaining",
    "memory_embed",
    "memory_begin_processes",
    "memory_finish_process",
    "memory_start_stalled",
    "memory_expire_keys",
    "memory_retire_due",
    "memory_reembed_prepare",
    "memory_reembed_page",
)


@pytest.mark.parametrize("name", ACTIVITIES)
async def test_inv_32_an_activity_run_twice_equals_once(engine: Engine, name: str) -> None:
    run, given = (await scene(engine))[name]
    await ActivityEnvironment().run(run, given)
    once = await rows(engine.pool)
    await ActivityEnvironment().run(run, given)
    assert await rows(engine.pool) == once


@pytest.mark.parametrize("name", ["memory_capture", "memory_embed", "memory_begin_processes", "memory_reembed_page"])
async def test_inv_32_an_activity_beside_its_own_zombie_equals_one(engine: Engine, name: str) -> None:
    """The attempt before may still be running when the next begins."""
    run, given = (await scene(engine))[name]
    await asyncio.gather(*(ActivityEnvironment().run(run, given) for _ in range(3)))
    several = await rows(engine.pool)
    await ActivityEnvironment().run(run, given)
    assert await rows(engine.pool) == several
    assert len(several["version"]) == len(set(several["version"])) <= 3


async def test_activities_are_never_renamed(client: Client, engine: Engine) -> None:
    """Histories name them: a running workflow of yesterday waits for ever for one that has another name today."""
    registered = set()
    for built in worker.build(client, engine):
        for each in built.config().get("activities", []):
            registered.add(each.__temporal_activity_definition.name)  # type: ignore[attr-defined]
    assert registered >= set(ACTIVITIES)


async def test_embedding_heartbeats_its_progress(engine: Engine, fake: FakeEndpoint) -> None:
    run, given = (await scene(engine))["memory_embed"]
    beats: list[Any] = []
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *details: beats.append(details[0])
    await environment.run(run, given)
    assert beats[-1] == 2  # chunks


async def test_a_cancelled_embed_writes_nothing_and_leaves_no_session_busy(engine: Engine, fake: FakeEndpoint) -> None:
    run, given = (await scene(engine))["memory_embed"]
    hold = fake.hold(on="embed")
    environment = ActivityEnvironment()
    running = asyncio.create_task(environment.run(run, given))
    await hold.reached(1)
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    hold.release()
    assert engine.pool.get_idle_size() == engine.pool.get_size()


async def test_a_worker_that_stops_hands_over_between_two_batches(engine: Engine, fake: FakeEndpoint) -> None:
    generation = await make_generation(engine.pool, TENANT, engine.settings.default_recipe())
    stored = await store(engine.pool, TENANT, generation, [f"text {number}" for number in range(70)])
    given = VersionsInput(tenant_id=TENANT, version_ids=[stored.version_id])
    stopping = ActivityEnvironment()
    stopping.worker_shutdown()
    with pytest.raises(ApplicationError, match="another one goes on") as raised:
        await stopping.run(IngestActivities(engine).embed, given)
    assert not raised.value.non_retryable

    assert (await ActivityEnvironment().run(IngestActivities(engine).embed, given)).embedded == 1
    assert max(fake.embedded[text] for text in fake.embedded if text.startswith("text")) == 1


# Failures


@pytest.mark.parametrize(
    ("error", "kind", "final"),
    [
        (NotFound("The tenant has no such run."), "not_found", True),
        (Invalid("Refused.", code="access_tag"), "access_tag", True),
        (Conflict("Taken.", code="cutover_in_progress"), "cutover_in_progress", True),
        (Unavailable("Down."), "unavailable", False),
        (EndpointUnavailable("Down."), "endpoint_unavailable", False),
    ],
)
def test_refusals_keep_their_words_and_say_whether_a_retry_helps(error: Exception, kind: str, final: bool) -> None:
    failure = translated(error)
    assert (failure.type, failure.non_retryable, failure.message) == (kind, final, str(error))


def test_a_pause_that_is_asked_for_is_kept_below_the_reconcilers_patience() -> None:
    assert translated(EndpointUnavailable("x", retry_after=7)).next_retry_delay == timedelta(seconds=7)
    assert translated(EndpointUnavailable("x", retry_after=3600)).next_retry_delay == LONGEST_PAUSE


async def test_inv_30_what_nobody_foresaw_is_named_by_its_class_alone(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    def explode() -> None:
        try:
            raise KeyError(CANARY)
        except KeyError as error:
            raise asyncpg.DataError(f"invalid input for query argument $1: {CANARY}") from error

    async def attempt() -> ApplicationError:
        try:
            explode()
        except asyncpg.DataError as error:
            return translated(error)
        raise AssertionError

    failure = await ActivityEnvironment().run(attempt)
    assert failure.type == "DataError"
    assert CANARY not in failure.message
    assert failure.__cause__ is None
    assert CANARY not in caplog.text
    assert "explode" in caplog.text  # the log says where
