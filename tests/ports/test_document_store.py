"""One contract, two stores: ours on a real database, and the fake that hosts test with."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from api.app import register_memory_routes
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import Forbidden, Invalid, KeyReused, NotFound, Unsupported
from memory_plane.contracts.wire import AddRequest, SearchRequest
from memory_plane.core.caller import Caller
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import Access
from memory_plane.plane.adding import AddOutcome
from memory_plane.plane.document_store import DocumentStore, Mountable, Mounted
from memory_plane.plane.engine import Engine
from memory_plane.plane.in_memory_store import InMemoryStore
from memory_plane.settings import Settings
from memory_plane.store.grants import InMemoryGrantStore
from tests.access.seed import allow

TENANT = "acme"
TEAM = "memory.space:team"


@pytest.fixture
async def grants() -> InMemoryGrantStore:
    store = InMemoryGrantStore()
    for who in ("alice", "bob"):
        for verb in Verb:
            await store.put_grant(TENANT, allow(who, "memory", verb.value))
        await store.put_grant(TENANT, allow(who, TEAM))
    return store


@pytest.fixture(params=["ours", "in memory"])
async def mounted(
    request: pytest.FixtureRequest, settings: Settings, grants: InMemoryGrantStore
) -> AsyncIterator[Mountable]:
    if request.param == "in memory":
        yield Mounted(Access(grants), InMemoryStore())
        return
    async with Engine.open(settings, grant_store=grants) as engine:
        yield engine


@pytest.fixture
def store(mounted: Mountable) -> DocumentStore:
    return mounted.documents


@pytest.fixture
async def alice(mounted: Mountable) -> Visibility:
    return await mounted.access.visibility(Caller(TENANT, "alice"))


@pytest.fixture
async def bob(mounted: Mountable) -> Visibility:
    return await mounted.access.visibility(Caller(TENANT, "bob"))


async def add(
    store: DocumentStore, who: Visibility, text: str = "The kettle is blue.", key: str | None = None, **fields: Any
) -> AddOutcome:
    payload = {"title": "A note", "text": text, **fields}
    return await store.add(who, AddRequest.model_validate(payload), payload, key)


async def test_what_was_added_is_got_and_found(store: DocumentStore, alice: Visibility) -> None:
    added = (await add(store, alice)).response
    assert added.status == "captured"
    got = await store.get(alice, added.document_id)
    assert (got.text, got.version.version, got.version.status) == ("The kettle is blue.", 1, "active")
    found = await store.search(alice, SearchRequest(query="kettle"))
    assert [item.document_id for item in found.items] == [added.document_id]
    assert (await store.search(alice, SearchRequest(query="zebra"))).evidence == "none"


async def test_the_same_again_is_a_noop_and_another_text_a_version(store: DocumentStore, alice: Visibility) -> None:
    first = (await add(store, alice, external_ref="k")).response
    again = (await add(store, alice, external_ref="k")).response
    assert (again.version_id, again.status) == (first.version_id, "noop")
    changed = (await add(store, alice, "The kettle is red.", external_ref="k")).response
    assert changed.document_id == first.document_id
    got = await store.get(alice, first.document_id)
    assert [(each.version, each.status) for each in got.versions] == [(2, "active"), (1, "superseded")]
    assert got.versions[0].supersedes_version_id == first.version_id
    assert (await store.get(alice, first.document_id, 1)).text == "The kettle is blue."


async def test_a_key_answers_the_same_and_refuses_another_body(store: DocumentStore, alice: Visibility) -> None:
    first = await add(store, alice, key="k")
    again = await add(store, alice, key="k")
    assert (again.response.version_id, again.replayed) == (first.response.version_id, True)
    with pytest.raises(KeyReused):
        await add(store, alice, "Another text.", key="k")


async def test_nobody_sees_what_is_not_shared_with_him(
    store: DocumentStore, alice: Visibility, bob: Visibility
) -> None:
    private = (await add(store, alice)).response.document_id
    shared = (await add(store, alice, access_tags=[TEAM])).response.document_id
    assert [item.document_id for item in (await store.search(bob, SearchRequest(query="kettle"))).items] == [shared]
    assert [event.document_id for event in (await store.list(bob, 10, None)).events] == [shared]
    with pytest.raises(NotFound):
        await store.get(bob, private)
    assert (await store.get(bob, shared)).document.created_by_principal_id == "alice"


async def test_a_list_is_walked_once_and_last_seen_first(store: DocumentStore, alice: Visibility) -> None:
    ids = [(await add(store, alice, f"Note {number}.")).response.document_id for number in range(5)]
    walked, cursor = [], None
    while True:
        page = await store.list(alice, 2, cursor)
        walked += [event.document_id for event in page.events]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert walked == ids[::-1]
    with pytest.raises(Invalid):
        await store.list(alice, 2, "no cursor of ours")


async def test_another_cannot_overwrite_by_name(store: DocumentStore, alice: Visibility, bob: Visibility) -> None:
    await add(store, alice, external_ref="k")
    with pytest.raises(Forbidden):
        await add(store, bob, "Mine now.", external_ref="k")


@pytest.mark.parametrize("fields", [{"access_tags": ["memory"]}, {"text": "  "}, {"share": {"tags": ["*"]}}])
async def test_what_cannot_be_meant_is_refused(store: DocumentStore, alice: Visibility, fields: Any) -> None:
    with pytest.raises(Invalid):
        await add(store, alice, **{"text": "A text.", **fields})


async def test_kinds_narrow_a_search(store: DocumentStore, alice: Visibility) -> None:
    await add(store, alice, kind="note")
    decision = (await add(store, alice, kind="decision")).response.document_id
    found = await store.search(alice, SearchRequest(query="kettle", kinds=["decision"]))
    assert [item.document_id for item in found.items] == [decision]


async def test_ours_has_every_optional_verb(settings: Settings) -> None:
    async with Engine.open(settings) as engine:
        assert engine.documents.capabilities == DocumentStore.OPTIONAL
    assert InMemoryStore().capabilities == frozenset()


async def test_a_verb_that_a_mounted_store_lacks_is_501(grants: InMemoryGrantStore) -> None:
    async def resolver(request: Any) -> Caller:
        return Caller(TENANT, "alice")

    app = FastAPI()
    register_memory_routes(app, Mounted(Access(grants), InMemoryStore()), resolver)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://host/api/tenants/{TENANT}/memory") as http:
        added = await http.post("/add", json={"title": "A note", "text": "The kettle is blue."})
        assert added.status_code == 200
        found = await http.post("/search", json={"query": "kettle"})
        assert found.json()["items"][0]["documentId"] == added.json()["documentId"]
        missing = await http.get("/feed")
        assert (missing.status_code, missing.json()["code"]) == (501, "unsupported")
        claim = await http.post("/add", json={"title": "A", "text": "b", "derived_from": [added.json()["versionId"]]})
        assert claim.status_code == 501


async def test_the_fake_refuses_claims(alice: Visibility) -> None:
    with pytest.raises(Unsupported):
        await add(InMemoryStore(), alice, derived_from=["kver_x"])
