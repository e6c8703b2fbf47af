"""What followers must learn, at positions whose order is the order of commits."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_plane.contracts.enums import FeedEventKind
from memory_plane.store.database import SAME, Connection


@dataclass(frozen=True, slots=True)
class Event:
    kind: FeedEventKind
    document_id: str
    version_id: str | None = None


async def append_events(conn: Connection, tenant_id: str, events: Sequence[Event]) -> list[int]:
    """Write the events at the tenant's next positions, in order, and give each captured version its own; the positions.

    To be the last statement of its transaction: the counter's row stays locked from here to the commit, which is
    what makes commit order position order, and what the tenant's other writers wait for.
    """
    if not events:
        return []
    last: int = await conn.fetchval(
        f"""
        WITH counter AS (
            INSERT INTO memory.tenant_counter AS c (tenant_id, position) VALUES ($1, cardinality($2::text[]))
            ON CONFLICT (tenant_id) DO UPDATE SET position = c.position + excluded.position
            RETURNING position
        ), event AS (
            SELECT counter.position - cardinality($2::text[]) + e.n AS position, e.kind, e.document_id, e.version_id
            FROM counter, unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY
                AS e (kind, document_id, version_id, n)
        ), written AS (
            INSERT INTO memory.feed_event (tenant_id, position, kind, document_id, version_id, at)
            SELECT $1, position, kind, document_id, version_id, clock_timestamp() FROM event
        ), positioned AS (
            UPDATE memory.version v SET feed_position = event.position
            FROM event WHERE event.kind = 'captured' AND v.tenant_id {SAME} $1 AND v.id = event.version_id
        )
        SELECT position FROM counter
        """,  # noqa: S608 - built from constants
        tenant_id,
        [event.kind.value for event in events],
        [event.document_id for event in events],
        [event.version_id for event in events],
    )
    return list(range(last - len(events) + 1, last + 1))
