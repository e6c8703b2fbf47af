"""Replaying histories on the code as it is."""

from collections.abc import AsyncIterator

from temporalio import workflow
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer

import worker
from memory_plane.temporal import DATA_CONVERTER


def replayer() -> Replayer:
    """As the worker runs them: same workflows, same sandbox, same converter."""
    return Replayer(
        workflows=worker.WORKFLOWS,
        workflow_runner=worker.SANDBOX,
        data_converter=DATA_CONVERTER,
        workflow_failure_exception_types=worker.FAILS_WORKFLOWS,
    )


async def unreplayable(client: Client) -> list[str]:
    """What of our workflows' histories in this namespace the current code would not have made."""
    ours = {workflow._Definition.must_from_class(each).name for each in worker.WORKFLOWS}

    async def histories() -> AsyncIterator[WorkflowHistory]:
        async for execution in client.list_workflows():
            if execution.workflow_type in ours:
                yield await client.get_workflow_handle(execution.id, run_id=execution.run_id).fetch_history()

    results = await replayer().replay_workflows(histories(), raise_on_replay_failure=False)
    return [f"{run_id}: {failure}" for run_id, failure in results.replay_failures.items()]
