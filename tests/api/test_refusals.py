"""Every refusal is a problem document that says what to do, and nothing that was sent comes back in it."""

import logging
from typing import Any

import asyncpg
import httpx
import pytest

from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import Throttled, Unavailable
from tests.api.conftest import Facade

NOTE = {"title": "T", "text": "x"}


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"]
    body: dict[str, Any] = answer.json()
    assert body.keys() >= {"type", "title", "status", "detail", "code"}
    assert (body["status"], body["code"]) == (status, code)
    assert body["detail"].endswith((".", "`"))
    return body


async def test_an_unknown_key_is_refused_by_name_and_writes_nothing(ann: httpx.AsyncClient) -> None:
    body = problem(await ann.post("/add", json=NOTE | {"acess_tags": ["memory.space:x"]}), 400, "invalid")
    assert body["errors"] == [{"field": "acess_tags", "message": "is not a known field (perhaps access_tags)"}]
    assert (await ann.get("/list")).json() == {"events": []}


async def test_a_mistyped_key_of_an_optional_body_is_refused_by_name(ann: httpx.AsyncClient) -> None:
    body = problem(await ann.post("/documents/kdoc_1/forget", json={"reasn": "r"}), 400, "invalid")
    assert body["errors"] == [{"field": "reasn", "message": "is not a known field (perhaps reason)"}]


@pytest.mark.parametrize("route", ["add", "search"])
@pytest.mark.parametrize("key", ["tenant_id", "principal_id"])
async def test_identity_in_a_body_is_refused_with_the_reason(ann: httpx.AsyncClient, route: str, key: str) -> None:
    given = NOTE if route == "add" else {"query": "q"}
    body = problem(await ann.post(f"/{route}", json=given | {key: "acme"}), 400, "invalid")
    assert "credential alone" in body["errors"][0]["message"]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("list?limit=-1", "limit must be a whole number from 1 to 100"),
        ("list?limit=0", "limit must be a whole number from 1 to 100"),
        ("list?limit=1000000000", "limit must be a whole number from 1 to 100"),
        ("list?limit=ten", "limit must be a whole number from 1 to 100"),
        ("list?limit=", "limit must be a whole number from 1 to 100"),
        ("list?limt=5", "limt is not a known field"),
        ("feed?limit=101", "limit must be a whole number from 1 to 100"),
        ("feed?after=9223372036854775808", "after must be a whole number from 0 to"),
        ("feed?after=-1", "after must be a whole number from 0 to"),
        ("feed?events=some", "events must be one of 'all'"),
        ("documents/kdoc_1?version=zero", "version must be a whole number from 1 to"),
    ],
)
async def test_a_wrong_query_is_refused_with_the_range(ann: httpx.AsyncClient, path: str, sentence: str) -> None:
    assert sentence in problem(await ann.get(f"/{path}"), 400, "invalid")["detail"]


@pytest.mark.parametrize("cursor", ["x", "%00", "AAAA", "W10", "e30", "é", "a" * 5000, "WzEsMl0"])
async def test_a_cursor_of_nobodys_making_is_400(ann: httpx.AsyncClient, cursor: str) -> None:
    problem(await ann.get("/list", params={"cursor": cursor}), 400, "invalid_cursor")


@pytest.mark.parametrize("agent", ["%00", "a%00b", "%ED%A0%BD", "%F0%9F"])
async def test_inv_35_the_feed_takes_any_character(ann: httpx.AsyncClient, agent: str) -> None:
    assert (await ann.get(f"/feed?exclude_generator={agent}")).status_code == 200


async def test_inv_11_a_cursor_of_another_tenant_is_400(facade: Facade, ann: httpx.AsyncClient) -> None:
    for title in ("a", "b"):
        assert (await ann.post("/add", json=NOTE | {"title": title})).status_code == 200
    cursor = (await ann.get("/list", params={"limit": 1})).json()["nextCursor"]
    assert len((await ann.get("/list", params={"cursor": cursor})).json()["events"]) == 1
    other = Facade(facade.app, facade.engine, facade.tenant + "-other")
    await other.allow("eve")
    async with other.caller("eve") as eve:
        problem(await eve.get("/list", params={"cursor": cursor}), 400, "invalid_cursor")


@pytest.mark.parametrize("key", ["", "a" * 256, "tab\there", "café"])
async def test_a_key_beyond_its_form_is_400(ann: httpx.AsyncClient, key: str) -> None:
    answer = await ann.post("/add", json=NOTE, headers=[(b"Idempotency-Key", key.encode())])
    [refused] = problem(answer, 400, "invalid")["errors"]
    assert refused["field"] == "Idempotency-Key"
    assert refused["message"].startswith("must ")


@pytest.mark.parametrize(
    ("content", "content_type", "status", "code"),
    [
        (b"", "application/json", 400, "invalid"),
        (b"  ", "application/json", 400, "invalid"),
        (b"[]", "application/json", 400, "invalid"),
        (b"null", "application/json", 400, "invalid"),
        (b'"x"', "application/json", 400, "invalid"),
        (b"{", "application/json", 400, "invalid_json"),
        (b'{"title": "a", "title": "b", "text": "c"}', "application/json", 400, "invalid_json"),
        (b'{"title": NaN, "text": "c"}', "application/json", 400, "invalid_json"),
        (b"[" * 100_000, "application/json", 400, "invalid_json"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
        (b"{}", "", 415, "unsupported_media_type"),
        (b"title=a&text=b", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
    ],
)
async def test_a_body_of_another_form_is_refused(
    ann: httpx.AsyncClient, content: bytes, content_type: str, status: int, code: str
) -> None:
    headers = {"content-type": content_type} if content_type else {}
    problem(await ann.post("/add", content=content, headers=headers), status, code)


async def test_paths_and_methods_there_are_not(facade: Facade, ann: httpx.AsyncClient) -> None:
    async with facade.caller(path="") as root:
        problem(await root.get("/nothing"), 404, "no_such_route")
    problem(await ann.get("/nothing"), 404, "no_such_route")
    answer = await ann.delete("/add")
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("document", ["kdoc_" + "0" * 32, "%00", "a" * 1000, "%ED%A0%BD", "..%2F..", "'; DROP TABLE x"])
async def test_an_id_that_nothing_has_is_404(ann: httpx.AsyncClient, document: str) -> None:
    for answer in (
        await ann.get(f"/documents/{document}"),
        await ann.post(f"/documents/{document}/forget"),
        await ann.post(f"/documents/{document}/purge"),
        await ann.post(f"/versions/{document}/retention-class", json={"retention_class": "durable"}),
    ):
        assert answer.status_code == 404, answer.text
        assert answer.headers["content-type"] == "application/problem+json"


async def test_identity_comes_before_tenant_before_capability_before_body(facade: Facade) -> None:
    """Whoever may not use a route learns nothing from how its input is refused."""
    for bad in (b"{", b'{"tenant_id": 1}', b"x" * 100):
        headers = {"content-type": "text/plain"}
        async with (
            facade.caller(None) as nobody,
            facade.caller(of="other") as stranger,
            facade.caller("bob") as bob,
        ):
            problem(await nobody.post("/add", content=bad, headers=headers), 401, "unauthenticated")
            problem(await stranger.post("/add", content=bad, headers=headers), 404, "not_found")
            refused = problem(await bob.post("/add", content=bad, headers=headers), 403, "capability_missing")
    assert "memory:add" in refused["detail"]
    async with facade.caller(None) as nobody:
        assert (await nobody.get("/list")).headers["www-authenticate"].startswith("Bearer")


async def test_operate_alone_opens_generation_and_explain(facade: Facade) -> None:
    await facade.allow("bob", Verb.SEARCH)
    async with facade.caller("bob") as bob, facade.caller() as ann:
        for extra in ({"explain": True}, {"generation": "kgen_" + "0" * 32}):
            answer = await bob.post("/search", json={"query": "q"} | extra)
            assert "memory:operate" in problem(answer, 403, "capability_missing")["detail"]
        problem(await ann.post("/search", json={"query": "q", "generation": "kgen_nobody"}), 404, "not_found")


async def test_a_request_id_is_kept_when_it_is_plain_and_made_when_it_is_not(ann: httpx.AsyncClient) -> None:
    assert (await ann.get("/list", headers={"X-Request-Id": "abc-1"})).headers["x-request-id"] == "abc-1"
    for bad in ("a b", "x" * 129, '"><script>'):
        made = (await ann.get("/list", headers={"X-Request-Id": bad})).headers["x-request-id"]
        assert made != bad
        assert len(made) == 32


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (Unavailable("Down."), 503, "2"),
        (Unavailable("Down.", retry_after=0.2), 503, "1"),
        (Throttled("Slow."), 429, "2"),
    ],
)
async def test_what_a_retry_mends_says_when(
    facade: Facade,
    ann: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    status: int,
    retry_after: str,
) -> None:
    async def refuse(*args: object) -> None:
        raise error

    monkeypatch.setattr(type(facade.engine.library), "list", refuse)
    answer = await ann.get("/list")
    assert (answer.status_code, answer.headers["retry-after"]) == (status, retry_after)


async def test_what_nobody_foresaw_is_told_to_nobody(
    facade: Facade, ann: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*args: object) -> None:
        raise asyncpg.UniqueViolationError("canary-content")

    monkeypatch.setattr(type(facade.engine.library), "list", fail)
    with caplog.at_level(logging.DEBUG):
        answer = await ann.get("/list", headers={"X-Request-Id": "look-for-me"})
    problem(answer, 500, "internal_error")
    assert "canary" not in answer.text + caplog.text
    assert "UniqueViolationError" in caplog.text
    assert "look-for-me" in caplog.text


async def test_no_content_is_logged_or_sent_back(ann: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    canary = "canary-content"
    with caplog.at_level(logging.INFO):
        for body in (
            {"title": canary, "text": canary},
            {"title": [canary], "text": {canary: 1}},
            {"title": canary, "text": canary, "kind": "k" * 201},
            {"title": canary * 100, "text": canary},
            {"title": canary, "text": canary, "occurred_at": canary, "access_tags": [canary]},
        ):
            answer = await ann.post("/add", json=body)
            assert canary not in answer.text
        await ann.post("/search", json={"query": canary})
    assert canary not in caplog.text
