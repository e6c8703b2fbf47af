"""The handlers of the Nexus service `memory`, run by our worker. What they refuse is told by kind and in our words."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nexusrpc
from nexusrpc.handler import StartOperationContext, service_handler, sync_operation
from temporalio import nexus
from temporalio.common import Priority, WorkflowIDConflictPolicy

from memory_plane.contracts import names
from memory_plane.contracts.errors import ErrorKind, Invalid, PlaneError
from memory_plane.contracts.hosting import HostAdd, HostFeed, HostList, HostSearch
from memory_plane.contracts.nexus import MemoryService
from memory_plane.contracts.wire import AddResponse, FeedResponse, ListResponse, SearchResponse
from memory_plane.contracts.workflows import IngestInput, IngestResult
from memory_plane.plane.engine import Engine
from workflows import policies
from workflows.ingest import IngestWorkflow

_log = logging.getLogger(__name__)

_Type = nexusrpc.HandlerErrorType
_TYPES = {
    ErrorKind.UNAUTHENTICATED: _Type.UNAUTHENTICATED,
    ErrorKind.FORBIDDEN: _Type.UNAUTHORIZED,
    ErrorKind.NOT_FOUND: _Type.NOT_FOUND,
    ErrorKind.UNSUPPORTED: _Type.NOT_IMPLEMENTED,
    ErrorKind.THROTTLED: _Type.RESOURCE_EXHAUSTED,
    ErrorKind.UNAVAILABLE: _Type.UNAVAILABLE,
}
"""Every other kind is the caller's to mend: BAD_REQUEST."""


@service_handler(service=MemoryService)
class MemoryServiceHandler:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @sync_operation
    async def search(self, context: StartOperationContext, given: HostSearch) -> SearchResponse:
        async with _refusals():
            return await self._engine.hosting.search(given)

    @sync_operation
    async def add(self, context: StartOperationContext, given: HostAdd) -> AddResponse:
        async with _refusals():
            return await self._engine.hosting.add(given, f"nexus:{context.request_id}"[:255])

    @sync_operation
    async def list(self, context: StartOperationContext, given: HostList) -> ListResponse:
        async with _refusals():
            return await self._engine.hosting.list(given)

    @sync_operation
    async def feed(self, context: StartOperationContext, given: HostFeed) -> FeedResponse:
        async with _refusals():
            return await self._engine.hosting.feed(given)

    @nexus.workflow_run_operation
    async def ingest(
        self, context: nexus.WorkflowRunOperationContext, given: IngestInput
    ) -> nexus.WorkflowHandle[IngestResult]:
        async with _refusals():
            if given.document is None and not given.version_ids:
                raise Invalid("An ingest takes a document, or the ids of versions; this one has neither.")
        return await context.start_workflow(
            IngestWorkflow.run,
            given,
            id=_ingest_id(given, context.request_id),
            task_queue=names.QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            execution_timeout=policies.INGEST_EXECUTION_TIMEOUT,
            static_summary=f"Ingest for `{given.tenant_id}`, asked for over Nexus",
            priority=Priority(fairness_key=names.fairness_key(given.tenant_id)),
        )


def _ingest_id(given: IngestInput, request_id: str) -> str:
    if given.document is not None:
        return names.ingest_id(given.tenant_id, f"nexus-{request_id}")
    if len(given.version_ids) == 1:
        return names.ingest_id(given.tenant_id, given.version_ids[0])
    return names.ingest_batch_id(given.tenant_id, given.version_ids[0])


@asynccontextmanager
async def _refusals() -> AsyncIterator[None]:
    try:
        yield
    except PlaneError as refusal:
        raise nexusrpc.HandlerError(refusal.detail, type=_TYPES.get(refusal.kind, _Type.BAD_REQUEST)) from None
    except Exception as error:  # noqa: BLE001 - the boundary: other messages may quote content, and stay in histories
        _log.error("a Nexus operation failed with %s", type(error).__name__)
        raise nexusrpc.HandlerError(
            f"{type(error).__name__}; the worker's log says where.", type=_Type.INTERNAL
        ) from None
