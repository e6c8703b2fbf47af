"""Deleting what was derived under a retired generation, in batches that keep nobody waiting."""

from memory_plane.store.database import Connection


async def delete_chunks(conn: Connection, tenant_id: str, generation_id: str, limit: int) -> int:
    """Delete at most so many chunks, and their vectors with them; the number deleted."""
    status: str = await conn.execute(
        """
        DELETE FROM memory.chunk WHERE id = ANY (ARRAY(
            SELECT id FROM memory.chunk WHERE tenant_id = $1 AND generation_id = $2 LIMIT $3
        ))
        """,
        tenant_id,
        generation_id,
        limit,
    )
    return int(status.rpartition(" ")[2])


async def delete_derivations(conn: Connection, tenant_id: str, generation_id: str, limit: int) -> int:
    status: str = await conn.execute(
        """
        DELETE FROM memory.derivation WHERE generation_id = $2 AND version_id = ANY (ARRAY(
            SELECT version_id FROM memory.derivation WHERE tenant_id = $1 AND generation_id = $2 LIMIT $3
        ))
        """,
        tenant_id,
        generation_id,
        limit,
    )
    return int(status.rpartition(" ")[2])


async def delete_statistics(conn: Connection, tenant_id: str, generation_id: str, limit: int) -> int:
    status: str = await conn.execute(
        """
        DELETE FROM memory.lexical_term WHERE tenant_id = $1 AND generation_id = $2 AND term_hash = ANY (ARRAY(
            SELECT term_hash FROM memory.lexical_term WHERE tenant_id = $1 AND generation_id = $2 LIMIT $3
        ))
        """,
        tenant_id,
        generation_id,
        limit,
    )
    return int(status.rpartition(" ")[2])


async def delete_rest(conn: Connection, tenant_id: str, generation_id: str) -> None:
    """The single rows: size of its statistics, and its failures, which nobody can drive again."""
    await conn.execute(
        "DELETE FROM memory.lexical_corpus WHERE tenant_id = $1 AND generation_id = $2", tenant_id, generation_id
    )
    await conn.execute(
        "DELETE FROM memory.transform_failure WHERE tenant_id = $1 AND run_id = $2", tenant_id, generation_id
    )


async def retired_with_rows(conn: Connection, limit: int) -> list[tuple[str, str]]:
    """Retired generations of which something is left, each with its tenant."""
    rows = await conn.fetch(
        """
        SELECT g.tenant_id, g.id FROM memory.generation g
        WHERE g.state = 'retired' AND (
            EXISTS (SELECT FROM memory.chunk c WHERE c.tenant_id = g.tenant_id AND c.generation_id = g.id)
            OR EXISTS (SELECT FROM memory.derivation d WHERE d.generation_id = g.id)
            OR EXISTS (SELECT FROM memory.lexical_corpus k WHERE k.tenant_id = g.tenant_id AND k.generation_id = g.id)
        )
        ORDER BY g.state_at LIMIT $1
        """,
        limit,
    )
    return [(row["tenant_id"], row["id"]) for row in rows]
