"""What a search reads besides its channels: small sets, recent documents, and all that a hit shows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import numpy as np
from numpy.typing import NDArray

from memory_plane.contracts.enums import CreatedByKind, Lineage, Provenance, TemporalClass
from memory_plane.core.surroundings import MAX_CHUNKS, REACH, StreamPlace
from memory_plane.store.candidates import FACTS, Candidate, candidates
from memory_plane.store.database import SAME, Connection
from memory_plane.store.eligible import Eligibility
from memory_plane.store.vectors import checked_table


@dataclass(frozen=True, slots=True)
class PageRow:
    """What a hit shows: a chunk, its version and its document. `sources` are the versions it was derived from."""

    chunk_id: str
    text: str
    document_id: str
    adapter: str
    external_ref: str
    last_seen_at: datetime
    version_id: str
    version: int
    title: str
    kind: str
    authority: float
    temporal_class: TemporalClass
    provenance: Provenance
    source_class: Lineage
    created_by_kind: CreatedByKind
    generator_agent_id: str | None
    occurred_at: datetime
    valid_until: datetime | None
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around some candidates: those with a neighbour among them, each after its neighbour, and who
    supports (contradicts) what: version or document id → version ids."""

    places: tuple[StreamPlace, ...]
    supporters: Mapping[str, Sequence[str]]
    contradictors: Mapping[str, Sequence[str]]


async def small_set(conn: Connection, tenant_id: str, eligibility: Eligibility, at_most: int) -> list[str] | None:
    """The ids of all eligible documents, where they are no more than `at_most`; else None.

    Planned each time: whether the tenant or the tags are the shorter way is a matter of the values, and a plan that is
    kept takes the wrong one for a hundred times as long.
    """
    params: list[object] = [tenant_id, at_most + 1]
    statement = await conn.prepare(
        f"""
        SELECT DISTINCT v.document_id FROM (
            SELECT d.id AS document_id
            FROM memory.document d JOIN memory.version v ON v.tenant_id {SAME} $1 AND v.document_id = d.id
            WHERE d.tenant_id = $1 AND {eligibility.sql(params)} LIMIT $2
        ) v
        """,  # noqa: S608 - made of constants and placeholders
        name="",
    )
    rows = await statement.fetch(*params)
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
        SELECT found.chunk_id, found.version_id, extract(epoch FROM r.last_seen_at), found.*
        FROM (
            SELECT id, last_seen_at FROM memory.document WHERE tenant_id = $1 ORDER BY last_seen_at DESC, id
        ) r
        CROSS JOIN LATERAL (
            SELECT {FACTS}, c.id AS chunk_id, v.id AS version_id
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
    return candidates([tuple(row)[:-2] for row in rows])


_AROUND = f"""
WITH given AS MATERIALIZED (
    SELECT g.document_id, g.stream, g.at
    FROM unnest(
        string_to_array($3, ','), string_to_array($4, ','), string_to_array($5, ',')::bigint[],
        string_to_array($6, ',')::timestamptz[]
    ) AS g (document_id, version_id, stream, at)
    JOIN memory.derivation r ON r.version_id = g.version_id AND r.generation_id = $2 AND r.tenant_id {SAME} $1
    WHERE r.chunk_count <= {MAX_CHUNKS}
), placed AS (
    SELECT given.*, lag(at) OVER lanes AS before_at, lag(document_id) OVER lanes AS before_id
    FROM given WINDOW lanes AS (PARTITION BY stream ORDER BY at, document_id)
), gap AS (
    SELECT before_id, document_id, stream, at, (
        SELECT count(*) FROM (
            SELECT FROM memory.document b
            WHERE b.tenant_id = $1 AND b.stream = placed.stream
              AND (b.occurred_at, b.id) > (placed.before_at, placed.before_id)
              AND (b.occurred_at, b.id) < (placed.at, placed.document_id)
            LIMIT {REACH}
        ) between_them
    ) AS documents
    FROM placed WHERE before_id IS NOT NULL
)
(SELECT 'gap' AS what, before_id AS first, document_id AS second, documents FROM gap
 WHERE documents < {REACH} ORDER BY stream, at, document_id)
UNION ALL
SELECT e.rel, e.to_id, e.from_id, 0 FROM memory.edge e
WHERE e.tenant_id = $1 AND e.to_id = ANY (string_to_array($7, ',')) AND e.rel IN ('supports', 'contradicts')
"""  # noqa: S608 - made of constants


async def around(conn: Connection, tenant_id: str, generation_id: str, given: Sequence[Candidate]) -> Around:
    """One candidate a document. Claims have no place in a stream, nor have documents of many chunks."""
    placed = [candidate for candidate in given if not candidate.is_claim]
    rows = await conn.fetch(
        _AROUND,
        tenant_id,
        generation_id,
        # As text: of an array asyncpg looks at each element for what it is, hundreds of times a search.
        ",".join([candidate.document_id for candidate in placed]),
        ",".join([candidate.version_id for candidate in placed]),
        ",".join([str(candidate.stream) for candidate in placed]),
        ",".join([candidate.placed_at.isoformat() for candidate in placed]),
        ",".join([each for candidate in given for each in (candidate.version_id, candidate.document_id)]),
    )
    edges: dict[str, dict[str, list[str]]] = {"supports": {}, "contradicts": {}}
    places: list[StreamPlace] = []
    run = 0
    for what, first, second, documents in rows:
        if what != "gap":
            edges[what].setdefault(first, []).append(second)
            continue
        if not places or places[-1].key != first:
            run += 1
            places.append(StreamPlace(first, run, REACH))
        places.append(StreamPlace(second, run, documents))
    return Around(tuple(places), edges["supports"], edges["contradicts"])


_PAGE = f"""
SELECT c.id AS chunk_id, c.text, d.id AS document_id, d.adapter, d.external_ref, d.last_seen_at, v.id AS version_id,
       v.version, v.title, v.kind, v.authority, v.temporal_class, v.provenance, v.source_class, v.created_by_kind,
       v.generator_agent_id, v.occurred_at,
       v.valid_until,
       CASE WHEN v.source_class = 'derived' THEN ARRAY(
           SELECT e.to_id FROM memory.edge e
           WHERE e.tenant_id = $1 AND e.rel = 'derived_from' AND e.from_id = v.id ORDER BY e.to_id
       ) END AS sources
FROM unnest($2::text[]) AS wanted (id)
JOIN memory.chunk c ON c.tenant_id {SAME} $1 AND c.id = wanted.id
JOIN memory.version v ON v.tenant_id {SAME} $1 AND v.id = c.version_id
JOIN memory.document d ON d.tenant_id {SAME} $1 AND d.id = v.document_id
"""  # noqa: S608 - made of constants


async def page_rows(conn: Connection, tenant_id: str, chunk_ids: Sequence[str]) -> dict[str, PageRow]:
    """By chunk id; what is gone meanwhile is absent."""
    return {row[0]: _page_row(row) for row in await conn.fetch(_PAGE, tenant_id, list(chunk_ids))}


def _page_row(row: asyncpg.Record) -> PageRow:
    return PageRow(
        chunk_id=row["chunk_id"],
        text=row["text"],
        document_id=row["document_id"],
        adapter=row["adapter"],
        external_ref=row["external_ref"],
        last_seen_at=row["last_seen_at"],
        version_id=row["version_id"],
        version=row["version"],
        title=row["title"],
        kind=row["kind"],
        authority=row["authority"],
        temporal_class=TemporalClass(row["temporal_class"]),
        provenance=Provenance(row["provenance"]),
        source_class=Lineage(row["source_class"]),
        created_by_kind=CreatedByKind(row["created_by_kind"]),
        generator_agent_id=row["generator_agent_id"],
        occurred_at=row["occurred_at"],
        valid_until=row["valid_until"],
        sources=tuple(row["sources"] or ()),
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
