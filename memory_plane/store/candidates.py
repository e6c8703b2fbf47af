"""What a channel brings: the best chunks whose documents may be shown, with what the authority needs to judge them.

A channel's own query ranks chunks; what is eligible is looked up in that order, lazily, until enough are found. So
the cost is that of the ranking plus the rows looked at, and no filter is applied to a page that is already cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from memory_plane.store.database import SAME
from memory_plane.store.eligible import Eligibility


@dataclass(frozen=True, slots=True)
class Candidate:
    """One chunk of a channel's list. `score` is the channel's own, greater is better."""

    chunk_id: str
    version_id: str
    document_id: str
    score: float
    creator: str
    access_tags: tuple[str, ...]
    is_claim: bool


def eligible_sql(
    ranked: str,
    eligibility: Eligibility,
    params: list[object],
    limit: int,
    *,
    order: str = "score DESC",
    where: Sequence[str] = (),
    with_chunk: bool = False,
) -> str:
    """`ranked` yields (chunk_id, version_id, score) in `order`; the first `limit` of it that are eligible.

    LATERAL with a LIMIT of its own keeps the planner from joining all of the tenant before it sorts; a subquery in
    the order asked for is read only as far as needed. `where` may look at `ranked`, and at the chunk as `c`.
    """
    chunk = f"JOIN memory.chunk c ON c.tenant_id {SAME} $1 AND c.id = ranked.chunk_id" if with_chunk else ""
    conditions = " AND ".join([*where, f"v.tenant_id {SAME} $1", "v.id = ranked.version_id", eligibility.sql(params)])
    params.append(limit)
    row_limit = f"${len(params)}"
    return f"""
        SELECT ranked.chunk_id, ranked.version_id, ranked.score, found.*
        FROM ({ranked}) ranked
        CROSS JOIN LATERAL (
            SELECT v.document_id, d.created_by_principal_id AS creator, d.access_tags,
                   v.source_class = 'derived' AS is_claim
            FROM memory.version v
            JOIN memory.document d ON d.tenant_id {SAME} $1 AND d.id = v.document_id
            {chunk}
            WHERE {conditions}
            LIMIT 1
        ) found
        ORDER BY ranked.{order}, ranked.chunk_id
        LIMIT {row_limit}
    """  # noqa: S608 - made of constants and placeholders


def candidates(rows: Sequence[asyncpg.Record]) -> list[Candidate]:
    return [
        Candidate(
            chunk_id=row["chunk_id"],
            version_id=row["version_id"],
            document_id=row["document_id"],
            score=float(row["score"]),
            creator=row["creator"],
            access_tags=tuple(row["access_tags"]),
            is_claim=row["is_claim"],
        )
        for row in rows
    ]
