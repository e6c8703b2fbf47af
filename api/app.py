"""The facade: `create_app` for a server of its own, `register_memory_routes` for a host's app."""

import gc
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import TypeAlias

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from api import mcp_server, openapi, problems
from api.body import BodyLimits
from api.door import REQUESTS_AT_ONCE, Door, install
from api.identity import CallerResolver, IdentityNotConfigured, resolver_from
from api.mcp_server import mcp_mounted
from api.observe import Observe
from api.routes import add, feed, operations, reading, retention
from api.serving import Serving
from api.starter import open_starter
from api.throttle import CallerLimit, Room, caller_limit
from memory_plane import logs
from memory_plane.core.caller import Caller
from memory_plane.core.conditions import SHIPPED_CONDITIONS, ConditionRegistry
from memory_plane.plane.document_store import Mountable
from memory_plane.plane.engine import Engine
from memory_plane.plane.health import Health
from memory_plane.plane.ports import GrantStore, SourceProvider
from memory_plane.settings import Settings, SettingsInvalid
from memory_plane.telemetry import tracing

DESCRIPTION = """A durable memory for agents: capture, search, list, follow and forget, tenant by tenant.

Refusals are `application/problem+json` with a stable `code`. They come in one order, so that they tell a stranger
nothing: no identity 401, another's tenant 404, no capability 403, and only then is the body read (413, 415, 408) and
judged (400). A document that the caller may not see is 404, like one that is not there. Requests take no keys but the
documented ones. 429 and 503 say in `Retry-After` when to come back.
"""
_OPEN_FILES = 65_536
EngineSource: TypeAlias = Mountable | Callable[[], Mountable]


def create_app(
    settings: Settings | None = None,
    *,
    engine: Engine | None = None,
    caller_resolver: CallerResolver | None = None,
    grant_store: GrantStore | None = None,
    condition_registry: ConditionRegistry = SHIPPED_CONDITIONS,
    sources: Sequence[SourceProvider] = (),
    body_limits: BodyLimits | None = None,
) -> FastAPI:
    """The whole facade. Opens its own engine by `settings` (default: the environment) unless given an open one.

    Raises SettingsInvalid, and IdentityNotConfigured when neither MEMORY_AUTH nor `caller_resolver` says who calls.
    """
    if engine is not None:
        settings = engine.settings
    elif settings is None:
        settings = Settings.load()
    if caller_resolver is None and settings.memory_auth is None:
        raise IdentityNotConfigured(
            "MEMORY_AUTH is not set, and nobody is let in by default: set it to token, jwt, gateway or custom, "
            "or pass caller_resolver to create_app."
        )
    serving = Serving()
    identity = _Identity(caller_resolver)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            opened = engine
            if opened is None:
                starter = await stack.enter_async_context(open_starter(settings))
                opened = await stack.enter_async_context(
                    Engine.open(
                        settings,
                        starter=starter,
                        grant_store=grant_store,
                        condition_registry=condition_registry,
                        sources=sources,
                    )
                )
            identity.resolver = caller_resolver or resolver_from(settings, opened.pool)
            app.state.memory_health = Health(opened.pool, settings, opened.temporal_health)
            stack.push_async_callback(serving.end)
            await serving.begin(opened)
            await stack.enter_async_context(mcp_mounted(app, allow_forget=settings.memory_mcp_allow_forget))
            yield

    app = FastAPI(
        title="Memory Plane",
        version=version("memory-plane"),
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        # Its log records carry the messages of exceptions and the values that failed validation.
        telemetry={"logs": False, "metrics": False, "operation_spans": False, "auto_configure": False},
    )
    app.add_middleware(Observe)
    app.add_exception_handler(HTTPException, _router_refusal)
    register_memory_routes(
        app,
        serving.engine,
        identity,
        body_limits=body_limits,
        caller_limit=caller_limit(settings),
        requests_at_once=settings.memory_requests_at_once,
    )
    app.include_router(operations.router)
    app.router.routes.append(mcp_server.route())
    return app


def register_memory_routes(
    app: FastAPI,
    engine: EngineSource,
    caller_resolver: CallerResolver,
    *,
    body_limits: BodyLimits | None = None,
    caller_limit: CallerLimit | None = None,
    requests_at_once: int = REQUESTS_AT_ONCE,
) -> None:
    """Mount `/api/tenants/{tenantId}/memory/…` on a host's app. The host opens and closes the engine;
    in its place it may give a `Mounted` store of its own, whose missing verbs are answered 501.

    Refusals leave these routes as problem documents without touching the host's error handlers or middleware.
    """
    source = engine if callable(engine) else (lambda: engine)
    install(app, Door(source, caller_resolver, body_limits or BodyLimits(), caller_limit, Room(requests_at_once)))
    for module in (add, reading, feed, retention):
        app.include_router(module.router)
    openapi.complete(app)


def app_from_environment() -> FastAPI:
    """The factory that a server is pointed at: `uvicorn --factory api.app:app_from_environment`."""
    try:
        settings = Settings.load()
        app = create_app(settings)
    except (SettingsInvalid, IdentityNotConfigured) as refusal:
        raise SystemExit(f"The API cannot start:\n{refusal}") from None
    logs.configure(settings.memory_log_level)
    tracing.configure("memory-api")
    _allow_many_connections()
    _collect_less_garbage()
    return app


def _collect_less_garbage() -> None:
    """What the imports made lives as long as the process, and walking it again and again is a tenth of a request."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def _allow_many_connections() -> None:
    """Idle connections are cheap, and the usual limit of 1,024 open files is not many of them."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _Identity:
    """The caller resolver, which may need the engine's pool and so comes to be after the routes."""

    def __init__(self, resolver: CallerResolver | None) -> None:
        self.resolver = resolver

    async def __call__(self, request: HTTPConnection) -> Caller | None:
        return await self.resolver(request) if self.resolver is not None else None


async def _router_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
    return problems.of_status(error.status_code, error.headers)
