"""The fake endpoint is itself relied on by many tests: what it promises, it keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import numpy as np
import pytest

from tests.fakes.endpoint import FakeEndpoint, fake_endpoint_in_thread
from tests.fakes.faults import (
    BadNumber,
    HtmlPage,
    Poison,
    Redirect,
    Reset,
    ShuffledIndex,
    Status,
    WrongCount,
    WrongDims,
)


@pytest.fixture
async def fake() -> AsyncIterator[FakeEndpoint]:
    async with FakeEndpoint(dims=64) as endpoint:
        yield endpoint


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=10) as client:
        yield client


async def embed(http: httpx.AsyncClient, fake: FakeEndpoint, *texts: str, model: str = "m") -> httpx.Response:
    return await http.post(f"{fake.url}/v1/embeddings", json={"model": model, "input": list(texts)})


async def test_vectors_are_deterministic_and_near_for_shared_words(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    reply = (await embed(http, fake, "the red fox", "a red fox", "tax forms")).json()
    fox, other_fox, tax = (np.array(item["embedding"]) for item in reply["data"])
    assert list(fox) == fake.vector("the red fox", "m")
    assert fox @ other_fox > 0.5 > fox @ tax
    assert fake.vector("the red fox", "another") != fake.vector("the red fox", "m")


async def test_every_embedding_style_answers_the_same_vectors(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    ollama = await http.post(f"{fake.url}/api/embed", json={"model": "m", "input": ["x"], "truncate": True})
    tei = await http.post(f"{fake.url}/embed", json={"inputs": ["x"]})
    assert ollama.json()["embeddings"] == [fake.vector("x", "m")]
    assert tei.json() == [fake.vector("x")]
    assert fake.count("embed") == 2
    assert fake.embedded == {"x": 2}


async def test_faults_wait_their_turn_and_heal(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    fake.fail(Status(429, retry_after="30"), times=1)
    fake.fail(HtmlPage(), times=1)
    fake.fail(Redirect(), times=1)
    fake.fail(Status(503))
    first, second, third, fourth, fifth = [await embed(http, fake, "a") for _ in range(5)]
    assert (first.status_code, first.headers["retry-after"]) == (429, "30")
    assert second.headers["content-type"].startswith("text/html")
    assert third.status_code == 307
    assert (fourth.status_code, fifth.status_code) == (503, 503)
    fake.heal()
    assert (await embed(http, fake, "a")).status_code == 200


async def test_poison_spoils_only_requests_that_contain_it(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    fake.fail(Poison("BAD"), on="embed")
    assert (await embed(http, fake, "good", "so BAD")).status_code == 400
    assert (await embed(http, fake, "good")).status_code == 200


async def test_spoiled_batches(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    for fault in (WrongCount(-1), WrongDims(32), BadNumber("nan"), ShuffledIndex()):
        fake.fail(fault, times=1)
    count, dims, nan, shuffled = [(await embed(http, fake, "a", "b")).text for _ in range(4)]
    assert len(json.loads(count)["data"]) == 1
    assert len(json.loads(dims)["data"][0]["embedding"]) == 32
    assert "NaN" in nan
    assert [item["index"] for item in json.loads(shuffled)["data"]] == [1, 0]


async def test_a_reset_connection(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    fake.fail(Reset(), times=1)
    with pytest.raises(httpx.TransportError):
        await embed(http, fake, "a")
    assert (await embed(http, fake, "a")).status_code == 200


async def test_held_requests_wait_for_release(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    hold = fake.hold(on="embed")
    task = asyncio.create_task(embed(http, fake, "a"))
    await hold.reached(1)
    assert not task.done()
    assert fake.in_flight == 1
    hold.release()
    assert (await task).status_code == 200


async def test_stop_refuses_and_start_comes_back_on_the_same_port(http: httpx.AsyncClient) -> None:
    async with FakeEndpoint() as fake:
        port = fake.port
        await fake.stop()
        with pytest.raises(httpx.ConnectError):
            await embed(http, fake, "a")
        await fake.start(port)
        assert (await embed(http, fake, "a")).status_code == 200


async def test_models_and_keys(http: httpx.AsyncClient) -> None:
    async with FakeEndpoint(models={"small": 64, "large": 128}, api_key="k") as fake:
        assert (await embed(http, fake, "a", model="small")).status_code == 401
        http.headers["authorization"] = "Bearer k"
        large = await embed(http, fake, "a", model="large")
        assert len(large.json()["data"][0]["embedding"]) == 128
        assert (await embed(http, fake, "a", model="gone")).status_code == 404


@pytest.mark.parametrize(
    ("path", "documents", "items", "score"),
    [
        ("/rerank", "texts", None, "score"),
        ("/v2/rerank", "documents", "results", "relevance_score"),
        ("/v1/rerank", "documents", "data", "relevance_score"),
    ],
)
async def test_rerank_answers_best_first(
    fake: FakeEndpoint, http: httpx.AsyncClient, path: str, documents: str, items: str | None, score: str
) -> None:
    body = {"query": "red fox", documents: ["a cat", "a red fox", "red"]}
    reply = (await http.post(fake.url + path, json=body)).json()
    ranked = reply if items is None else reply[items]
    assert [(item["index"], item[score]) for item in ranked] == [(1, 1.0), (2, 0.5), (0, 0.0)]


async def test_chat_answers_the_smallest_instance_of_the_schema_or_what_the_test_says(
    fake: FakeEndpoint, http: httpx.AsyncClient
) -> None:
    schema = {"type": "object", "properties": {"claims": {"type": "array"}}, "required": ["claims"]}
    body = {
        "model": "m",
        "messages": [],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    }
    first = await http.post(f"{fake.url}/v1/chat/completions", json=body)
    assert json.loads(first.json()["choices"][0]["message"]["content"]) == {"claims": []}
    fake.chat_answer = lambda _: {"claims": ["it rains"]}
    second = await http.post(f"{fake.url}/v1/chat/completions", json=body)
    assert json.loads(second.json()["choices"][0]["message"]["content"]) == {"claims": ["it rains"]}


def test_in_a_thread_it_serves_a_test_that_blocks_its_loop() -> None:
    with fake_endpoint_in_thread(dims=64) as fake:
        reply = httpx.post(f"{fake.url}/embed", json={"inputs": ["x"]}, timeout=10)
        assert reply.json() == [fake.vector("x")]
        fake.fail(Status(500))
        assert httpx.post(f"{fake.url}/embed", json={"inputs": ["x"]}, timeout=10).status_code == 500
