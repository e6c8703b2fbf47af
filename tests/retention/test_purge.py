"""Purging: the rows are gone, the claims are forgotten, durable ones are kept until they are forgotten."""

from uuid import uuid4

import pytest

from memory_plane.contracts.enums import RetentionClass
from memory_plane.contracts.errors import NotFound
from memory_plane.core.access_tags import owner_tag
from tests.retention.conftest import Plane
from tests.retention.scan import columns_with
from tests.retention.test_forget import full_of


async def purge(plane: Plane, document_id: str, principal: str = "alice") -> tuple[bool, str | None]:
    answer = await plane.retention.purge(await plane.sight(principal), document_id)
    assert answer.document_id == document_id
    return answer.deleted, answer.reason


async def test_inv_20_nothing_purged_is_left_in_any_column_of_any_table(plane: Plane) -> None:
    canary = f"canary{uuid4().hex}"
    source, claim = await full_of(plane, canary)
    assert len(await columns_with(plane.pool, canary)) > 20
    assert await purge(plane, source.document_id) == (True, None)
    assert await columns_with(plane.pool, canary) == {"grant_rule.resource"}, "the operator's own rule on the tag"
    # Of the document nothing but its events and the answers kept for retries; of the claim a tombstone.
    holding = {column.partition(".")[0] for column in await columns_with(plane.pool, source.document_id)}
    assert holding == {"feed_event"}
    assert await plane.statuses(source.document_id) == []
    assert await plane.statuses(claim.document_id) == ["tombstoned"]
    assert await plane.count("edge") == await plane.count("entity") == 0
    kinds = [(kind, document) for kind, document, _ in await plane.events()]
    assert kinds[-2:] == [("forgotten", claim.document_id), ("purged", source.document_id)]
    with pytest.raises(NotFound):
        await purge(plane, source.document_id)


async def test_a_durable_version_refuses_until_it_is_forgotten_or_reclassed(plane: Plane) -> None:
    durable = await plane.add(retention_class="durable", external_ref="one")
    await plane.add(text="superseding it does not release it", external_ref="one")
    events = await plane.events()
    deleted, reason = await purge(plane, durable.document_id)
    assert not deleted and reason is not None and "durable" in reason
    assert await plane.statuses(durable.document_id) == ["superseded", "active"]
    assert await plane.events() == events
    await plane.retention.forget(await plane.sight(), durable.document_id)
    assert await purge(plane, durable.document_id) == (True, None)

    reclassed = await plane.add(retention_class="durable")
    await plane.retention.set_retention_class(await plane.sight(), reclassed.version_id, RetentionClass.STANDARD)
    assert await purge(plane, reclassed.document_id) == (True, None)


async def test_a_durable_claim_does_not_keep_its_source(plane: Plane) -> None:
    await plane.grant("dora", owner_tag("alice"))
    source = await plane.add()
    claim = await plane.add("dora", derived_from=[source.version_id], retention_class="durable")
    assert await purge(plane, source.document_id) == (True, None)
    assert await plane.statuses(claim.document_id) == ["tombstoned"]


async def test_edges_of_others_to_the_purged_go_and_what_they_said_stays(plane: Plane) -> None:
    one, other = await plane.add(), await plane.add()
    supporting = await plane.add(supports=[one.version_id, other.version_id])
    await purge(plane, one.document_id)
    assert await plane.count("edge", "to_id = $1", one.version_id) == 0
    assert await plane.count("edge", "to_id = $1", other.version_id) == 1
    assert await plane.statuses(supporting.document_id) == ["active"]


async def test_inv_04_a_capture_after_a_purge_starts_anew(plane: Plane) -> None:
    one = await plane.add(external_ref="same", text="same")
    await purge(plane, one.document_id)
    again = await plane.add(external_ref="same", text="same")
    assert again.status == "captured" and again.document_id != one.document_id


async def test_share_rules_go_with_the_document(plane: Plane) -> None:
    one = await plane.add(share={"principals": ["bob"]})
    assert await plane.count("grant_rule", "conditions ? 'memoryShare'") == 1
    await purge(plane, one.document_id)
    assert await plane.count("grant_rule", "conditions ? 'memoryShare'") == 0
