"""The flip of the pointer: two generations change places, and the run that it was done for writes down what it took
down. All under the tenant's exclusive cutover lock."""

from memory_plane.contracts.enums import GenerationState
from memory_plane.store.database import Connection
from memory_plane.store.generations import GenerationRow


async def flip(
    conn: Connection, tenant_id: str, *, source: GenerationRow, source_becomes: GenerationState, target: str, head: int
) -> None:
    """The source goes down first: an index lets one generation a tenant be live. Both have everything up to `head`."""
    await conn.execute(
        """
        UPDATE memory.generation SET state = $3, state_at = clock_timestamp(), caught_up_to = $4
        WHERE tenant_id = $1 AND id = $2 AND state = 'live'
        """,
        tenant_id,
        source.id,
        source_becomes.value,
        head,
    )
    await conn.execute(
        """
        UPDATE memory.generation SET state = 'live', state_at = clock_timestamp(), caught_up_to = $3
        WHERE tenant_id = $1 AND id = $2 AND state IN ('staged', 'archived')
        """,
        tenant_id,
        target,
        head,
    )


async def promoted(conn: Connection, tenant_id: str, run_id: str, archived: GenerationRow) -> None:
    """The run's generation has taken over from this one; nothing to write down for one that no run made."""
    await conn.execute(
        """
        UPDATE memory.transform_run
        SET archived_live_generation = $3, archived_live_model_key = $4, promoted_at = clock_timestamp()
        WHERE tenant_id = $1 AND id = $2
        """,
        tenant_id,
        run_id,
        archived.id,
        archived.model_key,
    )


async def demoted(conn: Connection, tenant_id: str, run_id: str) -> None:
    """What the run's generation took down serves again."""
    await conn.execute(
        """
        UPDATE memory.transform_run
        SET archived_live_generation = NULL, archived_live_model_key = NULL, promoted_at = NULL
        WHERE tenant_id = $1 AND id = $2
        """,
        tenant_id,
        run_id,
    )


async def limit_waits(conn: Connection, lock_ms: int, statement_ms: int) -> None:
    """From here to the transaction's end, wait for no lock and run no statement longer than this."""
    await conn.execute(
        "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)",
        str(lock_ms),
        str(statement_ms),
    )
