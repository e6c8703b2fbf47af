"""Derived rows of a generation that is not live: written from stored payloads, again and again without harm."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from memory_plane.contracts.enums import EmbedState, GenerationState
from memory_plane.store.captures import NewChunk
from memory_plane.store.database import Connection

_OPEN = [state.value for state in GenerationState if state is not GenerationState.RETIRED]


@dataclass(frozen=True, slots=True)
class StoredPayload:
    """What a version was captured from, with the name of its document as it was resolved then."""

    version_id: str
    document_id: str
    external_ref: str
    raw: str | bytes


@dataclass(frozen=True, slots=True)
class DerivedVersion:
    version_id: str
    document_id: str
    chunks: Sequence[NewChunk]


@dataclass(frozen=True, slots=True)
class Written:
    versions: int
    chunks: int


async def payloads(conn: Connection, tenant_id: str, version_ids: Collection[str]) -> list[StoredPayload]:
    """Of those versions that are not forgotten, status and payload read at one moment."""
    rows = await conn.fetch(
        """
        SELECT v.id, v.document_id, d.external_ref, r.raw_text, r.raw_bytes
        FROM memory.version v
        JOIN memory.document d ON d.tenant_id = $1 AND d.id = v.document_id
        JOIN memory.raw_capture r ON r.tenant_id = $1 AND r.id = v.raw_capture_id
        WHERE v.tenant_id = $1 AND v.id = ANY ($2::text[]) AND v.status <> 'tombstoned'
        ORDER BY v.feed_position
        """,
        tenant_id,
        list(version_ids),
    )
    return [
        StoredPayload(
            row["id"],
            row["document_id"],
            row["external_ref"],
            row["raw_bytes"] if row["raw_text"] is None else row["raw_text"],
        )
        for row in rows
    ]


async def keep_open(conn: Connection, tenant_id: str, generation_id: str) -> bool:
    """Keep the generation from being retired until the transaction ends; False where it is."""
    return bool(
        await conn.fetchval(
            """
            SELECT true FROM memory.generation WHERE tenant_id = $1 AND id = $2 AND state = ANY ($3::text[]) FOR SHARE
            """,
            tenant_id,
            generation_id,
            _OPEN,
        )
    )


_WRITE = """
WITH alive AS MATERIALIZED (
    SELECT v.id, v.document_id, v.raw_capture_id, given.chunk_count
    FROM unnest($3::text[], $4::int[]) AS given (id, chunk_count)
    JOIN memory.version v ON v.tenant_id = $1 AND v.id = given.id AND v.status <> 'tombstoned'
), derived AS (
    INSERT INTO memory.derivation (version_id, generation_id, tenant_id, chunk_count, embed_state)
    SELECT id, $2, $1, chunk_count, $5 FROM alive
    ON CONFLICT (version_id, generation_id) DO NOTHING RETURNING version_id, chunk_count
), chunk AS (
    INSERT INTO memory.chunk
        (id, tenant_id, generation_id, document_id, version_id, ordinal, text, context, grams,
         span_start, span_end, token_count, role)
    SELECT c.id, $1, $2, alive.document_id, c.version_id, c.ordinal, c.text, c.context, c.grams,
           c.span_start, c.span_end, c.token_count, c.role
    FROM unnest($6::text[], $7::text[], $8::int[], $9::text[], $10::text[], $11::text[], $12::int[], $13::int[],
                $14::int[], $15::text[])
        AS c (id, version_id, ordinal, text, context, grams, span_start, span_end, token_count, role)
    JOIN derived ON derived.version_id = c.version_id
    JOIN alive ON alive.id = c.version_id
), healed AS (
    DELETE FROM memory.transform_failure f USING derived
    WHERE f.run_id = $2 AND f.version_id = derived.version_id
), fresh AS (
    SELECT count(DISTINCT alive.raw_capture_id) AS raws FROM derived JOIN alive ON alive.id = derived.version_id
    WHERE NOT EXISTS (SELECT FROM memory.version other
                      JOIN memory.derivation o ON o.version_id = other.id AND o.generation_id = $2
                      WHERE other.tenant_id = $1 AND other.raw_capture_id = alive.raw_capture_id)
), counted AS (
    UPDATE memory.transform_run
    SET version_count = version_count + (SELECT count(*) FROM derived),
        chunk_count = chunk_count + (SELECT coalesce(sum(chunk_count), 0) FROM derived),
        raw_count = raw_count + (SELECT raws FROM fresh)
    WHERE tenant_id = $1 AND id = $2
)
SELECT count(*) AS versions, coalesce(sum(chunk_count), 0) AS chunks FROM derived
"""


async def write(
    conn: Connection, tenant_id: str, generation_id: str, derived: Sequence[DerivedVersion], embed_state: EmbedState
) -> Written:
    """Write what was derived of versions that are still there, not forgotten and not derived already, and count it.

    The documents' locks are held, so that a forget comes before (and is seen here) or after (and finds these rows).
    """
    rows = [(each.version_id, ordinal, chunk) for each in derived for ordinal, chunk in enumerate(each.chunks)]
    row = await conn.fetchrow(
        _WRITE,
        tenant_id,
        generation_id,
        [each.version_id for each in derived],
        [len(each.chunks) for each in derived],
        embed_state.value,
        [chunk.id for _, _, chunk in rows],
        [version_id for version_id, _, _ in rows],
        [ordinal for _, ordinal, _ in rows],
        [chunk.text for _, _, chunk in rows],
        [chunk.context for _, _, chunk in rows],
        [chunk.grams for _, _, chunk in rows],
        [chunk.span_start for _, _, chunk in rows],
        [chunk.span_end for _, _, chunk in rows],
        [chunk.token_count for _, _, chunk in rows],
        [chunk.role for _, _, chunk in rows],
    )
    assert row is not None  # noqa: S101 - an aggregate always answers one row
    return Written(row["versions"], int(row["chunks"]))


async def record_failures(conn: Connection, tenant_id: str, generation_id: str, reasons: Mapping[str, str]) -> None:
    """Versions that would not derive, by id, with a sentence without content; forgotten ones are nobody's failure."""
    await conn.execute(
        """
        INSERT INTO memory.transform_failure AS f (run_id, tenant_id, version_id, error)
        SELECT $2, $1, v.id, given.reason FROM unnest($3::text[], $4::text[]) AS given (id, reason)
        JOIN memory.version v ON v.tenant_id = $1 AND v.id = given.id AND v.status <> 'tombstoned'
        ON CONFLICT (run_id, version_id) DO UPDATE
        SET error = excluded.error, attempts = f.attempts + 1, updated_at = clock_timestamp()
        """,
        tenant_id,
        generation_id,
        list(reasons.keys()),
        list(reasons.values()),
    )
    await _count_failures(conn, tenant_id, generation_id)


async def settle_embeds(conn: Connection, tenant_id: str, generation_id: str, version_ids: Collection[str]) -> int:
    """Take down which of these versions would not embed, and forget the failures of those that did; how many failed."""
    rows = await conn.fetch(
        """
        WITH healed AS (
            DELETE FROM memory.transform_failure f USING memory.derivation d
            WHERE f.run_id = $2 AND f.tenant_id = $1 AND f.version_id = ANY ($3::text[])
              AND d.version_id = f.version_id AND d.generation_id = $2 AND d.embed_state = 'embedded'
            RETURNING f.version_id
        ), failed AS (
            INSERT INTO memory.transform_failure AS f (run_id, tenant_id, version_id, error, attempts)
            SELECT $2, $1, d.version_id, coalesce(d.last_error, 'The text would not embed.'), d.attempts
            FROM memory.derivation d
            JOIN memory.version v ON v.id = d.version_id AND v.status <> 'tombstoned'
            WHERE d.tenant_id = $1 AND d.generation_id = $2 AND d.version_id = ANY ($3::text[])
              AND d.embed_state = 'failed'
            ON CONFLICT (run_id, version_id) DO UPDATE
            SET error = excluded.error, attempts = excluded.attempts, updated_at = clock_timestamp()
            RETURNING f.version_id
        )
        SELECT version_id, true AS failed FROM failed UNION ALL SELECT version_id, false FROM healed
        """,
        tenant_id,
        generation_id,
        list(version_ids),
    )
    if rows:
        await _count_failures(conn, tenant_id, generation_id)
    return sum(row["failed"] for row in rows)


async def _count_failures(conn: Connection, tenant_id: str, generation_id: str) -> None:
    await conn.execute(
        """
        UPDATE memory.transform_run SET failed_count = (
            SELECT count(*) FROM memory.transform_failure f
            JOIN memory.version v ON v.id = f.version_id AND v.status <> 'tombstoned' WHERE f.run_id = $2
        ) WHERE tenant_id = $1 AND id = $2
        """,
        tenant_id,
        generation_id,
    )
