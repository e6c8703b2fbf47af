"""Each route's good answer: shapes and keys to the letter."""

from typing import Any

import httpx

from tests.api.conftest import Facade

NOTE = {"title": "Standup", "text": "We ship the parser on Friday."}


async def added(client: httpx.AsyncClient, **fields: object) -> dict[str, Any]:
    answer = await client.post("/add", json=NOTE | fields)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_an_add_answers_ids_and_why_it_is_less_than_it_could_be(ann: httpx.AsyncClient) -> None:
    body = await added(ann)
    assert body.keys() == {"documentId", "versionId", "status", "degraded"}
    assert body["documentId"].startswith("kdoc_")
    assert body["status"] == "captured"
    assert body["degraded"] == ["embed_unavailable", "lexical_only"]


async def test_the_same_key_and_body_are_replayed_and_another_body_is_refused(ann: httpx.AsyncClient) -> None:
    first = await ann.post("/add", json=NOTE, headers={"Idempotency-Key": "k"})
    again = await ann.post("/add", json=NOTE, headers={"Idempotency-Key": "k"})
    other = await ann.post("/add", json=NOTE | {"text": "x"}, headers={"Idempotency-Key": "k"})
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json()["documentId"] == first.json()["documentId"]
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


async def test_a_batch_stands_item_by_item(ann: httpx.AsyncClient) -> None:
    items = [NOTE, {"title": "no text"}, NOTE | {"acess_tags": []}, "no object", None]
    answer = await ann.post("/add/batch", json={"items": items})
    assert answer.status_code == 200, answer.text
    good, missing, unknown, *others = answer.json()["items"]
    assert good.keys() == {"index", "documentId", "versionId", "status"}
    assert (missing["index"], missing["error"]["code"]) == (1, "invalid")
    assert "text is required" in missing["error"]["detail"]
    assert "acess_tags" in unknown["error"]["detail"]
    assert [other["error"]["code"] for other in others] == ["invalid", "invalid"]
    assert "must be an object" in others[0]["error"]["detail"]


async def test_list_pages_to_the_end(facade: Facade, ann: httpx.AsyncClient) -> None:
    ids = [(await added(ann, title=f"T{n}"))["documentId"] for n in range(5)]
    seen: list[str] = []
    query: dict[str, str] = {"limit": "2"}
    while True:
        page = (await ann.get("/list", params=query)).json()
        seen += [event["documentId"] for event in page["events"]]
        if "nextCursor" not in page:
            break
        query["cursor"] = page["nextCursor"]
    assert seen == ids[::-1]
    event = (await ann.get("/list")).json()["events"][0]
    assert event.keys() == {"at", "title", "source", "tenantId", "principalId", "documentId", "versionId", "kind"}
    assert (event["source"], event["tenantId"], event["principalId"]) == ("http", facade.tenant, "ann")


async def test_get_answers_the_document_its_versions_and_text(ann: httpx.AsyncClient) -> None:
    await added(ann, external_ref="r", attributes={"project": "x", "owner": None})
    body = await added(ann, external_ref="r", text="We ship on Monday.", attributes={"project": "x", "owner": None})
    got = (await ann.get(f"/documents/{body['documentId']}")).json()
    assert got["text"] == "We ship on Monday."
    assert [version["version"] for version in got["versions"]] == [2, 1]
    assert got["document"]["externalRef"] == "r"
    assert got["document"]["attributes"] == {"project": "x", "owner": None}
    old = (await ann.get(f"/documents/{body['documentId']}", params={"version": "1"})).json()
    assert (old["text"], old["version"]["status"]) == (NOTE["text"], "superseded")


async def test_the_feed_serves_entries_and_events(ann: httpx.AsyncClient) -> None:
    body = await added(ann)
    page = (await ann.get("/feed")).json()
    [entry] = page["entries"]
    assert entry.keys() == {
        "feedSeq",
        "versionId",
        "documentId",
        "kind",
        "title",
        "status",
        "createdByKind",
        "generatorAgentId",
        "provenance",
        "occurredAt",
        "createdAt",
        "accessTags",
    }
    assert (entry["feedSeq"], entry["versionId"], page["nextCursor"]) == (1, body["versionId"], 1)
    assert entry["generatorAgentId"] is None
    events = (await ann.get("/feed", params={"events": "all"})).json()
    [event] = events["entries"]
    assert event.keys() == {"position", "event", "documentId", "versionId", "at"}
    assert event["event"] == "captured"


async def test_forget_reclass_and_purge(ann: httpx.AsyncClient) -> None:
    body = await added(ann)
    classed = await ann.post(f"/versions/{body['versionId']}/retention-class", json={"retention_class": "durable"})
    assert classed.json() == {"versionId": body["versionId"], "documentId": body["documentId"], "status": "active"}
    kept = (await ann.post(f"/documents/{body['documentId']}/purge")).json()
    assert (kept["documentId"], kept["deleted"]) == (body["documentId"], False)
    assert kept["reason"]
    forgotten = await ann.post(f"/documents/{body['documentId']}/forget")
    assert forgotten.json() == {"documentId": body["documentId"], "versions": 1, "derivedForgotten": 0}
    again = await ann.post(f"/documents/{body['documentId']}/forget", json={"reason": "asked to"})
    assert again.json()["versions"] == 0
    tombstone = (await ann.get(f"/documents/{body['documentId']}")).json()
    assert tombstone["text"] is None
    purged = await ann.post(f"/documents/{body['documentId']}/purge")
    assert purged.json() == {"documentId": body["documentId"], "deleted": True}
    assert (await ann.get(f"/documents/{body['documentId']}")).status_code == 404


async def test_alive_ready_and_metrics_need_no_identity(facade: Facade) -> None:
    async with facade.caller(None, path="") as nobody:
        assert (await nobody.get("/healthz")).json() == {"status": "alive"}
        assert (await nobody.head("/healthz")).status_code == 200
        ready = await nobody.get("/readyz")
        assert ready.status_code == 200
        assert ready.json()["checks"].keys() == {
            "database",
            "fts_language",
            "live_recipes",
            "temporal",
            "embed",
            "rerank",
        }
        await nobody.get(f"{facade.base}/documents/kdoc_secret")
        metrics = (await nobody.get("/metrics")).text
    assert 'route="/api/tenants/{tenantId}/memory/documents/{documentId}",status="401"' in metrics
    assert "kdoc_secret" not in metrics
    assert facade.tenant not in metrics


async def test_any_character_is_taken_and_found_again(ann: httpx.AsyncClient) -> None:
    raw = b'{"title": "cut \\ud83d", "text": "NUL \\u0000 and \\ud83d\\ude00", "attributes": {"k\\udc00": "v\\u0000"}}'
    answer = await ann.post("/add", content=raw, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    got = (await ann.get(f"/documents/{answer.json()['documentId']}")).json()
    assert got["document"]["title"] == "cut \ufffd"
    assert got["text"] == "NUL  and 😀"
