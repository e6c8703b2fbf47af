"""What WidenAudienceWorkflow does to the world. Tags are read and written here and told to nobody."""

from temporalio import activity

from memory_plane.contracts.workflows import WidenDecide, WidenInput, WidenStanding
from memory_plane.plane.engine import Engine
from memory_plane.plane.widening import Standing


class WidenActivities:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @activity.defn(name="memory_widen_standing")
    async def standing(self, given: WidenInput) -> WidenStanding:
        """How the request stands, and that it is waited for. Idempotent: the first time it is noted counts."""
        found = await self._engine.widening.wait_for(given.tenant_id, given.request_id)
        return WidenStanding(state="gone") if found is None else _told(found)

    @activity.defn(name="memory_widen_decide")
    async def decide(self, given: WidenDecide) -> WidenStanding:
        """Approve or decline. Idempotent: the same decision again changes nothing."""
        return _told(
            await self._engine.widening.decide(
                given.tenant_id, given.request_id, given.principal_id, approve=given.approve
            )
        )


def _told(found: Standing) -> WidenStanding:
    return WidenStanding(
        state=found.state.value,
        tags=found.tags,
        document_id=found.document_id,
        version_id=found.version_id,
        source_version_id=found.source_version_id,
    )
