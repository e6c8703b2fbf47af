"""The only functions that take locks on purpose. One global order, so that no two transactions wait for each other:

idempotency key → tenant cutover → documents by id → statistics by generation and term → entities by (kind, identifier)
→ grants → tenant counter.
Whoever needs more than it holds lets go and starts over in order. All locks are the transaction's.
"""

from collections.abc import Collection
from hashlib import blake2b
from itertools import groupby

import asyncpg

from memory_plane.contracts.errors import Conflict
from memory_plane.store.database import SAME, Connection

KEY_WAIT_MS = 3_000
"""How long a second request with the same idempotency key waits for the first."""
CUT_WAIT_MS = 2_000
"""How long a cut waits for the captures in flight: meanwhile new ones queue behind it."""


def _advisory(name: str, *parts: str) -> int:
    joined = "\x00".join((name, *parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(joined, digest_size=8).digest(), "big", signed=True)


async def lock_key(conn: Connection, tenant_id: str, principal_id: str, key: str) -> None:
    """Wait for whoever runs under this idempotency key; Conflict when it takes more than KEY_WAIT_MS."""
    try:
        # A target list is evaluated from left to right: the bound holds for this lock alone.
        await conn.execute(
            """
            SELECT set_config('lock_timeout', $2, true), pg_advisory_xact_lock($1),
                   set_config('lock_timeout', '0', true)
            """,
            _advisory("key", tenant_id, principal_id, key),
            str(KEY_WAIT_MS),
        )
    except asyncpg.LockNotAvailableError:
        raise _key_in_use() from None


async def enter_capture(conn: Connection, tenant_id: str, principal_id: str, key: str | None) -> None:
    """The locks a capture begins with, in one round trip: `lock_key`, where there is a key, then `share_cutover`."""
    if key is None:
        await share_cutover(conn, tenant_id)
        return
    try:
        await conn.execute(
            """
            SELECT set_config('lock_timeout', $2, true), pg_advisory_xact_lock($1),
                   set_config('lock_timeout', '0', true), pg_advisory_xact_lock_shared($3)
            """,
            _advisory("key", tenant_id, principal_id, key),
            str(KEY_WAIT_MS),
            _advisory("cutover", tenant_id),
        )
    except asyncpg.LockNotAvailableError:
        raise _key_in_use() from None


async def share_cutover(conn: Connection, tenant_id: str) -> None:
    """Keep the tenant's live generation where it is; read it in a later statement, which sees what is true then."""
    await conn.execute("SELECT pg_advisory_xact_lock_shared($1)", _advisory("cutover", tenant_id))


async def own_cutover(conn: Connection, tenant_id: str, *, wait_ms: int = CUT_WAIT_MS) -> None:
    """Keep all captures of the tenant out. Raises LockNotAvailableError, which is retried, after `wait_ms`."""
    await conn.execute(
        """
        SELECT set_config('lock_timeout', $2, true), pg_advisory_xact_lock($1), set_config('lock_timeout', '0', true)
        """,
        _advisory("cutover", tenant_id),
        str(wait_ms),
    )


async def lock_documents(conn: Connection, tenant_id: str, document_ids: Collection[str]) -> set[str]:
    """Lock these documents for change, in order of id; the ids that (still) exist."""
    return await _lock_rows(conn, tenant_id, document_ids, "FOR UPDATE")


async def share_documents(conn: Connection, tenant_id: str, document_ids: Collection[str]) -> set[str]:
    """Keep these documents as they are, in order of id; the ids that (still) exist."""
    return await _lock_rows(conn, tenant_id, document_ids, "FOR SHARE")


async def lock_with_sources(
    conn: Connection, tenant_id: str, document_id: str | None, source_ids: Collection[str]
) -> set[str]:
    """Lock one document for change and others against change, all in one order; the ids that exist."""
    return await lock_among(conn, tenant_id, {document_id} if document_id is not None else set(), source_ids)


async def lock_among(conn: Connection, tenant_id: str, own: Collection[str], source_ids: Collection[str]) -> set[str]:
    """Lock the `own` documents for change and the others against change, all in one order; the ids that exist."""
    own = set(own)
    found: set[str] = set()
    for is_own, ids in groupby(sorted(own | set(source_ids)), key=lambda wanted: wanted in own):
        take = lock_documents if is_own else share_documents
        found |= await take(conn, tenant_id, list(ids))
    return found


async def try_counting(conn: Connection, tenant_id: str, generation_id: str) -> bool:
    """Be the one who adds to the statistics of this generation; False where somebody is, or takes from them."""
    lock = _advisory("statistics", tenant_id, generation_id)
    taken: bool = await conn.fetchval("SELECT pg_try_advisory_xact_lock($1)", lock)
    return taken


async def share_counting(conn: Connection, tenant_id: str, generation_id: str) -> None:
    """Wait for who adds to the statistics, a batch at most, and keep them from changing but by erasures."""
    await conn.execute("SELECT pg_advisory_xact_lock_shared($1)", _advisory("statistics", tenant_id, generation_id))


def _key_in_use() -> Conflict:
    return Conflict(
        "Another request with this Idempotency-Key is still running; ask again for its answer.",
        code="idempotency_key_in_use",
        retry_after=1,
    )


async def _lock_rows(conn: Connection, tenant_id: str, document_ids: Collection[str], strength: str) -> set[str]:
    rows = await conn.fetch(
        f"""
        SELECT id FROM memory.document WHERE tenant_id {SAME} $1 AND id = ANY ($2::text[]) ORDER BY id {strength}
        """,  # noqa: S608 - built from constants
        tenant_id,
        list(document_ids),
    )
    return {row["id"] for row in rows}
