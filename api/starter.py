"""Handing what remains of an add to IngestWorkflow. A Temporal that is down must cost an add next to nothing."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import (
    Priority,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)
from temporalio.service import RPCError, RPCStatusCode

from memory_plane.contracts import names
from memory_plane.contracts.errors import Unavailable
from memory_plane.contracts.workflows import IngestInput, IngestResult, VersionsInput, WidenInput
from memory_plane.models.breaker import Breaker
from memory_plane.models.errors import EndpointUnavailable
from memory_plane.payload_codec import PayloadUnreadable
from memory_plane.settings import Settings
from memory_plane.temporal import connect
from workflows import policies

_log = logging.getLogger(__name__)

RPC_SECONDS = 1.0
"""What a start may cost. A healthy server answers in some milliseconds."""

_TENANT = SearchAttributeKey.for_keyword(names.ATTRIBUTE_TENANT)


class TemporalStarter:
    """Over a client that may be lazy. One a process, so that all adds know when the server is down."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._breaker = Breaker("Temporal", threshold=2, cool_down=1.0, max_cool_down=15.0)

    async def start_ingest(self, tenant_id: str, version_ids: Sequence[str]) -> None:
        """Start the ingest of these versions, or tell the running one of them. Raises Unavailable."""
        try:
            with self._breaker.guard():
                await self._guarded(lambda: self._start(tenant_id, version_ids))
        except EndpointUnavailable:
            raise _unreachable() from None

    async def wait_ingest(self, tenant_id: str, version_ids: Sequence[str], within: float) -> bool:
        """Wait for the end of their ingest, at most so many seconds; False when it is still going on.

        True however it ended: the rows say what came of it. Raises Unavailable.
        """
        handle: WorkflowHandle[object, IngestResult] = self._client.get_workflow_handle(
            _workflow_id(tenant_id, version_ids), result_type=IngestResult
        )
        try:
            async with asyncio.timeout(within):
                await handle.result(rpc_timeout=timedelta(seconds=within + RPC_SECONDS))
        except TimeoutError:
            return False
        except (WorkflowFailureError, PayloadUnreadable):
            return True
        except (RPCError, RuntimeError) as error:
            if isinstance(error, RPCError) and error.status == RPCStatusCode.DEADLINE_EXCEEDED:
                return False
            raise _unreachable() from None
        return True

    async def start_widening(self, tenant_id: str, request_id: str) -> None:
        """Start the workflow that waits for the decision on this request, unless it runs. Raises Unavailable."""
        try:
            with self._breaker.guard():
                await self._guarded(lambda: self._start_widening(tenant_id, request_id))
        except EndpointUnavailable:
            raise _unreachable() from None

    async def _start_widening(self, tenant_id: str, request_id: str) -> None:
        await self._client.start_workflow(
            names.WIDEN_AUDIENCE,
            WidenInput(tenant_id=tenant_id, request_id=request_id),
            id=names.widen_audience_id(tenant_id, request_id),
            task_queue=names.QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            search_attributes=TypedSearchAttributes([SearchAttributePair(_TENANT, tenant_id)]),
            static_summary=f"A wider audience for a claim of `{tenant_id}`",
            priority=Priority(fairness_key=names.fairness_key(tenant_id)),
            rpc_timeout=timedelta(seconds=RPC_SECONDS),
        )

    async def check_health(self) -> None:
        """Raises OSError when the server cannot be reached."""
        try:
            await self._client.service_client.check_health(timeout=timedelta(seconds=RPC_SECONDS))
        except (RPCError, RuntimeError):
            raise ConnectionError("Temporal cannot be reached.") from None

    async def _guarded(self, start: Callable[[], Awaitable[None]]) -> None:
        try:
            # The timeout is ours as well: a lazy client connects before the call's own clock starts.
            async with asyncio.timeout(RPC_SECONDS * 2):
                await start()
        except TimeoutError:
            raise EndpointUnavailable("Temporal does not answer.") from None
        except (RPCError, RuntimeError) as error:
            # A search attribute that is not registered, say, is for the operator to see; ids are all it can quote.
            _log.warning("Temporal did not take a start: %s", error)
            raise EndpointUnavailable("Temporal does not take the start.") from None

    async def _start(self, tenant_id: str, version_ids: Sequence[str]) -> None:
        ids = list(version_ids)
        number = "1 version" if len(ids) == 1 else f"{len(ids)} versions"
        await self._client.start_workflow(
            names.INGEST,
            IngestInput(tenant_id=tenant_id, version_ids=ids),
            id=_workflow_id(tenant_id, ids),
            task_queue=names.QUEUE,
            result_type=IngestResult,
            execution_timeout=policies.INGEST_EXECUTION_TIMEOUT,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal="nudge",
            start_signal_args=[VersionsInput(tenant_id=tenant_id, version_ids=ids)],
            search_attributes=TypedSearchAttributes([SearchAttributePair(_TENANT, tenant_id)]),
            static_summary=f"Ingest {number} for `{tenant_id}`",
            priority=Priority(fairness_key=names.fairness_key(tenant_id)),
            rpc_timeout=timedelta(seconds=RPC_SECONDS),
        )


@asynccontextmanager
async def open_starter(settings: Settings) -> AsyncIterator[TemporalStarter]:
    """A starter over a client of its own, which connects with the first call: the API starts while Temporal is down."""
    yield TemporalStarter(await connect(settings, lazy=True))


def _workflow_id(tenant_id: str, version_ids: Sequence[str]) -> str:
    if len(version_ids) == 1:
        return names.ingest_id(tenant_id, version_ids[0])
    return names.ingest_batch_id(tenant_id, version_ids[0])


def _unreachable() -> Unavailable:
    return Unavailable(
        "Temporal cannot be reached; what was captured is durable and is ingested later.",
        code="temporal_unavailable",
        retry_after=2,
    )
