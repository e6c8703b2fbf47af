"""Bearer tokens of the facade: opaque, stored as a hash alone, with an expiry, the time of last use, and an end."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import compare_digest

import asyncpg

from memory_plane.contracts.errors import Invalid, NotFound
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.caller import identity_problem
from memory_plane.core.text import is_storable
from memory_plane.store.database import Connection

PREFIX = "mpt_"
LAST_USED_EVERY = timedelta(minutes=1)
"""How exact `last_used_at` is: a token in use is not a write a request."""
MAX_LABEL_CHARS = 200

_COLUMNS = "id, tenant_id, principal_id, label, created_at, expires_at, last_used_at, revoked_at"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token; not the token itself, which only `issue` tells, once."""

    id: str
    tenant_id: str
    principal_id: str
    label: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


def token_hash(token: str) -> str:
    """A token has 256 random bits, so a plain hash keeps it; nobody can guess towards one."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


async def issue(
    conn: Connection,
    tenant_id: str,
    principal_id: str,
    *,
    label: str | None = None,
    expires_at: datetime | None = None,
) -> tuple[str, Token]:
    """A new token for this principal, and what is known of it. Raises Invalid for an identity that cannot be seated."""
    for problem in (identity_problem("tenant", tenant_id), identity_problem("principal", principal_id)):
        if problem is not None:
            raise Invalid(f"No token was issued: {problem}.")
    if label is not None and (len(label) > MAX_LABEL_CHARS or not is_storable(label)):
        raise Invalid(f"The label must be plain text of at most {MAX_LABEL_CHARS} characters.")
    if expires_at is not None and expires_at <= datetime.now(UTC):
        raise Invalid("The expiry lies in the past; give a time to come, such as 30d.")
    token = PREFIX + secrets.token_urlsafe(32)
    row = await conn.fetchrow(
        f"""
        INSERT INTO memory.api_token (id, token_hash, tenant_id, principal_id, label, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6) RETURNING {_COLUMNS}
        """,  # noqa: S608 - a constant
        new_id(IdKind.TOKEN),
        token_hash(token),
        tenant_id,
        principal_id,
        label,
        expires_at,
    )
    assert row is not None, "an insert returns its row"  # noqa: S101
    return token, _token(row)


async def resolve(conn: Connection, token: str) -> Token | None:
    """The token's row while it is in force, None for any other; notes the use, at most once in LAST_USED_EVERY."""
    wanted = token_hash(token)
    row = await conn.fetchrow(
        f"""
        SELECT token_hash, {_COLUMNS} FROM memory.api_token
        WHERE token_hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
        """,  # noqa: S608 - a constant
        wanted,
    )
    if row is None or not compare_digest(row["token_hash"], wanted):
        return None
    now = datetime.now(UTC)
    if row["last_used_at"] is None or now - row["last_used_at"] >= LAST_USED_EVERY:
        await conn.execute("UPDATE memory.api_token SET last_used_at = $2 WHERE id = $1", row["id"], now)
    return _token(row)


async def list_tokens(conn: Connection, tenant_id: str, principal_id: str | None = None) -> list[Token]:
    """Oldest first, those that are over included."""
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM memory.api_token
        WHERE tenant_id = $1 AND ($2::text IS NULL OR principal_id = $2) ORDER BY created_at, id
        """,  # noqa: S608 - a constant
        tenant_id,
        principal_id,
    )
    return [_token(row) for row in rows]


async def revoke(conn: Connection, token_id: str) -> Token | None:
    """End the token now; None when there is none of this id. Revoking twice keeps the first time."""
    row = await conn.fetchrow(
        f"""
        UPDATE memory.api_token SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = $1
        RETURNING {_COLUMNS}
        """,  # noqa: S608 - a constant
        token_id,
    )
    return None if row is None else _token(row)


async def rotate(conn: Connection, token_id: str, overlap: timedelta) -> tuple[str, Token]:
    """A successor with the same principal, label and lifetime; the old one ends after `overlap`. Runs in the caller's
    transaction. Raises NotFound when the token is not in force."""
    old = await conn.fetchrow(
        """
        SELECT tenant_id, principal_id, label, expires_at - created_at AS lifetime FROM memory.api_token
        WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
        FOR UPDATE
        """,
        token_id,
    )
    if old is None:
        raise NotFound("There is no token of this id in force; see `memory token list`.")
    await conn.execute(
        "UPDATE memory.api_token SET expires_at = least(expires_at, clock_timestamp() + $2) WHERE id = $1",
        token_id,
        overlap,
    )
    expires_at = None if old["lifetime"] is None else datetime.now(UTC) + old["lifetime"]
    return await issue(conn, old["tenant_id"], old["principal_id"], label=old["label"], expires_at=expires_at)


def _token(row: asyncpg.Record) -> Token:
    return Token(
        id=row["id"],
        tenant_id=row["tenant_id"],
        principal_id=row["principal_id"],
        label=row["label"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        last_used_at=row["last_used_at"],
        revoked_at=row["revoked_at"],
    )
