"""What SweepWorkflow does to the world, a page of some seconds at a time."""

from temporalio import activity

from memory_plane.contracts.workflows import SweepInput, SweepPageResult
from memory_plane.plane.engine import Engine


class SweepActivities:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @activity.defn(name="memory_sweep_page")
    async def page(self, given: SweepInput) -> SweepPageResult:
        """Deprecate what is past its time. Idempotent: what is deprecated is not found again."""
        return await self._engine.retention.sweep_page(given.tenant_id, given.after)
