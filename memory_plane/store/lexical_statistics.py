"""How common each term is in a generation: counted in batches, kept by hash, never exact to the last add.

Ranking needs frequencies within some percent, so nothing is counted in a capture's transaction. A search that finds
the statistics behind has them brought up to date in the background; a generation that was never counted is counted
for the terms of the query alone, bounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_plane.core.lexical_query import Term, quoted
from memory_plane.store.database import Connection, Pool, transaction

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
    await conn.execute(
        """
        INSERT INTO memory.lexical_corpus (tenant_id, generation_id, chunk_count, total_length)
        VALUES ($1, $2, 0, 0) ON CONFLICT DO NOTHING
        """,
        tenant_id,
        generation_id,
    )
    through = await conn.fetchval(
        """
        SELECT through_position FROM memory.lexical_corpus
        WHERE tenant_id = $1 AND generation_id = $2 FOR UPDATE SKIP LOCKED
        """,
        tenant_id,
        generation_id,
    )
    if through is None:
        return 0
    row = await conn.fetchrow(
        """
        WITH batch AS MATERIALIZED (
            SELECT id, feed_position FROM memory.version
            WHERE tenant_id = $1 AND feed_position > $3 AND feed_position <= coalesce(
                (SELECT caught_up_to FROM memory.generation WHERE tenant_id = $1 AND id = $2 AND state <> 'live'),
                9223372036854775807
            ) ORDER BY feed_position LIMIT $4
        ), chunk AS MATERIALIZED (
            SELECT c.token_count, c.text_fts FROM batch b
            JOIN memory.chunk c ON c.version_id = b.id AND c.generation_id = $2
        ), term AS (
            INSERT INTO memory.lexical_term AS t (tenant_id, generation_id, term_hash, chunk_count)
            SELECT $1, $2, hashtextextended(lexeme, 0), count(*)
            FROM chunk, unnest(tsvector_to_array(text_fts)) AS lexeme
            WHERE lexeme <> $5 GROUP BY 3
            ON CONFLICT (tenant_id, generation_id, term_hash)
            DO UPDATE SET chunk_count = t.chunk_count + excluded.chunk_count
        ), corpus AS (
            UPDATE memory.lexical_corpus k
            SET chunk_count = k.chunk_count + s.chunks, total_length = k.total_length + s.length,
                through_position = coalesce(s.last, k.through_position), refreshed_at = clock_timestamp()
            FROM (SELECT (SELECT count(*) FROM chunk) AS chunks,
                         (SELECT coalesce(sum(token_count), 0) FROM chunk) AS length,
                         (SELECT max(feed_position) FROM batch) AS last) s
            WHERE k.tenant_id = $1 AND k.generation_id = $2
        )
        SELECT count(*) AS versions FROM batch
        """,
        tenant_id,
        generation_id,
        through,
        BATCH_VERSIONS,
        marker(generation_id),
    )
    assert row is not None, "a count always makes a row"  # noqa: S101
    return int(row["versions"])
