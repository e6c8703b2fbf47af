"""Tenants with two models of other sizes to choose from."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from tests.fakes.endpoint import FakeEndpoint
from tests.fixtures.database import settings_for
from tests.generations.world import Tenant

MODELS = {"one": 64, "two": 96, "three": 80, "huge": 4096}


def configured(dsn: str, fake: FakeEndpoint) -> Settings:
    """With the model `one`. Searches end within a second, so that retiring need not wait longer."""
    return settings_for(dsn, embed_base_url=fake.url, embed_model="one", embed_timeout_ms=2000, search_deadline_ms=1000)


@pytest.fixture(scope="module")
async def module_fake() -> AsyncIterator[FakeEndpoint]:
    async with FakeEndpoint(models=MODELS) as endpoint:
        yield endpoint


@pytest.fixture
def fake(module_fake: FakeEndpoint) -> FakeEndpoint:
    module_fake.heal()
    module_fake.forget_calls()
    return module_fake


@pytest.fixture(scope="module")
async def module_engine(module_database: str, module_fake: FakeEndpoint) -> AsyncIterator[Engine]:
    async with Engine.open(configured(module_database, module_fake)) as engine:
        await engine.embedding.ensure_engine_model()
        yield engine


@pytest.fixture
async def engine(module_database: str, fake: FakeEndpoint) -> AsyncIterator[Engine]:
    """One of this test's own: it remembers no outage of the test before."""
    async with Engine.open(configured(module_database, fake)) as opened:
        await opened.embedding.ensure_engine_model()
        yield opened


@pytest.fixture
async def tenant(module_engine: Engine, fake: FakeEndpoint) -> Tenant:
    """A tenant of its own; ann may do everything."""
    opened = Tenant(module_engine, f"t-{uuid4().hex[:12]}")
    await opened.allow("ann")
    return opened
