"""DemoteWorkflow: the live generation steps down, and the one that it took over from comes back, caught up too."""

from temporalio import workflow

from memory_plane.contracts import names
from memory_plane.contracts.transforms import CutoverInput, CutoverResult, StepResult
from workflows.cutover import CutoverRun


@workflow.defn(name=names.DEMOTE)
class DemoteWorkflow:
    """`generation` names the live one to take down. Started by a run's workflow, by `memory transform demote`, or from
    the Temporal UI with {tenant_id, generation}."""

    @workflow.init
    def __init__(self, given: CutoverInput) -> None:
        self._cutover = CutoverRun("demote", given)

    @workflow.run
    async def run(self, given: CutoverInput) -> CutoverResult:
        return await self._cutover.run()

    @workflow.query(description="How far the catch-up is")
    def status(self) -> StepResult:
        return self._cutover.status()
