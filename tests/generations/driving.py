"""Driving runs and cutovers over Temporal as an operator does."""

from collections.abc import Awaitable
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from memory_plane.contracts import names
from memory_plane.contracts.transforms import (
    CutoverInput,
    CutoverResult,
    Cutting,
    Standing,
    TransformInput,
    TransformResult,
    TransformScope,
)
from tests.eventually import eventually
from tests.generations.world import OTHER_MODEL, Tenant
from workflows.demote import DemoteWorkflow
from workflows.promote import PromoteWorkflow
from workflows.transform import TransformWorkflow

Run = WorkflowHandle[TransformWorkflow, TransformResult]


async def start(
    client: Client,
    tenant: Tenant,
    params: dict[str, Any] | None = None,
    scope: TransformScope | None = None,
    **more: Any,
) -> Run:
    config = await tenant.engine.transforms.create_config(
        tenant.tenant, "other", OTHER_MODEL if params is None else params
    )
    run_id = await tenant.engine.transforms.create_run(tenant.tenant, config.id, scope)
    return await attend(client, tenant, run_id, **more)


async def attend(client: Client, tenant: Tenant, run_id: str, **more: Any) -> Run:
    """Start the workflow of a run there is."""
    return await client.start_workflow(
        TransformWorkflow.run,
        TransformInput(tenant_id=tenant.tenant, run_id=run_id, **more),
        id=names.transform_id(tenant.tenant, run_id),
        task_queue=names.QUEUE,
    )


async def tell(run: Run, update: str, *arguments: Any) -> str:
    """Send an update by its name, as the Temporal UI does; what it answers."""
    answer: str = await run.execute_update(update, args=arguments, result_type=str)
    return answer


async def cut_over(
    client: Client, kind: Cutting, tenant: Tenant, generation: str, workflow_id: str | None = None, **more: Any
) -> WorkflowHandle[Any, CutoverResult]:
    given = CutoverInput(tenant_id=tenant.tenant, generation=generation, **more)
    return await client.start_workflow(
        PromoteWorkflow.run if kind == "promote" else DemoteWorkflow.run,
        given,
        id=workflow_id or names.cutover_id(tenant.tenant),
        task_queue=names.QUEUE,
    )


def run_of(run: Run) -> str:
    return run.id.rpartition("/")[2]


async def status(run: Run) -> Standing:
    found = await run.query(TransformWorkflow.status)
    assert found is not None
    return found


async def reaches(run: Run, state: str) -> Standing:
    """Returns once the run is in that state, reviewed if it is staged for the first time."""

    found: Standing | None = None

    async def there() -> bool:
        nonlocal found
        # None at the very start, and again at that of each run that is continued as new.
        found = await run.query(TransformWorkflow.status)
        return found is not None and found.state == state and (state != "staged" or found.review is not None)

    await eventually(there, seconds=90, what=f"the run to be {state}")
    assert found is not None
    return found


async def details(handle: WorkflowHandle[Any, Any]) -> str:
    return str(await handle.query("__temporal_workflow_metadata", result_type=dict))


async def shows(handle: WorkflowHandle[Any, Any], words: str) -> None:
    async def there() -> bool:
        return words in await details(handle)

    await eventually(there, what=f"the details to say {words!r}")


async def refusal(work: Awaitable[object]) -> str:
    """The type of the refusal that an update or a workflow ends with."""
    with pytest.raises((WorkflowUpdateFailedError, WorkflowFailureError)) as caught:
        await work
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError), cause
    assert cause.type is not None and cause.message.endswith(".")
    return cause.type
