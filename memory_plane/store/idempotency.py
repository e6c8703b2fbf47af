"""Idempotency keys: what was answered to a key, kept for a day. A row holds ids and a keyed hash, never content."""

from dataclasses import dataclass
from typing import Literal

from memory_plane.store.database import Connection

KEPT_HOURS = 24


@dataclass(frozen=True, slots=True)
class Answered:
    body_hash: str
    document_id: str
    version_id: str
    status: Literal["captured", "noop"]
    grants_materialized: bool | None


@dataclass(frozen=True, slots=True)
class KeyedBody:
    """A key of one principal, and the hash of the body that it came with."""

    principal_id: str
    key: str
    body_hash: str


async def hash_key(conn: Connection) -> bytes:
    """The installation's secret that keys the hashes of bodies."""
    value: str = await conn.fetchval("SELECT hash_key FROM memory.installation")
    return value.encode()


async def answered(conn: Connection, tenant_id: str, principal_id: str, key: str) -> Answered | None:
    """What this key was answered, unless that is longer ago than KEPT_HOURS; to be asked under the key's lock."""
    row = await conn.fetchrow(
        """
        SELECT body_hash, document_id, version_id, status, grants_materialized FROM memory.idempotency_key
        WHERE tenant_id = $1 AND principal_id = $2 AND key = $3 AND expires_at > clock_timestamp()
        """,
        tenant_id,
        principal_id,
        key,
    )
    return None if row is None else Answered(**dict(row))


def remembering(tenant: str, document: str, version: str, *, first: int) -> str:
    """The statement that remembers an answer, for the capture's own transaction; an expired row of the key is replaced.

    `tenant`, `document` and `version` are its placeholders for these; `arguments` go to those from number `first` on.
    It writes nothing where there is no key.
    """
    principal, key, body_hash, status, materialized, hours = (f"${first + n}" for n in range(6))
    return f"""
    INSERT INTO memory.idempotency_key
        (tenant_id, principal_id, key, document_id, version_id, body_hash, status, grants_materialized,
         created_at, expires_at)
    SELECT {tenant}, {principal}, {key}, {document}, {version}, {body_hash}, {status}, {materialized}::boolean,
           clock_timestamp(), clock_timestamp() + make_interval(hours => {hours})
    WHERE {key}::text IS NOT NULL
    ON CONFLICT (tenant_id, principal_id, key) DO UPDATE SET
        body_hash = excluded.body_hash, document_id = excluded.document_id, version_id = excluded.version_id,
        status = excluded.status, grants_materialized = excluded.grants_materialized,
        created_at = excluded.created_at, expires_at = excluded.expires_at
    """


def arguments(keyed: KeyedBody | None, status: str, grants_materialized: bool | None) -> tuple[object, ...]:
    """The values for `remembering`, in its order."""
    if keyed is None:
        return (None, None, None, status, grants_materialized, KEPT_HOURS)
    return (keyed.principal_id, keyed.key, keyed.body_hash, status, grants_materialized, KEPT_HOURS)


_REMEMBER = remembering("$1", "$2", "$3", first=4)


async def remember(
    conn: Connection,
    tenant_id: str,
    keyed: KeyedBody,
    *,
    document_id: str,
    version_id: str,
    status: str,
    grants_materialized: bool | None,
) -> None:
    """`remembering` as a statement of its own."""
    await conn.execute(_REMEMBER, tenant_id, document_id, version_id, *arguments(keyed, status, grants_materialized))


async def materialized(conn: Connection, tenant_id: str, principal_id: str, key: str, done: bool) -> None:
    """Whether the share rules of a remembered add reached a grant store that is not ours, known after its commit."""
    await conn.execute(
        """
        UPDATE memory.idempotency_key SET grants_materialized = $4
        WHERE tenant_id = $1 AND principal_id = $2 AND key = $3
        """,
        tenant_id,
        principal_id,
        key,
        done,
    )


async def expire(conn: Connection, limit: int) -> int:
    """Delete up to `limit` keys past their day; how many."""
    status = await conn.execute(
        """
        DELETE FROM memory.idempotency_key WHERE (tenant_id, principal_id, key) IN (
            SELECT tenant_id, principal_id, key FROM memory.idempotency_key
            WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        limit,
    )
    return int(status.removeprefix("DELETE "))
