"""PromoteWorkflow: a generation takes over, caught up with all that came since, and the live one is archived."""

from temporalio import workflow

from memory_plane.contracts import names
from memory_plane.contracts.transforms import CutoverInput, CutoverResult, StepResult
from workflows.cutover import CutoverRun


@workflow.defn(name=names.PROMOTE)
class PromoteWorkflow:
    """Started by a run's workflow, by `memory transform promote`, or from the Temporal UI with {tenant_id, generation}.
    Under whatever id it is started, what it does is done by the one of the tenant's own id."""

    @workflow.init
    def __init__(self, given: CutoverInput) -> None:
        self._cutover = CutoverRun("promote", given)

    @workflow.run
    async def run(self, given: CutoverInput) -> CutoverResult:
        return await self._cutover.run()

    @workflow.query(description="How far the catch-up is")
    def status(self) -> StepResult:
        return self._cutover.status()
