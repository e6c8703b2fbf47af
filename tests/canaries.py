"""Marks planted in content and secrets, and the search for them in everything that Temporal keeps."""

from collections.abc import AsyncIterator

from temporalio.client import Client, WorkflowExecution

CANARY = "canary-9d41c7e2"
"""Plant it in titles, texts, attributes, tags, queries and keys: whatever must not reach a workflow history."""


async def histories(client: Client) -> AsyncIterator[tuple[WorkflowExecution, bytes]]:
    """Every workflow of the namespace with all that is kept of it: its history, and what is pending."""
    async for execution in client.list_workflows():
        handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
        history = await handle.fetch_history()
        kept = b"".join(event.SerializeToString() for event in history.events)
        described = await handle.describe()
        yield execution, kept + described.raw_description.SerializeToString()


async def leaks(client: Client, *canaries: str) -> list[str]:
    """The ids of workflows in whose history one of the canaries stands."""
    wanted = [canary.encode() for canary in (CANARY, *canaries)]
    return [execution.id async for execution, kept in histories(client) if any(canary in kept for canary in wanted)]
