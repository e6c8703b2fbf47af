"""WidenAudienceWorkflow on the real server: it waits, is decided by updates or elsewhere, and keeps no tag."""

from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from api.starter import TemporalStarter
from memory_plane.contracts import names
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.wire import AddRequest
from memory_plane.contracts.workflows import ReconcileInput, WidenDecision, WidenStanding
from memory_plane.core.caller import Caller
from memory_plane.plane.engine import Engine
from memory_plane.store.database import connection
from memory_plane.store.grants import put_rules
from tests.access.seed import TENANT, allow
from tests.canaries import CANARY, leaks
from tests.eventually import eventually
from tests.replay.recording import record
from tests.workflows.conftest import RunWorkers
from workflows.reconcile import ReconcileWorkflow
from workflows.widen_audience import WidenAudienceWorkflow

Handle = WorkflowHandle[WidenAudienceWorkflow, WidenStanding]
WIDE = f"memory.space:{CANARY}"


async def ask(engine: Engine) -> str:
    """dora's claim upon alice's private note asks for a wider audience; the request's id."""
    async with connection(engine.pool) as conn:
        rules = [allow(who, "memory", verb.value) for who in ("alice", "dora") for verb in Verb]
        await put_rules(conn, TENANT, [*rules, allow("dora", "memory.owner:alice"), allow("erin", WIDE)])

    async def add(principal: str, **fields: Any) -> str:
        payload = {"title": CANARY, "text": CANARY, **fields}
        visibility = await engine.access.visibility(Caller(TENANT, principal))
        outcome = await engine.adding.add(visibility, AddRequest.model_validate(payload), payload, None)
        return outcome.response.version_id

    source = await add("alice")
    await add("dora", derived_from=[source], access_tags=[WIDE], request_widening=True)
    [asked] = await engine.widening.open_requests(TENANT)
    return asked.request.id


def handle_of(client: Client, request_id: str) -> Handle:
    return client.get_workflow_handle_for(WidenAudienceWorkflow.run, names.widen_audience_id(TENANT, request_id))


async def decide(handle: Handle, update: str, principal: str = "alice") -> WidenStanding:
    standing: WidenStanding = await handle.execute_update(
        update, WidenDecision(principal_id=principal), result_type=WidenStanding
    )
    return standing


async def waiting(handle: Handle) -> None:
    async def open_and_known() -> bool:
        return (await handle.query(WidenAudienceWorkflow.status)).tags == 1

    await eventually(open_and_known, what="the workflow to wait")


async def tags_with(engine: Engine) -> int:
    async with connection(engine.pool) as conn:
        number: int = await conn.fetchval("SELECT count(*) FROM memory.document WHERE $1 = ANY (access_tags)", WIDE)
    return number


async def test_an_add_starts_it_and_the_owner_approves_by_update(
    engine: Engine, client: Client, workers: RunWorkers
) -> None:
    async with workers():
        handle = handle_of(client, await ask(engine))
        await waiting(handle)
        for principal, expected in (("dora", "not_source_owner"), (" ", "invalid")):
            with pytest.raises(WorkflowUpdateFailedError) as refused:
                await decide(handle, "approve", principal)
            assert isinstance(refused.value.cause, ApplicationError) and refused.value.cause.type == expected
        assert await tags_with(engine) == 0
        answer = await decide(handle, "approve")
        assert answer.state == "approved"
        assert (await handle.result()).state == "approved"
        await record(handle, "widen-approved")
    assert await tags_with(engine) == 1
    assert await leaks(client) == []


async def test_it_is_declined_by_update(engine: Engine, client: Client, workers: RunWorkers) -> None:
    async with workers():
        handle = handle_of(client, await ask(engine))
        await decide(handle, "decline")
        assert (await handle.result()).state == "declined"
        await record(handle, "widen-declined")
    assert await tags_with(engine) == 0


async def test_a_decision_made_elsewhere_and_the_claims_end_are_noticed(
    engine: Engine, client: Client, workers: RunWorkers
) -> None:
    async with workers():
        decided, gone = await ask(engine), await _second(engine)
        for request_id in (decided, gone):
            await waiting(handle_of(client, request_id))
        await engine.widening.decide(TENANT, decided, "alice", approve=True)
        alice = await engine.access.visibility(Caller(TENANT, "alice"))
        async with connection(engine.pool) as conn:
            source = await conn.fetchval(
                "SELECT v.document_id FROM memory.audience_request r "
                "JOIN memory.version v ON v.id = r.source_version_id WHERE r.id = $1",
                gone,
            )
        await engine.retention.forget(alice, source)
        for request_id, state in ((decided, "approved"), (gone, "gone")):
            handle = handle_of(client, request_id)
            await handle.signal(WidenAudienceWorkflow.decided)
            assert (await handle.result()).state == state


async def _second(engine: Engine) -> str:
    before = {each.request.id for each in await engine.widening.open_requests(TENANT)}
    payload: dict[str, Any] = {"title": "another", "text": "another"}
    alice = await engine.access.visibility(Caller(TENANT, "alice"))
    source = await engine.adding.add(alice, AddRequest.model_validate(payload), payload, None)
    dora = await engine.access.visibility(Caller(TENANT, "dora"))
    payload |= {"derived_from": [source.response.version_id], "access_tags": [WIDE], "request_widening": True}
    await engine.adding.add(dora, AddRequest.model_validate(payload), payload, None)
    [fresh] = {each.request.id for each in await engine.widening.open_requests(TENANT)} - before
    return fresh


async def test_inv_33_one_whose_start_was_lost_is_started_by_the_reconciler(
    engine: Engine, client: Client, workers: RunWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(self: TemporalStarter, tenant_id: str, request_id: str) -> None:
        return

    with monkeypatch.context() as patched:
        patched.setattr(TemporalStarter, "start_widening", lost)
        request_id = await ask(engine)
    async with workers():
        for expected in (1, 0):
            result = await client.execute_workflow(
                ReconcileWorkflow.run,
                ReconcileInput(older_than_seconds=0),
                id=f"reconcile-{expected}",
                task_queue=names.QUEUE,
            )
            assert result.widenings_started == expected
            await waiting(handle_of(client, request_id))


async def test_inv_32_a_worker_restarted_meanwhile_changes_nothing(
    engine: Engine, client: Client, workers: RunWorkers
) -> None:
    async with workers():
        handle = handle_of(client, await ask(engine))
        await waiting(handle)
    async with workers():
        await decide(handle, "approve")
        again = await engine.widening.decide(TENANT, handle.id.rpartition("/")[2], "alice", approve=True)
        assert (await handle.result()).state == again.state.value == "approved"
