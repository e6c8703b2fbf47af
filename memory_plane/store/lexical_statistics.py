"""How common each term is in a generation: counted in batches, kept by hash, never exact to the last add.

Ranking needs frequencies within some percent, so nothing is counted in a capture's transaction. A search that finds
the statistics behind has them brought up to date in the background; a generation that was never counted is counted
for the terms of the query alone, bounded. What is erased is taken out of them in the same transaction: a word that
only a forgotten text had must leave no trace, and mass deletion no skew.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memory_plane.core.lexical_query import Term, quoted
from memory_plane.store.database import SAME, Connection, Pool, transaction
from memory_plane.store.locks import share_counting, try_counting

BATCH_VERSIONS = 1_000
"""Versions counted in one transaction."""
STALE_SHARE = 0.1
STALE_LEAST = 64
"""A generation is counted anew when more than this share of it, and at least so many events, are not in."""
COUNT_AT_MOST = 4_000
"""Chunks looked at for one term of a generation without statistics; a term beyond it is common, however common."""
LENGTH_SAMPLE = 500


@dataclass(frozen=True, slots=True)
class CorpusSize:
    """Chunks of a generation, their average length in tokens, and the feed position they were counted up to."""

    chunk_count: int
    average_length: float
    through: int | None

    def stale(self, head: int) -> bool:
        """Whether it is time to count what came since, `head` being the tenant's last feed position."""
        behind = head - (self.through or 0)
        return behind > max(STALE_LEAST, STALE_SHARE * self.chunk_count)


def marker(generation_id: str) -> str:
    """The lexeme that every chunk of the generation has."""
    return f"g:{generation_id}"


async def count_now(
    conn: Connection, tenant_id: str, generation_id: str, terms: Sequence[Term]
) -> tuple[CorpusSize, tuple[Term, ...]]:
    """Size and counts straight from the index, for a generation that has no statistics yet."""
    row = await conn.fetchrow(
        """
        SELECT (SELECT count(*) FROM memory.chunk WHERE tenant_id = $1 AND generation_id = $2) AS chunk_count,
               (SELECT avg(token_count) FROM (
                    SELECT token_count FROM memory.chunk WHERE tenant_id = $1 AND generation_id = $2 LIMIT $5
                ) sample) AS average_length,
               ARRAY(SELECT (SELECT count(*) FROM (
                        SELECT FROM memory.chunk c WHERE c.text_fts @@ wanted.match::tsquery LIMIT $4
                     ) found)
                     FROM unnest($3::text[]) WITH ORDINALITY AS wanted (match, place) ORDER BY place) AS counts
        """,
        tenant_id,
        generation_id,
        [f"{quoted(marker(generation_id))} & {quoted(term.lexeme)}" for term in terms],
        COUNT_AT_MOST,
        LENGTH_SAMPLE,
    )
    assert row is not None, "subqueries alone always make a row"  # noqa: S101
    size = CorpusSize(row["chunk_count"], float(row["average_length"] or 1.0), None)
    return size, tuple(Term(term.lexeme, count) for term, count in zip(terms, row["counts"], strict=True))


async def refresh(pool: Pool, tenant_id: str, generation_id: str) -> int:
    """Count what was captured since the last time, batch by batch; the number of versions counted.

    Of a generation that is not live, as far as it has been caught up with. One at a time for a generation: where
    another is at it, nothing is done.
    """
    counted = 0
    while True:
        async with transaction(pool) as conn:
            batch = await _refresh_batch(conn, tenant_id, generation_id)
        counted += batch
        if batch < BATCH_VERSIONS:
            return counted


async def _refresh_batch(conn: Connection, tenant_id: str, generation_id: str) -> int:
    if not await try_counting(conn, tenant_id, generation_id):
        return 0
    await conn.execute(
        """
        INSERT INTO memory.lexical_corpus (tenant_id, generation_id, chunk_count, total_length)
        VALUES ($1, $2, 0, 0) ON CONFLICT DO NOTHING
        """,
        tenant_id,
        generation_id,
    )
    row = await conn.fetchrow(
        """
        WITH known AS MATERIALIZED (
            SELECT k.through_position, coalesce(
                (SELECT caught_up_to FROM memory.generation WHERE tenant_id = $1 AND id = $2 AND state <> 'live'),
                (SELECT position FROM memory.tenant_counter WHERE tenant_id = $1), 0
            ) AS until
            FROM memory.lexical_corpus k WHERE k.tenant_id = $1 AND k.generation_id = $2
        ), batch AS MATERIALIZED (
            SELECT v.id, v.feed_position, v.status FROM known, memory.version v
            WHERE v.tenant_id = $1 AND v.feed_position > known.through_position AND v.feed_position <= known.until
            ORDER BY v.feed_position LIMIT $3
        ), chunk AS MATERIALIZED (
            SELECT c.token_count, c.text_fts FROM batch b
            JOIN memory.chunk c ON c.version_id = b.id AND c.generation_id = $2 AND b.status <> 'tombstoned'
        ), term AS (
            INSERT INTO memory.lexical_term AS t (tenant_id, generation_id, term_hash, chunk_count)
            SELECT $1, $2, hashtextextended(lexeme, 0), count(*)
            FROM chunk, unnest(tsvector_to_array(text_fts)) AS lexeme
            WHERE lexeme <> $4 GROUP BY 3
            ON CONFLICT (tenant_id, generation_id, term_hash)
            DO UPDATE SET chunk_count = t.chunk_count + excluded.chunk_count
        ), corpus AS (
            UPDATE memory.lexical_corpus k
            SET chunk_count = k.chunk_count + s.chunks, total_length = k.total_length + s.length,
                through_position = greatest(k.through_position, s.last), refreshed_at = clock_timestamp()
            FROM (SELECT (SELECT count(*) FROM chunk) AS chunks,
                         (SELECT coalesce(sum(token_count), 0) FROM chunk) AS length,
                         -- The end of the feed is no version's where it was told of erasures alone.
                         CASE WHEN (SELECT count(*) FROM batch) < $3 THEN (SELECT until FROM known)
                              ELSE (SELECT max(feed_position) FROM batch) END AS last) s
            WHERE k.tenant_id = $1 AND k.generation_id = $2
        )
        SELECT count(*) AS versions FROM batch
        """,
        tenant_id,
        generation_id,
        BATCH_VERSIONS,
        marker(generation_id),
    )
    assert row is not None, "a count always makes a row"  # noqa: S101
    return int(row["versions"])


async def uncount(conn: Connection, tenant_id: str, version_ids: Collection[str]) -> None:
    """Take what these versions say out of the statistics of every generation that has counted them; call it before
    their chunks are erased."""
    ids = list(version_ids)
    rows = await conn.fetch(
        f"""
        SELECT k.generation_id FROM memory.lexical_corpus k WHERE k.tenant_id = $1 AND EXISTS (
            SELECT FROM memory.chunk c
            WHERE c.tenant_id {SAME} $1 AND c.version_id = ANY ($2::text[]) AND c.generation_id = k.generation_id
        ) ORDER BY 1
        """,  # noqa: S608 - a constant
        tenant_id,
        ids,
    )
    for (generation_id,) in rows:
        await share_counting(conn, tenant_id, generation_id)
        await _uncount(conn, tenant_id, generation_id, ids)


async def _uncount(conn: Connection, tenant_id: str, generation_id: str, version_ids: list[str]) -> None:
    """Terms in the order of their hashes, then the corpus: as everyone else who erases."""
    counted = f"""
        SELECT c.text_fts, c.token_count FROM memory.lexical_corpus k
        JOIN memory.version v ON v.tenant_id {SAME} $1 AND v.id = ANY ($3::text[])
            AND v.feed_position <= k.through_position
        JOIN memory.chunk c ON c.tenant_id {SAME} $1 AND c.version_id = v.id AND c.generation_id = k.generation_id
            AND c.token_count > 0  -- of what was erased already it is 0
        WHERE k.tenant_id = $1 AND k.generation_id = $2
    """  # noqa: S608 - a constant
    await conn.execute(
        f"""
        WITH counted AS MATERIALIZED ({counted}), gone AS MATERIALIZED (
            SELECT hashtextextended(lexeme, 0) AS term_hash, count(*) AS chunks
            FROM counted, unnest(tsvector_to_array(text_fts)) AS lexeme GROUP BY 1
        ), held AS MATERIALIZED (
            SELECT t.term_hash, t.chunk_count > g.chunks AS stays, g.chunks
            FROM gone g JOIN memory.lexical_term t
                ON t.tenant_id = $1 AND t.generation_id = $2 AND t.term_hash = g.term_hash
            ORDER BY t.term_hash FOR UPDATE OF t
        ), removed AS (
            DELETE FROM memory.lexical_term t USING held
            WHERE t.tenant_id = $1 AND t.generation_id = $2 AND t.term_hash = held.term_hash AND NOT held.stays
        )
        UPDATE memory.lexical_term t SET chunk_count = t.chunk_count - held.chunks
        FROM held WHERE t.tenant_id = $1 AND t.generation_id = $2 AND t.term_hash = held.term_hash AND held.stays
        """,  # noqa: S608 - made of constants and placeholders
        tenant_id,
        generation_id,
        version_ids,
    )
    await conn.execute(
        f"""
        UPDATE memory.lexical_corpus k
        SET chunk_count = greatest(0, k.chunk_count - s.chunks), total_length = greatest(0, k.total_length - s.length)
        FROM (SELECT count(*) AS chunks, coalesce(sum(token_count), 0) AS length FROM ({counted}) counted) s
        WHERE k.tenant_id = $1 AND k.generation_id = $2
        """,  # noqa: S608 - made of constants and placeholders
        tenant_id,
        generation_id,
        version_ids,
    )
