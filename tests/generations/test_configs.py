"""Recipes by name and version."""

import asyncio
from typing import Any

import pytest

from memory_plane.contracts.errors import Conflict, Invalid, NotFound
from tests.generations.world import Tenant


async def test_a_name_gets_its_next_version_also_under_concurrency(tenant: Tenant) -> None:
    made = await asyncio.gather(
        *(tenant.engine.transforms.create_config(tenant.tenant, "small", {"overfetch": 4}) for _ in range(12))
    )
    assert sorted(config.version for config in made) == list(range(1, 13))
    other = await tenant.engine.transforms.create_config(tenant.tenant, "other", {})
    assert other.version == 1
    listed = await tenant.engine.transforms.configs(tenant.tenant)
    assert [(each.name, each.version) for each in listed] == [("other", 1), *(("small", n) for n in range(1, 13))]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"chunk": {"maxTokens": 2}}, "chunk.maxTokens must be at least 16"),
        ({"embeded": {}}, "embeded is not a known field"),
        ({"embed": {"baseUrl": "ftp://models", "model": "two"}}, "embed.baseUrl must begin with http"),
        ({"rerank": {"baseUrl": "http://user:pw@models"}}, "rerank.baseUrl must not hold credentials"),
        ({"mmrLambda": 3}, "mmrLambda must be at most 1"),
        ({"overfetch": "many"}, "overfetch must be a whole number"),
    ],
)
async def test_a_recipe_is_refused_by_the_name_of_its_knob(tenant: Tenant, params: dict[str, Any], said: str) -> None:
    with pytest.raises(Invalid) as refused:
        await tenant.engine.transforms.create_config(tenant.tenant, "bad", params)
    assert said in refused.value.detail and "pw" not in refused.value.detail


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "nul\x00"])
async def test_a_name_is_something_one_can_say(tenant: Tenant, name: str) -> None:
    with pytest.raises(Invalid):
        await tenant.engine.transforms.create_config(tenant.tenant, name, {})


async def test_a_partial_recipe_inherits_the_configuration_at_its_run(tenant: Tenant) -> None:
    recipe = tenant.engine.transforms.recipe({"embed": {"model": "two"}, "authorityWeight": 0.2})
    configured = tenant.engine.settings.default_recipe()
    assert recipe.embed is not None and configured.embed is not None
    assert (recipe.embed.model, recipe.embed.base_url) == ("two", configured.embed.base_url)
    assert recipe.authority_weight == 0.2 and recipe.fusion == configured.fusion


async def test_a_recipe_is_deleted_unless_a_run_was_made_of_it(tenant: Tenant) -> None:
    transforms = tenant.engine.transforms
    used = await transforms.create_config(tenant.tenant, "used", {})
    unused = await transforms.create_config(tenant.tenant, "unused", {})
    await transforms.create_run(tenant.tenant, used.id)
    with pytest.raises(NotFound):
        await transforms.delete_config(f"{tenant.tenant}-2", unused.id)
    await transforms.delete_config(tenant.tenant, unused.id)
    with pytest.raises(NotFound):
        await transforms.delete_config(tenant.tenant, unused.id)
    with pytest.raises(Conflict) as refused:
        await transforms.delete_config(tenant.tenant, used.id)
    assert refused.value.code == "config_in_use"
    assert [each.id for each in await transforms.configs(tenant.tenant)] == [used.id]
