"""How much waits, over all tenants: each question bounded, so that it stays cheap when the answer is bad."""

from dataclasses import dataclass

from memory_plane.store.database import Connection

COUNTED = 100_000

_WAITING = """
SELECT count(*) AS number, extract(epoch FROM clock_timestamp() - min(updated_at)) AS oldest
FROM (SELECT updated_at FROM memory.{table} WHERE {state} = 'pending' ORDER BY updated_at LIMIT $1) AS waiting
"""
_EMBEDS = _WAITING.format(table="derivation", state="embed_state")
_PROCESSES = _WAITING.format(table="process_request", state="state")

_FEED_LAG = """
SELECT coalesce(max(counter.position - consumer.position), 0)
FROM memory.consumer_cursor consumer JOIN memory.tenant_counter counter USING (tenant_id)
"""
_CUTOVER_LAG = """
SELECT coalesce(max(counter.position - generation.caught_up_to), 0)
FROM memory.generation generation JOIN memory.tenant_counter counter USING (tenant_id)
WHERE generation.state IN ('building', 'staged')
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Counted to COUNTED; `oldest_seconds` is 0 when nothing waits."""

    number: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """Lags are in positions of the feed, of whoever is furthest behind."""

    embeds: Waiting
    processes: Waiting
    feed_lag: int
    cutover_lag: int


async def backlog(conn: Connection) -> Backlog:
    return Backlog(
        embeds=await _waiting(conn, _EMBEDS),
        processes=await _waiting(conn, _PROCESSES),
        feed_lag=await conn.fetchval(_FEED_LAG),
        cutover_lag=await conn.fetchval(_CUTOVER_LAG),
    )


async def _waiting(conn: Connection, statement: str) -> Waiting:
    row = await conn.fetchrow(statement, COUNTED)
    assert row is not None  # noqa: S101 - an aggregate always answers one row
    return Waiting(row["number"], float(row["oldest"] or 0.0))
