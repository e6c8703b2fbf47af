"""The dense channel: cosine over the generation's vectors, exactly or along the graph of the model's table."""

from collections.abc import Sequence
from dataclasses import dataclass

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
         || set_config('hnsw.ef_search', '{SEARCH_WIDTH}', true)
         || set_config('hnsw.max_scan_tuples', '{GRAPH_STARTS}', true)) IS NOT NULL
"""


_GENERATION = "e.tenant_id = $1 AND e.generation_id = $2 AND e.slot >= 0"
# Outside of the ordered scan, which has a LIMIT of its own: with a selective filter on it, or without the LIMIT, the
# planner reads and sorts the table instead.
_RANKED_GENERATION = "ranked.tenant_id = $1 AND ranked.generation_id = $2 AND ranked.slot >= 0"


@dataclass(frozen=True, slots=True)
class DenseSearch:
    """`documents` bounds the search to a small set, read whole. `restriction` is a tsquery that each chunk must
    satisfy. `neighbour_weight` is the share of the neighbourhood's vector, where the recipe embeds one."""

    tenant_id: str
    generation_id: str
    table: str
    dims: int
    vector: HalfVector
    scan: VectorScan
    documents: Sequence[str] | None = None
    restriction: str = ""
    neighbour_weight: float = 0.0


async def search(conn: Connection, what: DenseSearch, eligibility: Eligibility, limit: int) -> list[Candidate]:
    """The `limit` eligible rows with the greatest similarity (1 - cosine distance), best first; a chunk that is
    embedded as windows may come more than once."""
    params: list[object] = [what.tenant_id, what.generation_id, what.vector]
    distance = distance_sql(what.dims, "$3")
    score = f"1 - ({distance})"
    neighbour = ""
    if what.neighbour_weight > 0.0:
        params.append(what.neighbour_weight)
        near = distance_sql(what.dims, "$3", "n")
        score = f"1 - ({distance}) * (1 - ${len(params)}) - coalesce({near}, {distance}) * ${len(params)}"
        neighbour = (
            f"LEFT JOIN memory.{checked_table(what.table)} n "
            f"ON n.tenant_id {SAME} $1 AND n.chunk_id = e.chunk_id AND n.slot = {NEIGHBOUR_SLOT}"
        )
    graph = what.scan is VectorScan.GRAPH and what.documents is None
    ranked = f"""
        SELECT e.chunk_id, e.version_id, {score} AS score, {distance} AS distance, e.tenant_id, e.generation_id, e.slot
        FROM {_source(what, params, graph=graph)} {neighbour}
        WHERE {_GRAPH_SETTINGS if graph else _GENERATION}
        ORDER BY {f"distance LIMIT {GRAPH_STARTS}" if graph else "score DESC"}
    """  # noqa: S608 - the table's name is checked
    conditions = [_RANKED_GENERATION] if graph else []
    if what.restriction:
        params.append(what.restriction)
        conditions.append(f"c.text_fts @@ ${len(params)}::tsquery")
    sql = eligible_sql(
        ranked,
        eligibility,
        params,
        limit,
        order="distance" if graph else "score DESC",
        where=conditions,
        with_chunk=bool(what.restriction),
    )
    return candidates(await conn.fetch(sql, *params))


def _source(what: DenseSearch, params: list[object], *, graph: bool) -> str:
    table = f"memory.{checked_table(what.table)} e"
    if graph or what.documents is None:
        return table
    params.append(list(what.documents))
    return f"""memory.version w JOIN {table} ON e.version_id = w.id
            AND w.tenant_id {SAME} $1 AND w.document_id = ANY (${len(params)}::text[])"""
