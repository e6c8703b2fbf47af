"""Where each consumer of a tenant's feed stands. A cursor moves by compare-and-set, so that two never both move it."""

from memory_plane.store.database import Connection


async def position(conn: Connection, tenant_id: str, consumer: str) -> int:
    """The position up to which the consumer is done; 0 for one that has not begun."""
    found: int | None = await conn.fetchval(
        "SELECT position FROM memory.consumer_cursor WHERE tenant_id = $1 AND consumer = $2", tenant_id, consumer
    )
    return found or 0


async def hold(conn: Connection, tenant_id: str, consumer: str, expected: int) -> bool:
    """Lock the cursor until the end of the transaction; whether it stands where expected. Taken before all other
    locks, it orders the transactions of one consumer."""
    await conn.execute(
        """
        INSERT INTO memory.consumer_cursor (tenant_id, consumer, position) VALUES ($1, $2, 0)
        ON CONFLICT (tenant_id, consumer) DO NOTHING
        """,
        tenant_id,
        consumer,
    )
    found: int = await conn.fetchval(
        "SELECT position FROM memory.consumer_cursor WHERE tenant_id = $1 AND consumer = $2 FOR UPDATE",
        tenant_id,
        consumer,
    )
    return found == expected


async def advance(conn: Connection, tenant_id: str, consumer: str, expected: int, to: int) -> bool:
    """Move the cursor from `expected` to `to`; False, and nothing is changed, when it stands elsewhere."""
    status: str = await conn.execute(
        """
        INSERT INTO memory.consumer_cursor AS c (tenant_id, consumer, position)
        SELECT $1, $2, $4 WHERE $3 = 0 OR EXISTS (
            SELECT FROM memory.consumer_cursor WHERE tenant_id = $1 AND consumer = $2
        )
        ON CONFLICT (tenant_id, consumer) DO UPDATE
        SET position = excluded.position, updated_at = clock_timestamp() WHERE c.position = $3
        """,
        tenant_id,
        consumer,
        expected,
        to,
    )
    return status == "INSERT 0 1"
