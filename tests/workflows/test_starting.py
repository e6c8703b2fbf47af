"""What a worker puts right at its start."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from memory_plane.contracts.enums import EmbedStyle
from memory_plane.plane.engine import Engine
from memory_plane.plane.starting import broken_indexes_rebuilt
from memory_plane.store.database import Connection, connection
from memory_plane.store.embed_models import ModelProbe
from memory_plane.store.model_tables import build_index, index_is_valid, register_model
from tests.embedding.corpus import make_generation
from tests.eventually import eventually


async def test_an_index_left_invalid_is_built_anew_and_a_missing_one_is_left_to_its_transform(
    engine: Engine, connect: Callable[[], Awaitable[Connection]]
) -> None:
    dsn = engine.settings.direct_dsn
    probes = [ModelProbe("http://x", name, EmbedStyle.OPENAI, 64) for name in ("broken", "staged")]
    broken, staged = [await register_model(dsn, "acme", probe, indexed=False) for probe in probes]
    generation = await make_generation(engine.pool, "acme", engine.settings.default_recipe(), "building")
    await engine.pool.execute("UPDATE memory.generation SET model_key = $2 WHERE id = $1", generation, staged.model_key)
    reader = await connect()
    snapshot = reader.transaction(isolation="repeatable_read")
    await snapshot.start()
    await reader.fetchval("SELECT count(*) FROM memory.document")  # a concurrent build waits for this snapshot
    build = asyncio.create_task(build_index(dsn, broken.table, 64, lambda progress: None))

    async def begun() -> bool:
        async with connection(engine.pool) as conn:
            return await index_is_valid(conn, broken.table) is not None

    await eventually(begun, what="the build to begin")
    build.cancel()
    with pytest.raises(asyncio.CancelledError):
        await build
    await snapshot.rollback()

    await broken_indexes_rebuilt(engine)

    async with connection(engine.pool) as conn:
        assert await index_is_valid(conn, broken.table) is True
        assert await index_is_valid(conn, staged.table) is None
