"""Retention classes, deprecation, and what is past its time."""

import pytest

from memory_plane.contracts.enums import RetentionClass, VersionStatus
from memory_plane.contracts.errors import Conflict, Forbidden, NotFound
from tests.access.seed import TENANT
from tests.retention.conftest import Plane

PAST, FUTURE = "2020-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00"


async def test_the_class_is_the_version_creators_to_set(plane: Plane) -> None:
    captured = await plane.add(external_ref="one", access_tags=["memory.space:team"])
    await plane.grant("bob", "memory.space:team", "*")
    by_bob = await plane.add("bob", external_ref="one", text="bob's version")
    assert by_bob.document_id == captured.document_id
    answer = await plane.retention.set_retention_class(
        await plane.sight("bob"), by_bob.version_id, RetentionClass.DURABLE
    )
    assert (answer.document_id, answer.status) == (captured.document_id, VersionStatus.ACTIVE)
    with pytest.raises(Forbidden):
        await plane.retention.set_retention_class(
            await plane.sight("alice"), by_bob.version_id, RetentionClass.STANDARD
        )
    assert (await plane.events())[-1] == ("reclassed", captured.document_id, by_bob.version_id)
    events = await plane.events()
    await plane.retention.set_retention_class(await plane.sight("bob"), by_bob.version_id, RetentionClass.DURABLE)
    assert await plane.events() == events, "the same class again is no change"


async def test_deprecating_is_idempotent_and_ends_only_what_is_not_ended(plane: Plane) -> None:
    captured = await plane.add(external_ref="one")
    assert await plane.retention.deprecate(TENANT, captured.version_id, "outdated") is VersionStatus.DEPRECATED
    events = await plane.events()
    assert await plane.retention.deprecate(TENANT, captured.version_id) is VersionStatus.DEPRECATED
    assert await plane.events() == events
    assert events[-1] == ("deprecated", captured.document_id, captured.version_id)
    assert await plane.count("version", "status_reason = 'outdated'") == 1
    for tenant, version in (("other", captured.version_id), (TENANT, "kver_unknown")):
        with pytest.raises(NotFound):
            await plane.retention.deprecate(tenant, version)
    await plane.retention.forget(await plane.sight(), captured.document_id)
    with pytest.raises(Conflict):
        await plane.retention.deprecate(TENANT, captured.version_id)


async def test_the_sweep_deprecates_what_is_past_its_time_and_nothing_else(plane: Plane) -> None:
    past = [await plane.add(retention_class="ephemeral", valid_until=PAST) for _ in range(5)]
    week_old, fresh = await plane.add(retention_class="ephemeral"), await plane.add(retention_class="ephemeral")
    kept = [
        fresh,
        await plane.add(retention_class="ephemeral", valid_until=FUTURE),
        await plane.add(valid_until=PAST),
        await plane.add(retention_class="durable", valid_until=PAST),
    ]
    async with plane.pool.acquire() as conn:
        await conn.execute(
            "UPDATE memory.version SET ingested_at = ingested_at - interval '7 days' WHERE id = $1", week_old.version_id
        )
    assert [await plane.retention.sweep_batch(TENANT, 2) for _ in range(4)] == [2, 2, 2, 0]
    for each in [*past, week_old]:
        assert await plane.statuses(each.document_id) == ["deprecated"]
        assert await plane.count("chunk", "version_id = $1", each.version_id) > 0, "a sweep never deletes"
    for each in kept:
        assert await plane.statuses(each.document_id) == ["active"]
    assert len([event for event in await plane.events() if event[0] == "deprecated"]) == 6
    assert await plane.retention.sweep(TENANT) == await plane.retention.sweep() == 0


async def test_inv_04_a_capture_after_the_sweep_continues_the_numbering(plane: Plane) -> None:
    first = await plane.add(retention_class="ephemeral", valid_until=PAST, external_ref="one")
    await plane.retention.sweep(TENANT)
    again = await plane.add(retention_class="ephemeral", valid_until=PAST, external_ref="one")
    assert again.status == "captured" and again.document_id == first.document_id
    assert await plane.statuses(first.document_id) == ["deprecated", "active"]
