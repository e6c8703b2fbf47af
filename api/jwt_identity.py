"""JSON Web Tokens of an identity provider: signed by a key of its JWKS, for us, by it, and in their time."""

import asyncio
import logging
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt
from starlette.requests import HTTPConnection

from api.token_identity import bearer_token
from memory_plane.contracts.errors import Unavailable
from memory_plane.core.caller import Caller

_log = logging.getLogger(__name__)

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric ones only: with a shared-secret algorithm, the public key itself would sign."""
LEEWAY_SECONDS = 30
FETCH_SECONDS = 5
RETRY_SECONDS = 5
KEYS_GOOD_SECONDS = 900
MAX_JWT_CHARS = 16_384


class UnknownKey(Exception):
    """No key of the set has signed this."""


class JwtResolver:
    """`Authorization: Bearer <JWT>` → the principal its claims name. `jwks` is an http(s) URL or a file.

    Raises ValueError, a phrase about the JWKS, where a file cannot be used.
    """

    def __init__(self, jwks: str, *, issuer: str, audience: str, tenant_claim: str, principal_claim: str) -> None:
        self._keys: _UrlKeys | _FileKeys
        self._keys = _UrlKeys(jwks) if urlsplit(jwks).scheme in ("http", "https") else _FileKeys(jwks)
        self._issuer = issuer
        self._audience = audience
        self._tenant_claim = tenant_claim
        self._principal_claim = principal_claim

    async def __call__(self, request: HTTPConnection) -> Caller | None:
        token = bearer_token(request)
        if token is None or len(token) > MAX_JWT_CHARS:
            return None
        try:
            claims = await self._claims(token)
        except (jwt.PyJWTError, UnknownKey):
            return None
        tenant, principal = claims.get(self._tenant_claim), claims.get(self._principal_claim)
        if tenant is None or principal is None:
            return None
        return Caller(tenant, principal)

    async def _claims(self, token: str) -> dict[str, Any]:
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError
        key = await self._keys.key(header.get("kid"))
        if key.algorithm_name not in ALGORITHMS:
            raise UnknownKey
        return jwt.decode(
            token,
            key,
            algorithms=ALGORITHMS,
            issuer=self._issuer,
            audience=self._audience,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud"]},
        )


class _UrlKeys:
    """The provider's set, fetched when unknown or old; an unknown key id asks again, but not all the time."""

    def __init__(self, url: str) -> None:
        self._client = jwt.PyJWKClient(url, lifespan=KEYS_GOOD_SECONDS, timeout=FETCH_SECONDS)
        self._down_until = 0.0

    async def key(self, kid: object) -> jwt.PyJWK:
        if time.monotonic() < self._down_until:
            raise _unavailable()
        try:
            # The library fetches with blocking calls.
            return await asyncio.to_thread(self._find, kid)
        except Unavailable:
            self._down_until = time.monotonic() + RETRY_SECONDS
            raise

    def _find(self, kid: object) -> jwt.PyJWK:
        try:
            keys = self._client.get_signing_keys()
        except (jwt.PyJWKClientError, jwt.PyJWKSetError, ValueError):
            # ValueError: what came is no JSON.
            _log.warning("the JWKS cannot be fetched; nobody can be told who he is until it can")
            raise _unavailable() from None
        try:
            if isinstance(kid, str):
                return self._client.get_signing_key(kid)
        except jwt.PyJWKClientConnectionError:
            raise _unavailable() from None
        except (jwt.PyJWKClientError, jwt.PyJWKSetError, ValueError):
            raise UnknownKey from None
        if len(keys) != 1:
            raise UnknownKey
        return keys[0]


def _unavailable() -> Unavailable:
    return Unavailable(
        "The identity provider's keys cannot be fetched, so nobody can be let in; try again.",
        code="identity_unavailable",
        retry_after=RETRY_SECONDS,
    )


class _FileKeys:
    """A file with the set, read again when it has changed, so that keys rotate without a restart."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._stamp: tuple[int, int] | None = None
        self._set: jwt.PyJWKSet | None = None
        try:
            self._read()
        except (OSError, ValueError, jwt.PyJWTError):
            raise ValueError("is neither an http(s) URL nor a readable file with a JSON Web Key Set") from None

    async def key(self, kid: object) -> jwt.PyJWK:
        try:
            self._read()
        except (OSError, ValueError, jwt.PyJWTError):
            # A file in the middle of being replaced: the keys known so far stay good.
            _log.warning("the JWKS file cannot be read; its last good content is in use")
        usable = [] if self._set is None else [key for key in self._set.keys if key.public_key_use in ("sig", None)]
        if isinstance(kid, str):
            usable = [key for key in usable if key.key_id == kid]
        if len(usable) != 1:
            raise UnknownKey
        return usable[0]

    def _read(self) -> None:
        status = self._path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        if stamp != self._stamp:
            self._set = jwt.PyJWKSet.from_json(self._path.read_text())
            self._stamp = stamp
