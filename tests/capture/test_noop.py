"""The same content again: nothing new is written, and what was said beside the content is done."""

from datetime import timedelta
from typing import Any

import pytest

from memory_plane.contracts.enums import EmbedState, RetentionClass
from memory_plane.settings import Settings
from memory_plane.store.database import Pool
from tests.capture.memory import Memory


@pytest.fixture
def embedding_memory(pool: Pool, settings: Settings) -> Memory:
    """Of a tenant whose recipe names an endpoint, which nobody here calls."""
    configured = settings.model_copy(update={"embed_base_url": "http://127.0.0.1:9", "embed_model": "m"})
    return Memory.on(pool, configured)


async def test_inv_05_narrower_tags_narrow_at_once(memory: Memory) -> None:
    await memory.allow("bob", "memory.space:eng", "search")
    first = await memory.add(external_ref="note", access_tags=["memory.space:eng"])
    assert [event.document_id for event in (await memory.library.list(await memory.visibility("bob"), 10, None)).events]

    again = await memory.add(external_ref="note", access_tags=["memory.space:ops"])

    assert (again.status, again.version_id) == ("noop", first.version_id)
    assert (await memory.library.list(await memory.visibility("bob"), 10, None)).events == []
    assert (await memory.document(first.document_id))["access_tags"] == ["memory.owner:alice", "memory.space:ops"]


async def test_another_tag_writes_no_second_raw_capture(memory: Memory) -> None:
    await memory.add(external_ref="note")
    await memory.add(external_ref="note", access_tags=["memory.space:eng"])

    assert await memory.count("raw_capture") == 1
    assert await memory.count("version") == 1
    assert await memory.events() == [(1, "captured"), (2, "retagged")]


async def test_absent_tags_change_nothing_and_an_empty_list_clears_them(memory: Memory) -> None:
    first = await memory.add(external_ref="note", access_tags=["memory.space:eng"], share={"principals": ["bob"]})

    await memory.add(external_ref="note")
    assert len((await memory.document(first.document_id))["access_tags"]) == 4
    assert await memory.share_rules(first.document_id) == ["bob"]

    await memory.add(external_ref="note", access_tags=[])
    assert (await memory.document(first.document_id))["access_tags"] == ["memory.owner:alice"]
    assert await memory.share_rules(first.document_id) == []
    assert await memory.events() == [(1, "captured"), (2, "retagged")]


async def test_tags_as_they_are_write_no_event(memory: Memory) -> None:
    await memory.add(external_ref="note", access_tags=["memory.space:eng"])
    await memory.add(external_ref="note", access_tags=["memory.space:eng"])

    assert await memory.events() == [(1, "captured")]


async def test_a_new_peer_gains_a_rule_and_followers_learn_of_it(memory: Memory) -> None:
    first = await memory.add(external_ref="note", share={"principals": ["bob"]})
    again = await memory.add(external_ref="note", share={"principals": ["bob", "carol"]})

    assert again.grants_materialized is True
    assert await memory.share_rules(first.document_id) == ["bob", "carol"]
    assert await memory.events() == [(1, "captured"), (2, "retagged"), (3, "shared")]


async def test_tags_sent_back_as_they_were_drop_no_peer(memory: Memory) -> None:
    first = await memory.add(external_ref="note", share={"principals": ["bob"]})
    tags = (await memory.document(first.document_id))["access_tags"]

    await memory.add(external_ref="note", access_tags=tags)

    assert await memory.share_rules(first.document_id) == ["bob"]


async def test_a_seen_document_moves_to_the_front(memory: Memory) -> None:
    await memory.add(external_ref="one", text="one")
    await memory.add(external_ref="two", text="two")
    before = await memory.rows("document", "external_ref = 'one'")

    await memory.add(external_ref="one", text="one")

    after = await memory.rows("document", "external_ref = 'one'")
    assert after[0]["last_seen_at"] > before[0]["last_seen_at"]
    assert after[0]["created_at"] == before[0]["created_at"]


async def test_a_given_retention_class_is_applied_for_the_versions_creator(memory: Memory) -> None:
    first = await memory.add(external_ref="note", access_tags=["memory.space:eng"])
    await memory.allow("bob", "memory.space:eng", "add")

    await memory.add("bob", external_ref="note", retention_class="durable")
    (version,) = await memory.chain(first.document_id)
    assert version["retention_class"] == RetentionClass.STANDARD, "not bob's to set"

    await memory.add(external_ref="note", retention_class="durable")
    await memory.add(external_ref="note", retention_class="durable")
    (version,) = await memory.chain(first.document_id)
    assert version["retention_class"] == RetentionClass.DURABLE
    assert await memory.events() == [(1, "captured"), (2, "reclassed")]


async def test_a_failed_embed_is_driven_again_with_all_its_attempts(embedding_memory: Memory) -> None:
    memory = embedding_memory
    first = await memory.add(external_ref="note")
    assert first.embed_state is EmbedState.PENDING
    await memory.pool.execute("UPDATE memory.derivation SET embed_state = 'failed', attempts = 5, last_error = 'x'")

    again = await memory.add(external_ref="note")

    assert (again.status, again.embed_state) == ("noop", EmbedState.PENDING)
    (row,) = await memory.rows("derivation")
    assert (row["embed_state"], row["attempts"], row["last_error"]) == ("pending", 0, None)


async def test_a_pending_embed_is_told_again_and_a_done_one_is_left(embedding_memory: Memory) -> None:
    memory = embedding_memory
    await memory.add(external_ref="note")
    assert (await memory.add(external_ref="note")).embed_state is EmbedState.PENDING

    await memory.pool.execute("UPDATE memory.derivation SET embed_state = 'embedded'")
    assert (await memory.add(external_ref="note")).embed_state is EmbedState.EMBEDDED


async def test_processors_are_asked_for_again_unless_they_are_done(memory: Memory) -> None:
    first = await memory.add(external_ref="note", process=["tag", "link"])
    assert first.process_pending
    await memory.pool.execute("UPDATE memory.process_request SET state = 'done' WHERE processor = 'tag'")
    await memory.pool.execute(
        "UPDATE memory.process_request SET state = 'quarantined', attempts = 5 WHERE processor = 'link'"
    )
    assert not (await memory.add(external_ref="note", process=["tag"])).process_pending

    again = await memory.add(external_ref="note", process=["tag", "link", "classify"])

    assert (again.status, again.process_pending) == ("noop", True)
    states = {row["processor"]: row["state"] for row in await memory.rows("process_request")}
    assert states == {"tag": "done", "link": "pending", "classify": "pending"}


async def test_an_expired_ephemeral_version_gives_no_noop(memory: Memory) -> None:
    first = await memory.add(external_ref="note", retention_class="ephemeral")
    await memory.pool.execute("UPDATE memory.version SET ingested_at = ingested_at - $1::interval", timedelta(days=8))

    again = await memory.add(external_ref="note", retention_class="ephemeral")

    assert again.status == "captured"
    chain = await memory.chain(first.document_id)
    assert [(row["version"], row["status"]) for row in chain] == [(1, "deprecated"), (2, "active")]
    assert chain[0]["status_reason"] == "expired"
    assert await memory.events() == [(1, "captured"), (2, "deprecated"), (3, "captured")]
    assert await memory.count("raw_capture") == 1, "the same payload is kept once"


async def test_an_ephemeral_version_within_its_time_does(memory: Memory) -> None:
    await memory.add(external_ref="note", retention_class="ephemeral")
    assert (await memory.add(external_ref="note", retention_class="ephemeral")).status == "noop"


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Another title"},
        {"kind": "letter"},
        {"attributes": {"a": 1}},
        {"occurred_at": "2024-01-01T00:00:00Z"},
        {"valid_until": "2034-01-01T00:00:00Z"},
        {"temporal_class": "lesson"},
        {"provenance": "inferred"},
        {"lineage_class": "imported"},
        {"generator_agent_id": "bot"},
        {"entities": [{"kind": "person", "identifier": "p"}]},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_change_of_content_is_a_new_version(memory: Memory, change: dict[str, Any]) -> None:
    first = await memory.add(external_ref="note")
    second = await memory.add(external_ref="note", **change)

    assert second.status == "captured"
    assert [row["status"] for row in await memory.chain(first.document_id)] == ["superseded", "active"]
