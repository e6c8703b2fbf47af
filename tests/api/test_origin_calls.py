"""The calls of the origin's tool clients, byte for byte: its seven routes with its bodies, answered in its shapes."""

from typing import Any

import httpx
import pytest

from tests.api.conftest import Facade

ITEM = {"documentId", "title", "snippet", "score", "kind", "citation", "attribution"}
ATTRIBUTION = {
    *("versionId", "createdByKind", "provenance", "sourceClass", "temporalClass"),
    *("occurredAt", "supports", "contradicts", "derivedFrom"),
}
ENTRY = {
    *("feedSeq", "versionId", "documentId", "kind", "title", "status", "createdByKind"),
    *("generatorAgentId", "provenance", "occurredAt", "createdAt", "accessTags"),
}


async def said(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


@pytest.fixture
async def document(ann: httpx.AsyncClient) -> dict[str, Any]:
    body = {
        "title": "Deploy notes",
        "text": "We deploy on Thursdays, never on Fridays.",
        "access_tags": ["team:platform"],
        "share": {"principals": ["bob"]},
    }
    return await said(await ann.post("/add", json=body))


async def test_add(document: dict[str, Any]) -> None:
    assert {"documentId", "versionId"} <= document.keys()


async def test_search(ann: httpx.AsyncClient, document: dict[str, Any]) -> None:
    body = {
        "query": "when do we deploy",
        "limit": 5,
        "kinds": ["note"],
        "entity_ids": [],
        "sources": [],
        "includeEvidence": True,
    }
    found = await said(await ann.post("/search", json=body))
    [item] = found["items"]
    assert item.keys() >= ITEM
    assert item["citation"].keys() >= {"adapter", "external_ref", "open"}
    assert item["citation"]["open"].keys() == {"type", "id"}
    assert item["attribution"].keys() >= ATTRIBUTION
    assert (item["documentId"], item["attribution"]["versionId"]) == (document["documentId"], document["versionId"])
    assert isinstance(found["evidence"], str)
    assert "evidence" not in await said(await ann.post("/search", json=body | {"includeEvidence": False}))


async def test_list(ann: httpx.AsyncClient, facade: Facade, document: dict[str, Any]) -> None:
    [event] = (await said(await ann.get("/list", params={"limit": "20"})))["events"]
    assert event.keys() >= {"at", "title", "source", "tenantId", "principalId"}
    assert (event["title"], event["tenantId"], event["principalId"]) == ("Deploy notes", facade.tenant, "ann")


async def test_feed(ann: httpx.AsyncClient, document: dict[str, Any]) -> None:
    page = await said(await ann.get("/feed", params={"after": "0", "limit": "50", "exclude_generator": "distiller"}))
    [entry] = page["entries"]
    assert entry.keys() >= ENTRY
    assert entry["versionId"] == document["versionId"]
    end = await said(await ann.get("/feed", params={"after": str(page["nextCursor"]), "limit": "50"}))
    assert (end["entries"], end["nextCursor"]) == ([], page["nextCursor"])


async def test_retention_class(ann: httpx.AsyncClient, document: dict[str, Any]) -> None:
    path = f"/versions/{document['versionId']}/retention-class"
    answer = await said(await ann.post(path, json={"retention_class": "durable"}))
    assert (answer["versionId"], answer["documentId"]) == (document["versionId"], document["documentId"])
    assert answer["status"] == "active"
    assert (await ann.post(path, json={"retention_class": "forever"})).status_code == 400


async def test_forget(ann: httpx.AsyncClient, document: dict[str, Any]) -> None:
    path = f"/documents/{document['documentId']}/forget"
    first = await said(await ann.post(path, json={"reason": "asked for"}))
    assert (first["documentId"], first["versions"]) == (document["documentId"], 1)
    assert (await said(await ann.post(path, json={})))["versions"] == 0


async def test_purge(ann: httpx.AsyncClient, document: dict[str, Any]) -> None:
    path = f"/documents/{document['documentId']}/purge"
    answer = await said(await ann.post(path))
    assert (answer["documentId"], answer["deleted"]) == (document["documentId"], True)
    assert (await ann.post(path)).status_code == 404


async def test_refusals_have_the_origins_status(facade: Facade, document: dict[str, Any]) -> None:
    path = f"/documents/{document['documentId']}/forget"
    async with facade.caller(None) as nobody, facade.caller("bob") as bob:
        assert (await nobody.post("/search", json={"query": "deploy"})).status_code == 401
        assert (await bob.post("/search", json={"query": "deploy"})).status_code == 403
        assert (await bob.post(path, json={})).status_code == 403
        await facade.allow("bob")
        assert (await bob.post(path, json={})).status_code == 403, "he sees it and did not create it"
        assert (await bob.post("/documents/kdoc_unknown/forget", json={})).status_code == 404
