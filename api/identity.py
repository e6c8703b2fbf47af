"""Who is calling. A resolver turns a request into the authenticated caller or None; one is chosen by MEMORY_AUTH.

Nothing is ever assumed: without a choice the facade does not start, and an identity that makes no sense is our host's
fault and seats nobody.
"""

import importlib
import inspect
from collections.abc import Awaitable, Callable
from hmac import compare_digest

from pydantic import SecretStr
from starlette.requests import HTTPConnection

from api.jwt_identity import JwtResolver
from api.token_identity import TokenResolver, bearer_token
from memory_plane.contracts.errors import NotFound, Unauthenticated
from memory_plane.core.caller import Caller, identity_problem
from memory_plane.settings import Settings
from memory_plane.store.database import Pool

__all__ = ["CallerResolver", "IdentityNotConfigured", "MalformedIdentity", "bearer_token", "resolver_from", "seated"]

CallerResolver = Callable[[HTTPConnection], Awaitable[Caller | None]]

GATEWAY_SECRET_HEADER = "x-memory-gateway-secret"  # noqa: S105 - a name
MIN_GATEWAY_SECRET = 16


class IdentityNotConfigured(Exception):
    """The facade cannot tell who calls, so it must not start; the message says what to set."""


class MalformedIdentity(Exception):
    """A resolver answered something that is no identity: a fault of the host, answered 500. Carries no values."""


async def seated(resolver: CallerResolver, request: HTTPConnection, path_tenant: str | None = None) -> Caller:
    """The caller of this request. Raises Unauthenticated; NotFound where the path names a tenant that is not the
    caller's, existing or not; MalformedIdentity."""
    caller = await resolver(request)
    if caller is None:
        raise Unauthenticated("This needs an identity: send `Authorization: Bearer …` with a token that is in force.")
    if not isinstance(caller, Caller):
        raise MalformedIdentity(f"the resolver answered a {type(caller).__name__}, not a Caller or None")
    for problem in (identity_problem("tenant", caller.tenant_id), identity_problem("principal", caller.principal_id)):
        if problem is not None:
            raise MalformedIdentity(problem)
    if path_tenant is not None and path_tenant != caller.tenant_id:
        raise NotFound("There is no such tenant for you; the path must name your own.")
    return caller


def resolver_from(settings: Settings, pool: Pool) -> CallerResolver:
    """The resolver that MEMORY_AUTH chooses. Raises IdentityNotConfigured."""
    match settings.memory_auth:
        case "token":
            return TokenResolver(pool)
        case "jwt":
            return _jwt(settings)
        case "gateway":
            return _gateway(settings)
        case "custom":
            return _custom(settings.memory_caller_resolver)
        case None:
            raise IdentityNotConfigured(
                "MEMORY_AUTH is not set, and nobody is let in by default: set it to token, jwt, gateway or custom "
                "(docs/security.md tells them apart), or pass caller_resolver to create_app."
            )


def _jwt(settings: Settings) -> CallerResolver:
    required = {
        "MEMORY_JWT_JWKS": settings.memory_jwt_jwks,
        "MEMORY_JWT_ISSUER": settings.memory_jwt_issuer,
        "MEMORY_JWT_AUDIENCE": settings.memory_jwt_audience,
    }
    missing = [name for name, value in required.items() if not value]
    jwks, issuer, audience = required.values()
    if missing or not jwks or not issuer or not audience:
        raise IdentityNotConfigured(f"MEMORY_AUTH=jwt also needs {', '.join(missing)}.")
    try:
        return JwtResolver(
            jwks,
            issuer=issuer,
            audience=audience,
            tenant_claim=settings.memory_jwt_tenant_claim,
            principal_claim=settings.memory_jwt_principal_claim,
        )
    except ValueError as problem:
        raise IdentityNotConfigured(f"MEMORY_JWT_JWKS {problem}.") from None


def _gateway(settings: Settings) -> CallerResolver:
    secret = settings.memory_gateway_secret
    if secret is None or len(secret.get_secret_value()) < MIN_GATEWAY_SECRET:
        raise IdentityNotConfigured(
            f"MEMORY_AUTH=gateway also needs MEMORY_GATEWAY_SECRET of at least {MIN_GATEWAY_SECRET} characters, "
            f"which the proxy sends as {GATEWAY_SECRET_HEADER}."
        )
    return GatewayResolver(
        secret,
        tenant_header=settings.memory_gateway_tenant_header,
        principal_header=settings.memory_gateway_principal_header,
    )


class GatewayResolver:
    """Identity headers from an authenticating proxy, believed only beside the shared secret."""

    def __init__(self, secret: SecretStr, *, tenant_header: str, principal_header: str) -> None:
        self._secret = secret.get_secret_value().encode()
        self._tenant_header = tenant_header
        self._principal_header = principal_header

    async def __call__(self, request: HTTPConnection) -> Caller | None:
        sent = _only(request, GATEWAY_SECRET_HEADER)
        if sent is None or not compare_digest(sent, self._secret):
            return None
        tenant, principal = _only(request, self._tenant_header), _only(request, self._principal_header)
        if tenant is None or principal is None:
            return None
        try:
            return Caller(tenant.decode(), principal.decode())
        except UnicodeDecodeError:
            raise MalformedIdentity("an identity header of the gateway is not UTF-8") from None


def _only(request: HTTPConnection, name: str) -> bytes | None:
    """The header's one value. Two mean that the proxy let a client's own header through."""
    wanted = name.lower().encode("latin-1")
    values = [value for key, value in request.scope["headers"] if key == wanted]
    if len(values) > 1:
        raise MalformedIdentity(f"the gateway sent {name} more than once; it must drop what clients send")
    return values[0] if values else None


def _custom(path: str | None) -> CallerResolver:
    module_name, _, attribute = (path or "").partition(":")
    if not module_name or not attribute:
        raise IdentityNotConfigured("MEMORY_AUTH=custom also needs MEMORY_CALLER_RESOLVER=package.module:callable.")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError):
        raise IdentityNotConfigured(
            f"MEMORY_CALLER_RESOLVER names {module_name}:{attribute}, which cannot be imported; check the spelling "
            "and that it is installed where the API runs."
        ) from None
    call = found if inspect.isroutine(found) else getattr(found, "__call__", None)  # noqa: B004 - its own kind matters
    if not inspect.iscoroutinefunction(call):
        raise IdentityNotConfigured(
            f"MEMORY_CALLER_RESOLVER names {module_name}:{attribute}, which is not an async callable from a request "
            "to a Caller or None."
        )
    resolver: CallerResolver = found
    return resolver
