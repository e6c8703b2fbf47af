"""The reconciler: whatever was intended and is not under way is started again, and what is over is cleared away."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from itertools import groupby

from memory_plane.plane.ports import WorkflowStarter
from memory_plane.store import idempotency, stalled
from memory_plane.store.database import Pool, connection
from memory_plane.store.stalled import StalledVersion

_log = logging.getLogger(__name__)

VERSIONS_AN_INGEST = 100
"""Enough to fill the endpoint's batches, few enough that many workers share the work after an outage."""

Retire = Callable[[int], Awaitable[int]]
"""Retires at most so many of what is due; the number retired."""


class Reconciling:
    """`retire` are the services that have something to retire when its time has come."""

    def __init__(self, pool: Pool, starter: WorkflowStarter | None, retire: Sequence[Retire] = ()) -> None:
        self._pool = pool
        self._starter = starter
        self._retire = tuple(retire)

    async def start_stalled(self, older_than: timedelta, limit: int) -> int:
        """Start the ingest of at most `limit` versions that have waited so long; the number of ingests started.

        Raises Unavailable when Temporal cannot be reached.
        """
        if self._starter is None:
            return 0
        async with connection(self._pool) as conn:
            embeds = await stalled.pending_embeds(conn, older_than, limit)
            processes = await stalled.pending_processes(conn, older_than, limit)
        started = 0
        for tenant_id, version_ids in _pages({*embeds, *processes}):
            await self._starter.start_ingest(tenant_id, version_ids)
            started += 1
        if embeds:
            async with connection(self._pool) as conn:
                await stalled.hold_embeds(conn, embeds)
        if started:
            _log.info("started %d ingests for %d versions that had waited", started, len({*embeds, *processes}))
        return started

    async def expire_keys(self, limit: int) -> int:
        """Delete at most `limit` idempotency keys past their time; the number deleted."""
        async with connection(self._pool) as conn:
            return await idempotency.expire(conn, limit)

    async def retire_due(self, limit: int) -> int:
        return sum([await retire(limit) for retire in self._retire])


def _pages(versions: set[StalledVersion]) -> list[tuple[str, list[str]]]:
    """By tenant, in order of id: the same versions make the same pages, and so the same workflow ids."""
    ordered = sorted(versions, key=lambda version: (version.tenant_id, version.version_id))
    pages = []
    for tenant_id, group in groupby(ordered, key=lambda version: version.tenant_id):
        ids = [version.version_id for version in group]
        pages += [
            (tenant_id, ids[start : start + VERSIONS_AN_INGEST]) for start in range(0, len(ids), VERSIONS_AN_INGEST)
        ]
    return pages
