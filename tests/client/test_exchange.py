"""What the client sends, when it repeats a request, and what it makes of an answer."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest

from memory_plane.client import AsyncMemoryClient, MemoryClient, exchange
from memory_plane.contracts.errors import (
    Forbidden,
    Invalid,
    KeyReused,
    NotFound,
    PlaneError,
    Throttled,
    Unauthenticated,
    Unavailable,
)
from memory_plane.contracts.wire import Share

Handler = Callable[[httpx.Request], httpx.Response]
ADDED = {"documentId": "kdoc_1", "versionId": "kver_1", "status": "captured"}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every pause between attempts is noted instead of waited for."""
    pauses: list[float] = []
    decide = exchange.pause

    def note(state: object) -> float:
        pauses.append(decide(state))  # type: ignore[arg-type]
        return 0.0

    monkeypatch.setattr(exchange, "pause", note)
    return pauses


def client(handler: Handler, attempts: int = 4) -> MemoryClient:
    return MemoryClient(
        "http://memory.test/", "t 1/ä", "secret", attempts=attempts, transport=httpx.MockTransport(handler)
    )


def script(*responses: httpx.Response | Exception) -> tuple[Handler, list[httpx.Request]]:
    """A handler that answers with each response in turn, and the requests it saw."""
    seen: list[httpx.Request] = []
    left = list(responses)

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return handle, seen


def refusal(status: int, code: str, **headers: str) -> httpx.Response:
    body = {
        "type": "about:blank",
        "title": "t",
        "status": status,
        "detail": "What happened.",
        "code": code,
        "errors": [{"field": "title", "message": "must not be blank"}],
    }
    return httpx.Response(
        status, json=body, headers={"content-type": "application/problem+json", "x-request-id": "r-1", **headers}
    )


def test_an_add_carries_the_token_the_quoted_tenant_and_every_field() -> None:
    handle, seen = script(httpx.Response(200, json=ADDED))
    answer = client(handle).add(
        "T",
        "cut \ud83d and NUL \x00",
        share=Share(tenant=True),
        occurred_at=datetime(2026, 1, 2, tzinfo=UTC),
        attributes={"n": 1},
        idempotency_key="k",
    )
    assert (answer.document_id, answer.status) == ("kdoc_1", "captured")
    [request] = seen
    assert str(request.url) == "http://memory.test/api/tenants/t%201%2F%C3%A4/memory/add"
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers["idempotency-key"] == "k"
    body = json.loads(request.content)
    assert body["text"] == "cut \ud83d and NUL \x00"
    assert body["share"]["tenant"] is True
    assert body["occurred_at"] == "2026-01-02T00:00:00+00:00"


def test_a_retried_add_keeps_its_own_idempotency_key(no_pause: list[float]) -> None:
    handle, seen = script(httpx.ReadError("lost"), refusal(503, "database_busy", **{"retry-after": "2"}), OK())
    client(handle).add("T", "x")
    keys = {request.headers["idempotency-key"] for request in seen}
    assert len(seen) == 3
    assert len(keys) == 1
    assert no_pause[1] == 2.0


def OK() -> httpx.Response:  # noqa: N802 - reads as the answer it is
    return httpx.Response(200, json=ADDED)


def test_two_adds_have_two_keys() -> None:
    handle, seen = script(OK(), OK())
    memory = client(handle)
    memory.add("T", "x")
    memory.add("T", "x")
    assert len({request.headers["idempotency-key"] for request in seen}) == 2


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_respected_and_the_last_refusal_is_raised(status: int, no_pause: list[float]) -> None:
    handle, seen = script(*[refusal(status, "c", **{"retry-after": "7"}) for _ in range(4)])
    with pytest.raises(Throttled if status == 429 else Unavailable) as caught:
        client(handle).search("q")
    assert len(seen) == 4
    assert set(no_pause) == {7.0}
    assert caught.value.retry_after == 7.0


def test_a_pause_longer_than_the_limit_is_not_waited_for() -> None:
    handle, seen = script(refusal(429, "throttled", **{"retry-after": "3600"}))
    with pytest.raises(Throttled):
        client(handle).search("q")
    assert len(seen) == 1


def test_a_purge_is_not_repeated_once_it_may_have_happened() -> None:
    handle, seen = script(httpx.ReadTimeout("lost"))
    with pytest.raises(Unavailable):
        client(handle).purge("kdoc_1")
    assert len(seen) == 1
    deleted = httpx.Response(200, json={"documentId": "kdoc_1", "deleted": True})
    handle, seen = script(httpx.ConnectError("refused"), refusal(503, "c", **{"retry-after": "1"}), deleted)
    assert client(handle).purge("kdoc_1").deleted
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Invalid), (401, Unauthenticated), (403, Forbidden), (404, NotFound), (422, KeyReused), (500, Unavailable)],
)
def test_a_problem_document_becomes_its_typed_error(status: int, kind: type[PlaneError]) -> None:
    handle, seen = script(refusal(status, "some_code"))
    with pytest.raises(kind) as caught:
        client(handle).get("kdoc_1")
    error = caught.value
    assert type(error) is kind
    assert (error.detail, error.code, error.request_id) == ("What happened.", "some_code", "r-1")
    assert [(e.field, e.message) for e in error.errors] == [("title", "must not be blank")]
    assert len(seen) == 1


def test_another_servers_answer_is_told_as_such() -> None:
    handle, _ = script(httpx.Response(200, text="<html>hello</html>"))
    with pytest.raises(Unavailable, match="MEMORY_API"):
        client(handle, attempts=1).list()
    handle, _ = script(httpx.Response(404, text="<html>no</html>"))
    with pytest.raises(NotFound) as caught:
        client(handle).list()
    assert caught.value.code == "http_404"


def test_list_all_walks_the_pages() -> None:
    def page(title: str, cursor: str | None) -> httpx.Response:
        event = {
            "at": "2026-01-01T00:00:00Z",
            "title": title,
            "source": "http",
            "tenantId": "t",
            "principalId": "p",
            "documentId": "d",
            "versionId": "v",
            "kind": "note",
        }
        return httpx.Response(200, json={"events": [event], **({"nextCursor": cursor} if cursor else {})})

    handle, seen = script(page("a", "c1"), page("b", "c2"), page("c", None))
    assert [event.title for event in client(handle).list_all()] == ["a", "b", "c"]
    assert [request.url.params.get("cursor") for request in seen] == [None, "c1", "c2"]


def test_the_feed_is_followed_past_empty_pages_to_its_end() -> None:
    def page(cursor: int) -> httpx.Response:
        return httpx.Response(200, json={"entries": [], "nextCursor": cursor})

    handle, seen = script(page(100), page(140), page(140))
    assert [p.next_cursor for p in client(handle).feed_pages(exclude_generator="me")] == [100, 140]
    assert [request.url.params["after"] for request in seen] == ["0", "100", "140"]


def test_add_many_splits_by_count_and_by_bytes_and_counts_on() -> None:
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        items = json.loads(request.content)["items"]
        return httpx.Response(200, json={"items": [{"index": i, **ADDED} for i in range(len(items))]})

    progress: list[int] = []
    documents = [{"title": str(n), "text": "x"} for n in range(5)] + [
        {"title": str(n), "text": "y" * 5_000_000} for n in range(2)
    ]
    outcomes = list(client(handle).add_many(documents, batch_size=3, idempotency_key="k", on_progress=progress.append))
    assert [item.index for item in outcomes] == list(range(7))
    assert progress == [3, 6, 7]
    assert [request.headers["idempotency-key"] for request in seen] == ["k/0", "k/3", "k/6"]
    assert all(len(request.content) <= 10_000_000 for request in seen)


async def test_the_async_client_does_the_same() -> None:
    handle, seen = script(httpx.ReadError("lost"), OK(), httpx.Response(200, json={"items": [], "evidence": "none"}))
    async with AsyncMemoryClient("http://memory.test", "t", "s", transport=httpx.MockTransport(handle)) as memory:
        assert (await memory.add("T", "x")).version_id == "kver_1"
        assert (await memory.search("q", limit=3, include_deprecated=True)).items == []
    assert seen[0].headers["idempotency-key"] == seen[1].headers["idempotency-key"]
    assert json.loads(seen[2].content) == {"query": "q", "limit": 3, "include_deprecated": True}


@pytest.mark.parametrize(
    "arguments",
    [("memory.test", "t", "s"), ("http://m", "", "s"), ("http://m", "t", ""), ("http://m", "t", "a\nb")],
)
def test_a_wrong_configuration_is_a_sentence(arguments: tuple[str, str, str]) -> None:
    with pytest.raises(Invalid):
        MemoryClient(*arguments)


def test_the_environment_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_API", "http://m")
    monkeypatch.delenv("MEMORY_TENANT", raising=False)
    monkeypatch.delenv("MEMORY_TOKEN", raising=False)
    with pytest.raises(Invalid, match="MEMORY_TENANT, MEMORY_TOKEN"):
        MemoryClient.from_environment()


def test_the_client_imports_nothing_of_the_service() -> None:
    service = "asyncpg temporalio fastapi pydantic_settings memory_plane.plane memory_plane.store memory_plane.models"
    code = (
        f"import sys, memory_plane.client;print(*(m for m in sys.modules if m.startswith(tuple({service!r}.split()))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
