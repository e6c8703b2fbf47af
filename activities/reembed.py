"""What ReembedWorkflow does to the world."""

from temporalio import activity

from activities.heartbeat import heartbeating
from memory_plane.contracts.workflows import ReembedInput, ReembedPage, ReembedPageResult, ReembedPlan
from memory_plane.plane.engine import Engine


class ReembedActivities:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @activity.defn(name="memory_reembed_prepare")
    async def prepare(self, given: ReembedInput) -> ReembedPlan:
        """Find the generation to fill, and give it the configured endpoint where it has none. Idempotent: the second
        time it has one."""
        return await self._engine.reembedding.prepare(given.tenant_id)

    @activity.defn(name="memory_reembed_page")
    async def page(self, given: ReembedPage) -> ReembedPageResult:
        """Embed the next versions that lack vectors. Idempotent: a version that has them is on no page."""
        async with heartbeating(0) as tell:
            return await self._engine.reembedding.page(given, tell)
