"""A tenant of its own for each test, in a database that the tests of one module share."""

from collections.abc import AsyncIterator

import pytest

from memory_plane.settings import Settings
from memory_plane.store.database import Pool, open_pool
from tests.capture.memory import Memory


@pytest.fixture
def database(module_database: str) -> str:
    return module_database


@pytest.fixture
def memory(pool: Pool, settings: Settings) -> Memory:
    return Memory.on(pool, settings)


@pytest.fixture
async def wide_memory(settings: Settings) -> AsyncIterator[Memory]:
    """With connections enough for every caller of a test to be in the database at once."""
    opened = await open_pool(settings, max_size=48)
    try:
        yield Memory.on(opened, settings)
    finally:
        opened.terminate()
