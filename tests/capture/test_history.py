"""A document goes on: through other contents and back, after deprecation, sweep, forget and purge."""

from datetime import timedelta

import pytest

from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import Forbidden
from memory_plane.plane.retention import Retention
from tests.capture.memory import Memory


async def test_a_then_b_then_a_are_three_versions_over_two_raw_captures(memory: Memory) -> None:
    texts = ["A", "B", "A"]
    answers = [await memory.add(external_ref="note", text=text) for text in texts]

    chain = await memory.chain(answers[0].document_id)
    assert [(row["version"], row["status"]) for row in chain] == [
        (1, "superseded"),
        (2, "superseded"),
        (3, "active"),
    ]
    assert chain[0]["raw_capture_id"] == chain[2]["raw_capture_id"] != chain[1]["raw_capture_id"]
    assert chain[0]["content_hash"] == chain[2]["content_hash"]
    assert (await memory.library.get(await memory.visibility("alice"), answers[0].document_id)).text == "A"


async def test_the_same_text_in_two_documents_is_two_raw_captures(memory: Memory) -> None:
    await memory.add(external_ref="one")
    await memory.add(external_ref="two")
    await memory.add()
    await memory.add()

    rows = await memory.rows("raw_capture")
    assert len({row["document_id"] for row in rows}) == len(rows) == 4


async def test_inv_04_capture_after_deprecate_continues(memory: Memory) -> None:
    first = await memory.add(external_ref="note")
    await Retention(memory.pool, memory.access).deprecate(memory.tenant, first.version_id, "outdated")

    again = await memory.add(external_ref="note")

    assert (again.status, again.document_id) == ("captured", first.document_id)
    chain = await memory.chain(first.document_id)
    assert [(row["version"], row["status"]) for row in chain] == [(1, "deprecated"), (2, "active")]


async def test_inv_04_capture_after_sweep_continues(memory: Memory) -> None:
    first = await memory.add(external_ref="note", retention_class="ephemeral")
    await memory.pool.execute("UPDATE memory.version SET ingested_at = ingested_at - $1::interval", timedelta(days=8))
    assert await Retention(memory.pool, memory.access).sweep(memory.tenant) == 1

    again = await memory.add(external_ref="note", retention_class="ephemeral")

    assert again.status == "captured"
    chain = await memory.chain(first.document_id)
    assert [(row["version"], row["status"]) for row in chain] == [(1, "deprecated"), (2, "active")]


async def test_inv_04_capture_after_forget_continues_as_a_new_capture(memory: Memory) -> None:
    await memory.allow("alice", "memory", Verb.FORGET)
    first = await memory.add(external_ref="note", access_tags=["memory.space:eng"], share={"principals": ["bob"]})
    retention = Retention(memory.pool, memory.access)
    await retention.forget(await memory.visibility("alice"), first.document_id)

    again = await memory.add(external_ref="note")

    assert (again.status, again.document_id) == ("captured", first.document_id)
    chain = await memory.chain(first.document_id)
    assert [(row["version"], row["status"]) for row in chain] == [(1, "tombstoned"), (2, "active")]
    assert chain[1]["supersedes_version_id"] is None
    assert chain[0]["raw_capture_id"] != chain[1]["raw_capture_id"], "a new capture, no resurrection"
    document = await memory.document(first.document_id)
    assert document["title"] == "A title"
    assert document["access_tags"] == ["memory.owner:alice"], "absent tags after a forget: the owner alone"
    assert await memory.share_rules(first.document_id) == []
    assert [kind for _, kind in await memory.events()] == ["captured", "forgotten", "captured"]


async def test_a_forgotten_document_is_not_for_others_to_write(memory: Memory) -> None:
    """Its name stays its creator's, whatever it was tagged with."""
    await memory.allow("alice", "memory", Verb.FORGET)
    await memory.allow("bob", "memory.space:eng", "add")
    first = await memory.add(external_ref="note", access_tags=["memory.space:eng"])
    await Retention(memory.pool, memory.access).forget(await memory.visibility("alice"), first.document_id)

    with pytest.raises(Forbidden):
        await memory.add("bob", external_ref="note")
    again = await memory.add("alice", external_ref="note", access_tags=["memory.space:ops"])

    assert (await memory.document(again.document_id))["access_tags"] == ["memory.owner:alice", "memory.space:ops"]


async def test_capture_after_purge_is_another_document(memory: Memory) -> None:
    for verb in (Verb.FORGET, Verb.PURGE):
        await memory.allow("alice", "memory", verb)
    first = await memory.add(external_ref="note")
    assert (
        await Retention(memory.pool, memory.access).purge(await memory.visibility("alice"), first.document_id)
    ).deleted

    again = await memory.add(external_ref="note")

    assert again.document_id != first.document_id
    assert [row["version"] for row in await memory.chain(again.document_id)] == [1]


async def test_defaults_are_as_written_down(memory: Memory) -> None:
    plain = await memory.add()
    by_agent = await memory.add(generator_agent_id="bot")
    derived = await memory.add(derived_from=[plain.version_id], lineage_class="native")

    (row,) = await memory.chain(plain.document_id)
    assert (row["provenance"], row["source_class"], row["temporal_class"], row["retention_class"]) == (
        "stated",
        "native",
        "event",
        "standard",
    )
    assert (row["created_by_kind"], row["created_by_principal_id"]) == ("human", "alice")
    assert row["occurred_at"] == row["ingested_at"]
    (row,) = await memory.chain(by_agent.document_id)
    assert (row["provenance"], row["temporal_class"], row["created_by_kind"]) == ("inferred", "state", "agent")
    (row,) = await memory.chain(derived.document_id)
    assert row["source_class"] == "derived"
