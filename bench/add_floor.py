"""The floor of an add: the same rows by bare asyncpg, under the same locks and the same counter, and the same texts
straight to the same endpoint.

One statement a table, all inputs made before the clock starts: no HTTP of ours, no identity, no grants, no validation,
no planning, no hashing, no reading of what might be there already.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg
import numpy as np
from pgvector import HalfVector
from pgvector.asyncpg import register_vector

from bench.http_client import HttpClient
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.recipe import Recipe
from memory_plane.core.planning import PlannedChunk, plan
from memory_plane.core.source_document import SourceDocument

_LOCK = "SELECT pg_advisory_xact_lock_shared($1)"
_DOCUMENT = """
INSERT INTO memory.document (id, tenant_id, adapter, external_ref, title, kind, access_tags, attributes,
    created_by_principal_id, created_at, last_seen_at)
VALUES ($1, $2, 'http', $1, $3, 'note', $4, '{}', 'bench', clock_timestamp(), clock_timestamp())
"""
_RAW = """
INSERT INTO memory.raw_capture (id, tenant_id, document_id, source_hash, adapter, raw_text, fetched_at)
VALUES ($1, $2, $3, $4, 'http', $5, clock_timestamp())
"""
_VERSION = """
INSERT INTO memory.version (id, tenant_id, document_id, version, status, status_at, title, kind, content_hash,
    occurred_at, ingested_at, temporal_class, retention_class, provenance, source_class,
    created_by_principal_id, created_by_kind, authority, attributes, raw_capture_id)
VALUES ($1, $2, $3, 1, 'active', clock_timestamp(), $4, 'note', $5, clock_timestamp(), clock_timestamp(),
    'event', 'standard', 'stated', 'native', 'bench', 'human', 0.42, '{}', $6)
"""
_CHUNKS = """
INSERT INTO memory.chunk (id, tenant_id, generation_id, document_id, version_id, ordinal, text, context,
    span_start, span_end, token_count)
SELECT id, $1, $2, $3, $4, ordinal, text, context, span_start, span_end, token_count
FROM unnest($5::text[], $6::int[], $7::text[], $8::text[], $9::int[], $10::int[], $11::int[])
    AS c (id, ordinal, text, context, span_start, span_end, token_count)
"""
_DERIVATION = """
INSERT INTO memory.derivation (version_id, generation_id, tenant_id, chunk_count, embed_state)
VALUES ($1, $2, $3, $4, 'pending')
"""
_COUNTER = """
WITH counter AS (
    INSERT INTO memory.tenant_counter AS c (tenant_id, position) VALUES ($1, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET position = c.position + 1 RETURNING position
), event AS (
    INSERT INTO memory.feed_event (tenant_id, position, kind, document_id, version_id, at)
    SELECT $1, position, 'captured', $2, $3, clock_timestamp() FROM counter
)
UPDATE memory.version SET feed_position = counter.position FROM counter WHERE id = $3
"""
_SHARE = "SELECT FROM memory.document WHERE id = $1 FOR SHARE"
_VECTORS = """
INSERT INTO memory.{table} (chunk_id, slot, tenant_id, generation_id, version_id, embedding)
SELECT chunk_id, 0, $1, $2, $3, embedding FROM unnest($4::text[], $5::halfvec[]) AS v (chunk_id, embedding)
"""
_EMBEDDED = """
UPDATE memory.derivation SET embed_state = 'embedded', updated_at = clock_timestamp()
WHERE version_id = $1 AND generation_id = $2
"""


@dataclass(frozen=True)
class FloorInput:
    """One add, planned beforehand as the product plans it."""

    title: str
    payload: str
    source_hash: str
    chunks: Sequence[PlannedChunk]

    @classmethod
    def make(cls, title: str, text: str) -> "FloorInput":
        document = SourceDocument(adapter="http", external_ref="", title=title, kind="note", text=text)
        payload = json.dumps({"title": title, "text": text})
        return cls(title, payload, hashlib.sha256(payload.encode()).hexdigest(), plan(document, Recipe()).chunks)


@dataclass(frozen=True)
class Floor:
    """Adds to one tenant, into the product's own tables."""

    pool: asyncpg.Pool
    tenant: str
    generation: str
    table: str
    model: str

    async def add(self, endpoint: HttpClient, given: FloorInput) -> None:
        document, raw, version = new_id(IdKind.DOCUMENT), new_id(IdKind.RAW_CAPTURE), new_id(IdKind.VERSION)
        chunks = given.chunks
        ids = [new_id(IdKind.CHUNK) for _ in chunks]
        async with self.pool.acquire() as conn, conn.transaction():
            await conn.execute(_LOCK, 7)
            await conn.execute(_DOCUMENT, document, self.tenant, given.title, ["memory.owner:bench"])
            await conn.execute(_RAW, raw, self.tenant, document, given.source_hash, given.payload)
            await conn.execute(_VERSION, version, self.tenant, document, given.title, given.source_hash, raw)
            await conn.execute(
                _CHUNKS,
                *(self.tenant, self.generation, document, version, ids),
                *([chunk.ordinal for chunk in chunks], [chunk.text for chunk in chunks]),
                *([chunk.context for chunk in chunks], [chunk.start for chunk in chunks]),
                *([chunk.end for chunk in chunks], [chunk.token_count for chunk in chunks]),
            )
            await conn.execute(_DERIVATION, version, self.generation, self.tenant, len(chunks))
            await conn.execute(_COUNTER, self.tenant, document, version)
        vectors = await self._embed(endpoint, [f"{chunk.context}\n{chunk.text}" for chunk in chunks])
        async with self.pool.acquire() as conn, conn.transaction():
            await conn.execute(_SHARE, document)
            statement = _VECTORS.format(table=self.table)
            await conn.execute(statement, self.tenant, self.generation, version, ids, vectors)
            await conn.execute(_EMBEDDED, version, self.generation)

    async def _embed(self, endpoint: HttpClient, texts: Sequence[str]) -> list[HalfVector]:
        answer = await endpoint.post_json("/v1/embeddings", {"model": self.model, "input": texts})
        vectors = [np.asarray(entry["embedding"], dtype=np.float32) for entry in answer["data"]]
        return [HalfVector(vector / np.linalg.norm(vector)) for vector in vectors]


async def open_floor_pool(dsn: str, size: int) -> asyncpg.Pool:
    async def keep(_: asyncpg.Connection) -> None:
        """No reset when a connection is given back: it would be one more round trip."""

    return await asyncpg.create_pool(dsn, min_size=size, max_size=size, init=register_vector, reset=keep)
