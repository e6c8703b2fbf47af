"""What every cutover leaves as it was, and what it changes for the next add."""

import asyncio
from typing import Any

import pytest

from memory_plane.contracts.errors import NotFound
from memory_plane.contracts.recipe import Recipe
from memory_plane.contracts.wire import SearchResponse
from memory_plane.core.recipes import differences
from memory_plane.plane.engine import Engine
from memory_plane.store.database import Pool
from tests.fakes.endpoint import FakeEndpoint
from tests.generations.conftest import configured
from tests.generations.world import Tenant
from tests.retention.scan import columns_with

FACTS = ("document", "version", "raw_capture", "edge", "entity", "feed_event", "grant_rule", "process_request")


async def facts(pool: Pool, tenant: str) -> dict[str, list[str]]:
    """Every row of every table that has no generation, as text."""
    found = {}
    for table in FACTS:
        rows = await pool.fetch(
            f"SELECT to_jsonb(t)::text AS row FROM memory.{table} t WHERE tenant_id = $1 ORDER BY 1", tenant
        )
        found[table] = [row["row"] for row in rows]
    return found


def answered(response: SearchResponse) -> tuple[object, ...]:
    """The page as it is read; scores fade with the seconds."""
    return response.degraded, [(item.document_id, item.snippet, item.attribution) for item in response.items]


async def test_inv_03_a_generation_made_of_a_b_a_serves_a(tenant: Tenant) -> None:
    for text in ("the alder stands", "the birch stands", "the alder stands"):
        last = await tenant.add(text, external_ref="tree")
    captures = "SELECT count(*) FROM memory.raw_capture WHERE tenant_id = $1"
    assert await tenant.engine.pool.fetchval(captures, tenant.tenant) == 2
    staged = await tenant.staged()
    await tenant.promote(staged)
    answer = await tenant.search("stands")
    (item,) = answer.items
    assert item.attribution is not None
    assert (item.attribution.version_id, item.attribution.version) == (last.version_id, 3)
    assert "alder" in item.snippet and "birch" not in item.snippet


async def test_inv_18_the_first_add_after_a_promote_embeds_with_the_promoted_model(
    tenant: Tenant, fake: FakeEndpoint
) -> None:
    await tenant.add("the otter swims")
    staged = await tenant.staged()
    await tenant.promote(staged)
    fake.forget_calls()
    captured = await tenant.capture("the heron stands in the reeds", title="heron")
    assert captured.generation_id == staged
    state = await tenant.engine.embedding.embed_inline(tenant.tenant, captured, 5.0)
    assert state == "embedded"
    assert {str(call.body["model"]) for call in fake.calls} == {"two"}
    assert await tenant.live() == staged
    answer = await tenant.search("heron reeds")
    assert answer.items[0].attribution is not None
    assert answer.items[0].attribution.channels == ["lexical", "dense"] and answer.degraded is None


async def test_inv_18_an_add_that_planned_for_the_old_generation_lands_in_the_new_one(tenant: Tenant) -> None:
    """Captures remember the live generation; one that is wrong about it plans again."""
    await tenant.capture("the otter swims")
    staged = await tenant.run()
    await tenant.build(staged)
    plan = await tenant.check("promote", staged)
    await tenant.catch_up(plan)
    adds, _ = await asyncio.gather(
        asyncio.gather(*(tenant.capture(f"the heron {n}") for n in range(40))), _cut(tenant, plan)
    )
    assert {each.generation_id for each in adds} <= {plan.source, plan.target}
    held = await tenant.engine.pool.fetchval(
        "SELECT count(DISTINCT version_id) FROM memory.chunk WHERE generation_id = $1", plan.target
    )
    assert held == 41


async def _cut(tenant: Tenant, plan: Any) -> None:
    while not (await tenant.engine.cutover.cut(plan)).flipped:
        await tenant.catch_up(plan)


async def test_inv_19_facts_are_identical_before_and_after(tenant: Tenant) -> None:
    await tenant.allow("dora")
    await tenant.grant("dora", "memory.owner:ann")
    sources = [await tenant.add(f"the otter swims {n}", external_ref=f"s{n}") for n in range(4)]
    await tenant.add("the otter dives", external_ref="s0")
    claim = await tenant.add(
        "otters swim",
        principal="dora",
        derived_from=[sources[1].version_id],
        supports=[sources[2].document_id],
        contradicts=[sources[3].version_id],
        entities=[{"kind": "animal", "identifier": "otter"}],
        process=None,
    )
    await tenant.engine.retention.deprecate(tenant.tenant, sources[3].version_id)
    feed = await tenant.engine.feed.entries(await tenant.visibility("dora"), 0, 100)
    attribution = (await tenant.search("otters swim", limit=50)).items
    before = await facts(tenant.engine.pool, tenant.tenant)

    staged = await tenant.staged()
    for kind in ("promote", "demote", "promote"):
        await tenant.cutover(kind, staged)
        assert await facts(tenant.engine.pool, tenant.tenant) == before
        assert await tenant.engine.feed.entries(await tenant.visibility("dora"), 0, 100) == feed
        now = {item.document_id: item.attribution for item in (await tenant.search("otters swim", limit=50)).items}
        assert now == {item.document_id: item.attribution for item in attribution}
        assert now[claim.document_id] is not None


@pytest.mark.parametrize("when", ["before the run", "while building", "staged", "in the cutover", "live", "demoted"])
async def test_inv_20_forgotten_content_comes_back_by_no_sequence(tenant: Tenant, when: str) -> None:
    secret = f"zanzibar{when.replace(' ', '')}{tenant.tenant.replace('-', '')}"
    gone = await tenant.add(f"the {secret} otter swims", title=secret, attributes={"note": secret}, external_ref="x")
    await tenant.add("the heron stands")

    async def at(point: str) -> None:
        if point == when:
            await tenant.forget(gone.document_id)

    await at("before the run")
    staged = await tenant.run()
    await tenant.step(staged)
    await at("while building")
    await tenant.build(staged)
    await at("staged")
    plan = await tenant.check("promote", staged)
    await tenant.catch_up(plan)
    await at("in the cutover")
    assert (await tenant.engine.cutover.cut(plan)).flipped
    await at("live")
    await tenant.demote(staged)
    await at("demoted")
    await tenant.promote(staged)
    again = await tenant.staged({"chunk": {"maxTokens": 32}})
    await tenant.promote(again)
    await tenant.demote(again)
    assert gone.document_id not in await tenant.found(f"{secret} otter", limit=50)
    assert await columns_with(tenant.engine.pool, secret) == set()

    captured = await tenant.add(f"the {secret} otter swims", title=secret, external_ref="x")
    assert captured.status == "captured" and (await tenant.found(secret))[0] == gone.document_id


async def test_inv_22_a_changed_embed_model_changes_no_live_answer(
    tenant: Tenant, module_database: str, fake: FakeEndpoint
) -> None:
    for n in range(8):
        await tenant.add(f"the otter swims past the {n}th mill", title=f"otter {n}")
    before = await tenant.search("otter mill", limit=50)
    changed = configured(module_database, fake).model_copy(update={"embed_model": "two"})
    async with Engine.open(changed) as engine:
        await engine.embedding.ensure_engine_model()
        moved = Tenant(engine, tenant.tenant)
        assert answered(await moved.search("otter mill", limit=50)) == answered(before)
        fake.forget_calls()
        late = await moved.add("the heron stands", title="heron")
        assert {call.body["model"] for call in fake.calls} == {"one"}
        assert (await moved.found("heron"))[0] == late.document_id
        live = Recipe.model_validate(
            await engine.pool.fetchval("SELECT recipe FROM memory.generation WHERE id = $1", await moved.live())
        )
        assert differences(changed.default_recipe(), live) == ["embed.model"]


async def test_search_of_a_generation_uses_its_own_tuning_and_model(tenant: Tenant, fake: FakeEndpoint) -> None:
    await tenant.add("the otter swims", title="otter")
    staged = await tenant.staged({"embed": {"model": "two"}, "authorityWeight": 0.0, "overfetch": 3})
    fake.forget_calls()
    explained = (await tenant.search("otter swimming today", generation=staged, explain=True)).explain
    assert explained is not None and explained["generation"] == staged
    assert {call.body["model"] for call in fake.calls if call.route == "embed"} == {"two"}
    old = await tenant.live()
    live = (await tenant.search("otter swimming today", explain=True)).explain
    assert live is not None and live["generation"] == old

    await tenant.promote(staged)
    for named, generation, model in ((old, old, "one"), (None, staged, "two")):
        fake.forget_calls()
        answer = await tenant.search("otter swimming tomorrow", generation=named, explain=True)
        assert answer.explain is not None and answer.explain["generation"] == generation
        assert {call.body["model"] for call in fake.calls if call.route == "embed"} == {model}
        assert answer.items and answer.degraded is None


async def test_a_building_generation_is_not_to_be_searched(tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    run_id = await tenant.run()
    with pytest.raises(NotFound):
        await tenant.search("otter", generation=run_id)
