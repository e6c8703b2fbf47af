"""Rerank: the right score for the right document within the model's limit, on one scale."""

from __future__ import annotations

import httpx
import pytest

from memory_plane.models.breaker import Breaker
from memory_plane.models.endpoint import Endpoint
from memory_plane.models.errors import BadReply, EndpointFault, EndpointTimeout, EndpointUnavailable, RerankQueryTooLong
from memory_plane.models.rerank import RerankClient, Reranker, calibrated, doc_budget
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import (
    BadNumber,
    Body,
    DuplicateIndex,
    Fault,
    HtmlPage,
    MissingIndex,
    Redirect,
    Reset,
    Status,
    WrongCount,
)
from tests.models.conftest import Clock

STYLES = ("tei", "cohere", "voyage")
DOCUMENTS = ["a cat", "a red fox", "red"]


def client(
    fake: FakeEndpoint, http: httpx.AsyncClient, style: str = "tei", max_doc_chars: int | None = None
) -> RerankClient:
    return RerankClient(http, Endpoint(fake.url, "bge-reranker-v2-m3", style, timeout=20), max_doc_chars)


@pytest.mark.parametrize("style", STYLES)
async def test_scores_come_back_in_the_order_of_the_documents(
    fake: FakeEndpoint, http: httpx.AsyncClient, style: str
) -> None:
    assert await client(fake, http, style).rerank("red fox", DOCUMENTS) == [0.0, 1.0, 0.5]
    assert await client(fake, http, style).rerank("red fox", []) == []


async def test_requests_are_in_the_words_of_each_style(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    for style in STYLES:
        await client(fake, http, style).rerank("q", ["d"])
    model = "bge-reranker-v2-m3"
    assert [(call.path, dict(call.body)) for call in fake.calls] == [
        ("/rerank", {"query": "q", "texts": ["d"], "raw_scores": False, "truncate": True}),
        ("/v2/rerank", {"model": model, "query": "q", "documents": ["d"]}),
        ("/v1/rerank", {"model": model, "query": "q", "documents": ["d"], "truncation": True}),
    ]


async def test_fifty_documents_are_split_for_tei_and_scored_as_one(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    documents = [f"{'red' if n % 3 == 0 else 'blue'} {n}" for n in range(50)]
    scores = await client(fake, http).rerank("red", documents)
    assert scores == [1.0 if n % 3 == 0 else 0.0 for n in range(50)]
    assert sorted(len(call.texts) - 1 for call in fake.calls) == [18, 32]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (WrongCount(-1), BadReply),
        (WrongCount(+1), BadReply),
        (BadNumber("nan"), BadReply),
        (BadNumber("inf"), BadReply),
        (BadNumber("null"), BadReply),
        (BadNumber("string"), BadReply),
        (BadNumber("bool"), BadReply),
        (DuplicateIndex(), BadReply),
        (MissingIndex(), BadReply),
        (Body("{}"), BadReply),
        (Body("nonsense"), BadReply),
        (Status(500), EndpointUnavailable),
        (Status(429, retry_after="3"), EndpointUnavailable),
        (HtmlPage(), EndpointUnavailable),
        (Redirect(), EndpointUnavailable),
        (Reset(), EndpointUnavailable),
    ],
    ids=str,
)
async def test_every_failure_is_typed(
    fake: FakeEndpoint, http: httpx.AsyncClient, style: str, fault: Fault, kind: type[EndpointFault]
) -> None:
    fake.fail(fault)
    with pytest.raises(kind):
        await client(fake, http, style).rerank("red fox", DOCUMENTS)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("bge-reranker-base", 512),
        ("BAAI/bge-reranker-large", 512),
        ("bge-reranker-v2-m3", 8192),
        ("BAAI/bge-reranker-v2-m3", 8192),
        ("someone/unknown", 512),
    ],
)
def test_the_budget_of_a_document(model: str, tokens: int) -> None:
    room = (tokens - 12) * 3
    assert doc_budget(model, "") == room
    assert doc_budget(model, "x" * 100) == room - 100
    assert doc_budget(model, "x" * (room - 200)) == 200
    with pytest.raises(RerankQueryTooLong) as raised:
        doc_budget(model, "x" * (room - 199))
    assert raised.value.code == "rerank_query_too_long"
    assert doc_budget(model, "x" * 100_000, override=300) == 300


async def test_a_long_document_is_cut_to_the_budget_and_still_reranked(
    fake: FakeEndpoint, http: httpx.AsyncClient
) -> None:
    long = "fox " + "filler " * 700
    small = RerankClient(http, Endpoint(fake.url, "bge-reranker-base", "tei"))
    assert await small.rerank("fox", [long]) == [1.0]
    assert len(fake.calls[0].texts[0]) == 1500 - len("fox")
    await client(fake, http, max_doc_chars=250).rerank("fox", [long])
    assert len(fake.calls[1].texts[0]) == 250


def test_scores_are_on_one_scale() -> None:
    assert calibrated([0.0, 0.3, 1.0]) == [0.0, 0.3, 1.0]
    assert calibrated([1.0000001, -1e-9]) == [1.0, 0.0]
    logits = calibrated([-1000.0, 0.0, 2.0, 1000.0])
    assert logits == [0.0, 0.5, pytest.approx(0.8808, abs=1e-4), 1.0]
    assert calibrated([]) == []


async def test_inv_13_a_hanging_reranker_costs_three_searches_their_share_and_no_more(
    fake: FakeEndpoint, http: httpx.AsyncClient, clock: Clock
) -> None:
    reranker = Reranker(client(fake, http), breaker=Breaker("fake", clock=clock))
    hold = fake.hold()
    for _ in range(3):
        with pytest.raises(EndpointTimeout):
            await reranker.rerank("red", DOCUMENTS, within=0.2)
    for _ in range(10):
        with pytest.raises(EndpointUnavailable, match="left alone"):
            await reranker.rerank("red", DOCUMENTS, within=3600.0)
    hold.release()
    fake.heal()
    clock.now += 1.0
    assert await reranker.rerank("red", DOCUMENTS, within=20.0) == [0.0, 1.0, 1.0]


async def test_a_query_too_long_asks_nobody_and_opens_no_circuit(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    reranker = Reranker(RerankClient(http, Endpoint(fake.url, "bge-reranker-base", "tei")))
    for _ in range(5):
        with pytest.raises(RerankQueryTooLong):
            await reranker.rerank("x" * 1400, DOCUMENTS, within=20.0)
    assert reranker.breaker.state == "closed"
    assert fake.calls == []
