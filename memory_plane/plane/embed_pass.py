"""One pass of the embedder over the pending versions of a generation, in full batches across documents."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from memory_plane.core.embed_text import Slot, slots
from memory_plane.models.isolate import TextFault
from memory_plane.plane.embed_target import EmbedTarget
from memory_plane.store import derivations, vectors
from memory_plane.store.database import Connection, Pool, connection, in_statement
from memory_plane.store.derivations import MissingChunk
from memory_plane.store.vectors import SlotVector

PAGE_CHUNKS = 256
"""Chunks whose texts are in memory at a time."""

Portion = list[tuple[MissingChunk, list[Slot]]]

OnProgress = Callable[[int], None]
"""Told how many chunks this pass has given vectors so far."""


async def write_vectors(
    pool: Pool,
    target: EmbedTarget,
    rows: Sequence[SlotVector],
    *,
    version_ids: Collection[str],
    complete: Collection[str],
) -> set[str]:
    """Write vectors of chunks of these versions; those of `complete` that are embedded with it."""

    async def work(conn: Connection) -> set[str]:
        return await vectors.write(
            conn,
            target.tenant_id,
            target.generation_id,
            target.table,
            rows,
            version_ids=version_ids,
            complete=complete,
        )

    return await in_statement(pool, work)


@dataclass
class EmbedPass:
    """Gives vectors to what has none. `faults` then holds the versions whose text would not embed, with the reason.

    Idempotent: it reads what is missing. Raises the EndpointFault that ended it; what was embedded before is written.
    """

    pool: Pool
    target: EmbedTarget
    version_ids: Sequence[str]
    batch_size: int
    on_progress: OnProgress
    faults: dict[str, str] = field(default_factory=dict)
    done: int = 0
    _hold_again: float = 0.0

    async def run(self) -> None:
        after = ("", -1)
        while page := await self._page(after):
            # One after the other, each written before the next is asked for: whatever dies, one batch is done twice.
            for portion in self._portions(page):
                await self._portion(portion)
                await self._hold()
            after = (page[-1].version_id, page[-1].ordinal)
        everything = set(self.version_ids)
        await write_vectors(self.pool, self.target, [], version_ids=everything, complete=everything)

    async def _page(self, after: tuple[str, int]) -> list[MissingChunk]:
        target = self.target
        async with connection(self.pool) as conn:
            return await derivations.missing_chunks(
                conn,
                target.tenant_id,
                target.generation_id,
                self.version_ids,
                target.table,
                after=after,
                limit=PAGE_CHUNKS,
                neighbours=target.recipe.neighbours,
            )

    async def _hold(self) -> None:
        """Renew the hold now and then: a slow endpoint may take long over one page."""
        if time.monotonic() < self._hold_again:
            return
        async with connection(self.pool) as conn:
            await derivations.hold(conn, self.target.tenant_id, self.target.generation_id, self.version_ids)
        self._hold_again = time.monotonic() + derivations.HOLD.total_seconds() / 3

    def _portions(self, page: Sequence[MissingChunk]) -> Iterator[Portion]:
        """The page cut into about one request each. The slots of a chunk stay together: they are written together,
        so that a chunk whose first slot has a vector has them all."""
        portion: Portion = []
        texts = 0
        for chunk in page:
            made = slots(self.target.recipe, chunk.source)
            if portion and texts + len(made) > self.batch_size:
                yield portion
                portion, texts = [], 0
            portion.append((chunk, made))
            texts += len(made)
        if portion:
            yield portion

    async def _portion(self, portion: Portion) -> None:
        flat = [slot for _, made in portion for slot in made]
        outcomes = await self.target.embedder.embed_texts([slot.text for slot in flat])
        by_slot = dict(zip(((slot.chunk_id, slot.slot) for slot in flat), outcomes, strict=True))
        rows: list[SlotVector] = []
        for chunk, made in portion:
            ready: list[SlotVector] = []
            for slot in made:
                outcome = by_slot[slot.chunk_id, slot.slot]
                if isinstance(outcome, TextFault):
                    self.faults[chunk.version_id] = outcome.reason
                else:
                    ready.append(SlotVector(slot.chunk_id, slot.slot, outcome))
            if len(ready) == len(made):
                rows.extend(ready)
                self.done += 1
        versions = {chunk.version_id for chunk, _ in portion}
        # The last version may go on in the next portion; if not, the end of the pass marks it.
        complete = versions - {portion[-1][0].version_id}
        await write_vectors(self.pool, self.target, rows, version_ids=versions, complete=complete)
        self.on_progress(self.done)
