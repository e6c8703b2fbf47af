"""The channels: each brings visible candidates, and goes on until it has enough or there are no more."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import visible_versions
from memory_plane.plane.search_run import SearchRun
from memory_plane.store.candidates import Candidate
from memory_plane.store.database import Connection

Fetch = Callable[[Connection, int], Awaitable[Sequence[Candidate]]]

GROWTH = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """How far a channel is read: so many visible rows, and until so many distinct documents are among them."""

    rows: int
    documents: int


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
    """Of scores in order, best first."""
    best: dict[str, float] = {}
    for key, score in scored:
        best.setdefault(key, score)
    return best


async def gather(conn: Connection, fetch: Fetch, visibility: Visibility, wanted: Wanted, run: SearchRun) -> Found:
    """Fetch, let the authority judge, and fetch more until enough is visible or there is no more.

    A channel is asked again from its start with a larger limit: that needs no cursor, and is rare.
    """
    limit = max(wanted.rows, wanted.documents)
    while True:
        rows = await fetch(conn, limit)
        visible = await judged(conn, visibility, rows)
        enough = _prefix(visible, wanted)
        if enough is not None or len(rows) < limit:
            return Found(tuple(visible[:enough]))
        if run.left <= 0.0:
            return Found(tuple(visible), incomplete=True)
        limit *= GROWTH


def _prefix(visible: Sequence[Candidate], wanted: Wanted) -> int | None:
    """The length of the shortest beginning that has all that is wanted; None where the whole has not."""
    seen: set[str] = set()
    for place, candidate in enumerate(visible, start=1):
        seen.add(candidate.document_id)
        if place >= wanted.rows and len(seen) >= wanted.documents:
            return place
    return None


async def judged(conn: Connection, visibility: Visibility, rows: Iterable[Candidate]) -> list[Candidate]:
    """Those whose version the caller sees. Claims are looked up with their sources; for all others the row itself
    says what the authority asks."""
    sees = cache(visibility.sees)  # many documents have the same creator and tags
    admitted = [row for row in rows if sees(row.creator, row.access_tags)]
    claims = {row.version_id for row in admitted if row.is_claim}
    seen = await visible_versions(conn, visibility, claims) if claims else set()
    return [row for row in admitted if not row.is_claim or row.version_id in seen]
