"""Opaque bearer tokens: looked up by their hash, remembered for a few seconds and no longer."""

import time
from collections import OrderedDict
from datetime import UTC, datetime

from starlette.requests import HTTPConnection

from memory_plane.core.caller import Caller
from memory_plane.store import tokens
from memory_plane.store.database import Pool, connection

CACHE_SECONDS = 3.0
"""The longest a revoked token is still taken by a process that knew it."""
CACHE_SIZE = 10_000
MAX_TOKEN_CHARS = 500


def bearer_token(request: HTTPConnection) -> str | None:
    """The bearer token of the request's one Authorization header; None for none, several, or another scheme."""
    headers = request.headers.getlist("authorization")
    if len(headers) != 1:
        return None
    scheme, _, token = headers[0].strip().partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token and " " not in token else None


class TokenResolver:
    """`Authorization: Bearer mpt_…` → the token's principal, while the token is in force."""

    def __init__(self, pool: Pool, *, cache_seconds: float = CACHE_SECONDS) -> None:
        self._pool = pool
        self._cache_seconds = cache_seconds
        self._known: OrderedDict[str, tuple[float, tokens.Token]] = OrderedDict()

    async def __call__(self, request: HTTPConnection) -> Caller | None:
        sent = bearer_token(request)
        if sent is None or not sent.startswith(tokens.PREFIX) or len(sent) > MAX_TOKEN_CHARS:
            return None
        token = self._remembered(tokens.token_hash(sent)) or await self._look_up(sent)
        return None if token is None else Caller(token.tenant_id, token.principal_id)

    def _remembered(self, key: str) -> tokens.Token | None:
        known = self._known.get(key)
        if known is None:
            return None
        good_until, token = known
        if time.monotonic() >= good_until or (token.expires_at is not None and token.expires_at <= datetime.now(UTC)):
            self._known.pop(key, None)
            return None
        return token

    async def _look_up(self, sent: str) -> tokens.Token | None:
        asked = time.monotonic()
        async with connection(self._pool) as conn:
            token = await tokens.resolve(conn, sent)
        if token is not None:
            # From the moment of asking: what a revocation meets in between must not be known for longer.
            self._known[tokens.token_hash(sent)] = (asked + self._cache_seconds, token)
            if len(self._known) > CACHE_SIZE:
                self._known.popitem(last=False)
        return token
