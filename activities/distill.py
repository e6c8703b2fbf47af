"""What DistillerWorkflow does to the world. Ids and counts; the text goes to the endpoint and nowhere else."""

from temporalio import activity

from activities.heartbeat import heartbeating
from memory_plane.contracts.distilling import DistillNext, DistillOne, DistillOutcome, DistillPage, DistillSettle
from memory_plane.plane.engine import Engine


class DistillActivities:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @activity.defn(name="memory_distill_next")
    async def next(self, given: DistillNext) -> DistillPage:
        """Read what comes next. Idempotent: it moves the cursor only over what is not to be distilled, and by
        compare-and-set."""
        return await self._engine.distilling.page(given.tenant_id, given.agent_id)

    @activity.defn(name="memory_distill")
    async def distil(self, given: DistillOne) -> DistillOutcome:
        """Distil one entry with the chat endpoint. Idempotent: claims and cursor are one transaction, and once the
        cursor has moved a second attempt writes nothing."""
        async with heartbeating():
            return await self._engine.distilling.distil(given)

    @activity.defn(name="memory_distill_settle")
    async def settle(self, given: DistillSettle) -> None:
        """Move on from an entry. Idempotent: by compare-and-set on the cursor, or on the entry in quarantine."""
        await self._engine.distilling.settle(given)
