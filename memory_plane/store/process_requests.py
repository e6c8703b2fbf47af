"""Which versions are still to be run through which processor: the process stage's durable to-do list."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from memory_plane.contracts.enums import ProcessState
from memory_plane.store.database import Connection

MAX_ATTEMPTS = 5
"""A processor that fails a version so often has it quarantined, visible and re-drivable."""


@dataclass(frozen=True, slots=True)
class ProcessRequest:
    """`attempts` is how many have begun."""

    version_id: str
    processor: str
    attempts: int


async def pending(
    conn: Connection, tenant_id: str, version_ids: Sequence[str], *, limit: int = 100
) -> list[ProcessRequest]:
    """What is still to be run of these versions and that nobody is running; nothing of a forgotten one."""
    rows = await conn.fetch(
        """
        SELECT p.version_id, p.processor, p.attempts FROM memory.process_request p
        JOIN memory.version v ON v.id = p.version_id AND v.status <> 'tombstoned'
        WHERE p.tenant_id = $1 AND p.version_id = ANY ($2::text[]) AND p.state = 'pending'
          AND (p.held_until IS NULL OR p.held_until <= clock_timestamp())
        ORDER BY p.version_id, p.processor LIMIT $3
        """,
        tenant_id,
        version_ids,
        limit,
    )
    return [ProcessRequest(row["version_id"], row["processor"], row["attempts"]) for row in rows]


async def begin(
    conn: Connection, tenant_id: str, requests: Sequence[ProcessRequest], hold: timedelta
) -> set[tuple[str, str]]:
    """Begin the attempt after `attempts` of each and hold it; those (version, processor) that are ours now.

    Said twice it begins nothing twice, and holds longer: so it also renews. An attempt counts from here, so that one
    which takes its worker down counts too.
    """
    rows = await conn.fetch(
        """
        UPDATE memory.process_request p
        SET attempts = given.attempts + 1, held_until = clock_timestamp() + $5::interval
        FROM unnest($2::text[], $3::text[], $4::int[]) AS given (version_id, processor, attempts)
        WHERE p.tenant_id = $1 AND p.version_id = given.version_id AND p.processor = given.processor
          AND p.state = 'pending'
          AND ((p.attempts = given.attempts AND (p.held_until IS NULL OR p.held_until <= clock_timestamp()))
               OR (p.attempts = given.attempts + 1 AND p.held_until IS NOT NULL))
        RETURNING p.version_id, p.processor
        """,
        tenant_id,
        [request.version_id for request in requests],
        [request.processor for request in requests],
        [request.attempts for request in requests],
        hold,
    )
    return {(row["version_id"], row["processor"]) for row in rows}


async def finish(
    conn: Connection,
    tenant_id: str,
    version_id: str,
    processor: str,
    state: ProcessState,
    *,
    claims: int = 0,
    reason: str | None = None,
) -> None:
    """Write down how an attempt ended. PENDING lets it go for another one, until MAX_ATTEMPTS have begun."""
    await conn.execute(
        """
        UPDATE memory.process_request
        SET state = CASE WHEN $4 = 'pending' AND attempts >= $7 THEN 'quarantined' ELSE $4 END,
            claims = claims + $5, last_error = $6, held_until = NULL, updated_at = clock_timestamp()
        WHERE tenant_id = $1 AND version_id = $2 AND processor = $3 AND state = 'pending'
        """,
        tenant_id,
        version_id,
        processor,
        state.value,
        claims,
        reason,
        MAX_ATTEMPTS,
    )
