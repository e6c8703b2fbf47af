"""Keeps the lexical statistics of generations up to date, behind the searches that find them old."""

import asyncio
import logging

from memory_plane.contracts.errors import Unavailable
from memory_plane.store.database import LOCK_CONFLICTS, Pool, StatementFailed
from memory_plane.store.lexical_statistics import STALE_LEAST, CorpusSize, refresh

_log = logging.getLogger(__name__)
MAX_AT_ONCE = 2


class StatisticsUpkeep:
    """One refresh at a time for a generation in this process, and few in all; other processes skip a locked one."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def notice(self, tenant_id: str, generation_id: str, size: CorpusSize | None, head: int) -> None:
        """A search has seen these statistics with the tenant's feed at `head`."""
        due = size.stale(head) if size is not None else head > STALE_LEAST
        key = (tenant_id, generation_id)
        if due and key not in self._tasks and len(self._tasks) < MAX_AT_ONCE:
            self._tasks[key] = asyncio.create_task(self._refresh(key))

    async def settled(self) -> None:
        """Return when no refresh is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values())

    async def aclose(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _refresh(self, key: tuple[str, str]) -> None:
        try:
            await refresh(self._pool, *key)
        except (Unavailable, StatementFailed, *LOCK_CONFLICTS) as failure:
            # Nobody waits for it, and the next search finds the statistics as old as before.
            _log.warning("lexical statistics were not refreshed (%s)", type(failure).__name__)
        finally:
            del self._tasks[key]
