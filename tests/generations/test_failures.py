"""One bad item neither stops a run nor is forgotten by it."""

import pytest

from memory_plane.contracts.errors import Conflict
from memory_plane.store.database import connection
from tests.canaries import CANARY
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Poison
from tests.generations.world import Tenant, embed_states


async def spoil(tenant: Tenant, version_id: str, raw: str) -> None:
    """As damage, or a schema that a later release no longer reads, would leave a payload."""
    await tenant.engine.pool.execute(
        "UPDATE memory.raw_capture SET raw_text = $2 WHERE id = "
        "(SELECT raw_capture_id FROM memory.version WHERE id = $1)",
        version_id,
        raw,
    )


async def test_a_text_that_will_not_embed_fails_the_run_and_not_the_others(tenant: Tenant, fake: FakeEndpoint) -> None:
    good = [await tenant.add(f"the otter swims {n}") for n in range(4)]
    bad = await tenant.add("the otter and the POISON")
    fake.fail(Poison("POISON"))
    run_id = await tenant.run()
    standing = await tenant.build(run_id)
    assert (standing.state, standing.status) == ("failed", "failed")
    assert (standing.versions, standing.failed, standing.pending) == (5, 1, 0)
    assert standing.error is not None and bad.version_id in standing.error
    assert await embed_states(tenant, run_id) == {"embedded": 4, "failed": 1}
    failures = await tenant.engine.transforms.failures(tenant.tenant, run_id)
    assert (failures.count, failures.version_ids) == (1, [bad.version_id])
    with pytest.raises(Conflict) as refused:
        await tenant.promote(run_id)
    assert refused.value.code == "run_not_completed"

    fake.heal()
    reopened = await tenant.engine.transforms.reopen(tenant.tenant, run_id)
    assert (reopened.standing.state, reopened.standing.pending) == ("building", 1)
    standing = await tenant.build(run_id, retry_before=reopened.retry_before)
    assert (standing.state, standing.status, standing.failed) == ("staged", "completed", 0)
    await tenant.promote(run_id)
    assert set(await tenant.found("otter")) == {each.document_id for each in (*good, bad)}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("{not json", "not JSON"),
        ('{"title": "t"}', "text is required"),
        (f'{{"title": "{CANARY}", "text": 7}}', "text must be a string"),
        ('{"title": "t", "text": " "}', "text must not be blank"),
        # As a version might have accepted it that read numbers as seconds since 1970.
        (f'{{"title": "{CANARY}", "text": "x", "occurred_at": 1700000000}}', "occurred_at must be an ISO 8601 time"),
        pytest.param("[" * 50_000 + "]" * 50_000, "nested too deeply", id="nested"),
    ],
)
async def test_a_payload_that_no_longer_parses_is_a_failure_without_its_content(
    tenant: Tenant, raw: str, said: str
) -> None:
    await tenant.add("the otter swims")
    bad = await tenant.add("the heron stands")
    await spoil(tenant, bad.version_id, raw)
    run_id = await tenant.run()
    standing = await tenant.build(run_id)
    assert (standing.state, standing.versions, standing.failed) == ("failed", 1, 1)
    assert standing.error is not None and said in standing.error and CANARY not in standing.error
    row = await tenant.engine.pool.fetchrow("SELECT * FROM memory.transform_run WHERE id = $1", run_id)
    assert row is not None
    assert (row["version_count"], row["failed_count"], row["raw_count"]) == (1, 1, 1)

    # Retried while nothing is mended, it fails again, with one more attempt; mended, the run completes.
    reopened = await tenant.engine.transforms.reopen(tenant.tenant, run_id)
    assert (await tenant.build(run_id, retry_before=reopened.retry_before)).state == "failed"
    attempts = "SELECT attempts FROM memory.transform_failure WHERE run_id = $1"
    assert await tenant.engine.pool.fetchval(attempts, run_id) == 2
    await spoil(tenant, bad.version_id, '{"title": "heron", "text": "the heron stands"}')
    reopened = await tenant.engine.transforms.reopen(tenant.tenant, run_id)
    standing = await tenant.build(run_id, retry_before=reopened.retry_before)
    assert (standing.state, standing.versions, standing.failed) == ("staged", 2, 0)


async def test_a_failure_that_is_forgotten_is_nobodys(tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    bad = await tenant.add("the heron stands")
    await spoil(tenant, bad.version_id, "{not json")
    run_id = await tenant.run()
    assert (await tenant.build(run_id)).state == "failed"
    await tenant.forget(bad.document_id)
    assert (await tenant.engine.transforms.standing(tenant.tenant, run_id)).failed == 0
    reopened = await tenant.engine.transforms.reopen(tenant.tenant, run_id)
    standing = await tenant.build(run_id, retry_before=reopened.retry_before)
    assert (standing.state, standing.versions) == ("staged", 1)


async def test_what_will_not_be_caught_up_with_refuses_promote_and_is_driven_again(
    tenant: Tenant, fake: FakeEndpoint
) -> None:
    await tenant.add("the otter swims")
    staged = await tenant.staged()
    late = await tenant.capture("the heron and the POISON")
    fake.fail(Poison("POISON"))
    with pytest.raises(Conflict) as refused:
        await tenant.promote(staged)
    assert refused.value.code == "catch_up_failed" and late.version_id in refused.value.detail
    assert await tenant.live() != staged
    fake.heal()
    await tenant.promote(staged)
    assert (await tenant.found("heron"))[0] == late.document_id
    assert (await tenant.engine.transforms.failures(tenant.tenant, staged)).count == 0


async def test_demote_goes_on_with_what_failed_where_that_is_allowed(tenant: Tenant) -> None:
    await tenant.add("the otter swims")
    old = await tenant.live()
    staged = await tenant.staged()
    await tenant.promote(staged)
    late, fine = await tenant.add("the heron stands"), await tenant.add("the newt hides")
    await spoil(tenant, late.version_id, "{not json")
    with pytest.raises(Conflict) as refused:
        await tenant.demote(staged)
    assert refused.value.code == "catch_up_failed" and await tenant.live() == staged
    await tenant.demote(staged, allow_failed=True)
    assert await tenant.live() == old
    assert (await tenant.found("newt"))[0] == fine.document_id
    assert late.document_id not in await tenant.found("heron")
    failures = await tenant.engine.transforms.failures(tenant.tenant, old)
    assert failures.version_ids == [late.version_id]


async def test_a_failure_in_the_cut_itself_changes_nothing(tenant: Tenant) -> None:
    """The version comes after the last catch-up, and is met for the first time while captures are kept out."""
    await tenant.add("the otter swims")
    old = await tenant.live()
    staged = await tenant.staged()
    plan = await tenant.check("promote", staged)
    await tenant.catch_up(plan)
    late = await tenant.add("the heron stands")
    await spoil(tenant, late.version_id, "{not json")
    with pytest.raises(Conflict) as refused:
        await tenant.engine.cutover.cut(plan)
    assert refused.value.code == "catch_up_failed"
    assert (await tenant.live(), await tenant.state(staged)) == (old, "staged")
    async with connection(tenant.engine.pool) as conn:
        run = await conn.fetchrow("SELECT * FROM memory.transform_run WHERE id = $1", staged)
    assert run is not None and run["archived_live_generation"] is None and run["promoted_at"] is None
