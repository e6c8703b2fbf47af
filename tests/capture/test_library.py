"""List and get: full pages in order, and nothing of what the caller does not see."""

from datetime import timedelta
from typing import Any

import pytest

from memory_plane.contracts.enums import Verb, VersionStatus
from memory_plane.contracts.errors import Invalid, NotFound, Unavailable
from memory_plane.plane.library import Library
from memory_plane.plane.retention import Retention
from memory_plane.settings import Settings
from tests.capture.memory import Memory


async def listed(memory: Memory, principal: str, limit: int = 100) -> list[str]:
    page = await memory.library.list(await memory.visibility(principal), limit, None)
    return [event.document_id for event in page.events]


async def walk(memory: Memory, principal: str, limit: int) -> list[list[str]]:
    """The pages of one walk, as document ids."""
    visibility, pages, cursor = await memory.visibility(principal), [], None
    while True:
        page = await memory.library.list(visibility, limit, cursor)
        pages.append([event.document_id for event in page.events])
        cursor = page.next_cursor
        if cursor is None:
            return pages


async def test_the_last_seen_come_first_and_a_page_follows_the_other(memory: Memory) -> None:
    ids = [(await memory.add(external_ref=f"note {n}")).document_id for n in range(7)]
    await memory.add(external_ref="note 2")

    expected = [ids[2], ids[6], ids[5], ids[4], ids[3], ids[1], ids[0]]
    assert await walk(memory, "alice", 3) == [expected[:3], expected[3:6], expected[6:]]
    assert await walk(memory, "alice", 7) == [expected], "no cursor where nothing follows"


async def test_documents_seen_at_the_same_moment_are_all_listed_once(memory: Memory) -> None:
    ids = {(await memory.add()).document_id for _ in range(9)}
    await memory.pool.execute("UPDATE memory.document SET last_seen_at = '2026-01-01T00:00:00Z'")

    pages = await walk(memory, "alice", 2)
    found = [id_ for page in pages for id_ in page]
    assert found == sorted(ids)


async def test_a_list_is_given_up_after_as_long_as_a_search(memory: Memory) -> None:
    library, visibility = Library(memory.pool, 0.2), await memory.visibility("alice")
    async with memory.pool.acquire() as conn, conn.transaction():
        await conn.execute("LOCK TABLE memory.document IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Unavailable) as refused:
            await library.list(visibility, 10, None)
    assert refused.value.code == "statement_timeout"
    assert (await library.list(visibility, 10, None)).events == [], "the connection is as good as before"


async def test_a_document_captured_again_meanwhile_is_not_met_twice(memory: Memory) -> None:
    ids = [(await memory.add(external_ref=f"note {n}")).document_id for n in range(4)]
    visibility = await memory.visibility("alice")
    first = await memory.library.list(visibility, 2, None)
    await memory.add(external_ref="note 3")
    await memory.add(external_ref="note 1")

    second = await memory.library.list(visibility, 10, first.next_cursor)

    assert [event.document_id for event in first.events] == [ids[3], ids[2]]
    assert [event.document_id for event in second.events] == [ids[0]]
    assert (await listed(memory, "alice"))[:2] == [ids[1], ids[3]]


async def test_a_page_is_full_whoever_else_has_written_before(memory: Memory) -> None:
    mine = [(await memory.add("bob", text=f"mine {n}")).document_id for n in range(4)]
    for n in range(60):
        await memory.add("alice", text=f"hers {n}")

    assert await walk(memory, "bob", 3) == [[mine[3], mine[2], mine[1]], [mine[0]]]


async def test_a_list_tells_of_documents_and_their_active_version(memory: Memory) -> None:
    await memory.allow("bob", "memory.space:eng", "add")
    await memory.add(external_ref="note", access_tags=["memory.space:eng"])
    second = await memory.add("bob", external_ref="note", title="By bob", kind="letter", adapter="http")

    (event,) = (await memory.library.list(await memory.visibility("alice"), 5, None)).events

    assert event.model_dump(mode="json", by_alias=True, exclude={"at"}) == {
        "title": "By bob",
        "source": "http",
        "tenantId": memory.tenant,
        "principalId": "bob",
        "documentId": second.document_id,
        "versionId": second.version_id,
        "kind": "letter",
    }
    assert event.at == (await memory.document(second.document_id))["last_seen_at"]


async def test_what_has_ended_is_not_listed(memory: Memory) -> None:
    await memory.allow("alice", "memory", Verb.FORGET)
    retention = Retention(memory.pool, memory.access)
    kept = await memory.add()
    deprecated = await memory.add()
    await retention.deprecate(memory.tenant, deprecated.version_id)
    forgotten = await memory.add()
    await retention.forget(await memory.visibility("alice"), forgotten.document_id)
    expired = await memory.add(retention_class="ephemeral")
    await memory.pool.execute(
        "UPDATE memory.version SET ingested_at = ingested_at - $1::interval WHERE id = $2",
        timedelta(days=8),
        expired.version_id,
    )

    assert await listed(memory, "alice") == [kept.document_id]
    shown = await memory.library.get(await memory.visibility("alice"), expired.document_id)
    assert shown.version.status is VersionStatus.DEPRECATED, "as the sweep will leave it"


async def test_a_claim_is_listed_for_those_who_see_its_sources(memory: Memory) -> None:
    await memory.allow("bob", "memory.space:eng", "search")
    private = await memory.add(external_ref="private", access_tags=["memory.space:eng"])
    public = await memory.add(external_ref="public", access_tags=["memory.space:eng"])
    claim = await memory.add(derived_from=[private.version_id, public.version_id])
    assert claim.document_id in await listed(memory, "bob")

    await memory.add(external_ref="private", access_tags=[])

    assert await listed(memory, "bob") == [public.document_id]
    bob = await memory.visibility("bob")
    for hidden in (claim.document_id, private.document_id):
        with pytest.raises(NotFound):
            await memory.library.get(bob, hidden)


@pytest.mark.parametrize("cursor", ["", "x", "W10", "WzEsMl0", "WyJhIiwgImIiXQ", "[1]", "é" * 10, "x" * 5000])
async def test_a_cursor_that_no_list_gave_is_refused(memory: Memory, cursor: str) -> None:
    with pytest.raises(Invalid) as refused:
        await memory.library.list(await memory.visibility("alice"), 5, cursor)
    assert refused.value.code == "invalid_cursor"


@pytest.mark.parametrize("limit", [0, -1, 101])
async def test_a_limit_has_its_range(memory: Memory, limit: int) -> None:
    with pytest.raises(Invalid, match="1 to 100"):
        await memory.library.list(await memory.visibility("alice"), limit, None)


async def test_another_tenants_documents_are_not_there(memory: Memory, settings: Settings) -> None:
    other = Memory.on(memory.pool, settings, tenant="globex")
    theirs = await other.add("alice")
    assert await listed(memory, "alice") == []
    with pytest.raises(NotFound):
        await memory.library.get(await memory.visibility("alice"), theirs.document_id)


async def test_one_document_with_its_versions_and_the_text_of_each(memory: Memory) -> None:
    first = await memory.add(external_ref="note", text="one", attributes={"n": 1})
    second = await memory.add(external_ref="note", text="two", attributes={"n": 2}, occurred_at="2024-01-01T00:00:00Z")
    alice = await memory.visibility("alice")

    now = await memory.library.get(alice, first.document_id)
    assert (now.text, now.version.version_id, now.document.attributes) == ("two", second.version_id, {"n": 2})
    assert [(each.version, each.status) for each in now.versions] == [
        (2, VersionStatus.ACTIVE),
        (1, VersionStatus.SUPERSEDED),
    ]
    assert now.version.supersedes_version_id == first.version_id
    assert now.version.embed_state == "not_configured"

    before = await memory.library.get(alice, first.document_id, 1)
    assert (before.text, before.version.version_id) == ("one", first.version_id)
    with pytest.raises(NotFound):
        await memory.library.get(alice, first.document_id, 3)


async def test_a_forgotten_document_is_there_for_its_creator_without_a_word(memory: Memory) -> None:
    await memory.allow("alice", "memory", Verb.FORGET)
    first = await memory.add(
        external_ref="note",
        title="secret",
        text="secret",
        attributes={"secret": "secret"},
        access_tags=["memory.space:x"],
    )
    await memory.allow("bob", "memory.space:x", "search")
    await Retention(memory.pool, memory.access).forget(await memory.visibility("alice"), first.document_id)

    shown = await memory.library.get(await memory.visibility("alice"), first.document_id)
    assert (shown.text, shown.document.title, shown.version.title) == (None, None, None)
    assert [each.status for each in shown.versions] == [VersionStatus.TOMBSTONED]
    assert "secret" not in shown.model_dump_json()
    with pytest.raises(NotFound):
        await memory.library.get(await memory.visibility("bob"), first.document_id)


async def test_sources_that_the_caller_does_not_see_are_not_named(memory: Memory) -> None:
    source = await memory.add(external_ref="source", access_tags=["memory.space:eng"])
    claim = await memory.add(external_ref="claim", derived_from=[source.version_id])
    other: dict[str, Any] = {"external_ref": "claim", "text": "no claim any more"}
    await memory.add(**other, access_tags=["memory.space:ops"])
    await memory.allow("bob", "memory.space:ops", "search")

    shown = await memory.library.get(await memory.visibility("bob"), claim.document_id)

    assert [each.version for each in shown.versions] == [2], "the version that was a claim is not bob's to see"
    assert shown.version.supersedes_version_id is None
    mine = await memory.library.get(await memory.visibility("alice"), claim.document_id, 1)
    assert mine.version.derived_from == [source.version_id]
