"""The end of a generation: retired at one moment, under the exclusive lock, and deleted in batches after it."""

from collections.abc import Awaitable, Callable

from memory_plane.contracts.enums import GenerationState
from memory_plane.contracts.errors import Conflict, Unavailable
from memory_plane.contracts.transforms import Decide
from memory_plane.plane.deriving import generation_not_found
from memory_plane.settings import Settings
from memory_plane.store import generations, retiring, transforms
from memory_plane.store.database import Connection, Pool, in_transaction
from memory_plane.store.generations import GenerationRow
from memory_plane.store.locks import own_cutover

BATCH = 1_000
Delete = Callable[[Connection, str, str, int], Awaitable[int]]


class Retiring:
    def __init__(self, pool: Pool, settings: Settings) -> None:
        self._pool = pool
        self._patience = settings.search_deadline_ms / 1000

    async def check(self, given: Decide) -> str:
        """The generation that `discard` (the run's own) or `finalize` (what its promote took down) may retire now.

        Raises Conflict and NotFound.
        """

        async def work(conn: Connection) -> str:
            own = await generations.generation_row(conn, given.tenant_id, given.run_id)
            run = await transforms.run(conn, given.tenant_id, given.run_id)
            if own is None or run is None:
                raise generation_not_found()
            if given.decision == "discard":
                _require_retirable(own)
                return own.id
            if own.state is not GenerationState.LIVE or run.archived_live_generation is None:
                raise Conflict(
                    "Finalize deletes what this run's promote took down, and this run is not live: promote it first, "
                    "or discard it.",
                    code="nothing_archived",
                )
            archived = await generations.generation_row(conn, given.tenant_id, run.archived_live_generation)
            if archived is None:
                raise generation_not_found()
            _require_retirable(archived)
            return archived.id

        return await in_transaction(self._pool, work)

    async def retire(self, tenant_id: str, generation_id: str) -> None:
        """Take the generation out of reach for good; what it holds is deleted after. Retired already: nothing to do.

        Raises NotFound, Conflict (live, or being built), and Unavailable while a search may still be reading it.
        """

        async def work(conn: Connection) -> None:
            await own_cutover(conn, tenant_id)
            row = await generations.generation_row(conn, tenant_id, generation_id)
            if row is None:
                raise generation_not_found()
            _require_retirable(row)
            if row.state is GenerationState.RETIRED:
                return
            since = (await generations.now(conn) - row.state_at).total_seconds()
            if since < self._patience:
                raise Unavailable(
                    "Searches that began before this generation was taken down may still be reading it; try again in "
                    f"{self._patience - since:.0f} s.",
                    code="searches_under_way",
                    retry_after=max(0.1, self._patience - since),
                )
            await generations.change_state(conn, tenant_id, generation_id, [row.state], GenerationState.RETIRED)

        await in_transaction(self._pool, work)

    async def delete(
        self,
        tenant_id: str,
        generation_id: str,
        *,
        at_most: int | None = None,
        on_progress: Callable[[int], None] = lambda deleted: None,
    ) -> int:
        """Delete what a retired generation holds, batch by batch, `at_most` chunks if given; the chunks deleted.

        Idempotent: it deletes what is left. Nothing is written under a retired generation any more.
        """
        deleted = 0
        while at_most is None or deleted < at_most:
            batch = await self._batch(tenant_id, generation_id, retiring.delete_chunks)
            deleted += batch
            on_progress(deleted)
            if batch < BATCH:
                break
        else:
            return deleted
        for remove in (retiring.delete_derivations, retiring.delete_statistics):
            while await self._batch(tenant_id, generation_id, remove) == BATCH:
                on_progress(deleted)

        async def rest(conn: Connection) -> None:
            await _require_retired(conn, tenant_id, generation_id)
            await retiring.delete_rest(conn, tenant_id, generation_id)

        await in_transaction(self._pool, rest)
        return deleted

    async def delete_retired(self, limit: int) -> int:
        """Delete at most so many chunks of retired generations, whose deletion was broken off; the generations done."""
        done = 0

        async def find(conn: Connection) -> list[tuple[str, str]]:
            return await retiring.retired_with_rows(conn, 100)

        for tenant_id, generation_id in await in_transaction(self._pool, find):
            limit -= await self.delete(tenant_id, generation_id, at_most=limit)
            if limit <= 0:
                break
            done += 1
        return done

    async def _batch(self, tenant_id: str, generation_id: str, remove: Delete) -> int:
        async def work(conn: Connection) -> int:
            await _require_retired(conn, tenant_id, generation_id)
            return await remove(conn, tenant_id, generation_id, BATCH)

        return await in_transaction(self._pool, work)


def _require_retirable(row: GenerationRow) -> None:
    if row.state is GenerationState.LIVE:
        raise Conflict("This generation is live; promote or demote to another one first.", code="generation_is_live")
    if row.state is GenerationState.BUILDING:
        raise Conflict("This generation is being built; cancel the run first.", code="run_not_completed")


async def _require_retired(conn: Connection, tenant_id: str, generation_id: str) -> None:
    row = await generations.generation_row(conn, tenant_id, generation_id)
    if row is None:
        raise generation_not_found()
    if row.state is not GenerationState.RETIRED:
        raise Conflict("Only what a retired generation holds is deleted.", code="generation_not_retired")
