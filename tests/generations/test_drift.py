"""A configuration that the live recipes do not follow is told by readiness, the doctor and the worker's log."""

import logging
from pathlib import Path

import pytest

from memory_plane.plane.doctor import examine
from memory_plane.plane.engine import Engine
from memory_plane.plane.health import Health
from memory_plane.plane.starting import broken_indexes_rebuilt, recipe_drift_told
from memory_plane.settings import Settings
from memory_plane.store.model_tables import index_is_valid
from tests.fakes.endpoint import FakeEndpoint
from tests.fixtures.database import MIGRATIONS
from tests.generations.conftest import configured
from tests.generations.world import Tenant


@pytest.fixture
async def changed(database: str, fake: FakeEndpoint) -> Settings:
    """A database of its own with one tenant under the model `one`, and an environment that now says `two`."""
    settings = configured(database, fake)
    async with Engine.open(settings) as engine:
        await engine.embedding.ensure_engine_model()
        tenant = Tenant(engine, "acme")
        await tenant.allow("ann")
        await tenant.add("the otter swims")
    return settings.model_copy(update={"embed_model": "two"})


async def test_field_case_a_model_swapped_by_configuration_alone_is_told(
    changed: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with Engine.open(changed) as engine:
        part = (await Health(engine.pool, changed).check())["live_recipes"]
        assert part.state == "mismatch" and not part.stops_service
        assert part.detail is not None and "1 tenant is served" in part.detail and "embed.model" in part.detail
        with caplog.at_level(logging.WARNING):
            await recipe_drift_told(engine)
        assert "embed.model" in caplog.text
        same = changed.model_copy(update={"embed_model": "one"})
        assert (await Health(engine.pool, same).check())["live_recipes"].state == "up"
    report = await examine(changed, Path(MIGRATIONS))
    told = [finding.message for finding in report.findings if finding.part == "live recipe"]
    assert len(told) == 1 and "embed.model" in told[0] and "memory transform run" in told[0]


async def test_a_table_that_a_given_up_transform_left_without_index_gets_one(tenant: Tenant) -> None:
    params = {"embed": {"model": "three"}}
    tenant_engine = tenant.engine
    assert tenant_engine.settings.embed_base_url is not None
    await tenant.add("the otter swims")
    run_id = await tenant.run(params)
    row = await tenant_engine.pool.fetchrow(
        "SELECT m.table_name FROM memory.generation g JOIN memory.embed_model m USING (model_key) WHERE g.id = $1",
        run_id,
    )
    assert row is not None
    await broken_indexes_rebuilt(tenant_engine)
    async with tenant_engine.pool.acquire() as conn:
        assert await index_is_valid(conn, row["table_name"]) is None, "it is being filled"
    await tenant_engine.transforms.fail(tenant.tenant, run_id, "Cancelled.")
    await broken_indexes_rebuilt(tenant_engine)
    async with tenant_engine.pool.acquire() as conn:
        assert await index_is_valid(conn, row["table_name"]) is True
