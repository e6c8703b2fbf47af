"""ReembedWorkflow: fills the vectors that a tenant's live generation lacks, page by page, resumable at any point."""

from temporalio import workflow

from activities.reembed import ReembedActivities
from memory_plane.contracts import names
from memory_plane.contracts.workflows import ReembedInput, ReembedPage, ReembedResult
from workflows import policies


@workflow.defn(name=names.REEMBED)
class ReembedWorkflow:
    """Started by an operator: `memory reembed TENANT`, or from the Temporal UI with {tenant_id}."""

    @workflow.init
    def __init__(self, given: ReembedInput) -> None:
        self._after = given.after
        self._embedded = given.embedded
        self._failed = given.failed
        self._total = 0

    @workflow.run
    async def run(self, given: ReembedInput) -> ReembedResult:
        plan = await workflow.execute_activity_method(
            ReembedActivities.prepare, given, **policies.summarized(policies.DATABASE, "find the generation to fill")
        )
        self._total = given.embedded + given.failed + plan.total
        self._describe()
        while True:
            page = await workflow.execute_activity_method(
                ReembedActivities.page,
                ReembedPage(tenant_id=given.tenant_id, generation_id=plan.generation_id, after=self._after),
                **policies.summarized(policies.BULK, "embed a page"),
            )
            self._after = page.after
            self._embedded += page.embedded
            self._failed += page.failed + page.pending
            self._describe()
            if page.done:
                return ReembedResult(embedded=self._embedded, failed=self._failed)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(
                    ReembedInput(
                        tenant_id=given.tenant_id, after=self._after, embedded=self._embedded, failed=self._failed
                    )
                )

    @workflow.query(description="How many versions have been embedded, and how many would not be")
    def status(self) -> ReembedResult:
        return ReembedResult(embedded=self._embedded, failed=self._failed)

    def _describe(self) -> None:
        workflow.set_current_details(
            f"**{self._embedded}** of about {self._total} versions embedded, {self._failed} would not.\n\n"
            "A model endpoint that is down is waited for. Cancel whenever you like and start again: what has its "
            "vectors is not embedded twice."
        )
