"""TransformWorkflow: a run from its first page to its retirement, decided upon in the Temporal UI.

    building → staged → (promote) → live → (demote) → staged … → finalized | discarded

What is true stands in Postgres: the workflow reads it, asks for the next step, and waits for decisions. So it may be
cancelled, terminated and started again at any point, and goes on with what it finds.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Literal, TypeVar

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    FailureError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)

from activities.transform import TransformActivities
from memory_plane.contracts import names
from memory_plane.contracts.enums import GenerationState
from memory_plane.contracts.transforms import (
    SENTENCE_CHARS,
    STARTED,
    CutoverInput,
    CutoverResult,
    Decide,
    Decision,
    DemoteRequest,
    IndexInput,
    NewRun,
    PromoteRequest,
    RetireInput,
    RunRef,
    Standing,
    StepInput,
    StepResult,
    TransformInput,
    TransformResult,
)
from workflows import policies
from workflows.details import run_details

T = TypeVar("T")
Outcome = Literal["finalized", "discarded", "cancelled", "retired"]
_STAGE = SearchAttributeKey.for_keyword(names.ATTRIBUTE_STAGE)

BUILDING, FAILED, STAGED = GenerationState.BUILDING, GenerationState.FAILED, GenerationState.STAGED
LIVE, ARCHIVED, RETIRED = GenerationState.LIVE, GenerationState.ARCHIVED, GenerationState.RETIRED

_ALLOWED: dict[Decision, tuple[GenerationState, ...]] = {
    "promote": (STAGED, ARCHIVED),
    "demote": (LIVE,),
    "discard": (STAGED, ARCHIVED, FAILED),
    "finalize": (LIVE,),
    "retry_failures": (FAILED,),
}
_STAGES: dict[Decision, str] = {
    "promote": "promoting",
    "demote": "demoting",
    "discard": "retiring",
    "finalize": "retiring",
}


@workflow.defn(name=names.TRANSFORM)
class TransformWorkflow:
    """Resident by intent: it stays until what it replaced, or itself, is retired. Started by `memory transform run`, or
    from the Temporal UI with {tenant_id, config_id}."""

    @workflow.init
    def __init__(self, given: TransformInput) -> None:
        self._given = given
        self._run = RunRef(tenant_id=given.tenant_id, run_id=given.run_id or "")
        self._standing: Standing | None = None
        self._retry_before = given.retry_before
        self._paused = given.paused
        self._note = given.note
        self._stage = ""
        self._cancelled = False
        self._look = False
        self._accepted: Decision | None = None
        self._ready = False
        self._request = DemoteRequest()

    @workflow.run
    async def run(self, given: TransformInput) -> TransformResult:
        if given.run_id is None:
            return await self._start_new_run()
        workflow.upsert_search_attributes(policies.generation_updates(given.tenant_id, given.run_id))
        try:
            outcome = await self._live_through()
        except ActivityError as error:
            raise error.cause if isinstance(error.cause, ApplicationError) else error from None
        await workflow.wait_condition(workflow.all_handlers_finished)
        return TransformResult(run_id=self._run.run_id, outcome=outcome)

    async def _start_new_run(self) -> TransformResult:
        """A run there is not yet gets its workflow under its own id, so that cutovers find it."""
        if self._given.config_id is None:
            raise ApplicationError("Say what to run: {tenant_id, config_id}.", type="invalid", non_retryable=True)
        new = NewRun(
            tenant_id=self._given.tenant_id,
            run_id=f"trun_{workflow.uuid7().hex}",
            config_id=self._given.config_id,
            scope=self._given.scope,
        )
        try:
            await workflow.execute_activity_method(
                TransformActivities.create, new, **policies.summarized(policies.DATABASE, "create the run")
            )
        except ActivityError as error:
            raise error.cause if isinstance(error.cause, ApplicationError) else error from None
        child = policies.transform_child(new.tenant_id, new.run_id)
        await workflow.start_child_workflow(
            names.TRANSFORM, self._given.model_copy(update={"run_id": new.run_id}), **child
        )
        workflow.set_current_details(f"The run goes on as workflow `{child['id']}`.")
        return TransformResult(run_id=new.run_id, outcome="started", workflow_id=child["id"])

    # The life of the run

    async def _live_through(self) -> Outcome:
        try:
            self._see(await self._read(TransformActivities.standing, "look"))
            while True:
                if self._now.state is BUILDING:
                    await self._build()
                elif self._now.state is RETIRED:
                    return "retired"
                else:
                    outcome = await self._decided()
                    if outcome is not None:
                        return outcome
                if self._cancelled and self._now.state is not BUILDING:
                    return "cancelled"
                await self._continue_as_new()
        except (asyncio.CancelledError, FailureError) as error:
            # The workflow itself was cancelled, in the UI: a run that nobody goes on with is not running.
            building = self._standing is not None and self._standing.state is BUILDING
            if building and is_cancelled_exception(error):
                await self._read(TransformActivities.cancel, "end the run")
            raise

    async def _build(self) -> None:
        """One page, or the end of the walk."""
        if self._paused and not self._cancelled:
            self._show("paused")
            await workflow.wait_condition(lambda: not self._paused or self._cancelled)
        if self._cancelled:
            self._see(await self._read(TransformActivities.cancel, "end the run"))
            return
        if self._now.goal is None:
            await self._prepare()
            return
        self._show("deriving")
        step = await self._step()
        if step is not None and step.walked_to >= (self._now.goal or 0) and not (step.pending or step.retrying):
            await self._finish()

    async def _prepare(self) -> None:
        self._show("preparing")
        prepared = await self._unless_told(
            workflow.start_activity_method(
                TransformActivities.prepare, self._run, **policies.summarized(policies.DATABASE, "register the model")
            )
        )
        if prepared is not None:
            self._see(prepared)

    async def _unless_told(self, activity: workflow.ActivityHandle[T]) -> T | None:
        """None where it was broken off, to be paused or cancelled: it is begun again and goes on where it stopped. So
        an endpoint that is down keeps no operator waiting."""
        try:
            await workflow.wait_condition(lambda: activity.done() or self._paused or self._cancelled)
        except asyncio.CancelledError:
            await _stopped(activity)
            raise
        if not activity.done():
            await _stopped(activity)
            return None
        return await activity

    async def _step(self) -> StepResult | None:
        now = self._now
        given = StepInput(
            tenant_id=now.tenant_id, generation=now.run_id, upto=now.goal, retry_before=self._retry_before
        )
        result = await self._unless_told(
            workflow.start_activity_method(
                TransformActivities.step, given, **policies.summarized(policies.STEP, f"after {now.versions} versions")
            )
        )
        if result is None:
            return None
        self._standing = now.model_copy(
            update={
                "versions": result.total_versions,
                "chunks": result.total_chunks,
                "failed": result.total_failed,
                "pending": result.pending,
                "lag": result.behind,
            }
        )
        return result

    async def _finish(self) -> None:
        self._show("indexing")
        await workflow.execute_activity_method(
            TransformActivities.build_index,
            IndexInput(tenant_id=self._now.tenant_id, generation=self._now.run_id),
            **policies.summarized(policies.INDEX_BUILD, "index the vectors"),
        )
        self._retry_before = None
        self._see(await self._read(TransformActivities.finish, "complete the run"))
        if self._now.state is STAGED:
            await self._review()

    async def _review(self) -> None:
        self._show("reviewing")
        review = await workflow.execute_activity_method(
            TransformActivities.review, self._run, **policies.summarized(policies.REVIEW, "compare with live")
        )
        self._standing = self._now.model_copy(update={"review": review})
        floors = self._given.auto_promote
        if floors is None or self._accepted is not None:
            return
        if review.meets(floors):
            self._accepted, self._ready = "promote", True
            self._note = "The review meets the floors of auto_promote."
        else:
            self._note = "The review does not meet the floors of auto_promote; promote by hand, or discard."

    async def _decided(self) -> Outcome | None:
        """Wait for a decision, or for the news of one made elsewhere; the outcome, if it ends the run."""
        self._show(self._now.state.value)
        with suppress(TimeoutError):
            await workflow.wait_condition(lambda: self._ready or self._look, timeout=self._patience())
        self._look = False
        if not self._ready or self._accepted is None:
            before = self._now.state
            standing = await self._read(TransformActivities.standing, "look")
            if standing.state is not before:
                self._note = f"It went from {before.value} to {standing.state.value}, by what was started elsewhere."
            self._see(standing)
            if self._soaked():
                self._accepted, self._ready = "finalize", True
            return None
        decision = self._accepted
        try:
            return await self._carry_out(decision)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            self._note = f"{decision} did not come about: {_reason(error)}"
            self._see(await self._read(TransformActivities.standing, "look"))
            return None
        finally:
            self._accepted, self._ready = None, False

    def _patience(self) -> timedelta:
        if self._given.soak_hours is None or self._now.state is not LIVE or self._now.promoted_at is None:
            return policies.TRANSFORM_PAUSE
        left = self._now.promoted_at + timedelta(hours=self._given.soak_hours) - workflow.now()
        return max(timedelta(seconds=1), min(left, policies.TRANSFORM_PAUSE))

    def _soaked(self) -> bool:
        now = self._now
        if self._given.soak_hours is None or now.state is not LIVE or now.promoted_at is None:
            return False
        due = now.promoted_at + timedelta(hours=self._given.soak_hours) <= workflow.now()
        return due and now.archived_state is ARCHIVED

    async def _carry_out(self, decision: Decision) -> Outcome | None:
        self._show(_STAGES.get(decision, decision))
        if decision == "promote" or decision == "demote":
            await self._cut_over(decision)
            self._see(await self._read(TransformActivities.standing, "look"))
            return None
        if decision == "retry_failures":
            reopened = await workflow.execute_activity_method(
                TransformActivities.reopen, self._run, **policies.summarized(policies.DATABASE, "go on")
            )
            self._retry_before = reopened.retry_before
            self._paused = False
            self._see(reopened.standing)
            return None
        generation = self._now.run_id if decision == "discard" else self._now.archived
        assert generation is not None  # noqa: S101 - checked before it was accepted
        retired = await workflow.execute_activity_method(
            TransformActivities.retire,
            RetireInput(tenant_id=self._now.tenant_id, generation=generation),
            **policies.summarized(policies.RETIRE, f"delete {generation}"),
        )
        self._note = f"`{generation}` is retired; {retired.chunks} chunks were deleted with their vectors."
        if decision == "finalize":
            await self._tell(generation)
        self._see(await self._read(TransformActivities.standing, "look"))
        return "discarded" if decision == "discard" else "finalized"

    async def _cut_over(self, decision: Literal["promote", "demote"]) -> None:
        """Start it as a workflow of its own, which outlives this one, and wait for what comes of it."""
        now = self._now
        child = policies.cutover_child(decision, now.tenant_id, now.run_id)
        given = CutoverInput(
            tenant_id=now.tenant_id,
            generation=now.run_id,
            allow_partial_dense=self._request.allow_partial_dense,
            allow_failed=self._request.allow_failed,
        )
        name = names.PROMOTE if decision == "promote" else names.DEMOTE
        try:
            result = await workflow.execute_child_workflow(name, given, result_type=CutoverResult, **child)
        except WorkflowAlreadyStartedError:
            await self._attend(decision)
        except ChildWorkflowError as error:
            if workflow.cancellation_reason() is not None:
                raise
            self._note = f"{decision} did not come about: {_reason(error)}"
        else:
            self._note = _told(result)

    async def _attend(self, decision: Decision) -> None:
        """Somebody else's cutover is under way: wait for its end, if it is the same one."""
        while True:
            running = await workflow.execute_activity_method(
                TransformActivities.cutover_running,
                self._run,
                **policies.summarized(policies.DATABASE, "which cutover is it?"),
            )
            if running.kind is None:
                self._note = f"{decision} was started elsewhere and has ended."
                return
            if (running.kind, running.generation) != (decision, self._now.run_id):
                self._note = f"{decision} did not come about: {running.kind} of `{running.generation}` is under way."
                return
            with suppress(TimeoutError):
                await workflow.wait_condition(lambda: self._look, timeout=policies.CUTOVER_LOOK)
            self._look = False

    async def _continue_as_new(self) -> None:
        if not workflow.info().is_continue_as_new_suggested():
            return
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._ready:  # accepted meanwhile; it is carried out first
            return
        workflow.continue_as_new(
            self._given.model_copy(
                update={
                    "paused": self._paused,
                    "retry_before": self._retry_before,
                    # A refusal may be longer than what a contract carries, and the next run would not start.
                    "note": self._note[:SENTENCE_CHARS],
                }
            )
        )

    async def _tell(self, generation: str) -> None:
        handle = workflow.get_external_workflow_handle(names.transform_id(self._now.tenant_id, generation))
        with suppress(FailureError):
            await handle.signal("look")

    # What an operator does

    @workflow.update(description="Stop after the batch under way. {}")
    async def pause(self) -> str:
        await self._known()
        self._require_building("pause")
        self._paused = True
        return "paused"

    @pause.validator
    def _may_pause(self) -> None:
        self._require_building("pause")

    @workflow.update(description="Go on. {}")
    async def resume(self) -> str:
        await self._known()
        self._require_building("resume")
        self._paused = False
        return "resumed"

    @resume.validator
    def _may_resume(self) -> None:
        self._require_building("resume")

    @workflow.update(description="End the run as failed; what is derived stays. {}")
    async def cancel(self) -> str:
        await self._known()
        self._require_building("cancel")
        self._cancelled = True
        return "cancelled"

    @cancel.validator
    def _may_cancel(self) -> None:
        self._require_building("cancel")

    @workflow.update(description="Try again what would not derive, and go on where the run stopped. {}")
    async def retry_failures(self) -> str:
        return await self._decide("retry_failures")

    @retry_failures.validator
    def _may_retry(self) -> None:
        self._require("retry_failures")

    @workflow.update(description='Make the generation live. {} or {"allow_partial_dense": true}')
    async def promote(self, request: PromoteRequest | None = None) -> str:
        given = request or PromoteRequest()
        return await self._decide("promote", DemoteRequest(allow_partial_dense=given.allow_partial_dense))

    @promote.validator
    def _may_promote(self, request: PromoteRequest | None = None) -> None:
        self._require("promote")

    @workflow.update(
        description='Bring back what the promote took down. {} or {"allow_partial_dense": true, "allow_failed": true}'
    )
    async def demote(self, request: DemoteRequest | None = None) -> str:
        return await self._decide("demote", request or DemoteRequest())

    @demote.validator
    def _may_demote(self, request: DemoteRequest | None = None) -> None:
        self._require("demote")

    @workflow.update(description="Delete this generation, which is not live, and end. {}")
    async def discard(self) -> str:
        return await self._decide("discard")

    @discard.validator
    def _may_discard(self) -> None:
        self._require("discard")

    @workflow.update(description="Delete the generation that the promote took down, and end. {}")
    async def finalize(self) -> str:
        return await self._decide("finalize")

    @finalize.validator
    def _may_finalize(self) -> None:
        self._require("finalize")

    @workflow.signal(description="Something was done elsewhere, by a cutover or the command line; read the rows again")
    def look(self) -> None:
        self._look = True

    @workflow.query(description="How the run and its generation stand")
    def status(self) -> Standing | None:
        return self._standing

    async def _known(self) -> None:
        """Sent right after the start, an update is judged once the rows have been read."""
        await workflow.wait_condition(lambda: self._standing is not None)

    async def _decide(self, decision: Decision, request: DemoteRequest | None = None) -> str:
        await self._known()
        self._require(decision)
        if self._ready and self._accepted == decision:
            return STARTED
        self._accepted = decision
        given = Decide(
            tenant_id=self._now.tenant_id,
            run_id=self._now.run_id,
            decision=decision,
            allow_partial_dense=request.allow_partial_dense if request else False,
        )
        try:
            self._see(
                await workflow.execute_activity_method(
                    TransformActivities.check, given, **policies.summarized(policies.CHECK, f"may it {decision}?")
                )
            )
        except ActivityError as error:
            if not self._ready:
                self._accepted = None
            # The refusal itself, in its own words and type, and not that an activity has failed.
            raise error.cause if isinstance(error.cause, ApplicationError) else error from None
        self._request = request or DemoteRequest()
        self._ready = True
        return STARTED

    def _require_building(self, what: str) -> None:
        now = self._standing
        if now is not None and now.state is not BUILDING:
            raise _refused(f"The run is not being built any more (it is {now.state.value}): nothing to {what}.")

    def _require(self, decision: Decision) -> None:
        now = self._standing
        if now is None:
            return
        if self._accepted is not None and self._accepted != decision:
            raise _refused(f"{self._accepted} is being carried out; wait for its end.", "decision_in_progress")
        if self._accepted is None and now.state not in _ALLOWED[decision]:
            wanted = " or ".join(state.value for state in _ALLOWED[decision])
            raise _refused(
                f"{decision} is for a run that is {wanted}; this one is {now.state.value}.",
                _CODES.get((decision, now.state)),
            )

    # What it knows and shows

    @property
    def _now(self) -> Standing:
        assert self._standing is not None  # noqa: S101 - read before anything else is done
        return self._standing

    def _see(self, standing: Standing) -> None:
        self._standing = standing
        self._show(self._stage)

    async def _read(self, what: object, summary: str) -> Standing:
        standing: Standing = await workflow.execute_activity_method(
            what,  # type: ignore[call-overload]
            self._run,
            **policies.summarized(policies.DATABASE, summary),
        )
        return standing

    def _show(self, stage: str) -> None:
        if stage != self._stage and stage:
            self._stage = stage
            workflow.upsert_search_attributes([_STAGE.value_set(stage)])
        if self._standing is not None:
            workflow.set_current_details(
                run_details(
                    self._standing,
                    paused=self._paused,
                    stage=self._stage,
                    note=self._note,
                    workflow_id=workflow.info().workflow_id,
                )
            )


_CODES: dict[tuple[Decision, GenerationState], str] = {
    ("promote", LIVE): "generation_is_live",
    ("promote", BUILDING): "run_not_completed",
    ("promote", FAILED): "run_not_completed",
    ("promote", RETIRED): "generation_retired",
    ("discard", LIVE): "generation_is_live",
    ("discard", BUILDING): "run_not_completed",
    **{("demote", state): "generation_not_live" for state in (BUILDING, FAILED, STAGED, ARCHIVED, RETIRED)},
    **{("finalize", state): "generation_not_live" for state in (BUILDING, FAILED, STAGED, ARCHIVED, RETIRED)},
}


async def _stopped(activity: workflow.ActivityHandle[T]) -> None:
    """Break it off, and return when it has stopped, however it did: what it has done is in the rows."""
    activity.cancel()
    with suppress(ActivityError):
        await activity


def _refused(sentence: str, code: str | None = None) -> ApplicationError:
    return ApplicationError(sentence, type=code or "not_now", non_retryable=True)


def _reason(error: ActivityError | ChildWorkflowError) -> str:
    cause = error.cause
    if isinstance(cause, ApplicationError):
        return f"{cause.message} ({cause.type})"
    return type(cause).__name__ if cause is not None else "it ended without a reason"


def _told(result: CutoverResult) -> str:
    done = "promoted" if result.kind == "promote" else "demoted"
    parts = [
        f"{done}: `{result.live}` is live, `{result.down}` is down; captures waited {result.held_milliseconds:.0f} ms"
    ]
    if result.stragglers_pending:
        parts.append(f"{result.stragglers_pending} versions are still to be embedded")
    if result.failed:
        parts.append(f"{result.failed} versions would not derive, as was allowed")
    parts.append("a search answers" if result.verified else f"but: {result.problem}")
    return "; ".join(parts) + "."
