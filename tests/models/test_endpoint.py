"""Base URLs and the one request function: every answer that is none becomes a typed fault."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

import httpx
import pytest

from memory_plane.contracts.enums import EmbedStyle
from memory_plane.core.base_url import BaseUrlRefused, normalize_base_url
from memory_plane.models.endpoint import Endpoint, parse_retry_after, post_json
from memory_plane.models.errors import (
    BadReply,
    EndpointFault,
    EndpointMisconfigured,
    EndpointRejected,
    EndpointTimeout,
    EndpointUnavailable,
)
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Body, Fault, HtmlPage, HugeReply, Redirect, Reset, Status

CANARY = "canary-5f3b"


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://localhost:8080/", "http://localhost:8080"),
        ("http://localhost:8080/v1", "http://localhost:8080"),
        ("http://localhost:8080/v1/", "http://localhost:8080"),
        (" https://API.Example.com//v1/ ", "https://api.example.com"),
        ("https://api.example.com:443", "https://api.example.com"),
        ("http://h:80/", "http://h"),
        ("https://gateway/openai/v1", "https://gateway/openai"),
        ("https://gateway/tei/", "https://gateway/tei"),
        ("http://[::1]:9000/v1", "http://[::1]:9000"),
    ],
)
def test_base_urls_have_one_spelling(given: str, normal: str) -> None:
    assert normalize_base_url(given) == normal
    assert normalize_base_url(normal) == normal


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("localhost:8080", "http:// or https://"),
        ("ftp://host", "http:// or https://"),
        ("", "http:// or https://"),
        ("http:///path", "no host"),
        ("http://ho st", "no host"),
        ("http://host:99999", "not a URL"),
        ("http://user:hunter2@host", "credentials"),
        ("http://host?api-version=1", "query"),
        ("http://host/#x", "fragment"),
        ("http://host/v1/embeddings", "leave out the route"),
        ("http://host/api/embed/", "leave out the route"),
        ("http://host/rerank", "leave out the route"),
    ],
)
def test_base_urls_that_cannot_work_are_refused_with_a_sentence(given: str, words: str) -> None:
    with pytest.raises(BaseUrlRefused, match=words) as refused:
        Endpoint(given, "m", "openai")
    assert "hunter2" not in str(refused.value)


def test_a_key_is_not_shown() -> None:
    assert "hunter2" not in repr(Endpoint("http://host", "m", "openai", api_key="hunter2"))


async def test_a_trailing_slash_or_v1_reaches_the_same_route(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    for suffix in ("", "/", "/v1", "/v1/"):
        await post_json(http, Endpoint(fake.url + suffix, "m", "openai"), "/v1/embeddings", {"input": ["a"]})
    assert [call.path for call in fake.calls] == ["/v1/embeddings"] * 4


@pytest.mark.parametrize(
    ("fault", "kind", "isolable"),
    [
        (Status(429), EndpointUnavailable, False),
        (Status(408), EndpointUnavailable, False),
        (Status(500), EndpointUnavailable, True),
        (Status(501), EndpointUnavailable, True),
        (Status(502), EndpointUnavailable, False),
        (Status(503), EndpointUnavailable, False),
        (Status(504), EndpointUnavailable, False),
        (HtmlPage(), EndpointUnavailable, False),
        (Reset(), EndpointUnavailable, True),
        (Redirect(), EndpointMisconfigured, False),
        (Status(301), EndpointMisconfigured, False),
        (Status(401), EndpointMisconfigured, False),
        (Status(402), EndpointMisconfigured, False),
        (Status(403), EndpointMisconfigured, False),
        (Status(404), EndpointMisconfigured, False),
        (Status(400), EndpointRejected, True),
        (Status(413), EndpointRejected, True),
        (Status(422), EndpointRejected, True),
        (Body("not json"), BadReply, True),
        (Body(""), BadReply, True),
        (HugeReply(2_000_000), BadReply, True),
    ],
)
async def test_every_failure_is_typed_and_tells_no_content(
    fake: FakeEndpoint,
    http: httpx.AsyncClient,
    caplog: pytest.LogCaptureFixture,
    fault: Fault,
    kind: type[EndpointFault],
    isolable: bool,
) -> None:
    if isinstance(fault, Status):
        # Endpoints echo what they were given.
        fault = Status(fault.code, body=f'{{"error": "cannot embed {CANARY}"}}')
    fake.fail(fault)
    endpoint = Endpoint(fake.url, "m", "openai", api_key="hunter2")
    with caplog.at_level(logging.DEBUG), pytest.raises(EndpointFault) as raised:
        await post_json(http, endpoint, "/v1/embeddings", {"input": [CANARY]}, max_bytes=1_000_000)
    assert type(raised.value) is kind
    assert raised.value.isolable is isolable
    told = f"{raised.value!r} {raised.value.__cause__!r} {caplog.text}"
    assert CANARY not in told
    assert "hunter2" not in told
    assert len(fake.calls) == 1, "the HTTP client must not retry by itself"


async def test_configuration_faults_say_what_to_do(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    endpoint = Endpoint(fake.url, "nomic", EmbedStyle.OLLAMA)
    assert endpoint == Endpoint(fake.url, "nomic", "ollama")
    for code, words in (
        (401, "set the right key"),
        (404, "'nomic', or no such route in style 'ollama'"),
        (307, "final address"),
    ):
        fake.fail(Status(code), times=1)
        with pytest.raises(EndpointMisconfigured, match=words):
            await post_json(http, endpoint, "/api/embed", {"input": ["a"]})


async def test_a_refused_connection(http: httpx.AsyncClient) -> None:
    async with FakeEndpoint() as gone:
        endpoint = Endpoint(gone.url, "m", "openai")
    with pytest.raises(EndpointUnavailable, match="cannot be reached") as raised:
        await post_json(http, endpoint, "/v1/embeddings", {"input": ["a"]})
    assert not raised.value.isolable


async def test_a_hanging_endpoint_is_left_after_the_timeout(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    hold = fake.hold()
    with pytest.raises(EndpointTimeout, match=r"within 0.2 s"):
        await post_json(http, Endpoint(fake.url, "m", "openai", timeout=0.2), "/v1/embeddings", {"input": ["a"]})
    assert hold.held == 1


async def test_the_timeout_bounds_an_endpoint_that_drips(http: httpx.AsyncClient) -> None:
    stop = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        while not stop.is_set():
            writer.write(b" ")
            try:
                await writer.drain()
                async with asyncio.timeout(0.02):
                    await stop.wait()
            except TimeoutError:
                continue
            except ConnectionError:
                break
        writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(EndpointTimeout):
            await post_json(http, Endpoint(f"http://127.0.0.1:{port}", "m", "tei", timeout=0.3), "/embed", {})
        stop.set()


async def test_lone_surrogates_are_sent_as_the_replacement_character(
    fake: FakeEndpoint, http: httpx.AsyncClient
) -> None:
    await post_json(http, Endpoint(fake.url, "m", "openai"), "/v1/embeddings", {"input": ["a\ud800b", "é\x00漢"]})
    assert fake.calls[0].texts == ("a\ufffdb", "é\x00漢")


async def test_a_bearer_key_is_sent_if_given(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    for key in (None, "k"):
        await post_json(http, Endpoint(fake.url, "m", "tei", api_key=key), "/embed", {"inputs": ["a"]})
    assert [call.authorization for call in fake.calls] == [None, "Bearer k"]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("30", 30.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("1e9", 3600.0),
        ("nan", None),
        ("soon", None),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0.0),
        ("Wed, 99 Oct 2026 07:27:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    now = datetime(2026, 10, 21, 7, 28, 0, tzinfo=UTC)
    assert parse_retry_after(value, lambda: now) == seconds


async def test_retry_after_reaches_the_fault(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    fake.fail(Status(429, retry_after="17"))
    with pytest.raises(EndpointUnavailable) as raised:
        await post_json(http, Endpoint(fake.url, "m", "openai"), "/v1/embeddings", {"input": ["a"]})
    assert raised.value.retry_after == 17.0
