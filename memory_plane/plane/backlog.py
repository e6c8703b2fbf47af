"""The worker's look at what waits, kept in metrics: what nobody counts grows unseen."""

import asyncio
import logging
import time

from memory_plane.contracts.errors import Unavailable
from memory_plane.store.backlog import backlog
from memory_plane.store.database import Pool, StatementFailed, connection
from memory_plane.telemetry import metrics

EVERY_SECONDS = 15.0
_log = logging.getLogger(__name__)


async def watch(pool: Pool) -> None:
    """Look again and again until cancelled. A database that is down shows as a look that grows old."""
    while True:
        try:
            await look(pool)
        except (Unavailable, StatementFailed) as failure:
            _log.warning("the backlog could not be looked at: %s", failure)
        await asyncio.sleep(EVERY_SECONDS)


async def look(pool: Pool) -> None:
    """Raises Unavailable, StatementFailed."""
    async with connection(pool) as conn:
        seen = await backlog(conn)
    metrics.EMBED_PENDING.set(seen.embeds.number)
    metrics.EMBED_OLDEST_SECONDS.set(seen.embeds.oldest_seconds)
    metrics.PROCESS_PENDING.set(seen.processes.number)
    metrics.PROCESS_OLDEST_SECONDS.set(seen.processes.oldest_seconds)
    metrics.FEED_LAG.set(seen.feed_lag)
    metrics.CUTOVER_LAG.set(seen.cutover_lag)
    metrics.BACKLOG_SEEN.set(time.time())
