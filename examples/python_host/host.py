"""A host of its own: its workflow starts ingest as a child, by name, reads the result, and searches.

Imports temporalio and `memory_plane.contracts` (which needs pydantic and nexus-rpc), nothing else of Memory Plane.
"""

import asyncio
import os
from datetime import timedelta
from uuid import uuid4

from temporalio import workflow
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from memory_plane.contracts import hosting, names
    from memory_plane.contracts.hosting import HostSearch
    from memory_plane.contracts.wire import AddFields, SearchRequest, SearchResponse
    from memory_plane.contracts.workflows import Identity, IngestInput, IngestResult

QUEUE = "python-host"


@workflow.defn
class RememberNote:
    """Remembers what was said; what it answers was found again by the memory."""

    @workflow.run
    async def run(self, who: Identity) -> str:
        ingested = await workflow.execute_child_workflow(
            names.INGEST,
            IngestInput(
                tenant_id=who.tenant_id,
                principal_id=who.principal_id,
                document=AddFields(
                    title="The meeting",
                    text="We ship the new release on Friday.",
                    external_ref=f"python-host/{workflow.info().workflow_id}",
                ),
            ),
            id=f"memory-ingest/{who.tenant_id}/{workflow.info().workflow_id}",
            task_queue=names.QUEUE,
            result_type=IngestResult,
        )
        found = await workflow.execute_activity(
            hosting.ACTIVITY_SEARCH,
            HostSearch(identity=who, request=SearchRequest(query="When do we ship?")),
            task_queue=names.QUEUE,
            result_type=SearchResponse,
            start_to_close_timeout=timedelta(seconds=30),
        )
        again = any(item.document_id == ingested.document_id for item in found.items)
        return f"{ingested.status} {ingested.version_id}, {ingested.chunks} chunk, found again: {again}"


async def main() -> None:
    client = await Client.connect(
        os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233"),
        namespace=os.environ.get("TEMPORAL_NAMESPACE", "default"),
        data_converter=pydantic_data_converter,
    )
    who = Identity(
        tenant_id=os.environ.get("MEMORY_TENANT", "dev"), principal_id=os.environ.get("MEMORY_PRINCIPAL", "dev")
    )
    async with Worker(client, task_queue=QUEUE, workflows=[RememberNote]):
        print(
            await client.execute_workflow(RememberNote.run, who, id=f"python-host-{uuid4().hex[:8]}", task_queue=QUEUE)
        )


if __name__ == "__main__":
    asyncio.run(main())
