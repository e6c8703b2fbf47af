"""Worlds for search tests: lexical only, and with an endpoint."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from memory_plane.plane.engine import Engine
from tests.fakes.endpoint import FakeEndpoint
from tests.fixtures.database import settings_for
from tests.search.world import World


@pytest.fixture(scope="module")
async def lexical_engine(module_database: str) -> AsyncIterator[Engine]:
    async with Engine.open(settings_for(module_database, search_deadline_ms=60_000)) as engine:
        yield engine


@pytest.fixture
async def words(lexical_engine: Engine) -> World:
    """A tenant of its own without an embedding endpoint; ann may do everything."""
    world = World(lexical_engine, f"t-{uuid4().hex[:12]}")
    await world.allow("ann")
    return world


@pytest.fixture(scope="module")
async def module_fake() -> AsyncIterator[FakeEndpoint]:
    async with FakeEndpoint(dims=64) as endpoint:
        yield endpoint


@pytest.fixture
def fake(module_fake: FakeEndpoint) -> FakeEndpoint:
    module_fake.heal()
    return module_fake


@pytest.fixture(scope="module")
async def hybrid_engine(module_database: str, module_fake: FakeEndpoint) -> AsyncIterator[Engine]:
    settings = settings_for(
        module_database,
        embed_base_url=module_fake.url,
        embed_model="fake",
        embed_timeout_ms=20_000,
        search_deadline_ms=60_000,
    )
    async with Engine.open(settings) as engine:
        yield engine


@pytest.fixture
async def world(hybrid_engine: Engine, fake: FakeEndpoint) -> World:
    """A tenant of its own with an embedding endpoint; ann may do everything."""
    opened = World(hybrid_engine, f"t-{uuid4().hex[:12]}")
    await opened.allow("ann")
    return opened
