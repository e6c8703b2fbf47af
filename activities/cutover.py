"""What PromoteWorkflow and DemoteWorkflow do to the world."""

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from activities.heartbeat import heartbeating
from memory_plane.contracts import names
from memory_plane.contracts.errors import Unavailable
from memory_plane.contracts.transforms import (
    CheckInput,
    CutoverRunning,
    CutPlan,
    CutResult,
    Failures,
    FailuresInput,
    StepInput,
    VerifyResult,
)
from memory_plane.contracts.workflows import Count
from memory_plane.plane.engine import Engine

STRAGGLER_ROUNDS = 5
_GENERATION = SearchAttributeKey.for_keyword(names.ATTRIBUTE_GENERATION)


class CutoverActivities:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @activity.defn(name="memory_cutover_check")
    async def check(self, given: CheckInput) -> CutPlan:
        """May it be done now? Idempotent: it only sets what failed before to be tried again."""
        return await self._engine.cutover.check(given.kind, given.cutover)

    @activity.defn(name="memory_cutover_require_derived")
    async def require_derived(self, plan: CutPlan) -> Failures:
        """Refuse, or list, what would not derive. Idempotent: it writes nothing."""
        await self._engine.cutover.require_derived(plan)
        return await self._engine.transforms.failures(plan.tenant_id, plan.target)

    @activity.defn(name="memory_cutover_cut")
    async def cut(self, plan: CutPlan) -> CutResult:
        """Flip the pointer. Idempotent: where the target is live it says so, and where the live generation is not the
        one that was checked, it refuses."""
        return await self._engine.cutover.cut(plan)

    @activity.defn(name="memory_cutover_embed_stragglers")
    async def embed_stragglers(self, given: FailuresInput) -> Count:
        """Embed what the cut derived; how many are left. Idempotent: what has its vectors is not embedded again."""
        step = StepInput(tenant_id=given.tenant_id, generation=given.generation)
        async with heartbeating(0) as tell:
            for _ in range(STRAGGLER_ROUNDS):
                result = await self._engine.deriving.step(step, tell)
                if not result.pending:
                    break
        return Count(count=result.pending)

    @activity.defn(name="memory_cutover_verify")
    async def verify(self, plan: CutPlan) -> VerifyResult:
        """Search the live generation. Idempotent: it writes nothing."""
        async with heartbeating():
            return await self._engine.reviewing.verify(plan.tenant_id)


async def running_cutover(client: Client, tenant_id: str) -> CutoverRunning:
    """The tenant's cutover under way, whoever started it. Raises Unavailable."""
    try:
        described = await client.get_workflow_handle(names.cutover_id(tenant_id)).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return CutoverRunning()
        raise Unavailable("Temporal did not say whether a cutover is under way.", code="temporal_unavailable") from None
    if described.status != WorkflowExecutionStatus.RUNNING:
        return CutoverRunning()
    return CutoverRunning(
        kind="promote" if described.workflow_type == names.PROMOTE else "demote",
        generation=described.typed_search_attributes.get(_GENERATION),
    )
