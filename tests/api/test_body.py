"""Reading a body: what is taken, what is refused, in which words, and when reading stops."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import Message

from api.body import MAX_DEPTH, BodyLimits, JsonRequest, parse_json
from api.problems import HttpRefusal
from memory_plane.contracts.errors import Invalid, PlaneError, TooLarge

LIMITS = BodyLimits(max_bytes=100, idle_seconds=5.0, total_seconds=5.0)


def request(*pieces: bytes, headers: dict[str, str] | None = None, stalls: bool = False) -> JsonRequest:
    """A request whose body comes in these pieces, and then stalls for ever if told to."""
    messages: list[Message] = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    if not stalls:
        messages[-1]["more_body"] = False

    async def source() -> AsyncIterator[Message]:
        for message in messages:
            yield message
        if stalls:
            await asyncio.Event().wait()
        raise AssertionError("read on after the end or the limit")

    stream = source()
    given = {"content-type": "application/json", **(headers or {})}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "headers": [(name.encode(), value.encode()) for name, value in given.items() if value],
    }
    return JsonRequest(scope, stream.__anext__)


async def test_payload_is_as_sent_and_json_is_clean() -> None:
    sent = request(b'{"title": "cut \\ud83d", "text": "a\\u0000b", "k\\u0000": 1}')
    await sent.load(LIMITS)
    assert sent.payload == {"title": "cut \ud83d", "text": "a\x00b", "k\x00": 1}
    assert await sent.json() == {"title": "cut \ufffd", "text": "ab", "k": 1}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"t": "raw \x00 NUL"}',
        b'{"t": "surrogate bytes \xed\xa0\xbd"}',
        b'\xef\xbb\xbf{"t": "byte order mark"}',
        '{"t": "\u202e rtl 👩‍👩‍👧 e\u0301"}'.encode(),
    ],
)
async def test_no_character_is_refused(raw: bytes) -> None:
    sent = request(raw)
    await sent.load(LIMITS)
    assert json.dumps(await sent.json(), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"{", "not valid JSON"),
        (b'{"a": 1,}', "not valid JSON"),
        (b'{"a": 1} x', "not valid JSON"),
        (b"\xff\xfe{\x00}\x00", "UTF-8"),
        (b'{"a": 1, "b": 2, "a": 3}', "same key twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e999}', "beyond what a double"),
        (b'{"a": 9223372036854775808}', "64 bits"),
        (b'{"a": -' + b"9" * 50_000 + b"}", "64 bits"),
        (b"[" * 50_000, "levels deep"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "levels deep"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "levels deep"),
    ],
)
def test_what_is_no_reasonable_json_gets_a_sentence(raw: bytes, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence) as caught:
        parse_json(raw)
    assert caught.value.code == "invalid_json"


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 0, 1.5, 1e308])
def test_numbers_that_fit_are_kept(number: float) -> None:
    assert parse_json(json.dumps({"n": number}).encode()) == {"n": number}


def test_the_deepest_body_allowed_passes() -> None:
    assert parse_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"', "application/x+json"],
)
async def test_json_content_types_are_taken(content_type: str) -> None:
    sent = request(b"{}", headers={"content-type": content_type})
    await sent.load(LIMITS)
    assert sent.payload == {}


@pytest.mark.parametrize("content_type", ["", "text/plain", "text/json", "application/json; charset=latin-1"])
async def test_another_content_type_is_415(content_type: str) -> None:
    with pytest.raises(HttpRefusal) as caught:
        await request(b"{}", headers={"content-type": content_type}).load(LIMITS)
    assert caught.value.status == 415


async def test_an_empty_body_needs_no_content_type() -> None:
    sent = request(b"", headers={"content-type": ""})
    await sent.load(LIMITS)
    assert await sent.body() == b""


async def test_a_declared_length_beyond_the_limit_is_refused_before_reading() -> None:
    with pytest.raises(TooLarge):
        await request(b"", headers={"content-length": "101"}, stalls=True).load(LIMITS)


async def test_a_chunked_body_is_refused_at_the_piece_that_exceeds() -> None:
    with pytest.raises(TooLarge):
        await request(b"x" * 60, b"x" * 41, stalls=True).load(LIMITS)
    sent = request(b'"' + b"x" * 59, b"x" * 39 + b'"')
    await sent.load(LIMITS)
    assert len(await sent.body()) == 100


@pytest.mark.parametrize(
    "limits", [BodyLimits(idle_seconds=0.02, total_seconds=60), BodyLimits(idle_seconds=60, total_seconds=0.02)]
)
async def test_a_body_that_stalls_is_let_go(limits: BodyLimits) -> None:
    # The first pause is timed by idle_seconds alone; total_seconds counts from the first piece on.
    stalled = request(b'{"a"', stalls=True)
    with pytest.raises(HttpRefusal) as caught:
        await stalled.load(limits)
    assert (caught.value.status, caught.value.close) == (408, True)


@pytest.mark.parametrize("raw", [b'{"secret-value": }', b'{"a": "secret-value" "b"}', b'"secret-value'])
def test_no_sentence_repeats_what_was_sent(raw: bytes) -> None:
    with pytest.raises(PlaneError) as caught:
        parse_json(raw)
    assert "secret-value" not in caught.value.detail


async def test_a_chunked_body_without_length_is_read_to_its_end() -> None:
    body: dict[str, Any] = {"title": "T", "n": [1, 2]}
    raw = json.dumps(body).encode()
    sent = request(*(raw[at : at + 3] for at in range(0, len(raw), 3)))
    await sent.load(LIMITS)
    assert sent.payload == body
