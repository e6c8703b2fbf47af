"""SweepWorkflow: ephemeral versions past their time are deprecated. They were not served any more before that."""

from temporalio import workflow

from activities.sweep import SweepActivities
from memory_plane.contracts import names
from memory_plane.contracts.workflows import SweepInput, SweepResult
from workflows import policies


@workflow.defn(name=names.SWEEP)
class SweepWorkflow:
    """Scheduled each hour for all tenants; an operator starts one with {tenant_id}."""

    @workflow.init
    def __init__(self, given: SweepInput) -> None:
        self._at = given
        self._describe()

    @workflow.run
    async def run(self, given: SweepInput) -> SweepResult:
        while True:
            page = await workflow.execute_activity_method(
                SweepActivities.page, self._at, **policies.summarized(policies.DATABASE, "sweep a page")
            )
            self._at = SweepInput(
                tenant_id=given.tenant_id, after=page.after, deprecated=self._at.deprecated + page.deprecated
            )
            self._describe()
            if page.done:
                return SweepResult(deprecated=self._at.deprecated)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(self._at)

    @workflow.query(description="How many versions have been deprecated so far")
    def status(self) -> SweepResult:
        return SweepResult(deprecated=self._at.deprecated)

    def _describe(self) -> None:
        where = f"tenant `{self._at.tenant_id}`" if self._at.tenant_id else "all tenants"
        workflow.set_current_details(
            f"**{self._at.deprecated}** ephemeral versions deprecated, {where}.\n\n"
            "Nothing is deleted: what is past its time is out of search before this runs, and after it marked so. "
            "Cancel and start again as you like."
        )
