"""Resolvers and seating: nobody is let in by default, nor by a malformed identity, nor into another's tenant."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.requests import HTTPConnection, Request

from api.identity import (
    GATEWAY_SECRET_HEADER,
    CallerResolver,
    GatewayResolver,
    IdentityNotConfigured,
    MalformedIdentity,
    resolver_from,
    seated,
)
from api.jwt_identity import JwtResolver
from memory_plane.contracts.errors import NotFound, Unauthenticated, Unavailable
from memory_plane.core.caller import Caller
from memory_plane.settings import Settings
from memory_plane.store.database import Pool
from tests.access.jwks import AUDIENCE, ISSUER, KeyServer, Provider, key_server


def request(headers: list[tuple[str, bytes]]) -> Request:
    return Request({"type": "http", "headers": [(name.encode(), value) for name, value in headers]})


def bearing(token: str) -> Request:
    return request([("authorization", b"Bearer " + token.encode())])


def always(answer: Any) -> CallerResolver:
    async def resolver(request: HTTPConnection) -> Caller | None:
        return answer  # type: ignore[no-any-return]

    return resolver


async def test_inv_29_no_identity_is_refused_and_the_tenant_must_be_the_callers_own() -> None:
    with pytest.raises(Unauthenticated):
        await seated(always(None), request([]), "t")
    with pytest.raises(NotFound):
        await seated(always(Caller("t", "bob")), request([]), "other")
    assert await seated(always(Caller("t", "bob")), request([]), "t") == Caller("t", "bob")


@pytest.mark.parametrize(
    "answer",
    [
        "bob",
        {"tenant_id": "t"},
        ("t", "bob"),
        Caller("", "bob"),
        Caller("t", " "),
        Caller("t", None),  # type: ignore[arg-type]
        Caller(7, "bob"),  # type: ignore[arg-type]
        Caller("t", "a\x00"),
        Caller("t", "*"),
        Caller("t", "memory\n"),
        Caller("t", "x" * 201),
    ],
)
async def test_a_malformed_identity_is_never_seated(answer: Any) -> None:
    with pytest.raises(MalformedIdentity):
        await seated(always(answer), request([]), "t")


# --- choice ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({}, "MEMORY_AUTH"),
        ({"memory_auth": "jwt"}, "MEMORY_JWT_JWKS, MEMORY_JWT_ISSUER, MEMORY_JWT_AUDIENCE"),
        (
            {"memory_auth": "jwt", "memory_jwt_jwks": "/nowhere", "memory_jwt_issuer": "i", "memory_jwt_audience": "a"},
            "MEMORY_JWT_JWKS is neither",
        ),
        ({"memory_auth": "gateway"}, "MEMORY_GATEWAY_SECRET"),
        ({"memory_auth": "gateway", "memory_gateway_secret": "short"}, "at least 16"),
        ({"memory_auth": "custom"}, "MEMORY_CALLER_RESOLVER"),
        ({"memory_auth": "custom", "memory_caller_resolver": "nonsense"}, "package.module:callable"),
        ({"memory_auth": "custom", "memory_caller_resolver": "no.such:thing"}, "cannot be imported"),
        ({"memory_auth": "custom", "memory_caller_resolver": "json:nothing"}, "cannot be imported"),
        ({"memory_auth": "custom", "memory_caller_resolver": "json:dumps"}, "not an async callable"),
    ],
)
async def test_what_is_not_configured_refuses_to_start_and_says_what_to_set(
    pool: Pool, values: dict[str, str], named: str
) -> None:
    settings = Settings.model_validate({"database_url": "postgresql://x", **values})
    with pytest.raises(IdentityNotConfigured, match=named):
        resolver_from(settings, pool)


async def from_test(request: HTTPConnection) -> Caller | None:
    return Caller("t", request.headers["x-test"]) if "x-test" in request.headers else None


class FromTest:
    async def __call__(self, request: HTTPConnection) -> Caller | None:
        return await from_test(request)


an_object = FromTest()


@pytest.mark.parametrize("name", ["from_test", "an_object"])
async def test_a_custom_resolver_is_taken_by_name(pool: Pool, name: str) -> None:
    settings = Settings.model_validate(
        {"database_url": "postgresql://x", "memory_auth": "custom", "memory_caller_resolver": f"{__name__}:{name}"}
    )
    resolver = resolver_from(settings, pool)
    assert await resolver(request([("x-test", b"bob")])) == Caller("t", "bob")
    assert await resolver(request([])) is None


# --- gateway --------------------------------------------------------------------------------------------------------

SECRET = b"a-shared-secret-of-some-length"
GOOD = [(GATEWAY_SECRET_HEADER, SECRET), ("x-memory-tenant", b"t"), ("x-memory-principal", "jürgen".encode())]


def gateway() -> GatewayResolver:
    return GatewayResolver(
        SecretStr(SECRET.decode()), tenant_header="X-Memory-Tenant", principal_header="X-Memory-Principal"
    )


async def test_gateway_headers_count_only_beside_the_secret() -> None:
    assert await gateway()(request(GOOD)) == Caller("t", "jürgen")
    assert await gateway()(request(GOOD[1:])) is None
    assert await gateway()(request([(GATEWAY_SECRET_HEADER, SECRET[:-1]), *GOOD[1:]])) is None
    assert await gateway()(request([(GATEWAY_SECRET_HEADER, b""), *GOOD[1:]])) is None
    assert await gateway()(request(GOOD[:2])) is None


async def test_a_gateway_that_lets_clients_headers_through_seats_nobody() -> None:
    for doubled in GOOD:
        with pytest.raises(MalformedIdentity):
            await gateway()(request([*GOOD, doubled]))
    with pytest.raises(MalformedIdentity):
        await gateway()(request([*GOOD[:2], ("x-memory-principal", b"\xff")]))
    with pytest.raises(MalformedIdentity):
        await seated(gateway(), request([*GOOD[:2], ("x-memory-principal", b" ")]), "t")


# --- jwt ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest.fixture
def server(provider: Provider) -> Iterator[KeyServer]:
    with key_server() as running:
        running.serve(provider.jwks("ec"))
        yield running


def resolver(jwks: str) -> JwtResolver:
    return JwtResolver(jwks, issuer=ISSUER, audience=AUDIENCE, tenant_claim="tenant_id", principal_claim="sub")


async def test_a_good_jwt_seats_its_principal(provider: Provider, server: KeyServer) -> None:
    judge = resolver(server.url)
    for _ in range(5):
        assert await judge(bearing(provider.token())) == Caller("t", "bob")
    assert await judge(bearing(provider.token(kid=None))) == Caller("t", "bob"), "one key needs no name"
    assert server.fetches == 1


async def test_a_jwt_that_is_not_for_us_by_it_and_in_its_time_is_nobody(provider: Provider, server: KeyServer) -> None:
    judge = resolver(server.url)
    now = int(time.time())
    other = Provider()
    bad = {
        "issuer": provider.token(iss="https://other.example"),
        "audience": provider.token(aud="another"),
        "no issuer": provider.token(iss=None),
        "no audience": provider.token(aud=None),
        "no expiry": provider.token(exp=None),
        "expired": provider.token(exp=now - 31),
        "not yet": provider.token(nbf=now + 60),
        "another's key under our key's name": other.token(),
        "unknown key": provider.token(kid="unheard"),
        "symmetric": provider.token(algorithm="HS256", key="x" * 64),
        "unsigned": provider.token(algorithm="none", key=""),
        "wrong kind of key": provider.token(algorithm="RS256"),
        "no tenant": provider.token(tenant_id=None),
        "no principal": provider.token(sub=None),
        "garbage": "a.b.c",
        "long": "x" * 20_000,
    }
    for name, token in bad.items():
        assert await judge(bearing(token)) is None, name
    assert await judge(bearing(provider.token(exp=now - 5))) == Caller("t", "bob"), "clocks differ a little"
    assert server.fetches <= 2


async def test_claims_of_another_form_are_malformed(provider: Provider, server: KeyServer) -> None:
    for claims in ({"tenant_id": ["t"]}, {"tenant_id": ""}, {"tenant_id": 7}):
        with pytest.raises(MalformedIdentity):
            await seated(resolver(server.url), bearing(provider.token(**claims)), "t")


async def test_a_set_with_a_symmetric_key_does_not_open_a_door(provider: Provider, server: KeyServer) -> None:
    server.serve(provider.jwks("ec", "oct"))
    token = provider.token(kid="oct", algorithm="HS256", key="secret-secret-secret-secret-secret")
    assert await resolver(server.url)(bearing(token)) is None


async def test_a_provider_that_is_down_is_503_and_no_lockout_afterwards(
    provider: Provider, server: KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = resolver(server.url)
    for status, body in ((500, b""), (200, b"<html>"), (200, b"[]"), (200, b'{"keys": []}')):
        server.status, server.body = status, body
        judge = resolver(server.url)
        for _ in range(3):
            with pytest.raises(Unavailable):
                await judge(bearing(provider.token()))
    assert server.fetches <= 8, "a provider in trouble is not asked for each request"
    server.status = 200
    server.serve(provider.jwks("ec"))
    monkeypatch.setattr("api.jwt_identity.RETRY_SECONDS", 0)
    judge._keys._down_until = 0.0  # type: ignore[union-attr]
    assert await judge(bearing(provider.token())) == Caller("t", "bob")


async def test_a_jwks_file_is_read_again_when_it_changes(provider: Provider, tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps(provider.jwks("ec")))
    judge = resolver(str(path))
    assert await judge(bearing(provider.token())) == Caller("t", "bob")
    assert await judge(bearing(provider.token(kid="rsa", algorithm="RS256"))) is None
    path.write_text(json.dumps(provider.jwks("rsa")))
    os.utime(path, ns=(1, 1))
    assert await judge(bearing(provider.token(kid="rsa", algorithm="RS256"))) == Caller("t", "bob")
    assert await judge(bearing(provider.token())) is None, "the old key is out"
    path.write_text("{")
    assert await judge(bearing(provider.token(kid="rsa", algorithm="PS256"))) is None, "the key is an RS256 one"
    assert await judge(bearing(provider.token(kid="rsa", algorithm="RS256"))) == Caller("t", "bob")
