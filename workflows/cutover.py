"""A cutover, promote or demote: check, catch up while adds go on, cut, and see that searches answer.

Each step is idempotent and reads what is so from Postgres, so that a second start, a retry or a crash at any point
comes to the same end. The workflow's id lets a tenant have one at a time.
"""

from contextlib import suppress

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    FailureError,
    WorkflowAlreadyStartedError,
)

from activities.cutover import CutoverActivities
from activities.transform import TransformActivities
from memory_plane.contracts import names
from memory_plane.contracts.transforms import (
    CheckInput,
    CutoverInput,
    CutoverResult,
    CutPlan,
    CutResult,
    Cutting,
    Failures,
    FailuresInput,
    IndexInput,
    StepInput,
    StepResult,
    VerifyResult,
)
from workflows import policies
from workflows.details import cutover_details

_STAGE = SearchAttributeKey.for_keyword(names.ATTRIBUTE_STAGE)
IN_PROGRESS = "cutover_in_progress"


class CutoverRun:
    """One cutover of one tenant; the state of PromoteWorkflow and DemoteWorkflow."""

    def __init__(self, kind: Cutting, given: CutoverInput) -> None:
        self._kind: Cutting = kind
        self._given = given
        self._plan = given.plan
        self._step: StepResult | None = None
        self._cut: CutResult | None = None

    async def run(self) -> CutoverResult:
        """Raises ApplicationError with the type of the refusal."""
        if workflow.info().workflow_id != names.cutover_id(self._given.tenant_id):
            return await self._under_its_own_id()
        workflow.upsert_search_attributes(policies.generation_updates(self._given.tenant_id, self._given.generation))
        try:
            return await self._carry_out()
        except ActivityError as error:
            # The refusal itself, in its own words and type, and not that an activity has failed.
            raise error.cause if isinstance(error.cause, ApplicationError) else error from None

    async def _under_its_own_id(self) -> CutoverResult:
        """Started from the UI under another id: there may be one cutover of a tenant, so it is one with that id."""
        child = policies.cutover_child(self._kind, self._given.tenant_id, self._given.generation)
        name = names.PROMOTE if self._kind == "promote" else names.DEMOTE
        try:
            result: CutoverResult = await workflow.execute_child_workflow(
                name, self._given, result_type=CutoverResult, **child
            )
        except WorkflowAlreadyStartedError:
            raise ApplicationError(
                f"A cutover of this tenant is under way: workflow {child['id']}. Wait for its end, or cancel it.",
                type=IN_PROGRESS,
                non_retryable=True,
            ) from None
        except ChildWorkflowError as error:
            raise error.cause if isinstance(error.cause, ApplicationError) else error from None
        return result

    async def _carry_out(self) -> CutoverResult:
        plan = self._plan or await self._check()
        self._plan = plan
        self._enter("catching up")
        failures = Failures()
        while self._cut is None:
            if await self._caught_up(plan):
                failures = await self._require_derived(plan)
                self._enter("cutting")
                cut = await workflow.execute_activity_method(
                    CutoverActivities.cut, plan, **policies.summarized(policies.CUT, f"flip to {plan.target}")
                )
                self._cut = cut if cut.flipped else None
                self._enter("done" if cut.flipped else "catching up")
            if self._cut is None and workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(self._given.model_copy(update={"plan": plan}))
        pending = await self._embed_stragglers(plan)
        verified = await self._verify(plan)
        await self._tell(plan)
        return CutoverResult(
            kind=self._kind,
            live=plan.target,
            down=plan.source,
            stragglers=self._cut.stragglers,
            stragglers_pending=pending,
            failed=failures.count,
            failed_version_ids=failures.version_ids,
            verified=verified.verified,
            problem=verified.problem,
            held_milliseconds=self._cut.milliseconds,
        )

    async def _check(self) -> CutPlan:
        self._enter("checking")
        return await workflow.execute_activity_method(
            CutoverActivities.check,
            CheckInput(kind=self._kind, cutover=self._given),
            **policies.summarized(policies.DATABASE, f"may it be {self._kind}d?"),
        )

    async def _caught_up(self, plan: CutPlan) -> bool:
        """One page nearer; whether little enough is left."""
        step = await workflow.execute_activity_method(
            TransformActivities.step,
            StepInput(tenant_id=plan.tenant_id, generation=plan.target, embed=plan.embed, retry_before=plan.begun_at),
            **policies.summarized(policies.STEP, "catch up by a page"),
        )
        self._step = step
        self._show("catching up")
        if step.behind > policies.CUT_WHEN_BEHIND or step.retrying:
            return False
        return not plan.embed or (step.pending <= policies.CUT_WHEN_PENDING and not step.unsettled)

    async def _require_derived(self, plan: CutPlan) -> Failures:
        failures = await workflow.execute_activity_method(
            CutoverActivities.require_derived,
            plan,
            **policies.summarized(policies.DATABASE, "has everything been derived?"),
        )
        if plan.embed:
            await workflow.execute_activity_method(
                TransformActivities.build_index,
                IndexInput(tenant_id=plan.tenant_id, generation=plan.target),
                **policies.summarized(policies.INDEX_BUILD, "index its vectors, where they are not"),
            )
        return failures

    async def _embed_stragglers(self, plan: CutPlan) -> int:
        """How many of the last versions are left to the reconciler, which finds them by their rows."""
        if not plan.embed:
            return 0
        pending = self._cut.stragglers if self._cut else 0
        with suppress(ActivityError):
            pending = (
                await workflow.execute_activity_method(
                    CutoverActivities.embed_stragglers,
                    FailuresInput(tenant_id=plan.tenant_id, generation=plan.target),
                    **policies.summarized(policies.AFTER_CUT, "embed the last versions"),
                )
            ).count
        return pending

    async def _verify(self, plan: CutPlan) -> VerifyResult:
        try:
            return await workflow.execute_activity_method(
                CutoverActivities.verify,
                plan,
                **policies.summarized(policies.AFTER_CUT, "does a search answer?"),
            )
        except ActivityError:
            return VerifyResult(verified=False, problem="No search could be made; the flip stands. Look at the worker.")

    async def _tell(self, plan: CutPlan) -> None:
        """The workflows of both runs, where there are such: each reads its rows again."""
        for generation in (plan.target, plan.source):
            handle = workflow.get_external_workflow_handle(names.transform_id(plan.tenant_id, generation))
            with suppress(FailureError):
                await handle.signal("look")

    def status(self) -> StepResult:
        return self._step or StepResult()

    def _enter(self, stage: str) -> None:
        workflow.upsert_search_attributes([_STAGE.value_set(stage)])
        self._show(stage)

    def _show(self, stage: str) -> None:
        workflow.set_current_details(cutover_details(self._kind, self._given, self._plan, self._step, self._cut, stage))
