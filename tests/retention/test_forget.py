"""Forgetting: nothing of what was said is left anywhere, nothing brings it back, and who may do it."""

from typing import Any
from uuid import uuid4

import pytest

from memory_plane.contracts.errors import Forbidden, Invalid, NotFound
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.access_tags import owner_tag
from memory_plane.core.caller import Caller
from memory_plane.plane.captured import Captured
from memory_plane.plane.retention import Retention
from memory_plane.store.database import connection, transaction
from memory_plane.store.vectors import table_sql
from tests.access.seed import TENANT
from tests.retention.conftest import Plane
from tests.retention.scan import columns_with

TEAM = "memory.space:team"


async def forget(
    plane: Plane, document_id: str, principal: str = "alice", reason: str | None = None
) -> tuple[int, int]:
    answer = await plane.retention.forget(await plane.sight(principal), document_id, reason)
    assert answer.document_id == document_id
    return answer.versions, answer.derived_forgotten


async def full_of(plane: Plane, canary: str) -> tuple[Captured, Captured]:
    """A document and a claim upon it with the canary in everything that a person can write, under two generations."""
    tag = f"memory.space:{canary}"
    await plane.grant("dora", tag)
    fields: dict[str, Any] = {
        "external_ref": "one",
        "kind": canary,
        "access_tags": [tag],
        "share": {"principals": ["bob"], "tags": [f"x:{canary}"]},
        "attributes": {canary: canary, "speaker": canary},
        "entities": [{"kind": f"k{canary}", "identifier": canary, "label": canary}],
    }
    await plane.add(title=canary, text=f"first {canary}", **fields)
    source = await plane.add(title=f"{canary} 2", text=f"second\x00 {canary} \ud800", **fields)
    claim = await plane.add(
        "dora",
        adapter="claim",
        external_ref=f"d/{source.version_id}/0",
        title=canary,
        text=f"claim {canary}",
        derived_from=[source.version_id],
        access_tags=[tag, "memory.other:x" + canary],
        request_widening=True,
        generator_agent_id="distiller",
    )
    await plane.embed(source, claim)
    async with transaction(plane.pool) as conn:
        await _second_generation(conn, [source, claim])
        await conn.execute(
            "INSERT INTO memory.distill_quarantine (tenant_id, agent_id, version_id, reason, attempts) "
            "VALUES ($1, 'distiller', $2, $3, 1)",
            TENANT,
            source.version_id,
            canary,
        )
        await conn.execute(
            "INSERT INTO memory.process_request (version_id, processor, tenant_id, state, last_error) "
            "VALUES ($1, 'classify', $2, 'pending', $3)",
            source.version_id,
            TENANT,
            canary,
        )
        await conn.execute("UPDATE memory.derivation SET last_error = $1", canary)
        await conn.execute("UPDATE memory.version SET status_reason = $1", canary)
        await conn.execute(
            "INSERT INTO memory.transform_config (id, tenant_id, name, version, params) "
            "VALUES ('tcfg_1', $1, 'c', 1, '{}')",
            TENANT,
        )
        await conn.execute(
            "INSERT INTO memory.transform_run (id, tenant_id, config_id, generation_id, status) "
            "VALUES ('kgen_two', $1, 'tcfg_1', 'kgen_two', 'failed')",
            TENANT,
        )
        await conn.execute(
            "INSERT INTO memory.transform_failure (run_id, tenant_id, version_id, error) "
            "VALUES ('kgen_two', $1, $2, $3)",
            TENANT,
            source.version_id,
            canary,
        )
    return source, claim


async def _second_generation(conn: object, captured: list[Captured]) -> None:
    """Another generation with a model of its own, whose table the registry does not know: only the catalog does."""
    execute = conn.execute  # type: ignore[attr-defined]
    for statement in table_sql("embedding_00000000000000aa", 64):
        await execute(statement)
    await execute(
        "INSERT INTO memory.generation (id, tenant_id, state, recipe) "
        "SELECT 'kgen_two', tenant_id, 'staged', recipe FROM memory.generation WHERE state = 'live'"
    )
    await execute(
        """
        INSERT INTO memory.chunk (id, tenant_id, generation_id, document_id, version_id, ordinal, text, context, grams,
                                  span_start, span_end, token_count, role)
        SELECT id || 'b', tenant_id, 'kgen_two', document_id, version_id, ordinal, text, context, text, span_start,
               span_end, token_count, text FROM memory.chunk WHERE version_id = ANY ($1::text[])
        """,
        [each.version_id for each in captured],
    )
    await execute(
        """
        INSERT INTO memory.embedding_00000000000000aa
        SELECT id, 0, tenant_id, generation_id, version_id, array_fill(0.125::real, ARRAY[64])::vector::halfvec(64)
        FROM memory.chunk WHERE generation_id = 'kgen_two'
        """
    )


async def test_inv_20_nothing_forgotten_is_left_in_any_column_of_any_table(plane: Plane) -> None:
    canary = f"canary{uuid4().hex}"
    source, _ = await full_of(plane, canary)
    everywhere = await columns_with(plane.pool, canary)
    assert {
        "document.title", "document.kind", "document.attributes", "document.access_tags", "version.title",
        "version.kind", "version.attributes", "version.status_reason", "raw_capture.raw_text", "raw_capture.raw_bytes",
        "chunk.text", "chunk.context", "chunk.grams", "chunk.role", "chunk.text_fts", "entity.identifier",
        "entity.label", "entity.kind", "audience_request.tags", "distill_quarantine.reason",
        "process_request.last_error", "derivation.last_error", "transform_failure.error",
    } <= everywhere, "the canary is planted in each"  # fmt: skip

    assert await forget(plane, source.document_id) == (2, 1)

    # The rule by which dora may search on the tag is an operator's, and says nothing of the document.
    assert await columns_with(plane.pool, canary) == {"grant_rule.resource"}
    for table in ("embedding_00000000000000aa", (await _model_table(plane))):
        assert await plane.count(table) == 0
    assert await plane.count("grant_rule", "resource = $1", f"memory.doc:{source.document_id}") == 0
    assert await plane.count("edge") == await plane.count("entity") == 0
    assert await plane.count("derivation") == 0


async def _model_table(plane: Plane) -> str:
    async with connection(plane.pool) as conn:
        name: str = await conn.fetchval("SELECT table_name FROM memory.embed_model")
    return name


async def test_what_remains_are_ids_times_statuses_and_who(plane: Plane) -> None:
    source = await plane.add(external_ref="ref-1", access_tags=[TEAM])
    async with connection(plane.pool) as conn:
        before = await conn.fetchrow("SELECT * FROM memory.version")
        assert await forget(plane, source.document_id, reason="asked to by mail") == (1, 0)
        after = await conn.fetchrow("SELECT * FROM memory.version")
        document = await conn.fetchrow("SELECT * FROM memory.document")
    assert before is not None and after is not None and document is not None
    changed = {name for name in before.keys() if before[name] != after[name]}  # noqa: SIM118 - a record, not a dict
    assert changed == {"status", "status_at", "status_reason", "title", "kind", "attributes", "content_hash"} - (
        {"attributes"} if before["attributes"] == {} else set()
    )
    assert after["status"] == "tombstoned" and after["status_reason"] == "asked to by mail"
    assert document["external_ref"] == "ref-1" and document["access_tags"] == [owner_tag("alice")]


async def test_a_second_forget_finds_nothing_and_an_unknown_one_is_404(plane: Plane) -> None:
    source = await plane.add()
    assert await forget(plane, source.document_id) == (1, 0)
    events = await plane.events()
    assert await forget(plane, source.document_id) == (0, 0)
    assert await plane.events() == events
    with pytest.raises(NotFound):
        await forget(plane, new_id(IdKind.DOCUMENT))


async def test_inv_27_shared_is_visible_and_never_forgettable(plane: Plane) -> None:
    shared = await plane.add(share={"principals": ["bob"]})
    private = await plane.add()
    for resource in ("*", f"memory.doc:{shared.document_id}", owner_tag("alice")):
        await plane.grant("bob", resource, "*")
    await plane.grant("dora", "memory", "search")
    bob, dora, alice = await plane.sight("bob"), await plane.sight("dora"), await plane.sight("alice")
    stranger = await plane.engine.access.visibility(Caller("other", "alice"))
    for act in (plane.retention.forget, plane.retention.purge):
        with pytest.raises(Forbidden) as refused:
            await act(bob, shared.document_id)
        assert refused.value.code == "not_document_owner"
        with pytest.raises(NotFound) as hidden:
            await act(dora, private.document_id)
        with pytest.raises(NotFound) as unknown:
            await act(dora, new_id(IdKind.DOCUMENT))
        assert hidden.value.detail == unknown.value.detail
        with pytest.raises(Forbidden) as incapable:
            await act(stranger, shared.document_id)
        assert incapable.value.code == "capability_missing"
    with pytest.raises(Forbidden) as refused:
        await plane.retention.set_retention_class(bob, shared.version_id, "durable")  # type: ignore[arg-type]
    assert refused.value.code == "not_version_creator"
    with pytest.raises(NotFound):
        await plane.retention.set_retention_class(dora, private.version_id, "durable")  # type: ignore[arg-type]
    assert await plane.statuses(shared.document_id) == await plane.statuses(private.document_id) == ["active"]
    assert alice.caller.principal_id == "alice"


async def test_another_tenant_with_every_grant_finds_nothing(plane: Plane) -> None:
    source = await plane.add()
    store = plane.engine.access.grant_store
    from tests.access.seed import allow

    await store.put_grant("other", allow("alice", "*", "*"))  # type: ignore[union-attr]
    stranger = await plane.engine.access.visibility(Caller("other", "alice"))
    for act in (plane.retention.forget, plane.retention.purge):
        with pytest.raises(NotFound):
            await act(stranger, source.document_id)
    assert await plane.statuses(source.document_id) == ["active"]


async def test_claims_go_with_any_of_their_sources_transitively(plane: Plane) -> None:
    await plane.grant("dora", TEAM)
    private, public = await plane.add(), await plane.add(access_tags=[TEAM])
    await plane.grant("dora", owner_tag("alice"))
    of_both = await plane.add("dora", derived_from=[private.version_id, public.version_id])
    upon = await plane.add("dora", derived_from=[of_both.version_id])
    of_public = await plane.add("dora", derived_from=[public.version_id])
    assert await forget(plane, private.document_id) == (1, 2)
    assert await plane.statuses(of_both.document_id) == await plane.statuses(upon.document_id) == ["tombstoned"]
    assert await plane.statuses(of_public.document_id) == await plane.statuses(public.document_id) == ["active"]
    forgotten = [event for event in await plane.events() if event[0] == "forgotten"]
    assert {event[1:] for event in forgotten} == {
        (private.document_id, None), (of_both.document_id, None), (upon.document_id, None)
    }  # fmt: skip
    with pytest.raises(Invalid) as gone:
        await plane.add("dora", derived_from=[of_both.version_id])
    assert gone.value.code == "source_gone"


async def test_a_claim_that_was_distilled_anew_from_others_keeps_that_version(plane: Plane) -> None:
    await plane.grant("dora", owner_tag("alice"))
    first, second = await plane.add(), await plane.add()
    ref = {"adapter": "claim", "external_ref": "topic"}
    kept = {"kind": "person", "identifier": "kept"}
    await plane.add(
        "dora", **ref, derived_from=[second.version_id], text="older", title="older", entities=[kept],
        attributes={"n": 1},
    )  # fmt: skip
    newer = await plane.add(
        "dora", **ref, derived_from=[first.version_id], text="newer", title="newer secret",
        entities=[kept, {"kind": "person", "identifier": "secret"}], attributes={"n": "secret"},
    )  # fmt: skip
    assert await forget(plane, first.document_id) == (1, 1)
    assert await plane.statuses(newer.document_id) == ["superseded", "tombstoned"]
    assert await columns_with(plane.pool, "secret") == set()
    async with connection(plane.pool) as conn:
        document = await conn.fetchrow("SELECT * FROM memory.document WHERE id = $1", newer.document_id)
        mentioned = await conn.fetch("SELECT identifier FROM memory.entity")
    assert document is not None and document["title"] == "older" and document["attributes"] == {"n": 1}
    assert [row["identifier"] for row in mentioned] == ["kept"]
    assert ("forgotten", newer.document_id, newer.version_id) in await plane.events()


async def test_entities_that_others_name_stay(plane: Plane) -> None:
    both = [{"kind": "person", "identifier": "shared"}]
    one = await plane.add(entities=[*both, {"kind": "person", "identifier": "own"}])
    await plane.add(entities=both)
    await forget(plane, one.document_id)
    async with connection(plane.pool) as conn:
        names = [row["identifier"] for row in await conn.fetch("SELECT identifier FROM memory.entity")]
    assert names == ["shared"]


async def test_two_documents_with_the_same_text_are_two(plane: Plane) -> None:
    one, two = await plane.add(text="the same words"), await plane.add(text="the same words")
    await forget(plane, one.document_id)
    await plane.retention.purge(await plane.sight(), one.document_id)
    assert await plane.statuses(two.document_id) == ["active"]
    assert await plane.count("chunk", "text = 'the same words'") == 1


async def test_inv_04_an_identical_add_after_forget_is_a_new_capture(plane: Plane) -> None:
    fields: dict[str, Any] = {"external_ref": "again", "text": "the same", "access_tags": [TEAM]}
    first = await plane.add(**fields)
    await forget(plane, first.document_id)
    again = await plane.add(external_ref="again", text="the same")
    assert again.status == "captured" and again.document_id == first.document_id
    assert await plane.statuses(first.document_id) == ["tombstoned", "active"]
    assert await plane.count("raw_capture") == 2
    async with connection(plane.pool) as conn:
        assert await conn.fetchval("SELECT access_tags FROM memory.document") == [owner_tag("alice")]
    assert await forget(plane, first.document_id) == (1, 0)


async def test_share_rules_of_a_foreign_store_are_revoked_too(plane: Plane) -> None:
    from memory_plane.contracts.wire import AddFields
    from memory_plane.plane.access import Access
    from memory_plane.plane.capture import Capture
    from memory_plane.store.grants import InMemoryGrantStore
    from tests.access.seed import allow

    store = InMemoryGrantStore()
    access = Access(store)
    await store.put_grant(TENANT, allow("alice", "memory", "*"))
    payload = {"title": "t", "text": "x", "share": {"principals": ["bob"]}}
    capture = Capture(plane.pool, plane.engine.settings, access)
    visibility = await access.visibility(Caller(TENANT, "alice"))
    captured = await capture.capture(visibility, AddFields.model_validate(payload), payload=payload)
    assert len(await store.collect_grants("bob", TENANT)) == 1
    await Retention(plane.pool, access).forget(visibility, captured.document_id)
    assert await store.collect_grants("bob", TENANT) == []
