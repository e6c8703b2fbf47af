"""DistillerWorkflow: drains a tenant's feed into claims, one entry after the other.

What is done is in Postgres (cursor, claims, quarantine), so that any number of runs may die, or run at once.
"""

import asyncio
from typing import Literal

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from activities.distill import DistillActivities
from memory_plane.contracts import names
from memory_plane.contracts.distilling import (
    DistillCounts,
    DistillEntry,
    DistillerInput,
    DistillerResult,
    DistillNext,
    DistillOne,
    DistillSettle,
)
from memory_plane.contracts.workflows import PendingProcess, ProcessorSpec
from workflows import policies
from workflows.process import outcome_of

NO_FAULT_OF_THE_ENTRY = ("capability_missing",)
"""Refusals that would meet every entry: they end the run, so that an operator sees them."""

Ended = Literal["written", "skip", "moved", "unavailable", "quarantined"]


@workflow.defn(name=names.DISTILLER)
class DistillerWorkflow:
    """A tick is started by its schedule; a resident one by `memory distill run --resident`."""

    @workflow.init
    def __init__(self, given: DistillerInput) -> None:
        self._given = given
        self._done = given.done
        self._nudged = False
        self._doing = "reading the feed"
        self._describe()

    @workflow.run
    async def run(self, given: DistillerInput) -> DistillerResult:
        while True:
            # Cleared before the feed is read: a nudge that comes after says that there may be more.
            self._nudged = False
            drained = await self._drain()
            if given.mode == "tick":
                await workflow.wait_condition(workflow.all_handlers_finished)
                return DistillerResult(**self._done.model_dump(), drained=drained)
            await self._rest()

    @workflow.signal(description="There may be something to distil; a resident distiller looks at once")
    def nudge(self) -> None:
        self._nudged = True

    @workflow.query(description="How many entries were written, skipped and quarantined, and as how many claims")
    def status(self) -> DistillCounts:
        return self._done

    async def _drain(self) -> bool:
        """Distil until there is nothing more; False when a tick gave up on an endpoint that is away."""
        away = 0
        while True:
            self._enter("reading the feed")
            page = await workflow.execute_activity_method(
                DistillActivities.next,
                DistillNext(tenant_id=self._given.tenant_id, agent_id=self._given.agent_id),
                **policies.summarized(policies.DATABASE, "what comes next"),
            )
            ended: Ended = "skip"
            for entry in page.entries:
                self._enter(f"distilling `{entry.version_id}`")
                ended = await self._entry(entry, page.processor)
                if ended in ("moved", "unavailable"):
                    break
            if workflow.info().is_continue_as_new_suggested():
                await self._continue()
            if ended == "unavailable":
                away += 1
                if self._given.mode == "tick" and away > policies.DISTILL_WAITS:
                    self._enter("**stopped**: the model endpoint does not answer; the next run goes on from here")
                    return False
                self._enter("**waiting**: the model endpoint does not answer")
                await asyncio.sleep(policies.pause_after(away).total_seconds())
                continue
            away = 0
            if page.drained and ended != "moved":
                self._enter("nothing more to distil")
                return True

    async def _rest(self) -> None:
        try:
            await workflow.wait_condition(
                lambda: self._nudged, timeout=self._given.idle_seconds, timeout_summary="until a nudge, or so long"
            )
        except TimeoutError:
            return

    async def _continue(self) -> None:
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(self._given.model_copy(update={"done": self._done}))

    async def _entry(self, entry: DistillEntry, processor: ProcessorSpec | None) -> Ended:
        settled: Ended
        if processor is None:
            settled, claims = await self._ask(entry)
        else:
            settled, claims = await self._hand_over(entry, processor)
        self._count(settled, claims)
        return settled

    async def _ask(self, entry: DistillEntry) -> tuple[Ended, int]:
        try:
            result = await workflow.execute_activity_method(
                DistillActivities.distil,
                DistillOne(tenant_id=self._given.tenant_id, agent_id=self._given.agent_id, entry=entry),
                **policies.summarized(policies.DISTILL, f"distil {entry.version_id}"),
            )
        except ActivityError as error:
            if is_cancelled_exception(error) or getattr(error.cause, "type", None) in NO_FAULT_OF_THE_ENTRY:
                raise
            await self._settle(entry, "failed", attempts=policies.DISTILL_ATTEMPTS, reason=_reason(error))
            return "quarantined", 0
        return result.outcome, result.claims

    async def _hand_over(self, entry: DistillEntry, processor: ProcessorSpec) -> tuple[Ended, int]:
        """To the host's processor, which writes its claims itself; a second run of it supersedes them."""
        for attempt in range(1, policies.DISTILL_ATTEMPTS + 1):
            request = PendingProcess(
                version_id=entry.version_id, processor=self._given.agent_id, attempts=attempt - 1, spec=processor
            )
            answer = await outcome_of(self._given.tenant_id, request)
            if answer.outcome != "failed":
                break
            if attempt < policies.DISTILL_ATTEMPTS:
                await asyncio.sleep(policies.pause_after(attempt).total_seconds())
        await self._settle(entry, answer.outcome, claims=answer.claims, attempts=attempt, reason=answer.reason)
        if answer.outcome in ("poison", "failed"):
            return "quarantined", 0
        return ("written" if answer.outcome == "written" else "skip"), answer.claims

    async def _settle(
        self,
        entry: DistillEntry,
        outcome: Literal["written", "skip", "poison", "failed"],
        *,
        claims: int = 0,
        attempts: int = 1,
        reason: str | None = None,
    ) -> None:
        await workflow.execute_activity_method(
            DistillActivities.settle,
            DistillSettle(
                tenant_id=self._given.tenant_id,
                agent_id=self._given.agent_id,
                entry=entry,
                outcome=outcome,
                claims=claims,
                attempts=attempts,
                reason=reason,
            ),
            **policies.summarized(policies.DATABASE, f"{outcome} {entry.version_id}"),
        )

    def _count(self, ended: Ended, claims: int) -> None:
        done = self._done
        self._done = DistillCounts(
            written=done.written + (ended == "written"),
            skipped=done.skipped + (ended == "skip"),
            quarantined=done.quarantined + (ended == "quarantined"),
            claims=done.claims + claims,
        )

    def _enter(self, doing: str) -> None:
        self._doing = doing
        self._describe()

    def _describe(self) -> None:
        done = self._done
        workflow.set_current_details(
            f"Agent `{self._given.agent_id}` of tenant `{self._given.tenant_id}`: {self._doing}.\n\n"
            "| written | claims | skipped | quarantined |\n| --- | --- | --- | --- |\n"
            f"| {done.written} | {done.claims} | {done.skipped} | {done.quarantined} |\n\n"
            "What is in quarantine is listed by `memory distill quarantine list` and driven again by `memory distill "
            "quarantine retry`. Cancelling loses nothing: the next run goes on from the stored cursor."
        )


def _reason(error: ActivityError) -> str:
    """In words of ours: failures of our activities hold no content."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        return f"{cause.message} ({cause.type})"[:300]
    return f"The worker was lost, or took too long, each time ({type(cause).__name__})."
