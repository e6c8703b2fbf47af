"""What a search reads besides its channels: small sets, recent documents, and all that a hit shows."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import numpy as np
from numpy.typing import NDArray

from memory_plane.contracts.enums import CreatedByKind, Lineage, Provenance, TemporalClass
from memory_plane.core.surroundings import MAX_CHUNKS, REACH
from memory_plane.store.candidates import Candidate, candidates
from memory_plane.store.database import SAME, Connection
from memory_plane.store.eligible import Eligibility
from memory_plane.store.vectors import checked_table


@dataclass(frozen=True, slots=True)
class HitRow:
    """A candidate with all that boosts, page and attribution need. `gap` is its distance to the candidate before it
    in its stream, see core.surroundings; None for what has no neighbours."""

    chunk_id: str
    text: str
    document_id: str
    adapter: str
    external_ref: str
    title: str
    kind: str
    last_seen_at: datetime
    version_id: str
    version: int
    authority: float
    temporal_class: TemporalClass
    provenance: Provenance
    source_class: Lineage
    created_by_kind: CreatedByKind
    generator_agent_id: str | None
    occurred_at: datetime
    valid_until: datetime | None
    stream: int
    gap: int | None
    supporters: tuple[str, ...]
    contradictors: tuple[str, ...]
    sources: tuple[str, ...]


async def small_set(conn: Connection, tenant_id: str, eligibility: Eligibility, at_most: int) -> list[str] | None:
    """The ids of all eligible documents, where they are no more than `at_most`; else None."""
    params: list[object] = [tenant_id, at_most + 1]
    rows = await conn.fetch(
        f"""
        SELECT DISTINCT v.document_id FROM (
            SELECT d.id AS document_id
            FROM memory.document d JOIN memory.version v ON v.tenant_id {SAME} $1 AND v.document_id = d.id
            WHERE d.tenant_id = $1 AND {eligibility.sql(params)} LIMIT $2
        ) v
        """,  # noqa: S608 - made of constants and placeholders
        *params,
    )
    return [row["document_id"] for row in rows] if len(rows) <= at_most else None


async def recent(
    conn: Connection, tenant_id: str, generation_id: str, eligibility: Eligibility, limit: int
) -> list[Candidate]:
    """The first chunks of the documents last seen, most recent first; the score is when, in seconds."""
    params: list[object] = [tenant_id, generation_id]
    eligible = eligibility.sql(params)
    params.append(limit)
    rows = await conn.fetch(
        f"""
        SELECT found.*, extract(epoch FROM r.last_seen_at) AS score
        FROM (
            SELECT id, last_seen_at FROM memory.document WHERE tenant_id = $1 ORDER BY last_seen_at DESC, id
        ) r
        CROSS JOIN LATERAL (
            SELECT c.id AS chunk_id, v.id AS version_id, v.document_id, d.created_by_principal_id AS creator,
                   d.access_tags, v.source_class = 'derived' AS is_claim
            FROM memory.version v
            JOIN memory.document d ON d.tenant_id {SAME} $1 AND d.id = v.document_id
            JOIN memory.chunk c ON c.tenant_id {SAME} $1 AND c.version_id = v.id AND c.generation_id = $2
                AND c.ordinal = 0
            WHERE v.tenant_id {SAME} $1 AND v.document_id = r.id AND {eligible}
            LIMIT 1
        ) found
        ORDER BY r.last_seen_at DESC, r.id
        LIMIT ${len(params)}
        """,  # noqa: S608 - made of constants and placeholders
        *params,
    )
    return candidates(rows)


_HITS = f"""
WITH hit AS MATERIALIZED (
    SELECT c.id AS chunk_id, c.text, d.id AS document_id, d.adapter, d.external_ref, v.title, v.kind, d.last_seen_at,
           v.id AS version_id, v.version, v.authority, v.temporal_class, v.provenance, v.source_class,
           v.created_by_kind, v.generator_agent_id, v.occurred_at, v.valid_until, d.stream, d.occurred_at AS at,
           CASE WHEN v.source_class <> 'derived' AND r.chunk_count <= {MAX_CHUNKS} THEN d.stream END AS lane
    FROM unnest($2::text[]) AS wanted (id)
    JOIN memory.chunk c ON c.tenant_id {SAME} $1 AND c.id = wanted.id
    JOIN memory.version v ON v.tenant_id {SAME} $1 AND v.id = c.version_id
    JOIN memory.document d ON d.tenant_id {SAME} $1 AND d.id = v.document_id
    LEFT JOIN memory.derivation r ON r.version_id = v.id AND r.generation_id = c.generation_id
), placed AS (
    SELECT hit.*, lag(at) OVER lanes AS before_at, lag(document_id) OVER lanes AS before_id
    FROM hit WINDOW lanes AS (PARTITION BY lane ORDER BY at, document_id)
)
SELECT placed.*,
       CASE WHEN lane IS NULL THEN NULL WHEN before_id IS NULL THEN {REACH} ELSE (
           SELECT count(*) FROM (
               SELECT FROM memory.document b
               WHERE b.tenant_id = $1 AND b.stream = placed.stream
                 AND (b.occurred_at, b.id) > (placed.before_at, placed.before_id)
                 AND (b.occurred_at, b.id) < (placed.at, placed.document_id)
               LIMIT {REACH}
           ) between_them
       ) END AS gap,
       ARRAY(SELECT e.from_id FROM memory.edge e WHERE e.tenant_id = $1 AND e.rel = 'supports'
             AND e.to_id IN (placed.version_id, placed.document_id)) AS supporters,
       ARRAY(SELECT e.from_id FROM memory.edge e WHERE e.tenant_id = $1 AND e.rel = 'contradicts'
             AND e.to_id IN (placed.version_id, placed.document_id)) AS contradictors,
       ARRAY(SELECT e.to_id FROM memory.edge e WHERE e.tenant_id = $1 AND e.rel = 'derived_from'
             AND e.from_id = placed.version_id ORDER BY e.to_id) AS sources
FROM placed
ORDER BY lane, at, document_id
"""  # noqa: S608 - made of constants


async def hits(conn: Connection, tenant_id: str, chunk_ids: Collection[str]) -> list[HitRow]:
    """In the order of their streams."""
    return [_hit(row) for row in await conn.fetch(_HITS, tenant_id, list(chunk_ids))]


def _hit(row: asyncpg.Record) -> HitRow:
    return HitRow(
        chunk_id=row["chunk_id"],
        text=row["text"],
        document_id=row["document_id"],
        adapter=row["adapter"],
        external_ref=row["external_ref"],
        title=row["title"],
        kind=row["kind"],
        last_seen_at=row["last_seen_at"],
        version_id=row["version_id"],
        version=row["version"],
        authority=row["authority"],
        temporal_class=TemporalClass(row["temporal_class"]),
        provenance=Provenance(row["provenance"]),
        source_class=Lineage(row["source_class"]),
        created_by_kind=CreatedByKind(row["created_by_kind"]),
        generator_agent_id=row["generator_agent_id"],
        occurred_at=row["occurred_at"],
        valid_until=row["valid_until"],
        stream=row["stream"],
        gap=row["gap"],
        supporters=tuple(row["supporters"]),
        contradictors=tuple(row["contradictors"]),
        sources=tuple(row["sources"]),
    )


async def active_documents(conn: Connection, tenant_id: str, version_ids: Collection[str]) -> dict[str, str]:
    """Of these versions those that are active, each with its document."""
    rows = await conn.fetch(
        f"""
        SELECT id, document_id FROM memory.version
        WHERE tenant_id {SAME} $1 AND id = ANY ($2::text[]) AND status = 'active'
        """,  # noqa: S608 - a constant
        tenant_id,
        list(version_ids),
    )
    return {row["id"]: row["document_id"] for row in rows}


async def chunk_texts(conn: Connection, tenant_id: str, chunk_ids: Sequence[str]) -> dict[str, tuple[str, int, int]]:
    """Text, start and end of these chunks."""
    rows = await conn.fetch(
        f"SELECT id, text, span_start, span_end FROM memory.chunk WHERE tenant_id {SAME} $1 AND id = ANY ($2::text[])",  # noqa: S608 - a constant
        tenant_id,
        list(chunk_ids),
    )
    return {row["id"]: (row["text"], row["span_start"], row["span_end"]) for row in rows}


async def chunk_vectors(
    conn: Connection, tenant_id: str, table: str, chunk_ids: Sequence[str]
) -> dict[str, NDArray[np.float32]]:
    """The vectors of these chunks, where they have one."""
    rows = await conn.fetch(
        f"""
        SELECT chunk_id, embedding FROM memory.{checked_table(table)}
        WHERE tenant_id {SAME} $1 AND chunk_id = ANY ($2::text[]) AND slot = 0
        """,  # noqa: S608 - the name is checked
        tenant_id,
        list(chunk_ids),
    )
    return {row["chunk_id"]: np.asarray(_numbers(row["embedding"]), dtype=np.float32) for row in rows}


def _numbers(value: Any) -> Any:
    return value.to_numpy() if hasattr(value, "to_numpy") else value
