"""What may not be promoted, demoted, discarded or finalized: each refusal has a code of its own and a sentence."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from memory_plane.contracts.errors import Conflict, NotFound, PlaneError, Unavailable
from memory_plane.contracts.transforms import Decide, TransformScope
from tests.fakes.endpoint import FakeEndpoint
from tests.generations.world import OTHER_MODEL, Tenant


async def refused(work: Awaitable[object]) -> str:
    with pytest.raises(PlaneError) as caught:
        await work
    assert caught.value.detail.endswith(".") and isinstance(caught.value, Conflict | NotFound)
    return caught.value.code


@asynccontextmanager
async def gone(fake: FakeEndpoint) -> AsyncIterator[None]:
    """While this lasts nothing listens at the endpoint."""
    port = fake.port
    await fake.stop()
    try:
        yield
    finally:
        await fake.start(port)


async def test_promote_refuses_what_is_not_whole(tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    running = await tenant.run()
    assert await refused(tenant.check("promote", running)) == "run_not_completed"
    await tenant.build(running)
    await tenant.check("promote", running)

    scoped = await tenant.run(scope=TransformScope(adapter="http"))
    await tenant.build(scoped)
    assert await refused(tenant.check("promote", scoped)) == "run_scoped"
    assert await refused(tenant.check("promote", await tenant.live())) == "generation_is_live"
    assert await refused(tenant.check("promote", "trun_unknown")) == "generation_not_found"


async def test_a_scoped_run_holds_its_scope_and_takes_nothing_from_live(tenant: Tenant) -> None:
    """Field case: nothing outside of the scope vanishes."""
    inside = await tenant.add("the otter swims", adapter="mail", external_ref="1")
    outside = await tenant.add("the otter sleeps", external_ref="2")
    scoped = await tenant.run(scope=TransformScope(adapter="mail"))
    await tenant.build(scoped)
    assert await tenant.found("otter", generation=scoped) == [inside.document_id]
    with pytest.raises(Conflict):
        await tenant.promote(scoped)
    assert set(await tenant.found("otter")) == {inside.document_id, outside.document_id}


async def test_inv_11_another_tenants_generation_is_as_unknown(tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    staged = await tenant.staged()
    stranger = Tenant(tenant.engine, f"{tenant.tenant}-2")
    await stranger.allow("ann")
    await stranger.add("the heron stands")
    for generation in (staged, await tenant.live()):
        assert await refused(stranger.check("promote", generation)) == "generation_not_found"
        assert await refused(stranger.check("demote", generation)) == "generation_not_found"
        assert await refused(stranger.engine.retiring.retire(stranger.tenant, generation)) == "generation_not_found"
        assert await refused(stranger.search("heron", generation=generation)) == "not_found"
        with pytest.raises(NotFound):
            await stranger.engine.transforms.standing(stranger.tenant, generation)
    config = (await tenant.engine.transforms.configs(tenant.tenant))[0]
    assert await refused(stranger.engine.transforms.create_run(stranger.tenant, config.id)) == "config_not_found"
    assert await stranger.engine.transforms.configs(stranger.tenant) == []


async def test_a_recipe_without_a_reachable_endpoint_is_not_promoted(tenant: Tenant, fake: FakeEndpoint) -> None:
    await tenant.add("the otter swims")
    wordless = await tenant.staged({"embed": None})
    assert await refused(tenant.check("promote", wordless)) == "embed_not_configured"
    assert (await tenant.check("promote", wordless, allow_partial_dense=True)).embed is False
    staged = await tenant.staged()
    async with gone(fake):
        assert await refused(tenant.check("promote", staged)) == "embed_unreachable"


async def test_demote_says_when_the_model_of_what_comes_back_is_gone(tenant: Tenant, fake: FakeEndpoint) -> None:
    async with FakeEndpoint(models={"elsewhere": 72}) as elsewhere:
        embed = {"model": "elsewhere", "baseUrl": elsewhere.url}
        await tenant.add("the otter swims", title="otter")
        first = await tenant.staged({"embed": embed})
        await tenant.promote(first)
        second = await tenant.staged()
        await tenant.promote(second)
        late = await tenant.add("the heron stands in the reeds", title="heron")
    assert await refused(tenant.check("demote", second)) == "embed_unreachable"
    await tenant.demote(second, allow_partial_dense=True)
    assert await tenant.live() == first
    answer = await tenant.search("heron reeds")
    assert answer.items[0].document_id == late.document_id
    assert answer.degraded == ["dense_unavailable"]


async def test_demote_needs_something_to_go_back_to(tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    old = await tenant.live()
    assert await refused(tenant.check("demote", old)) == "nothing_archived"
    staged = await tenant.staged()
    assert await refused(tenant.check("demote", staged)) == "generation_not_live"
    await tenant.promote(staged)
    assert await refused(tenant.check("demote", old)) == "generation_not_live"
    await aged(tenant, old)
    await tenant.engine.retiring.retire(tenant.tenant, old)
    assert await refused(tenant.check("demote", staged)) == "archived_retired"
    assert await refused(tenant.check("promote", old)) == "generation_retired"
    assert await refused(tenant.search("otter", generation=old)) == "not_found"


async def test_an_archived_generation_is_promoted_again_by_name(tenant: Tenant) -> None:
    await tenant.add("the otter swims", title="otter")
    old = await tenant.live()
    staged = await tenant.staged()
    await tenant.promote(staged)
    late = await tenant.add("the heron stands in the reeds", title="heron")
    await tenant.promote(old)
    assert (await tenant.live(), await tenant.state(staged)) == (old, "archived")
    assert (await tenant.found("heron reeds"))[0] == late.document_id
    await tenant.promote(staged)
    assert (await tenant.live(), await tenant.state(old)) == (staged, "archived")


async def test_what_is_retired_and_what_is_not(tenant: Tenant) -> None:
    engine, name = tenant.engine, tenant.tenant
    await tenant.add("the otter swims")
    old = await tenant.live()
    building = await tenant.run()
    assert await refused(engine.retiring.retire(name, old)) == "generation_is_live"
    assert await refused(engine.retiring.retire(name, building)) == "run_not_completed"
    assert await refused(engine.retiring.delete(name, old)) == "generation_not_retired"
    await tenant.build(building)
    for decision, code in (("finalize", "nothing_archived"),):
        given = Decide(tenant_id=name, run_id=building, decision="finalize")
        assert (decision, await refused(engine.retiring.check(given))) == ("finalize", code)
    await tenant.promote(building)
    discard = Decide(tenant_id=name, run_id=building, decision="discard")
    assert await refused(engine.retiring.check(discard)) == "generation_is_live"
    assert await engine.retiring.check(Decide(tenant_id=name, run_id=building, decision="finalize")) == old

    with pytest.raises(Unavailable) as soon:
        await engine.retiring.retire(name, old)
    assert soon.value.code == "searches_under_way" and 0 < (soon.value.retry_after or 0) <= 1
    await aged(tenant, old)
    chunks = await tenant.chunks(old)
    for _ in range(2):
        await engine.retiring.retire(name, old)
    assert await engine.retiring.delete(name, old) == chunks
    assert await engine.retiring.delete(name, old) == 0
    for table in ("chunk", "derivation", "lexical_term", "lexical_corpus"):
        left = await engine.pool.fetchval(f"SELECT count(*) FROM memory.{table} WHERE generation_id = $1", old)
        assert left == 0
    assert await tenant.found("otter")


async def test_a_deletion_that_was_broken_off_is_finished_by_the_reconciler(tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    staged = await tenant.staged()
    await aged(tenant, staged)
    await tenant.engine.retiring.retire(tenant.tenant, staged)
    assert await tenant.chunks(staged) > 0
    assert await tenant.engine.reconciling.retire_due(5000) >= 1
    assert await tenant.chunks(staged) == 0


async def test_nothing_is_derived_into_a_retired_generation(tenant: Tenant) -> None:
    """A step that was under way when it was retired leaves nothing that nobody would delete."""
    await tenant.add("the otter swims")
    staged = await tenant.staged()
    await tenant.add("the heron stands")
    plan = await tenant.check("promote", staged)
    await aged(tenant, staged)
    await tenant.engine.retiring.retire(tenant.tenant, staged)
    await tenant.engine.retiring.delete(tenant.tenant, staged)
    await tenant.catch_up(plan)
    assert await tenant.chunks(staged) == 0
    assert await refused(tenant.engine.cutover.cut(plan)) == "generation_retired"


async def test_a_cut_that_was_checked_before_another_is_refused(tenant: Tenant) -> None:
    """A zombie of an earlier cutover cannot flip what a later one has set right."""
    await tenant.add("the otter swims")
    staged = await tenant.staged()
    stale = await tenant.check("promote", staged)
    await tenant.promote(staged)
    assert (await tenant.engine.cutover.cut(stale)).flipped
    await tenant.demote(staged)
    assert await refused(tenant.engine.cutover.cut(stale)) == "live_moved"


async def test_a_model_too_large_to_index_fails_the_run_with_a_sentence(tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    run_id = await tenant.run({"embed": {"model": "huge"}})
    standing = await tenant.engine.transforms.standing(tenant.tenant, run_id)
    assert standing.state == "failed" and standing.status == "failed"
    assert standing.error is not None and "4096 dimensions" in standing.error


async def test_a_key_that_is_not_set_fails_the_run_with_its_name(tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    run_id = await tenant.run({"embed": {"model": "two", "apiKeyEnv": "NO_SUCH_KEY_ANYWHERE"}})
    standing = await tenant.engine.transforms.standing(tenant.tenant, run_id)
    assert standing.state == "failed" and "NO_SUCH_KEY_ANYWHERE" in (standing.error or "")


async def aged(tenant: Tenant, generation: str) -> None:
    """As if the last search that may read it had ended."""
    await tenant.engine.pool.execute(
        "UPDATE memory.generation SET state_at = state_at - interval '1 hour' WHERE id = $1", generation
    )


async def test_a_first_run_of_a_tenant_without_documents(tenant: Tenant) -> None:
    run_id = await tenant.run(OTHER_MODEL)
    standing = await tenant.build(run_id)
    assert (standing.state, standing.versions) == ("staged", 0)
    await tenant.promote(run_id)
    assert await tenant.live() == run_id
    added = await tenant.add("the otter swims")
    assert await tenant.found("otter") == [added.document_id]
