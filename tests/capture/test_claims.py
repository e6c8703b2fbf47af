"""Claims: what they may be derived from, and who may see them."""

from typing import Any

import pytest

from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import Invalid
from memory_plane.plane.captured import Captured
from memory_plane.plane.retention import Retention
from memory_plane.plane.widening import Widening
from memory_plane.settings import Settings
from tests.capture.memory import Memory


async def tags(memory: Memory, captured: Captured) -> list[str]:
    found: list[str] = (await memory.document(captured.document_id))["access_tags"]
    return found


async def refused(memory: Memory, principal: str = "alice", **fields: Any) -> str:
    before = await memory.count("version")
    with pytest.raises(Invalid) as refusal:
        await memory.add(principal, **fields)
    assert await memory.count("version") == before
    return refusal.value.code


async def test_a_claim_carries_the_tags_common_to_its_sources_and_its_writers_own(memory: Memory) -> None:
    one = await memory.add(access_tags=["memory.space:eng", "memory.space:all"])
    two = await memory.add(access_tags=["memory.space:all", "memory.space:ops"])
    await memory.allow("dora", "memory.space:all", "search")

    claim = await memory.add("dora", derived_from=[one.version_id, two.version_id])

    assert await tags(memory, claim) == ["memory.owner:dora", "memory.owner:alice", "memory.space:all"]
    edges = await memory.rows("edge", "from_id = $1", claim.version_id)
    assert {(edge["rel"], edge["from_type"], edge["to_type"], edge["to_id"]) for edge in edges} == {
        ("derived_from", "version", "version", one.version_id),
        ("derived_from", "version", "version", two.version_id),
    }


async def test_a_claim_may_be_narrower_and_never_wider(memory: Memory) -> None:
    source = await memory.add(access_tags=["memory.space:eng", "memory.space:all"])
    narrow = await memory.add(derived_from=[source.version_id], access_tags=["memory.space:eng"])
    assert await tags(memory, narrow) == ["memory.owner:alice", "memory.space:eng"]
    hidden = await memory.add(derived_from=[source.version_id], access_tags=[])
    assert await tags(memory, hidden) == ["memory.owner:alice"]

    wider: list[dict[str, Any]] = [
        {"access_tags": ["memory.space:ops"]},
        {"share": {"tenant": True}},
        {"share": {"principals": ["bob"]}},
    ]
    for fields in wider:
        assert await refused(memory, derived_from=[source.version_id], **fields) == "audience_widening"


async def test_a_wider_audience_can_be_asked_for(memory: Memory) -> None:
    one = await memory.add(access_tags=["memory.space:eng"])
    two = await memory.add(access_tags=["memory.space:eng", "memory.space:ops"])

    claim = await memory.add(
        external_ref="claim",
        derived_from=[one.version_id, two.version_id],
        access_tags=["memory.space:eng", "memory.space:ops", "memory.space:all"],
        request_widening=True,
    )

    assert await tags(memory, claim) == ["memory.owner:alice", "memory.space:eng"]
    requests = {row["source_version_id"]: row for row in await memory.rows("audience_request")}
    assert {row["id"] for row in requests.values()} == set(claim.audience_request_ids)
    assert requests[one.version_id]["tags"] == ["memory.space:ops", "memory.space:all"]
    assert requests[two.version_id]["tags"] == ["memory.space:all"]
    assert {(row["version_id"], row["state"], row["requested_by"]) for row in requests.values()} == {
        (claim.version_id, "open", "alice")
    }
    again = await memory.add(
        external_ref="claim",
        derived_from=[one.version_id, two.version_id],
        access_tags=["memory.space:eng", "memory.space:all"],
        request_widening=True,
    )
    assert (again.status, again.audience_request_ids) == ("noop", []), "it has been asked already"


async def test_what_was_approved_is_no_widening_when_the_same_claim_comes_again(memory: Memory) -> None:
    source = await memory.add(access_tags=["memory.space:eng"])
    wanted: dict[str, Any] = {
        "external_ref": "claim",
        "derived_from": [source.version_id],
        "access_tags": ["memory.space:eng", "memory.space:ops"],
        "request_widening": True,
    }
    claim = await memory.add(**wanted)
    (request_id,) = claim.audience_request_ids
    widening = Widening(memory.pool, memory.access, None)
    await widening.decide(memory.tenant, request_id, "alice", approve=True)
    approved = ["memory.owner:alice", "memory.space:eng", "memory.space:ops"]
    assert await tags(memory, claim) == approved

    again = await memory.add(**wanted)

    assert (again.status, again.audience_request_ids) == ("noop", [])
    assert await tags(memory, claim) == approved
    assert await memory.count("audience_request") == 1


async def test_a_claim_captured_again_is_no_wider_than_its_sources_are_now(memory: Memory) -> None:
    source = await memory.add(external_ref="note", access_tags=["memory.space:eng", "memory.space:all"])
    claim = await memory.add(external_ref="claim", derived_from=[source.version_id])
    await memory.add(external_ref="note", access_tags=["memory.space:eng"])

    await memory.add(external_ref="claim", derived_from=[source.version_id], text="said better")

    assert await tags(memory, claim) == ["memory.owner:alice", "memory.space:eng"]


async def test_a_narrowed_claim_captured_again_stays_narrow(memory: Memory) -> None:
    source = await memory.add(access_tags=["memory.space:eng"])
    claim = await memory.add(external_ref="claim", derived_from=[source.version_id], access_tags=[])

    await memory.add(external_ref="claim", derived_from=[source.version_id], text="said better")

    assert await tags(memory, claim) == ["memory.owner:alice"]


async def test_sources_that_cannot_be_used_are_not_told_apart(memory: Memory, settings: Settings) -> None:
    await memory.allow("alice", "memory", Verb.FORGET)
    hidden = await memory.add("bob")
    forgotten = await memory.add("alice")
    await Retention(memory.pool, memory.access).forget(await memory.visibility("alice"), forgotten.document_id)
    other = Memory.on(memory.pool, settings, tenant="globex")
    foreign = await other.add("alice")

    messages = set()
    for source in ("kver_unknown", hidden.version_id, forgotten.version_id, foreign.version_id, hidden.document_id):
        for field, code in (("derived_from", "source_gone"), ("supports", "target_gone")):
            with pytest.raises(Invalid) as refusal:
                await memory.add(**{field: [source]})  # type: ignore[arg-type]
            assert refusal.value.code == code
            messages.add(refusal.value.detail.replace(field, "…"))
            assert source not in str(refusal.value.errors)
    assert len(messages) == 1


async def test_only_versions_are_derived_from(memory: Memory) -> None:
    source = await memory.add()
    assert await refused(memory, derived_from=[source.document_id]) == "source_gone"


async def test_a_claim_upon_a_claim_is_for_those_who_see_the_first_source_too(memory: Memory) -> None:
    for principal in ("bob", "carol"):
        await memory.allow(principal, "memory.space:eng", "search")
    source = await memory.add(external_ref="note", access_tags=["memory.space:eng"])
    claim = await memory.add("bob", derived_from=[source.version_id])
    await memory.add(external_ref="note", access_tags=[])

    assert await refused(memory, "carol", derived_from=[claim.version_id]) == "source_gone"


async def test_corroboration_starts_at_the_version(memory: Memory) -> None:
    one, two = await memory.add(), await memory.add()
    entity = await memory.add(entities=[{"kind": "person", "identifier": "ada"}])
    (named,) = await memory.rows("entity")

    claim = await memory.add(supports=[one.version_id, named["id"]], contradicts=[two.document_id])

    edges = await memory.rows("edge", "from_id = $1", claim.version_id)
    assert {(edge["rel"], edge["from_type"], edge["to_type"], edge["to_id"]) for edge in edges} == {
        ("supports", "version", "version", one.version_id),
        ("supports", "version", "entity", named["id"]),
        ("contradicts", "version", "document", two.document_id),
    }
    mentions = await memory.rows("edge", "rel = 'mentions'")
    assert [(edge["from_type"], edge["from_id"]) for edge in mentions] == [("document", entity.document_id)]
    assert await tags(memory, claim) == ["memory.owner:alice"], "what supports is no claim"
