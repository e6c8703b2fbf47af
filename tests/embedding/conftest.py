"""A fake endpoint, and the embedding plane on a real database."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from memory_plane.models.pool import ModelPool
from memory_plane.plane.embedding import Embedding
from memory_plane.settings import Settings
from memory_plane.store.database import Pool
from tests.fakes.endpoint import FakeEndpoint


@pytest.fixture
async def fake() -> AsyncIterator[FakeEndpoint]:
    async with FakeEndpoint(dims=64) as endpoint:
        yield endpoint


@pytest.fixture
def configured(settings: Settings, fake: FakeEndpoint) -> Settings:
    """This test's settings with the fake endpoint as the configured one."""
    return settings.model_copy(update={"embed_base_url": fake.url, "embed_model": "fake", "embed_timeout_ms": 2000})


@pytest.fixture
async def models() -> AsyncIterator[ModelPool]:
    async with ModelPool() as opened:
        yield opened


MakeEmbedding = Callable[[], Awaitable[Embedding]]


@pytest.fixture
def embedding(pool: Pool, configured: Settings, models: ModelPool) -> Embedding:
    return Embedding(pool, configured, models)
