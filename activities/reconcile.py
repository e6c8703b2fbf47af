"""What ReconcileWorkflow does to the world, a bounded page at a time."""

from datetime import timedelta

from temporalio import activity

from memory_plane.contracts.workflows import Count, ReconcileInput
from memory_plane.plane.engine import Engine


class ReconcileActivities:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @activity.defn(name="memory_start_stalled")
    async def start_stalled(self, given: ReconcileInput) -> Count:
        """Start ingests of what waits. Idempotent: ids are made of the versions, and a running ingest is nudged."""
        older_than = timedelta(seconds=given.older_than_seconds)
        return Count(count=await self._engine.reconciling.start_stalled(older_than, given.limit))

    @activity.defn(name="memory_expire_keys")
    async def expire_keys(self, given: ReconcileInput) -> Count:
        """Delete expired idempotency keys. Idempotent: what is gone is gone."""
        return Count(count=await self._engine.reconciling.expire_keys(given.limit))

    @activity.defn(name="memory_start_widenings")
    async def start_widenings(self, given: ReconcileInput) -> Count:
        """Start the wait for decisions that nobody waits for. Idempotent: an id is made of the request."""
        older_than = timedelta(seconds=given.older_than_seconds)
        return Count(count=await self._engine.widening.start_waiting(older_than, given.limit))

    @activity.defn(name="memory_retire_due")
    async def retire_due(self, given: ReconcileInput) -> Count:
        """Retire what is due. Idempotent: each service retires by compare-and-set and deletes what is left."""
        return Count(count=await self._engine.reconciling.retire_due(given.limit))
