"""What an ingest does besides embedding: capture an inline document, read what remains, keep the processors' book."""

from collections.abc import Sequence
from datetime import timedelta

from memory_plane.contracts.enums import ProcessState, Verb
from memory_plane.contracts.workflows import (
    CaptureInput,
    CaptureResult,
    PendingProcess,
    PendingResult,
    ProcessOutcome,
)
from memory_plane.core.caller import Caller
from memory_plane.plane.access import Access
from memory_plane.plane.capture import Capture
from memory_plane.plane.withdrawing import lock_claims, withdraw_claims
from memory_plane.settings import Settings
from memory_plane.store import ingests, process_requests
from memory_plane.store.database import Connection, Pool, connection, in_transaction
from memory_plane.store.feed_events import append_events
from memory_plane.store.process_requests import ProcessRequest

PROCESS_HOLD = timedelta(minutes=15)
"""How long the reconciler leaves a processor's attempt alone; the workflow renews it while it waits."""

_STATES = {
    "written": ProcessState.DONE,
    "skip": ProcessState.SKIPPED,
    "poison": ProcessState.QUARANTINED,
    "failed": ProcessState.PENDING,
}


class Ingesting:
    def __init__(self, pool: Pool, settings: Settings, access: Access, capture: Capture) -> None:
        self._pool = pool
        self._processors = settings.memory_processors
        self._access = access
        self._capture = capture

    async def capture(self, given: CaptureInput) -> CaptureResult:
        """Capture a document that a host's workflow carries, as the principal whom the host has authenticated."""
        visibility = await self._access.visibility(Caller(given.tenant_id, given.principal_id))
        self._access.require(visibility, Verb.ADD)
        payload = given.document.model_dump(mode="json", exclude_unset=True)
        captured = await self._capture.capture(
            visibility,
            given.document,
            payload=payload,
            over_http=False,
            idempotency_key=given.idempotency_key,
        )
        return CaptureResult(
            document_id=captured.document_id,
            version_id=captured.version_id,
            status=captured.status,
            chunks=captured.chunk_count,
        )

    async def remaining(self, tenant_id: str, version_ids: Sequence[str]) -> PendingResult:
        """What is still to be done for these versions under the live generation, and how they stand."""
        async with connection(self._pool) as conn:
            standing = await ingests.standing(conn, tenant_id, version_ids)
            requests = await process_requests.pending(conn, tenant_id, version_ids)
        return PendingResult(
            embed=standing.pending,
            process=[self._pending(request) for request in requests],
            document_id=standing.document_id,
            version_id=version_ids[0] if version_ids else None,
            chunks=standing.chunks,
            embedded=standing.embedded,
            failed=standing.failed,
            not_configured=standing.not_configured,
            claims=standing.claims,
        )

    async def begin_processes(self, tenant_id: str, requests: Sequence[PendingProcess]) -> list[PendingProcess]:
        """Begin an attempt of each, or renew the hold on one begun; those that are the caller's to run."""
        wanted = [ProcessRequest(each.version_id, each.processor, each.attempts) for each in requests]
        async with connection(self._pool) as conn:
            ours = await process_requests.begin(conn, tenant_id, wanted, PROCESS_HOLD)
        return [each for each in requests if (each.version_id, each.processor) in ours]

    async def finish_process(self, outcome: ProcessOutcome) -> None:
        """Write down how an attempt ended. One that claims less than an earlier run of the same processor on the same
        version takes the claims beyond back."""
        await in_transaction(self._pool, lambda conn: self._finish(conn, outcome))

    async def _finish(self, conn: Connection, outcome: ProcessOutcome) -> None:
        tenant, version, processor = outcome.tenant_id, outcome.version_id, outcome.processor
        done = outcome.outcome in ("written", "skip")
        if done:
            await lock_claims(conn, tenant, processor, version)
        await process_requests.finish(
            conn,
            tenant,
            version,
            processor,
            _STATES[outcome.outcome],
            claims=outcome.claims,
            reason=outcome.reason,
        )
        if done:
            await append_events(conn, tenant, await withdraw_claims(conn, tenant, processor, version, outcome.claims))

    def _pending(self, request: ProcessRequest) -> PendingProcess:
        return PendingProcess(
            version_id=request.version_id,
            processor=request.processor,
            attempts=request.attempts,
            spec=self._processors.get(request.processor),
        )
