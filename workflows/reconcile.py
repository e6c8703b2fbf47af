"""ReconcileWorkflow: each minute, what was intended and is not under way is started, and what is over is cleared."""

from collections.abc import Awaitable

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from activities.reconcile import ReconcileActivities
from memory_plane.contracts import names
from memory_plane.contracts.workflows import Count, ReconcileInput, ReconcileResult
from workflows import policies


@workflow.defn(name=names.RECONCILE)
class ReconcileWorkflow:
    """Each step stands alone: one that fails keeps no other from running, and fails the run so that it is seen."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._failed: list[str] = []

    @workflow.run
    async def run(self, given: ReconcileInput) -> ReconcileResult:
        result = ReconcileResult(
            keys_expired=await self._step(
                "idempotency keys expired",
                workflow.execute_activity_method(
                    ReconcileActivities.expire_keys,
                    given,
                    **policies.summarized(policies.CHORE, "expire idempotency keys"),
                ),
            ),
            ingests_started=await self._step(
                "ingests started for what had waited",
                workflow.execute_activity_method(
                    ReconcileActivities.start_stalled, given, **policies.summarized(policies.CHORE, "start what waits")
                ),
            ),
            widenings_started=await self._step(
                "waits for an owner's decision started",
                workflow.execute_activity_method(
                    ReconcileActivities.start_widenings,
                    given,
                    **policies.summarized(policies.CHORE, "start waits for decisions"),
                ),
            ),
            retired=await self._step(
                "rows of retired generations deleted",
                workflow.execute_activity_method(
                    ReconcileActivities.retire_due, given, **policies.summarized(policies.CHORE, "retire what is due")
                ),
            ),
        )
        if self._failed:
            raise ApplicationError(
                f"Steps that failed: {', '.join(self._failed)}; the next run tries them again.", type="ReconcileFailed"
            )
        return result

    async def _step(self, name: str, step: Awaitable[Count]) -> int:
        try:
            count = (await step).count
            self._lines.append(f"- {count} {name}")
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            count = 0
            self._failed.append(name)
            self._lines.append(f"- **failed**: {name}")
        workflow.set_current_details("\n".join(self._lines))
        return count
