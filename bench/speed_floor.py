"""The floor of a search: the bare endpoint call, then the two bare channel queries over one asyncpg connection.

The same rankings as the product's (BM25 of any term over the text index, cosine over the vectors), each as one
hand-written statement whose terms and weights were looked up before the clock starts: no HTTP of ours, no identity,
no grants, no visibility, no status, no recipe, no fusion, no rows for the page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import asyncpg
import numpy as np
from pgvector import HalfVector
from pgvector.asyncpg import register_vector

from bench.http_client import HttpClient
from bench.service import MODEL
from memory_plane.core.fusion import DENSE_DEPTH, LEXICAL_DEPTH
from memory_plane.core.lexical_query import LexicalPlan, MatchQuery, Term, parse, plan_terms, quoted
from memory_plane.core.vector_scan import SEARCH_WIDTH, VectorScan, choose
from memory_plane.store.lexical_statistics import marker

_TERMS = """
SELECT q.lexeme, coalesce(l.chunk_count, 0) AS count
FROM unnest(tsvector_to_array(to_tsvector('english', $3))) AS q (lexeme)
LEFT JOIN memory.lexical_term l
    ON l.tenant_id = $1 AND l.generation_id = $2 AND l.term_hash = hashtextextended(q.lexeme, 0)
"""


@dataclass
class Floor:
    """Searches of one tenant. `prepare` looks the terms of a query up, outside of the clock."""

    pool: asyncpg.Pool
    tenant: str
    generation: str
    table: str
    dims: int
    chunks: int
    average_length: float
    table_rows: int
    plans: dict[str, LexicalPlan] = field(default_factory=dict)

    @classmethod
    async def of(cls, pool: asyncpg.Pool, tenant: str) -> "Floor":
        row = await pool.fetchrow(
            """
            SELECT g.id, m.table_name, m.dims,
                   (SELECT count(*) FROM memory.chunk c WHERE c.tenant_id = $1 AND c.generation_id = g.id) AS chunks,
                   (SELECT avg(token_count) FROM memory.chunk c WHERE c.tenant_id = $1) AS length,
                   (SELECT reltuples FROM pg_class WHERE oid = to_regclass('memory.' || m.table_name)) AS table_rows
            FROM memory.generation g JOIN memory.embed_model m ON m.model_key = g.model_key
            WHERE g.tenant_id = $1 AND g.state = 'live' LIMIT 1
            """,
            tenant,
        )
        return cls(
            *(pool, tenant, row["id"], row["table_name"], row["dims"]),
            *(row["chunks"], float(row["length"]), int(row["table_rows"])),
        )

    async def prepare(self, query: str) -> None:
        rows = await self.pool.fetch(_TERMS, self.tenant, self.generation, parse(query).words)
        self.plans[query] = plan_terms([Term(row["lexeme"], row["count"]) for row in rows], self.chunks)

    async def search(self, endpoint: HttpClient, query: str) -> None:
        answer = await endpoint.post_json("/v1/embeddings", {"model": MODEL, "input": [query]})
        vector = np.asarray(answer["data"][0]["embedding"], dtype=np.float32)
        async with self.pool.acquire() as conn:
            await self._lexical(conn, self.plans[query])
            await self._dense(conn, HalfVector((vector / np.linalg.norm(vector)).astype(np.float16)))

    async def _lexical(self, conn: asyncpg.Connection, plan: LexicalPlan) -> None:
        if not plan.scored:
            return
        params: list[object] = [MatchQuery(marker(self.generation), plan).tsquery, self.average_length]
        summands = []
        for term in plan.scored:
            params += [quoted(term.lexeme), term.weight]
            rank = f"ts_rank('{{1,1,1,1}}', c.text_fts, ${len(params) - 1}::tsquery)"
            summands.append(f"${len(params)}::float8 * {rank}")
        await conn.fetch(
            f"""
            SELECT c.id, ({" + ".join(summands)}) / (0.7 + 0.3 * c.token_count / $2::float8) AS score
            FROM memory.chunk c WHERE c.text_fts @@ $1::tsquery ORDER BY score DESC LIMIT {LEXICAL_DEPTH}
            """,
            *params,
        )

    async def _dense(self, conn: asyncpg.Connection, vector: HalfVector) -> None:
        await conn.fetch(self._dense_sql(), *self._dense_parameters(vector))

    def _dense_sql(self) -> str:
        distance = f"e.embedding <=> $1::halfvec({self.dims})"
        if choose(self.chunks, self.table_rows, DENSE_DEPTH) is VectorScan.GRAPH:
            return f"SELECT e.chunk_id FROM memory.{self.table} e ORDER BY {distance} LIMIT {DENSE_DEPTH}"
        return f"""
            SELECT e.chunk_id FROM memory.{self.table} e
            WHERE e.tenant_id = $2 AND e.generation_id = $3 ORDER BY 1 - ({distance}) DESC LIMIT {DENSE_DEPTH}
        """

    def _dense_parameters(self, vector: HalfVector) -> tuple[object, ...]:
        if choose(self.chunks, self.table_rows, DENSE_DEPTH) is VectorScan.GRAPH:
            return (vector,)
        return (vector, self.tenant, self.generation)


async def open_floor_pool(dsn: str, size: int, settings: Mapping[str, str] | None = None) -> asyncpg.Pool:
    async def keep(_: asyncpg.Connection) -> None:
        """No reset when a connection is given back: it would be one more round trip."""

    session = {"hnsw.ef_search": str(SEARCH_WIDTH), **(settings or {})}
    return await asyncpg.create_pool(
        dsn, min_size=size, max_size=size, init=register_vector, reset=keep, server_settings=session
    )
