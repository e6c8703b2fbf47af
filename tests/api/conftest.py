"""The real facade on a real database, and callers of every sort."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import HTTPConnection

from api.app import create_app
from memory_plane.contracts.enums import GrantEffect, GrantOrigin, Verb
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.caller import Caller
from memory_plane.core.grants import GrantRule
from memory_plane.plane.engine import Engine
from memory_plane.store.grants import PostgresGrantStore
from tests.fixtures.database import settings_for

Client = httpx.AsyncClient


async def by_header(request: HTTPConnection) -> Caller | None:
    """Believes `Authorization: Bearer <tenant>/<principal>`: who calls is not what these tests are about."""
    tenant, _, principal = request.headers.get("authorization", "").removeprefix("Bearer ").partition("/")
    return Caller(tenant, principal) if tenant and principal else None


def rule(principal: str, resource: str, action: str, effect: GrantEffect = GrantEffect.ALLOW) -> GrantRule:
    return GrantRule(
        id=new_id(IdKind.GRANT_RULE),
        principal_id=principal,
        role_id=None,
        resource=resource,
        action=action,
        effect=effect,
        origin=GrantOrigin.SYSTEM,
        conditions=None,
        expires_at=None,
    )


class Facade:
    """The app and its engine, seen from one tenant that this test has to itself."""

    def __init__(self, app: FastAPI, engine: Engine, tenant: str) -> None:
        self.app = app
        self.engine = engine
        self.tenant = tenant
        self.base = f"/api/tenants/{tenant}/memory"

    def caller(self, principal: str | None = "ann", *, of: str | None = None, path: str | None = None) -> Client:
        """A client at the tenant's routes (or at `path`) for this principal (of another tenant); None: nobody."""
        headers = {} if principal is None else {"Authorization": f"Bearer {of or self.tenant}/{principal}"}
        url = "http://facade" + (self.base if path is None else path)
        return Client(transport=httpx.ASGITransport(self.app), base_url=url, headers=headers)

    async def allow(self, principal: str, *verbs: Verb) -> None:
        store = PostgresGrantStore(self.engine.pool)
        for verb in verbs or tuple(Verb):
            await store.put_grant(self.tenant, rule(principal, "memory", verb.value))


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[FastAPI]:
    """The app between its start and its end, both in one task of their own as under a server."""
    started, ends = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with app.router.lifespan_context(app):
            started.set()
            await ends.wait()

    life = asyncio.create_task(live())
    start = asyncio.create_task(started.wait())
    await asyncio.wait({life, start}, return_when=asyncio.FIRST_COMPLETED)
    start.cancel()
    if life.done():
        life.result()
    try:
        yield app
    finally:
        ends.set()
        await life


@pytest.fixture(scope="module")
async def service(module_database: str) -> AsyncIterator[tuple[FastAPI, Engine]]:
    """One app on one database for a module's tests. No model endpoint."""
    async with (
        Engine.open(settings_for(module_database)) as engine,
        running(create_app(engine=engine, caller_resolver=by_header)) as app,
    ):
        yield app, engine


@pytest.fixture
async def facade(service: tuple[FastAPI, Engine]) -> Facade:
    """A tenant of its own in which ann may do everything and everyone else nothing yet."""
    opened = Facade(*service, tenant=f"t-{uuid4().hex[:12]}")
    await opened.allow("ann")
    return opened


@pytest.fixture
async def ann(facade: Facade) -> AsyncIterator[Client]:
    async with facade.caller() as client:
        yield client
