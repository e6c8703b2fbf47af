"""TransformWorkflow on the real server and a real database, driven as an operator drives it: by updates."""

from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle

from memory_plane.contracts import names
from memory_plane.contracts.transforms import Standing, TransformInput, TransformResult
from memory_plane.dev.temporal import TemporalServer
from tests.eventually import eventually
from tests.generations.world import OTHER_MODEL, Tenant
from tests.replay.recording import record
from tests.workflows.conftest import running_workers
from tests.workflows.namespaces import new_namespace
from workflows.transform import TransformWorkflow

Handle = WorkflowHandle[TransformWorkflow, TransformResult]


@pytest.fixture
async def client(temporal_server: TemporalServer) -> Client:
    return await new_namespace(temporal_server)


async def start(client: Client, tenant: Tenant, params: dict[str, Any] | None = None, **values: Any) -> Handle:
    config = await tenant.engine.transforms.create_config(tenant.tenant, "other", params or OTHER_MODEL)
    run_id = await tenant.engine.transforms.create_run(tenant.tenant, config.id)
    return await client.start_workflow(
        TransformWorkflow.run,
        TransformInput(tenant_id=tenant.tenant, run_id=run_id, **values),
        id=names.transform_id(tenant.tenant, run_id),
        task_queue=names.QUEUE,
    )


async def status(handle: Handle) -> Standing:
    found = await handle.query(TransformWorkflow.status)
    assert found is not None
    return found


async def reaches(handle: Handle, state: str, seconds: float = 60) -> Standing:
    async def there() -> bool:
        standing = await handle.query(TransformWorkflow.status)
        return standing is not None and standing.state == state

    await eventually(there, seconds=seconds, what=f"the run to be {state}")
    return await status(handle)


async def record_last(client: Client, workflow_type: str, name: str) -> None:
    """Add the newest ended run of this type to the corpus, when recording."""
    query = f"WorkflowType = '{workflow_type}' AND ExecutionStatus = 'Completed'"

    async def ended() -> bool:
        return (await client.count_workflows(query)).count > 0

    await eventually(ended, what=f"a {workflow_type} to be listed")
    async for newest in client.list_workflows(query, page_size=1):
        await record(client.get_workflow_handle(newest.id, run_id=newest.run_id), name)
        return


async def details(handle: Handle) -> str:
    return str(await handle.query("__temporal_workflow_metadata", result_type=dict))


async def test_a_run_from_its_first_page_to_its_retirement(client: Client, tenant: Tenant) -> None:
    first = await tenant.add("the otter swims in the river", title="otter")
    old = await tenant.live()
    async with running_workers(client, tenant.engine):
        handle = await start(client, tenant)
        run_id = handle.id.rpartition("/")[2]
        standing = await reaches(handle, "staged")

        async def reviewed() -> bool:
            return (await status(handle)).review is not None

        await eventually(reviewed)
        standing = await status(handle)
        assert standing.review is not None and standing.review.overlap == 1.0
        assert (standing.versions, standing.failed) == (1, 0)
        assert "**promote**" in await details(handle)
        second = await tenant.capture("the heron stands in the reeds", title="heron")

        assert await handle.execute_update("promote") == "started"
        await reaches(handle, "live")
        assert await tenant.live() == run_id
        assert (await tenant.found("heron reeds"))[0] == second.document_id

        assert await handle.execute_update("demote") == "started"
        await reaches(handle, "staged")
        assert await tenant.live() == old
        assert (await tenant.found("otter river"))[0] == first.document_id

        await handle.execute_update("promote")
        await reaches(handle, "live")
        assert await handle.execute_update("finalize") == "started"
        assert await handle.result() == TransformResult(run_id=run_id, outcome="finalized")
        await record(handle, "transform-promoted-demoted-finalized")
        await record_last(client, names.PROMOTE, "promote")
        await record_last(client, names.DEMOTE, "demote")
        assert await tenant.state(old) == "retired" and await tenant.chunks(old) == 0
