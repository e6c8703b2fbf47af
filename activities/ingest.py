"""What IngestWorkflow does to the world. Ids and counts in and out."""

from temporalio import activity

from activities.heartbeat import heartbeating
from memory_plane.contracts.workflows import (
    BeginProcess,
    CaptureInput,
    CaptureResult,
    EmbedResult,
    PendingResult,
    ProcessOutcome,
    VersionsInput,
)
from memory_plane.plane.engine import Engine


class IngestActivities:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @activity.defn(name="memory_capture")
    async def capture(self, given: CaptureInput) -> CaptureResult:
        """Capture a host's inline document. Idempotent by the key, which is of the workflow's first run: a retry after
        a lost answer gets the same ids."""
        return await self._engine.ingesting.capture(given)

    @activity.defn(name="memory_remaining")
    async def remaining(self, given: VersionsInput) -> PendingResult:
        """Read what remains to be done. Idempotent: it writes nothing."""
        return await self._engine.ingesting.remaining(given.tenant_id, given.version_ids)

    @activity.defn(name="memory_embed")
    async def embed(self, given: VersionsInput) -> EmbedResult:
        """Embed what is pending of these versions. Idempotent: it reads which chunks have no vector, and a slot that
        has one keeps it; two at once write the same."""
        async with heartbeating(0) as tell:
            return await self._engine.embedding.embed_versions(given.tenant_id, given.version_ids, on_progress=tell)

    @activity.defn(name="memory_begin_processes")
    async def begin_processes(self, given: BeginProcess) -> BeginProcess:
        """Claim an attempt of each. Idempotent: an attempt is begun by compare-and-set on the number before it."""
        ours = await self._engine.ingesting.begin_processes(given.tenant_id, given.requests)
        return BeginProcess(tenant_id=given.tenant_id, requests=ours)

    @activity.defn(name="memory_finish_process")
    async def finish_process(self, given: ProcessOutcome) -> None:
        """Write an attempt's outcome. Idempotent where it ends the request: only a pending one is changed."""
        await self._engine.ingesting.finish_process(given)
