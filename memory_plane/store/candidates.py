"""What a channel brings: the best chunks whose documents may be shown, with what the authority needs to judge them.

A channel's own query ranks chunks; what is eligible is looked up in that order, lazily, until enough are found. So
the cost is that of the ranking plus the rows looked at, and no filter is applied to a page that is already cut.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from memory_plane.store.database import SAME
from memory_plane.store.eligible import Eligibility


class Candidate(NamedTuple):
    """One chunk of a channel's list. `score` is the channel's own, greater is better. What follows is the version's,
    read with it anyway: what the authority, the boosts and the surroundings ask. A tuple, because a search makes
    hundreds."""

    chunk_id: str
    version_id: str
    document_id: str
    score: float
    creator: str
    access_tags: tuple[str, ...]
    is_claim: bool
    authority: float
    temporal_class: str
    occurred_at: datetime
    valid_until: datetime | None
    stream: int
    placed_at: datetime


FACTS = """v.document_id, d.created_by_principal_id, d.access_tags, v.source_class = 'derived' AS is_claim,
    v.authority, v.temporal_class, v.occurred_at, v.valid_until, d.stream, d.occurred_at AS placed_at"""
"""The columns of a candidate that come from its version `v` and document `d`, in order."""


def eligible_sql(
    ranked: str,
    eligibility: Eligibility,
    params: list[object],
    limit: int,
    *,
    score: str = "ranked.score",
    order: str = "score DESC",
    where: Sequence[str] = (),
    with_chunk: bool = False,
) -> str:
    """`ranked` yields chunk_id, version_id and what `score` is made of, in `order`; the first `limit` eligible ones.

    LATERAL with a LIMIT of its own keeps the planner from joining all of the tenant before it sorts; a subquery in
    the order asked for is read only as far as needed. `where` may look at `ranked`, and at the chunk as `c`. Limits are
    written out: with one that it does not know, the planner makes a new plan for each search.
    """
    chunk = f"JOIN memory.chunk c ON c.tenant_id {SAME} $1 AND c.id = ranked.chunk_id" if with_chunk else ""
    conditions = " AND ".join([*where, f"v.tenant_id {SAME} $1", "v.id = ranked.version_id", eligibility.sql(params)])
    return f"""
        SELECT ranked.chunk_id, ranked.version_id, {score} AS score, found.*
        FROM ({ranked}) ranked
        CROSS JOIN LATERAL (
            SELECT {FACTS}
            FROM memory.version v
            JOIN memory.document d ON d.tenant_id {SAME} $1 AND d.id = v.document_id
            {chunk}
            WHERE {conditions}
            LIMIT 1
        ) found
        ORDER BY ranked.{order}, ranked.chunk_id
        LIMIT {limit:d}
    """  # noqa: S608 - made of constants and placeholders


def candidates(rows: Iterable[Iterable[Any]]) -> list[Candidate]:
    """Of rows (chunk_id, version_id, score, *FACTS)."""
    return [
        Candidate(chunk_id, version_id, document_id, float(score), creator, tuple(tags), *rest)
        for chunk_id, version_id, score, document_id, creator, tags, *rest in rows
    ]
