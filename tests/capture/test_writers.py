"""Whose document it is: who may write it, who may say who sees it, and whom that reaches."""

from typing import Any

import pytest

from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import Forbidden, Invalid, NotFound
from memory_plane.core.grants import GrantRule
from memory_plane.plane.retention import Retention
from memory_plane.settings import Settings
from memory_plane.store.grants import InMemoryGrantStore
from tests.capture.memory import Memory

WIDE: list[dict[str, Any]] = [
    {"access_tags": ["memory.space:x"]},
    {"access_tags": []},
    {"share": {}},
    {"share": {"principals": ["mallory"]}},
]


async def test_inv_27_a_name_is_no_key_to_a_document(memory: Memory) -> None:
    first = await memory.add(external_ref="note", access_tags=["memory.space:eng"])
    await memory.allow("mallory", "memory.space:eng", "search")
    before = await memory.document(first.document_id)

    attempts: list[dict[str, Any]] = [{}, {"text": "mine now"}, *WIDE, {"retention_class": "ephemeral"}]
    for fields in attempts:
        with pytest.raises(Forbidden) as refused:
            await memory.add("mallory", external_ref="note", **fields)
        assert refused.value.code == "not_document_writer"

    assert await memory.document(first.document_id) == before, "not even seen"
    assert await memory.count("version") == 1
    assert await memory.events() == [(1, "captured")]


async def test_inv_27_an_allowed_writer_writes_and_does_not_share(memory: Memory) -> None:
    first = await memory.add(external_ref="note", access_tags=["memory.space:eng"])
    await memory.allow("bob", "memory.space:*", "add")

    second = await memory.add("bob", external_ref="note", text="bob's words")

    assert (second.document_id, second.status) == (first.document_id, "captured")
    chain = await memory.chain(first.document_id)
    assert [row["created_by_principal_id"] for row in chain] == ["alice", "bob"]
    document = await memory.document(first.document_id)
    assert document["created_by_principal_id"] == "alice"
    assert document["access_tags"] == ["memory.owner:alice", "memory.space:eng"]
    for fields in WIDE:
        for text in ("bob's words", "other words"):
            with pytest.raises(Forbidden) as refused:
                await memory.add("bob", external_ref="note", text=text, **fields)
            assert refused.value.code == "not_document_owner"
    assert await memory.count("version") == 2


async def test_inv_27_a_share_is_to_see_and_never_to_forget(memory: Memory) -> None:
    for verb in Verb:
        await memory.allow("bob", "memory", verb)
        await memory.allow("mallory", "memory", verb)
    shared = await memory.add(external_ref="note", share={"principals": ["bob"]})
    bob, mallory = await memory.visibility("bob"), await memory.visibility("mallory")

    assert (await memory.library.get(bob, shared.document_id)).text == "A text."
    retention = Retention(memory.pool, memory.access)
    with pytest.raises(Forbidden):
        await retention.forget(bob, shared.document_id)
    for stranger, document_id in ((mallory, shared.document_id), (bob, "kdoc_unknown")):
        with pytest.raises(NotFound):
            await retention.forget(stranger, document_id)
        with pytest.raises(NotFound):
            await memory.library.get(stranger, document_id)


async def test_share_writes_tags_and_rules_with_the_capture(memory: Memory) -> None:
    shared = await memory.add(
        external_ref="note",
        share={"tenant": True, "principals": ["bob", "alice", "bob"], "tags": ["memory.space:eng"]},
    )

    assert shared.grants_materialized is True
    assert (await memory.document(shared.document_id))["access_tags"] == [
        "memory.owner:alice",
        f"memory.tenant:{memory.tenant}",
        "memory.owner:bob",
        "memory.space:eng",
        f"memory.doc:{shared.document_id}",
    ]
    (rule,) = await memory.rows("grant_rule")
    assert (rule["principal_id"], rule["action"], rule["effect"], rule["origin"]) == (
        "bob",
        "search",
        "allow",
        "system",
    )
    assert rule["conditions"] == {
        "memoryShare": {
            "sharedBy": "alice",
            "documentId": shared.document_id,
            "sourceVersionId": shared.version_id,
            "tenantId": memory.tenant,
        }
    }
    assert await memory.events() == [(1, "captured")]


async def test_sharing_with_nobody_in_person_writes_no_rule(memory: Memory) -> None:
    shared = await memory.add(share={"tenant": True, "tags": ["memory.space:eng"], "principals": ["alice"]})
    assert shared.grants_materialized is None
    assert await memory.count("grant_rule") == 0


async def test_a_new_version_keeps_tags_unless_it_gives_others(memory: Memory) -> None:
    first = await memory.add(external_ref="note", share={"principals": ["bob"]})
    await memory.add(external_ref="note", text="two")
    assert await memory.share_rules(first.document_id) == ["bob"]

    await memory.add(external_ref="note", text="three", share={"principals": ["carol"]})

    assert await memory.share_rules(first.document_id) == ["carol"]
    assert [kind for _, kind in await memory.events()] == ["captured", "captured", "captured", "retagged", "shared"]


@pytest.mark.parametrize("tag", ["memory", "*", "memory.*", "memory.space:*", "memory.tenant:globex", "a b:c", ":x"])
async def test_what_is_no_tag_is_refused(memory: Memory, tag: str) -> None:
    fields: list[dict[str, Any]] = [{"access_tags": [tag]}, {"share": {"tags": [tag]}}]
    for field in fields:
        with pytest.raises(Invalid) as refused:
            await memory.add(**field)
        assert refused.value.code == "access_tag"
    assert await memory.count("document") == 0


async def test_a_foreign_store_gets_the_rules_after_the_commit(memory: Memory, settings: Settings) -> None:
    store = InMemoryGrantStore()
    host = memory.with_grants(store, settings)

    shared = await host.add(external_ref="note", key="k", share={"principals": ["bob"]})
    assert shared.grants_materialized is True
    (rule,) = await store.collect_grants("bob", memory.tenant)
    assert rule.resource == f"memory.doc:{shared.document_id}"
    assert (await host.add(external_ref="note", key="k", share={"principals": ["bob"]})).grants_materialized is True

    await host.add(external_ref="note", access_tags=[])
    assert await store.collect_grants("bob", memory.tenant) == []
    assert await memory.count("grant_rule") == 0


class ReadOnly:
    async def collect_grants(self, principal_id: str, tenant_id: str) -> list[GrantRule]:
        return []


class Failing(InMemoryGrantStore):
    def __init__(self) -> None:
        super().__init__()
        self.down = True

    async def put_grant(self, tenant_id: str, rule: GrantRule) -> None:
        if self.down:
            raise ConnectionError("down")
        await super().put_grant(tenant_id, rule)


async def test_a_store_that_takes_no_rules_is_told(memory: Memory, settings: Settings) -> None:
    host = memory.with_grants(ReadOnly(), settings)
    assert (await host.add(share={"principals": ["bob"]})).grants_materialized is False
    assert (await host.add()).grants_materialized is None


async def test_a_retry_brings_a_failing_store_the_rules_it_missed(memory: Memory, settings: Settings) -> None:
    store = Failing()
    host = memory.with_grants(store, settings)
    first = await host.add(key="k", share={"principals": ["bob"]})
    assert first.grants_materialized is False
    store.down = False

    again = await host.add(key="k", share={"principals": ["bob"]})

    assert (again.replayed, again.grants_materialized) == (True, True)
    assert len(await store.collect_grants("bob", memory.tenant)) == 1
