"""IngestWorkflow: what was captured becomes searchable by meaning, then is processed.

The rows are the queue: what there is to do is read from `derivation` and `process_request`, and read again before the
workflow ends. A nudge says only that there may be more.
"""

import asyncio
from typing import Literal

from temporalio import workflow
from temporalio.common import SearchAttributeKey

from activities.ingest import IngestActivities
from memory_plane.contracts import names
from memory_plane.contracts.enums import Degraded
from memory_plane.contracts.workflows import (
    CaptureInput,
    IngestInput,
    IngestResult,
    IngestStatus,
    PendingResult,
    VersionsInput,
)
from workflows import policies
from workflows.process import run_processors

MAX_VERSIONS = 500
"""A nudge that names more is left to the reconciler, which finds them by their rows."""

Stage = Literal["capture", "embed", "process", "done"]
_TENANT = SearchAttributeKey.for_keyword(names.ATTRIBUTE_TENANT)
_STAGE = SearchAttributeKey.for_keyword(names.ATTRIBUTE_STAGE)


@workflow.defn(name=names.INGEST)
class IngestWorkflow:
    """Started by the facade with ids, or by a host with one inline document."""

    @workflow.init
    def __init__(self, given: IngestInput) -> None:
        self._tenant = given.tenant_id
        self._versions = list(dict.fromkeys(given.version_ids))
        self._nudged = False
        self._status: Literal["captured", "noop"] = given.captured_status
        self._stage: Stage | None = workflow.info().typed_search_attributes.get(_STAGE)  # type: ignore[assignment]
        self._standing = PendingResult()
        self._last_round = "nothing yet"

    @workflow.run
    async def run(self, given: IngestInput) -> IngestResult:
        if given.document is not None:
            await self._capture(given)
        rounds = 0
        while True:
            # Cleared before the rows are read: a nudge that comes after says that they may have changed.
            self._nudged = False
            await self._look()
            if not (self._standing.embed or self._standing.process):
                if self._nudged:
                    continue
                break
            left = await self._round()
            if workflow.info().is_continue_as_new_suggested():
                await self._continue()
            if left:
                rounds += 1
                await asyncio.sleep(policies.pause_after(rounds).total_seconds())
        await workflow.wait_condition(workflow.all_handlers_finished)
        self._enter("done")
        return self._result()

    @workflow.signal(description="There may be more to do for these versions: {tenant_id, version_ids}")
    def nudge(self, more: VersionsInput) -> None:
        self._nudged = True
        known = set(self._versions)
        fresh = [version for version in dict.fromkeys(more.version_ids) if version not in known]
        self._versions += fresh[: MAX_VERSIONS - len(self._versions)]

    @workflow.query(description="The stage, and how many versions are embedded, pending and failed")
    def status(self) -> IngestStatus:
        standing = self._standing
        return IngestStatus(
            stage=self._stage or "capture",
            versions=len(self._versions),
            embedded=standing.embedded,
            pending=len(standing.embed),
            failed=standing.failed,
        )

    async def _capture(self, given: IngestInput) -> None:
        assert given.document is not None  # noqa: S101 - asked before
        self._enter("capture")
        captured = await workflow.execute_activity_method(
            IngestActivities.capture,
            CaptureInput(
                tenant_id=given.tenant_id,
                principal_id=given.principal_id or "",
                document=given.document,
                # Of the first run, so that a retry of the activity and a reset of the workflow capture nothing twice.
                idempotency_key=given.idempotency_key or f"ingest:{workflow.info().first_execution_run_id}",
            ),
            **policies.summarized(policies.DATABASE, "capture"),
        )
        self._versions = [captured.version_id]
        self._status = captured.status

    async def _look(self) -> None:
        self._standing = await workflow.execute_activity_method(
            IngestActivities.remaining,
            self._of(self._versions),
            **policies.summarized(policies.DATABASE, "read what remains"),
        )
        self._describe()

    async def _round(self) -> bool:
        """One pass over what there is to do; whether something of it has been left undone."""
        left = False
        standing = self._standing
        if standing.embed:
            self._enter("embed")
            result = await workflow.execute_activity_method(
                IngestActivities.embed,
                self._of(standing.embed),
                **policies.summarized(policies.EMBED, f"embed {len(standing.embed)} versions"),
            )
            left = result.pending > 0
            self._last_round = f"{result.embedded} embedded, {result.pending} to be tried again, {result.failed} failed"
        if standing.process:
            self._enter("process")
            unfinished = await run_processors(self._tenant, standing.process)
            left = left or unfinished > 0
            self._last_round = f"{len(standing.process) - unfinished} processed, {unfinished} to be tried again"
        return left

    async def _continue(self) -> None:
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(
            IngestInput(tenant_id=self._tenant, version_ids=self._versions, captured_status=self._status)
        )

    def _of(self, version_ids: list[str]) -> VersionsInput:
        return VersionsInput(tenant_id=self._tenant, version_ids=version_ids)

    def _enter(self, stage: Stage) -> None:
        if stage != self._stage:
            self._stage = stage
            # The tenant as well: a host that starts this as its child knows nothing of our search attributes.
            workflow.upsert_search_attributes([_TENANT.value_set(self._tenant), _STAGE.value_set(stage)])
        self._describe()

    def _describe(self) -> None:
        standing = self._standing
        workflow.set_current_details(
            f"**{self._stage or 'starting'}** · {len(self._versions)} versions\n\n"
            "| chunks | embedded | to embed | failed | to process | claims |\n| --- | --- | --- | --- | --- | --- |\n"
            f"| {standing.chunks} | {standing.embedded} | {len(standing.embed)} | {standing.failed} "
            f"| {len(standing.process)} | {standing.claims} |\n\n"
            f"Last round: {self._last_round}.\n\n"
            "A model endpoint that is down is waited for: see the pending activity for its last failure. A version "
            "whose text will not embed is tried five times. Cancelling loses nothing: the reconciler starts what is "
            "still pending."
        )

    def _result(self) -> IngestResult:
        standing = self._standing
        degraded: list[str] = []
        if standing.failed or standing.not_configured:
            degraded.append(Degraded.EMBED_UNAVAILABLE.value)
        if standing.not_configured:
            degraded.append(Degraded.LEXICAL_ONLY.value)
        return IngestResult(
            document_id=standing.document_id,
            version_id=standing.version_id,
            status=self._status,
            chunks=standing.chunks,
            degraded=degraded or None,
            claims=standing.claims,
            embedded=standing.embedded,
            failed=standing.failed,
        )
