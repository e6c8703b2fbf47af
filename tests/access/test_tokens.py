"""Opaque tokens: stored hashed, over when revoked or expired, and known to a process for seconds at most."""

from datetime import UTC, datetime, timedelta

import pytest
from starlette.requests import Request

from api.token_identity import TokenResolver, bearer_token
from memory_plane.contracts.errors import Invalid, NotFound
from memory_plane.core.caller import Caller
from memory_plane.store import tokens
from memory_plane.store.database import Pool, connection, transaction


def request(*authorization: str) -> Request:
    headers = [(b"authorization", value.encode("latin-1")) for value in authorization]
    return Request({"type": "http", "headers": headers})


async def issued(pool: Pool, **values: datetime | str) -> tuple[str, tokens.Token]:
    async with connection(pool) as conn:
        return await tokens.issue(conn, "t", "bob", **values)  # type: ignore[arg-type]


async def test_a_token_seats_its_principal_and_only_its_hash_is_stored(pool: Pool) -> None:
    secret, _ = await issued(pool, label="laptop")
    assert secret.startswith("mpt_") and len(secret) > 40
    resolver = TokenResolver(pool)
    assert await resolver(request(f"Bearer {secret}")) == Caller("t", "bob")
    assert await resolver(request(f"bearer   {secret}")) == Caller("t", "bob")
    async with connection(pool) as conn:
        row = await conn.fetchrow("SELECT * FROM memory.api_token")
    assert row is not None
    assert secret not in str(dict(row)) and secret.removeprefix("mpt_") not in str(dict(row))
    assert row["last_used_at"] is not None


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("Bearer",),
        ("Bearer ",),
        ("Basic Ym9iOg==",),
        ("Bearer mpt_unknown",),
        ("Bearer mpt_a b",),
        ("mpt_x",),
        ("Bearer mpt_" + "x" * 100_000,),
        ("Bearer mpt_\xff",),
        ("Bearer mpt_a", "Bearer mpt_b"),
    ],
)
async def test_anything_else_is_nobody(pool: Pool, headers: tuple[str, ...]) -> None:
    assert await TokenResolver(pool)(request(*headers)) is None


async def test_two_authorization_headers_are_nobody_even_if_both_are_good(pool: Pool) -> None:
    secret, _ = await issued(pool)
    assert bearer_token(request(f"Bearer {secret}", f"Bearer {secret}")) is None


async def test_inv_28_a_revoked_token_is_over_at_once_or_within_the_cache(pool: Pool) -> None:
    secret, token = await issued(pool)
    fresh, caching = TokenResolver(pool, cache_seconds=0), TokenResolver(pool, cache_seconds=3600)
    assert await fresh(request(f"Bearer {secret}")) and await caching(request(f"Bearer {secret}"))
    async with connection(pool) as conn:
        revoked = await tokens.revoke(conn, token.id)
        again = await tokens.revoke(conn, token.id)
    assert revoked is not None and again is not None and revoked.revoked_at == again.revoked_at
    assert await fresh(request(f"Bearer {secret}")) is None
    assert await caching(request(f"Bearer {secret}")), "the cache is what the stated seconds are for"
    assert await TokenResolver(pool)(request(f"Bearer {secret}")) is None


async def test_a_cached_token_still_expires_on_time(pool: Pool) -> None:
    secret, _ = await issued(pool, expires_at=datetime.now(UTC) + timedelta(hours=1))
    resolver = TokenResolver(pool, cache_seconds=3600)
    assert await resolver(request(f"Bearer {secret}"))
    key = tokens.token_hash(secret)
    good_until, known = resolver._known[key]
    expired = tokens.Token(
        **{name: getattr(known, name) for name in known.__slots__} | {"expires_at": datetime.now(UTC)}
    )
    resolver._known[key] = (good_until, expired)
    async with connection(pool) as conn:
        await conn.execute("UPDATE memory.api_token SET expires_at = clock_timestamp()")
    assert await resolver(request(f"Bearer {secret}")) is None


async def test_last_use_is_noted_once_a_minute(pool: Pool) -> None:
    secret, _ = await issued(pool)
    resolver = TokenResolver(pool, cache_seconds=0)
    await resolver(request(f"Bearer {secret}"))
    async with connection(pool) as conn:
        first = (await tokens.list_tokens(conn, "t"))[0].last_used_at
        await resolver(request(f"Bearer {secret}"))
        assert (await tokens.list_tokens(conn, "t"))[0].last_used_at == first
        await conn.execute("UPDATE memory.api_token SET last_used_at = last_used_at - interval '61 seconds'")
        await resolver(request(f"Bearer {secret}"))
        latest = (await tokens.list_tokens(conn, "t"))[0].last_used_at
    assert first is not None and latest is not None and latest >= first


async def test_rotation_keeps_principal_label_and_lifetime_and_ends_the_old_one(pool: Pool) -> None:
    secret, token = await issued(pool, label="ci", expires_at=datetime.now(UTC) + timedelta(days=30))
    async with transaction(pool) as conn:
        successor, new = await tokens.rotate(conn, token.id, timedelta(minutes=10))
    assert (new.tenant_id, new.principal_id, new.label) == ("t", "bob", "ci")
    assert new.expires_at is not None and new.expires_at > datetime.now(UTC) + timedelta(days=29)
    resolver = TokenResolver(pool, cache_seconds=0)
    assert await resolver(request(f"Bearer {secret}")) and await resolver(request(f"Bearer {successor}"))
    async with transaction(pool) as conn:
        old = next(row for row in await tokens.list_tokens(conn, "t") if row.id == token.id)
        assert old.expires_at is not None and old.expires_at < datetime.now(UTC) + timedelta(minutes=11)
        await tokens.rotate(conn, new.id, timedelta(0))
    assert await resolver(request(f"Bearer {successor}")) is None
    async with transaction(pool) as conn:
        with pytest.raises(NotFound):
            await tokens.rotate(conn, new.id, timedelta(0))


@pytest.mark.parametrize(
    ("tenant", "principal", "expires"),
    [
        ("", "bob", None),
        ("t", " ", None),
        ("t", "bob ", None),
        ("t", "*", None),
        ("t", "a\x00b", None),
        ("t", "e\u0301", None),
        ("x" * 201, "bob", None),
        ("t", "bob", datetime.now(UTC) - timedelta(seconds=1)),
    ],
)
async def test_a_token_for_nobody_is_not_issued(
    pool: Pool, tenant: str, principal: str, expires: datetime | None
) -> None:
    async with connection(pool) as conn:
        with pytest.raises(Invalid):
            await tokens.issue(conn, tenant, principal, expires_at=expires)
        assert await conn.fetchval("SELECT count(*) FROM memory.api_token") == 0
