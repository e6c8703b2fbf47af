"""TransformWorkflow on the real server and a real database, driven as an operator drives it: by updates."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import CancelledError

from memory_plane.contracts import names
from memory_plane.contracts.transforms import (
    AutoPromote,
    DemoteRequest,
    PromoteRequest,
    TransformInput,
    TransformResult,
    TransformScope,
)
from memory_plane.dev.temporal import TemporalServer
from memory_plane.plane import deriving
from memory_plane.plane.engine import Engine
from tests.canaries import CANARY, leaks
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Poison
from tests.generations.driving import attend, cut_over, details, reaches, refusal, run_of, shows, start, status, tell
from tests.generations.world import Tenant
from tests.replay.recording import record
from tests.workflows.conftest import running_workers
from tests.workflows.namespaces import new_namespace
from workflows.transform import TransformWorkflow


@pytest.fixture
async def client(temporal_server: TemporalServer) -> Client:
    return await new_namespace(temporal_server)


@pytest.fixture
async def tenant(engine: Engine) -> Tenant:
    opened = Tenant(engine, f"t-{uuid4().hex[:12]}")
    await opened.allow("ann")
    return opened


async def test_a_run_from_its_first_page_to_its_retirement(client: Client, tenant: Tenant) -> None:
    first = await tenant.add("the otter swims in the river", title=f"otter {CANARY}")
    old = await tenant.live()
    async with running_workers(client, tenant.engine):
        run = await start(client, tenant)
        standing = await reaches(run, "staged")
        assert standing.review is not None and standing.review.overlap == 1.0
        assert (standing.versions, standing.failed) == (1, 0)
        page = await details(run)
        assert "**promote** `{}`" in page and "overlap@10" in page and "**discard** `{}`" in page
        second = await tenant.capture("the heron stands in the reeds", title="heron")

        assert await tell(run, "promote") == "started"
        await reaches(run, "live")
        assert await tenant.live() == run_of(run)
        assert (await tenant.found("heron reeds"))[0] == second.document_id
        await shows(run, f"**demote** `{{}}` brings back `{old}`")
        await shows(run, "a search answers")

        assert await tell(run, "demote") == "started"
        await reaches(run, "staged")
        assert await tenant.live() == old
        assert (await tenant.found("otter river"))[0] == first.document_id

        await tell(run, "promote", PromoteRequest())
        await reaches(run, "live")
        assert await tell(run, "finalize") == "started"
        assert await run.result() == TransformResult(run_id=run_of(run), outcome="finalized")
        assert await tenant.state(old) == "retired" and await tenant.chunks(old) == 0
        attributes = (await run.describe()).typed_search_attributes
        assert attributes[SearchAttributeKey.for_keyword("MemoryTenant")] == tenant.tenant
        assert attributes[SearchAttributeKey.for_keyword("MemoryGeneration")] == run_of(run)
        await record(run, "transform-finalized")
        await record(client.get_workflow_handle(names.cutover_id(tenant.tenant)), "promote-done")
    assert await leaks(client) == []


async def test_what_is_not_to_be_decided_now_is_refused_by_its_own_type(client: Client, tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    async with running_workers(client, tenant.engine):
        run = await start(client, tenant)
        await reaches(run, "staged")
        assert await refusal(tell(run, "demote", DemoteRequest())) == "generation_not_live"
        assert await refusal(tell(run, "finalize")) == "generation_not_live"
        for update in ("pause", "resume", "cancel"):
            assert await refusal(tell(run, update)) == "not_now"
        assert await refusal(tell(run, "retry_failures")) == "not_now"
        await tell(run, "promote")
        await reaches(run, "live")
        assert await refusal(tell(run, "promote")) == "generation_is_live"
        assert await refusal(tell(run, "discard")) == "generation_is_live"
        await tell(run, "demote")
        await reaches(run, "staged")
        assert await tell(run, "discard") == "started"
        assert (await run.result()).outcome == "discarded"
        await record(run, "transform-discarded")
        assert await tenant.chunks(run_of(run)) == 0

        scoped = await start(client, tenant, scope=TransformScope(adapter="http"))
        await reaches(scoped, "staged")
        assert await refusal(tell(scoped, "promote")) == "run_scoped"
        wordless = await start(client, tenant, {"embed": None})
        await reaches(wordless, "staged")
        assert await refusal(tell(wordless, "promote")) == "embed_not_configured"
        partial = PromoteRequest(allow_partial_dense=True)
        assert await tell(wordless, "promote", partial) == "started"
        await reaches(wordless, "live")


async def test_pause_resume_and_cancel_while_the_endpoint_is_down(
    client: Client, tenant: Tenant, fake: FakeEndpoint
) -> None:
    """A step that retries against a dead endpoint is broken off, so that a decision is never waited for."""
    await tenant.add("the otter swims")
    async with running_workers(client, tenant.engine):
        run = await start(client, tenant)
        hold = fake.hold(on="embed")
        await hold.reached(1)
        assert await tell(run, "pause") == "paused"
        await shows(run, "**paused**")
        assert await refusal(tell(run, "promote")) == "run_not_completed"
        fake.heal()
        assert (await status(run)).state == "building"
        assert await tell(run, "resume") == "resumed"
        await reaches(run, "staged")

        other = await start(client, tenant)
        hold = fake.hold(on="embed")
        await hold.reached(1)
        assert await tell(other, "cancel") == "cancelled"
        assert (await other.result()).outcome == "cancelled"
        await record(other, "transform-cancelled")
        fake.heal()
        standing = await tenant.engine.transforms.standing(tenant.tenant, run_of(other))
        assert (standing.state, standing.status) == ("failed", "failed")
        assert standing.error is not None and "Cancelled by an operator" in standing.error

        again = await attend(client, tenant, run_of(other))
        assert await tell(again, "retry_failures") == "started"
        assert (await reaches(again, "staged")).error is None


async def test_inv_32_a_run_that_is_cancelled_or_terminated_goes_on_when_it_is_started_again(
    client: Client, tenant: Tenant, fake: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deriving, "PAGE_VERSIONS", 5)
    for n in range(20):
        await tenant.capture(f"the otter swims {n}")
    async with running_workers(client, tenant.engine):
        run = await start(client, tenant)
        hold = fake.hold(on="embed")
        await hold.reached(1)
        await run.terminate("an operator's mistake")
        fake.heal()
        run = await attend(client, tenant, run_of(run))
        hold = fake.hold(on="embed")
        await hold.reached(1)
        await run.cancel()
        with pytest.raises(WorkflowFailureError) as failure:
            await run.result()
        assert isinstance(failure.value.cause, CancelledError)
        fake.heal()
        assert (await tenant.engine.transforms.standing(tenant.tenant, run_of(run))).status == "failed"
        run = await attend(client, tenant, run_of(run))
        await tell(run, "retry_failures")
        standing = await reaches(run, "staged")
        assert (standing.versions, standing.failed) == (20, 0)
        await run.cancel()
        with pytest.raises(WorkflowFailureError):
            await run.result()
        assert await tenant.state(run_of(run)) == "staged", "only who is being built ends with its workflow"


async def test_failures_are_shown_and_driven_again(client: Client, tenant: Tenant, fake: FakeEndpoint) -> None:
    await tenant.add("the otter swims")
    bad = await tenant.add(f"the otter and the POISON {CANARY}")
    fake.fail(Poison("POISON"))
    async with running_workers(client, tenant.engine):
        run = await start(client, tenant)
        standing = await reaches(run, "failed")
        assert standing.failed == 1
        page = await details(run)
        assert "**retry_failures** `{}`" in page and bad.version_id in page
        assert await refusal(tell(run, "promote")) == "run_not_completed"
        await tell(run, "retry_failures")
        await shows(run, "deriving")
        await reaches(run, "failed")
        fake.heal()
        await tell(run, "retry_failures")
        assert (await reaches(run, "staged")).failed == 0
        await record(run, "transform-retried")
    assert await leaks(client) == []


async def test_a_model_that_cannot_be_indexed_fails_the_run_in_the_ui(client: Client, tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    async with running_workers(client, tenant.engine):
        run = await start(client, tenant, {"embed": {"model": "huge"}})
        await reaches(run, "failed")
        assert "4096 dimensions" in await details(run)
        await tell(run, "discard")
        assert (await run.result()).outcome == "discarded"


async def test_a_review_that_meets_the_floors_promotes_by_itself(client: Client, tenant: Tenant) -> None:
    for n in range(3):
        await tenant.add(f"the otter swims past the {n}th mill", title=f"otter {n}")
    async with running_workers(client, tenant.engine):
        no = await start(client, tenant, auto_promote=AutoPromote(min_overlap=0.0, min_rank_correlation=1.0))
        standing = await reaches(no, "staged")
        if standing.review is not None and standing.review.rank_correlation != 1.0:
            await shows(no, "does not meet the floors")
            assert (await status(no)).state == "staged"
        yes = await start(client, tenant, auto_promote=AutoPromote(min_overlap=0.5))
        await reaches(yes, "live")
        assert await tenant.live() == run_of(yes)


async def test_after_its_soak_a_run_finalizes_by_itself(client: Client, tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    old = await tenant.live()
    async with running_workers(client, tenant.engine):
        run = await start(client, tenant, soak_hours=2 / 3600)
        await reaches(run, "staged")
        await tell(run, "promote")
        assert (await run.result()).outcome == "finalized"
    assert await tenant.state(old) == "retired" and await tenant.found("otter")


async def test_an_operator_who_has_only_the_ui_starts_a_run(client: Client, tenant: Tenant) -> None:
    """With {tenant_id, config_id}, under whatever id the form proposes."""
    await tenant.add("the otter swims")
    config = await tenant.engine.transforms.create_config(tenant.tenant, "other", {"embed": {"model": "two"}})
    async with running_workers(client, tenant.engine):
        given = TransformInput(tenant_id=tenant.tenant, config_id=config.id)
        started = await client.execute_workflow(
            TransformWorkflow.run, given, id=f"from-the-ui-{tenant.tenant}", task_queue=names.QUEUE
        )
        assert started.workflow_id == names.transform_id(tenant.tenant, started.run_id)
        await record(client.get_workflow_handle(f"from-the-ui-{tenant.tenant}"), "transform-started-in-the-ui")
        run = client.get_workflow_handle_for(TransformWorkflow.run, started.workflow_id)
        await reaches(run, "staged")
        done = await cut_over(client, "promote", tenant, started.run_id, f"ui-promote-{tenant.tenant}")
        assert (await done.result()).live == started.run_id
        await record(done, "promote-started-in-the-ui")
        await reaches(run, "live")
        unknown = TransformInput(tenant_id=tenant.tenant, config_id="tcfg_unknown")
        nothing = client.execute_workflow(
            TransformWorkflow.run, unknown, id=f"from-the-ui-2-{tenant.tenant}", task_queue=names.QUEUE
        )
        assert await refusal(nothing) == "config_not_found"


async def test_cutovers_started_elsewhere_are_noticed(client: Client, tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    async with running_workers(client, tenant.engine):
        run = await start(client, tenant)
        await reaches(run, "staged")
        promote = await cut_over(client, "promote", tenant, run_of(run))
        assert (await promote.result()).verified
        await reaches(run, "live")
        other = await start(client, tenant, {"chunk": {"maxTokens": 32}})
        await reaches(other, "staged")
        await tell(other, "promote")
        await reaches(other, "live")
        await reaches(run, "archived")
        await shows(run, "**promote** `{}` makes it live again")
        await tell(other, "finalize")
        assert (await run.result()).outcome == "retired"
        assert (await other.result()).outcome == "finalized"


@pytest.fixture
async def short_histories(tmp_path: Path) -> AsyncIterator[TemporalServer]:
    """A server that suggests continue-as-new after a few events."""
    server = TemporalServer(tmp_path / "temporal", dynamic_config={"limit.historyCount.suggestContinueAsNew": "25"})
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


async def test_a_long_run_and_a_long_catch_up_continue_as_new(
    tenant: Tenant, short_histories: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deriving, "PAGE_VERSIONS", 4)
    client = await new_namespace(short_histories)
    for n in range(40):
        await tenant.capture(f"the otter swims {n}")
    async with running_workers(client, tenant.engine):
        run = await start(client, tenant)
        standing = await reaches(run, "staged")
        assert (standing.versions, standing.failed) == (40, 0)
        late = [await tenant.capture(f"the heron stands {n}") for n in range(60)]
        await tell(run, "promote")
        await reaches(run, "live")
        continued = [each async for each in client.list_workflows("ExecutionStatus = 'ContinuedAsNew'")]
        assert {each.workflow_type for each in continued} == {names.TRANSFORM, names.PROMOTE}
        for each in continued:
            handle = client.get_workflow_handle(each.id, run_id=each.run_id)
            kind = "transform" if each.workflow_type == names.TRANSFORM else "promote"
            await record(handle, f"{kind}-continued-as-new")
    await tenant.embed_live()
    assert {each.document_id for each in late} <= set(await tenant.found("heron", limit=50)) or len(late) > 50
    held = await tenant.engine.pool.fetchval(
        "SELECT count(*) FROM memory.derivation WHERE generation_id = $1", run_of(run)
    )
    assert held == 100


async def test_workflows_of_generations_replay_from_an_empty_cache(client: Client, tenant: Tenant) -> None:
    """Every task from the first event: state that is not in the history shows."""
    await tenant.add("the otter swims")
    async with running_workers(client, tenant.engine, max_cached_workflows=0):
        run = await start(client, tenant)
        await reaches(run, "staged")
        await tell(run, "promote")
        await reaches(run, "live")
        await tell(run, "demote")
        await reaches(run, "staged")
        await record(client.get_workflow_handle(names.cutover_id(tenant.tenant)), "demote-done")
        await tell(run, "discard")
        assert (await run.result()).outcome == "discarded"


async def test_an_update_sent_with_the_start_is_judged_once_the_rows_are_read(client: Client, tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    run_id = await tenant.staged()
    run = await attend(client, tenant, run_id)
    sent = asyncio.create_task(tell(run, "promote"))
    refused = asyncio.create_task(refusal(tell(run, "pause")))
    async with running_workers(client, tenant.engine):
        assert (await sent, await refused) == ("started", "not_now")
        await reaches(run, "live")


async def test_a_worker_that_is_gone_leaves_the_run_to_the_next(
    client: Client, tenant: Tenant, fake: FakeEndpoint
) -> None:
    await tenant.add("the otter swims")
    hold = fake.hold(on="embed")
    run = await start(client, tenant)

    async def until_held() -> None:
        async with running_workers(client, tenant.engine):
            await hold.reached(1)
            fake.heal()

    await until_held()
    assert (await run.describe()).status == WorkflowExecutionStatus.RUNNING
    async with running_workers(client, tenant.engine):
        await reaches(run, "staged")

        async def described() -> bool:
            return (await run.describe(rpc_timeout=timedelta(seconds=5))).status == WorkflowExecutionStatus.RUNNING

        await eventually(described)
