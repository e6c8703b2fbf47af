"""The dense channel: cosine over the generation's vectors, exactly or along the graph of the model's table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import asyncpg
from pgvector import HalfVector

from memory_plane.core.embed_text import NEIGHBOUR_SLOT
from memory_plane.core.vector_scan import GRAPH_STARTS, SEARCH_WIDTH, VectorScan
from memory_plane.store.candidates import Candidate, candidates, eligible_sql
from memory_plane.store.database import SAME, Connection
from memory_plane.store.eligible import Eligibility
from memory_plane.store.vectors import checked_table, distance_sql

# Settings of this statement alone: a filter without a column is computed once, before the scan below it begins.
_GRAPH_SETTINGS = f"""
    (SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true)
         || set_config('hnsw.ef_search', {{width}}::text, true)
         || set_config('hnsw.max_scan_tuples', '{GRAPH_STARTS}', true)) IS NOT NULL
"""


# Outside of the ordered scan: a selective filter on it would make the planner read and sort the table instead.
_RANKED_GENERATION = "ranked.tenant_id = $1 AND ranked.generation_id = $2 AND ranked.slot >= 0"
BEST = 4
"""Rows kept by an exact scan, in rows asked for: so many may be superseded or hidden before it is repeated."""


@dataclass(frozen=True, slots=True)
class DenseSearch:
    """`documents` bounds the search to a small set, read whole. `restriction` is a tsquery that each chunk must
    satisfy. `neighbour_weight` is the share of the neighbourhood's vector, where the recipe embeds one. `width` is how
    far the graph looks around, see core.vector_scan."""

    tenant_id: str
    generation_id: str
    table: str
    dims: int
    vector: HalfVector
    scan: VectorScan
    documents: Sequence[str] | None = None
    restriction: str = ""
    neighbour_weight: float = 0.0
    width: int = SEARCH_WIDTH


async def search(conn: Connection, what: DenseSearch, eligibility: Eligibility, limit: int) -> list[Candidate]:
    """The `limit` eligible rows with the greatest similarity (1 - cosine distance), best first; a chunk that is
    embedded as windows may come more than once."""
    if what.scan is VectorScan.GRAPH and what.documents is None:
        return candidates(await _fetch(conn, what, eligibility, limit, _graph))
    if what.documents is None:
        # The best few of all are found without sorting all; where too few of these may be shown, all are sorted.
        rows = await _fetch(conn, what, eligibility, limit, _exact_best)
        if len(rows) == limit:
            return candidates(rows)
    return candidates(await _fetch(conn, what, eligibility, limit, _exact))


Scan = Callable[[DenseSearch, list[object], int], str]


async def _fetch(
    conn: Connection, what: DenseSearch, eligibility: Eligibility, limit: int, scan: Scan
) -> list[asyncpg.Record]:
    params: list[object] = [what.tenant_id, what.generation_id, what.vector]
    ranked = scan(what, params, limit)
    conditions = [_RANKED_GENERATION] if scan is _graph else []
    if what.restriction:
        params.append(what.restriction)
        conditions.append(f"c.text_fts @@ ${len(params)}::tsquery")
    sql = eligible_sql(
        ranked,
        eligibility,
        params,
        limit,
        score="1 - ranked.distance",
        order="distance",
        where=conditions,
        with_chunk=bool(what.restriction),
    )
    return await conn.fetch(sql, *params)


def _graph(what: DenseSearch, params: list[object], limit: int) -> str:
    params.append(str(what.width))
    settings = _GRAPH_SETTINGS.format(width=f"${len(params)}")
    # The LIMIT is what a scan yields at most anyway; without it the planner reads and sorts the table instead.
    return f"""
        SELECT e.chunk_id, e.version_id, e.tenant_id, e.generation_id, e.slot,
               {distance_sql(what.dims, "$3")} AS distance
        FROM memory.{checked_table(what.table)} e
        WHERE {settings}
        ORDER BY distance LIMIT {GRAPH_STARTS}
    """  # noqa: S608 - the table's name is checked


def _exact(what: DenseSearch, params: list[object], limit: int) -> str:
    """Nearest first. Adding 0 makes an expression that the graph does not order by, computed once a row."""
    near = distance_sql(what.dims, "$3")
    neighbour = ""
    if what.neighbour_weight > 0.0:
        params.append(what.neighbour_weight)
        share = f"${len(params)}::float8"
        near = f"({near}) * (1 - {share}) + coalesce({distance_sql(what.dims, '$3', 'n')}, {near}) * {share}"
        neighbour = (
            f"LEFT JOIN memory.{checked_table(what.table)} n "
            f"ON n.tenant_id {SAME} $1 AND n.chunk_id = e.chunk_id AND n.slot = {NEIGHBOUR_SLOT}"
        )
    return f"""
        SELECT e.chunk_id, e.version_id, ({near}) + 0 AS distance
        FROM {_source(what, params)} {neighbour}
        WHERE e.tenant_id = $1 AND e.generation_id = $2 AND e.slot >= 0
        ORDER BY distance
    """  # noqa: S608 - the table's name is checked


def _exact_best(what: DenseSearch, params: list[object], limit: int) -> str:
    return f"{_exact(what, params, limit)} LIMIT {limit * BEST:d}"


def _source(what: DenseSearch, params: list[object]) -> str:
    table = f"memory.{checked_table(what.table)}"
    if what.documents is None:
        return f"{table} e"
    params.append(list(what.documents))
    # OFFSET 0 keeps the order of the join: each version's vectors by the index. A plan that is kept for all tenants
    # would take an average one's for few, and read those of the largest whole.
    return f"""
        (SELECT w.id FROM memory.version w
         WHERE w.tenant_id {SAME} $1 AND w.document_id = ANY (${len(params)}::text[]) OFFSET 0) w
        CROSS JOIN LATERAL (SELECT * FROM {table} x
         WHERE x.tenant_id = $1 AND x.generation_id = $2 AND x.version_id = w.id OFFSET 0) e"""  # noqa: S608 - checked
