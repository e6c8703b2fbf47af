"""Captured rows without the capture: documents, versions and chunks as the embedder finds them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.recipe import Recipe
from memory_plane.store.database import Connection, Pool


@dataclass(frozen=True)
class Chunk:
    chunk_id: str
    text_to_embed: str


@dataclass(frozen=True)
class Stored:
    document_id: str
    version_id: str
    generation_id: str
    chunks: Sequence[Chunk] = field(default=())


async def make_generation(pool: Pool, tenant: str, recipe: Recipe, state: str = "live") -> str:
    generation_id = new_id(IdKind.GENERATION)
    await pool.execute(
        "INSERT INTO memory.generation (id, tenant_id, state, recipe) VALUES ($1, $2, $3, $4)",
        generation_id,
        tenant,
        state,
        recipe.stored(),
    )
    return generation_id


async def store(
    pool: Pool,
    tenant: str,
    generation_id: str,
    texts: Sequence[str],
    *,
    context: str = "",
    embed_state: str = "pending",
    age_seconds: int = 0,
    processors: Sequence[str] = (),
) -> Stored:
    """One document of one version with these chunks."""
    document, raw, version = new_id(IdKind.DOCUMENT), new_id(IdKind.RAW_CAPTURE), new_id(IdKind.VERSION)
    chunks = [Chunk(new_id(IdKind.CHUNK), f"{context}\n{text}" if context else text) for text in texts]
    async with pool.acquire() as conn, conn.transaction():
        await _facts(conn, tenant, document, raw, version)
        await conn.executemany(
            """
            INSERT INTO memory.chunk (id, tenant_id, generation_id, document_id, version_id, ordinal, text, context,
                                      span_start, span_end, token_count)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 1, 1)
            """,
            [
                (chunk.chunk_id, tenant, generation_id, document, version, ordinal, text, context)
                for ordinal, (chunk, text) in enumerate(zip(chunks, texts, strict=True))
            ],
        )
        await conn.execute(
            """
            INSERT INTO memory.derivation (version_id, generation_id, tenant_id, chunk_count, embed_state, updated_at)
            VALUES ($1, $2, $3, $4, $5, clock_timestamp() - make_interval(secs => $6))
            """,
            version,
            generation_id,
            tenant,
            len(texts),
            embed_state,
            age_seconds,
        )
        await conn.executemany(
            """
            INSERT INTO memory.process_request (version_id, processor, tenant_id, state, updated_at)
            VALUES ($1, $2, $3, 'pending', clock_timestamp() - make_interval(secs => $4))
            """,
            [(version, processor, tenant, age_seconds) for processor in processors],
        )
    return Stored(document, version, generation_id, chunks)


async def _facts(conn: Connection, tenant: str, document: str, raw: str, version: str) -> None:
    await conn.execute(
        """
        INSERT INTO memory.document (id, tenant_id, adapter, external_ref, title, kind, created_by_principal_id,
                                     created_at, last_seen_at)
        VALUES ($1, $2, 'http', $1, 'a title', 'note', 'alice', now(), now())
        """,
        document,
        tenant,
    )
    await conn.execute(
        """
        INSERT INTO memory.raw_capture (id, tenant_id, document_id, source_hash, adapter, raw_text, fetched_at)
        VALUES ($1, $2, $3, $1, 'http', '{}', now())
        """,
        raw,
        tenant,
        document,
    )
    await conn.execute(
        """
        INSERT INTO memory.version (id, tenant_id, document_id, version, status, status_at, title, kind, content_hash,
                                    occurred_at, ingested_at, temporal_class, retention_class, provenance, source_class,
                                    created_by_principal_id, created_by_kind, authority, raw_capture_id, feed_position)
        VALUES ($1, $2, $3, 1, 'active', now(), 'a title', 'note', 'h', now(), now(), 'event', 'standard', 'stated',
                'native', 'alice', 'human', 0.5, $4, 1)
        """,
        version,
        tenant,
        document,
        raw,
    )


async def tombstone(pool: Pool, version_id: str) -> None:
    await pool.execute("UPDATE memory.version SET status = 'tombstoned' WHERE id = $1", version_id)


async def embed_state(pool: Pool, version_id: str) -> str:
    state: str = await pool.fetchval("SELECT embed_state FROM memory.derivation WHERE version_id = $1", version_id)
    return state
