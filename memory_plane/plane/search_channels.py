"""The channels: each brings visible candidates, and goes on until it has enough or there are no more."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import visible_versions
from memory_plane.plane.search_run import SearchRun
from memory_plane.store.candidates import Candidate
from memory_plane.store.database import Connection

Fetch = Callable[[Connection, int], Awaitable[Sequence[Candidate]]]

ROWS_A_DOCUMENT = 2
GROWTH = 4


@dataclass(frozen=True)
class Found:
    """A channel's visible candidates, best first. `incomplete`: the deadline came before it was through."""

    candidates: tuple[Candidate, ...]
    incomplete: bool = False

    @cached_property
    def scores(self) -> dict[str, float]:
        """By chunk; of a chunk that came more than once (it is embedded as windows), the best."""
        return _best((candidate.chunk_id, candidate.score) for candidate in self.candidates)

    @cached_property
    def documents(self) -> dict[str, float]:
        """The best score of each document."""
        return _best((candidate.document_id, candidate.score) for candidate in self.candidates)


def _best(scored: Iterable[tuple[str, float]]) -> dict[str, float]:
    best: dict[str, float] = {}
    for key, score in scored:
        best[key] = max(best.get(key, score), score)
    return best


async def gather(conn: Connection, fetch: Fetch, visibility: Visibility, wanted: int, run: SearchRun) -> Found:
    """Fetch, let the authority judge, and fetch more until `wanted` distinct documents are visible.

    A channel is asked again from its start with a larger limit: that needs no cursor, and is rare.
    """
    limit = wanted * ROWS_A_DOCUMENT
    while True:
        rows = await fetch(conn, limit)
        visible = await judged(conn, visibility, rows)
        documents = dict.fromkeys(candidate.document_id for candidate in visible)
        exhausted = len(rows) < limit
        if len(documents) >= wanted or exhausted:
            kept = set(list(documents)[:wanted])
            return Found(tuple(candidate for candidate in visible if candidate.document_id in kept))
        if run.left <= 0.0:
            return Found(tuple(visible), incomplete=True)
        limit *= GROWTH


async def judged(conn: Connection, visibility: Visibility, rows: Iterable[Candidate]) -> list[Candidate]:
    """Those whose version the caller sees. Claims are looked up with their sources; for all others the row itself
    says what the authority asks."""
    admitted = [row for row in rows if visibility.sees(row.creator, row.access_tags)]
    claims = {row.version_id for row in admitted if row.is_claim}
    seen = await visible_versions(conn, visibility, claims) if claims else set()
    return [row for row in admitted if not row.is_claim or row.version_id in seen]
