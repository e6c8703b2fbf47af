"""WidenAudienceWorkflow: a claim wants a wider audience than its sources have; the source's owner decides.

It waits as long as it takes. The row is the truth: a decision made elsewhere (`memory audience approve`) is in it.
"""

from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from activities.widen import WidenActivities
from memory_plane.contracts import names
from memory_plane.contracts.workflows import WidenDecide, WidenDecision, WidenInput, WidenStanding
from workflows import policies

LOOK_AGAIN = timedelta(hours=6)
"""How long a decision made elsewhere, or the claim's end, may go unnoticed when nobody signals it."""


@workflow.defn(name=names.WIDEN_AUDIENCE)
class WidenAudienceWorkflow:
    """Resident by intent: people answer when they answer."""

    @workflow.init
    def __init__(self, given: WidenInput) -> None:
        self._given = given
        self._standing = WidenStanding()
        self._look = True

    @workflow.run
    async def run(self, given: WidenInput) -> WidenStanding:
        while True:
            self._look = False
            self._standing = await workflow.execute_activity_method(
                WidenActivities.standing, given, **policies.summarized(policies.DATABASE, "read the request")
            )
            self._describe()
            if self._standing.state != "open":
                await workflow.wait_condition(workflow.all_handlers_finished)
                return self._standing
            with suppress(TimeoutError):
                await workflow.wait_condition(lambda: self._look, timeout=LOOK_AGAIN)
            if workflow.info().is_continue_as_new_suggested():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(given)

    @workflow.update(description="Approve, in the name of the creator of the source's document: {principal_id}")
    async def approve(self, decision: WidenDecision) -> WidenStanding:
        return await self._decide(decision, approve=True)

    @approve.validator
    def _may_approve(self, decision: WidenDecision) -> None:
        _require_principal(decision)

    @workflow.update(description="Decline, in the name of the creator of the source's document: {principal_id}")
    async def decline(self, decision: WidenDecision) -> WidenStanding:
        return await self._decide(decision, approve=False)

    @decline.validator
    def _may_decline(self, decision: WidenDecision) -> None:
        _require_principal(decision)

    @workflow.signal(description="The request was decided elsewhere; look at its row")
    def decided(self) -> None:
        self._look = True

    @workflow.query(description="How the request stands, and of which claim and source it is")
    def status(self) -> WidenStanding:
        return self._standing

    async def _decide(self, decision: WidenDecision, *, approve: bool) -> WidenStanding:
        wanted = WidenDecide(
            tenant_id=self._given.tenant_id,
            request_id=self._given.request_id,
            principal_id=decision.principal_id,
            approve=approve,
        )
        word = "approve" if approve else "decline"
        try:
            standing = await workflow.execute_activity_method(
                WidenActivities.decide, wanted, **policies.summarized(policies.DATABASE, word)
            )
        except ActivityError as error:
            # The refusal itself, in its own words and type, and not that an activity has failed.
            raise error.cause if isinstance(error.cause, ApplicationError) else error from None
        self._look = True
        return standing

    def _describe(self) -> None:
        standing = self._standing
        number = "1 tag" if standing.tags == 1 else f"{standing.tags} tags"
        workflow.set_current_details(
            f"**{standing.state}** · request `{self._given.request_id}` of tenant `{self._given.tenant_id}`\n\n"
            f"Claim `{standing.version_id}` of document `{standing.document_id}` asks for {number} beyond those of its "
            f"source `{standing.source_version_id}`. `memory audience list --tenant {self._given.tenant_id}` shows "
            "which, and who decides.\n\n"
            "Next: update **approve** or **decline** with {principal_id}, the creator of the source's document."
        )


def _require_principal(decision: WidenDecision) -> None:
    if not decision.principal_id.strip():
        raise ApplicationError("Say who decides: {principal_id}.", type="invalid", non_retryable=True)
