"""Embedding: the right vector for the right text, or a typed fault; one bad text is its own fault."""

from __future__ import annotations

import httpx
import numpy as np
import pytest

from memory_plane.models.embed import EmbedClient, probe_dims
from memory_plane.models.endpoint import Endpoint
from memory_plane.models.errors import (
    BadReply,
    EndpointFault,
    EndpointMisconfigured,
    EndpointRejected,
    EndpointTimeout,
    EndpointUnavailable,
    ModelUnusable,
)
from memory_plane.models.isolate import CONTROL_TEXT, MAX_TIMEOUTS, Isolation, Outcome, TextFault
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import (
    BadNumber,
    Body,
    DuplicateIndex,
    Fault,
    HtmlPage,
    MissingIndex,
    Poison,
    Redirect,
    Reset,
    ShuffledIndex,
    Status,
    WrongCount,
    WrongDims,
    ZeroVector,
)
from tests.models.conftest import DIMS

STYLES = ("openai", "tei", "ollama")
TEXTS = ["the red fox", "tax forms", "a boat at sea"]


def client(fake: FakeEndpoint, http: httpx.AsyncClient, style: str = "openai", dims: int | None = DIMS) -> EmbedClient:
    return EmbedClient(http, Endpoint(fake.url, "fake", style, timeout=20), dims)


def same(outcome: Outcome, vector: list[float]) -> bool:
    return not isinstance(outcome, TextFault) and np.allclose(outcome, vector, atol=1e-6)


@pytest.mark.parametrize("style", STYLES)
async def test_each_style_gives_each_text_its_vector(fake: FakeEndpoint, http: httpx.AsyncClient, style: str) -> None:
    vectors = await client(fake, http, style).embed(TEXTS)
    assert all(vector.dtype == np.float32 and vector.shape == (DIMS,) for vector in vectors)
    assert all(same(vector, fake.vector(text)) for vector, text in zip(vectors, TEXTS, strict=True))
    assert await client(fake, http, style).embed([]) == []


async def test_requests_are_in_the_words_of_each_style(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    for style in STYLES:
        await client(fake, http, style).embed(["a"])
    assert [(call.path, dict(call.body)) for call in fake.calls] == [
        ("/v1/embeddings", {"model": "fake", "input": ["a"]}),
        ("/embed", {"inputs": ["a"]}),
        ("/api/embed", {"model": "fake", "input": ["a"], "truncate": True}),
    ]


async def test_another_order_is_put_right_by_index(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    fake.fail(ShuffledIndex())
    vectors = await client(fake, http).embed(TEXTS)
    assert all(same(vector, fake.vector(text)) for vector, text in zip(vectors, TEXTS, strict=True))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "fault",
    [
        WrongCount(-1),
        WrongCount(+1),
        WrongDims(DIMS * 2),
        WrongDims(0),
        WrongDims(DIMS - 1, only_last=True),
        BadNumber("nan"),
        BadNumber("inf"),
        BadNumber("null"),
        BadNumber("string"),
        BadNumber("bool"),
        ZeroVector(),
        Body("[]"),
        Body("{}"),
        Body('{"data": 3, "embeddings": 3}'),
        Body("[[1e999]]"),
        Body("null"),
    ],
    ids=str,
)
async def test_an_answer_that_cannot_be_trusted_is_a_bad_reply(
    fake: FakeEndpoint, http: httpx.AsyncClient, style: str, fault: Fault
) -> None:
    fake.fail(fault)
    with pytest.raises(BadReply):
        await client(fake, http, style).embed(TEXTS)


@pytest.mark.parametrize("fault", [DuplicateIndex(), MissingIndex()])
async def test_an_index_that_is_missing_or_twice_is_a_bad_reply(
    fake: FakeEndpoint, http: httpx.AsyncClient, fault: Fault
) -> None:
    fake.fail(fault)
    with pytest.raises(BadReply, match="index"):
        await client(fake, http).embed(TEXTS)


@pytest.mark.parametrize("number", ["1e300", "1" + "0" * 400])
async def test_numbers_beyond_float32_are_a_bad_reply(fake: FakeEndpoint, http: httpx.AsyncClient, number: str) -> None:
    fake.fail(Body(f"[[{number}, 1.0]]"))
    with pytest.raises(BadReply):
        await client(fake, http, "tei", dims=2).embed(["a"])


async def test_without_known_dims_a_batch_must_still_agree(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    fake.fail(WrongDims(DIMS // 2, only_last=True))
    with pytest.raises(BadReply, match="dimensions"):
        await client(fake, http, dims=None).embed(TEXTS)


async def test_batches_are_bounded_by_texts_and_by_characters(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    endpoint = Endpoint(fake.url, "fake", "openai")
    await EmbedClient(http, endpoint, batch_size=4).embed([f"text {n}" for n in range(10)])
    assert [len(call.texts) for call in fake.calls] == [4, 4, 2]
    fake.forget_calls()
    await EmbedClient(http, endpoint, batch_chars=10).embed(["12345", "12345", "1", "x" * 50, "12345"])
    assert [[len(text) for text in call.texts] for call in fake.calls] == [[5, 5], [1], [50], [5]]


# Isolation


async def test_one_poisoned_text_fails_no_neighbour(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    fake.fail(Poison("BAD"))
    texts = [f"text {n}" for n in range(32)]
    texts[13] = "so BAD"
    outcomes = await client(fake, http).embed_isolating(texts)
    assert isinstance(outcomes[13], TextFault)
    assert outcomes[13].code == "endpoint_rejected"
    good = [n for n in range(32) if n != 13]
    assert all(same(outcomes[n], fake.vector(texts[n])) for n in good)
    # The batch, the control text, then two requests for each halving of 32.
    assert len(fake.calls) == 1 + 1 + 2 * 5


@pytest.mark.parametrize("code", [400, 413, 422, 500])
async def test_a_lone_poisoned_text_is_its_own_fault(fake: FakeEndpoint, http: httpx.AsyncClient, code: int) -> None:
    fake.fail(Poison("BAD", code=code))
    (outcome,) = await client(fake, http).embed_isolating(["BAD"])
    assert isinstance(outcome, TextFault)
    assert "BAD" not in outcome.reason


async def test_a_batch_of_nothing_but_poison(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    fake.fail(Poison("BAD"))
    outcomes = await client(fake, http).embed_isolating(["BAD 1", "BAD 2", "BAD 3"])
    assert all(isinstance(outcome, TextFault) for outcome in outcomes)


@pytest.mark.parametrize("fault", [BadNumber("nan"), ZeroVector(), WrongDims(3, only_last=True)], ids=str)
async def test_one_bad_vector_in_a_good_reply_costs_no_further_request(
    fake: FakeEndpoint, http: httpx.AsyncClient, fault: Fault
) -> None:
    fake.fail(fault, times=1)
    outcomes = await client(fake, http).embed_isolating(TEXTS)
    assert [isinstance(outcome, TextFault) for outcome in outcomes] == [False, False, True]
    assert len(fake.calls) == 1


async def test_a_reply_too_short_once_is_asked_for_again_in_halves(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    fake.fail(WrongCount(-1), times=1)
    outcomes = await client(fake, http).embed_isolating(TEXTS)
    assert all(same(outcome, fake.vector(text)) for outcome, text in zip(outcomes, TEXTS, strict=True))


@pytest.mark.parametrize(
    "fault",
    [Status(429), Status(401), Status(404), Status(503), HtmlPage(), Redirect()],
    ids=str,
)
async def test_a_fault_of_the_whole_endpoint_is_not_bisected(
    fake: FakeEndpoint, http: httpx.AsyncClient, fault: Fault
) -> None:
    fake.fail(fault)
    with pytest.raises(EndpointUnavailable):
        await client(fake, http).embed_isolating(TEXTS)
    assert len(fake.calls) == 1


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Status(500), EndpointUnavailable),
        (Reset(), EndpointUnavailable),
        (Status(400), EndpointRejected),
        (WrongCount(-1), BadReply),
        (WrongDims(3), BadReply),
        (BadNumber("nan"), BadReply),
        (Body("x"), BadReply),
    ],
    ids=str,
)
async def test_what_fails_the_control_text_too_is_the_endpoints_fault(
    fake: FakeEndpoint, http: httpx.AsyncClient, fault: Fault, kind: type[EndpointFault]
) -> None:
    fake.fail(fault)
    with pytest.raises(kind):
        await client(fake, http).embed_isolating(["alone"])
    assert [call.texts for call in fake.calls] == [("alone",), (CONTROL_TEXT,)]


async def test_an_endpoint_that_dies_during_isolation_is_unavailable(
    fake: FakeEndpoint, http: httpx.AsyncClient
) -> None:
    fake.fail(Poison("BAD"))
    fake.fail(Poison("last", code=503))
    with pytest.raises(EndpointUnavailable):
        await client(fake, http).embed_isolating(["BAD", "b", "c", "last"])


async def test_isolation_gives_up_after_too_many_timeouts(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    requests: list[list[str]] = []

    async def request(batch: list[str]) -> list[Outcome]:
        requests.append(batch)
        if batch == [CONTROL_TEXT]:
            return [np.ones(3, dtype=np.float32)]
        raise EndpointTimeout("too slow", isolable=True)

    with pytest.raises(EndpointTimeout):
        await Isolation(request).run([f"t{n}" for n in range(32)])
    assert len(requests) == MAX_TIMEOUTS + 2


# The model


async def test_dims_are_probed(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    assert await probe_dims(client(fake, http, dims=None)) == DIMS
    assert await probe_dims(client(fake, http, dims=7)) == DIMS


@pytest.mark.parametrize(("dims", "usable"), [(63, False), (64, True), (4000, True), (4001, False), (4096, False)])
async def test_dims_outside_the_indexable_range_are_refused_with_a_sentence(
    http: httpx.AsyncClient, dims: int, usable: bool
) -> None:
    async with FakeEndpoint(dims=dims) as fake:
        if usable:
            assert await probe_dims(client(fake, http, dims=None)) == dims
        else:
            with pytest.raises(ModelUnusable, match=f"{dims} dimensions; 64 to 4000"):
                await probe_dims(client(fake, http, dims=None))


async def test_a_model_that_is_not_there_names_itself(http: httpx.AsyncClient) -> None:
    async with FakeEndpoint(models={"here": 64}) as fake:
        with pytest.raises(EndpointMisconfigured, match="'fake'"):
            await client(fake, http).embed(["a"])
