"""What the vector channel finds of what an exact search finds, by the product's own statements and its own choice."""

from statistics import fmean
from typing import Any

import asyncpg
from pgvector import Vector
from pgvector.asyncpg import register_vector

from bench.http_client import HttpClient
from bench.layouts import Corpus
from bench.peer_process import PeerProcess
from bench.service import MODEL, Service
from memory_plane.core.fusion import DENSE_DEPTH
from memory_plane.core.vector_scan import VectorScan, choose, width
from memory_plane.core.visibility import VisibilityScope
from memory_plane.dev.ports import HOST
from memory_plane.store.candidates import Candidate
from memory_plane.store.database import connection
from memory_plane.store.dense import DenseSearch, search
from memory_plane.store.eligible import Eligibility
from memory_plane.store.search_rows import small_set
from memory_plane.store.vectors import as_parameter

QUERIES, QUERIES_OF_FEW = 100, 10
"""Fewer where little is visible: the exact search that is compared with looks at every document of the tenant."""
AT = (10, 50)
_PEERS_EXACT = {
    "mem0": "SELECT payload->>'key' FROM mem0 ORDER BY (vector <=> $1) + 0 LIMIT $2",
    "langgraph": "SELECT key FROM store_vectors ORDER BY (embedding <=> $1) + 0 LIMIT $2",
}


async def recall(opened: Service, tenant: str, corpus: Corpus, tag: str | None = None) -> dict[str, Any]:
    """Overlap with exact search at 10 and 50, whether every list was full, and how it was searched."""
    scope = VisibilityScope(tag is None, "reader", (tag,) if tag else ())
    overlap: dict[int, list[float]] = {k: [] for k in AT}
    full = True
    async with connection(opened.pool) as conn:
        row = await conn.fetchrow(
            """
            SELECT g.id, m.table_name, m.dims,
                   (SELECT count(*) FROM memory.chunk c WHERE c.tenant_id = $1 AND c.generation_id = g.id) AS chunks,
                   (SELECT reltuples FROM pg_class WHERE oid = to_regclass('memory.' || m.table_name)) AS table_rows
            FROM memory.generation g JOIN memory.embed_model m ON m.model_key = g.model_key
            WHERE g.tenant_id = $1 AND g.state = 'live' LIMIT 1
            """,
            tenant,
        )
        assert row is not None
        eligibility = Eligibility(scope)
        documents = await small_set(conn, tenant, eligibility, 500) if tag else None
        counts = row["chunks"], int(row["table_rows"]), DENSE_DEPTH
        scan = choose(*counts)

        async def found(how: VectorScan, within: list[str] | None, vector: Any) -> list[Candidate]:
            what = DenseSearch(
                *(tenant, row["id"], row["table_name"], row["dims"], as_parameter(vector), how),
                documents=within,
                width=width(*counts),
            )
            return await search(conn, what, eligibility, DENSE_DEPTH)

        for _ in range(QUERIES_OF_FEW if tag else QUERIES):
            vector = corpus.vector()
            ours = [each.chunk_id for each in await found(scan, documents, vector)]
            exact = [each.chunk_id for each in await found(VectorScan.EXACT, None, vector)]
            full = full and len(ours) == len(exact)
            for k in AT:
                overlap[k].append(len(set(ours[:k]) & set(exact[:k])) / max(1, len(exact[:k])))
    return {
        **{f"recall@{k}": fmean(values) for k, values in overlap.items()},
        "full": full,
        "scan": "small set" if documents is not None else scan.value,
        "model": MODEL,
    }


async def peer_recall(opened: Service, asked: PeerProcess, kind: str, collection: str, corpus: Corpus) -> float:
    """Overlap of what a peer answers with the exact nearest ten by its own vectors."""
    overlap = []
    connection = await asyncpg.connect(asked.dsn)
    try:
        await register_vector(connection)
        async with HttpClient(HOST, opened.endpoint_port) as client:
            for _ in range(QUERIES):
                query = corpus.query()
                answer = await client.post_json("/v1/embeddings", {"model": MODEL, "input": [query]})
                rows = await connection.fetch(_PEERS_EXACT[kind], Vector(answer["data"][0]["embedding"]), AT[0])
                found = await asked.search(collection, query, AT[0])
                overlap.append(len({row[0] for row in rows} & set(found)) / AT[0])
    finally:
        await connection.close()
    return fmean(overlap)
