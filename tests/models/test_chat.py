"""The chat client: an object under the schema, or a typed fault that tells no content."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from memory_plane.models.chat import ChatClient
from memory_plane.models.endpoint import Endpoint
from memory_plane.models.errors import BadReply, EndpointFault, EndpointRejected, EndpointUnavailable
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Body, Fault, HtmlPage, Poison, Redirect, Reset, Status, WrongCount

SCHEMA = {"type": "object", "properties": {"claims": {"type": "array"}}, "required": ["claims"]}
CANARY = "canary-77d0"


def client(fake: FakeEndpoint, http: httpx.AsyncClient) -> ChatClient:
    return ChatClient(http, Endpoint(fake.url, "m", "openai", api_key="k", timeout=20))


async def test_it_asks_for_the_schema_and_answers_the_object(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    fake.chat_answer = lambda _: {"claims": ["it rains"]}
    assert await client(fake, http).complete_json("be brief", "rain", SCHEMA) == {"claims": ["it rains"]}
    (call,) = fake.calls
    assert call.authorization == "Bearer k"
    assert dict(call.body) == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "rain"}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
        },
    }


async def test_a_temperature_is_sent_only_if_given(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    await ChatClient(http, Endpoint(fake.url, "m", "openai"), temperature=0.0).complete_json("s", "u", SCHEMA)
    assert fake.calls[0].body["temperature"] == 0.0


async def test_a_fenced_block_is_unwrapped(fake: FakeEndpoint, http: httpx.AsyncClient) -> None:
    fake.chat_answer = lambda _: '```json\n{"claims": []}\n```\n'
    assert await client(fake, http).complete_json("s", "u", SCHEMA) == {"claims": []}


@pytest.mark.parametrize("answer", [f"I think {CANARY}", "[1, 2]", '"text"', "", "{", '{"x": NaN}'])
async def test_what_is_no_json_object_is_a_bad_reply(fake: FakeEndpoint, http: httpx.AsyncClient, answer: str) -> None:
    fake.chat_answer = lambda _: answer
    with pytest.raises(BadReply) as raised:
        await client(fake, http).complete_json("s", "u", SCHEMA)
    assert CANARY not in str(raised.value)


def choice(**parts: Any) -> Body:
    return Body(json.dumps({"choices": [parts]}))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (choice(finish_reason="length", message={"content": '{"claims": []}'}), BadReply),
        (choice(finish_reason="content_filter", message={"content": None}), EndpointRejected),
        (choice(finish_reason="stop", message={"content": None, "refusal": "I cannot"}), EndpointRejected),
        (choice(finish_reason="stop", message={"content": None}), BadReply),
        (WrongCount(-1), BadReply),
        (Body("{}"), BadReply),
        (Body("x"), BadReply),
        (Poison(CANARY), EndpointRejected),
        (Status(500), EndpointUnavailable),
        (Status(401), EndpointUnavailable),
        (Status(429, retry_after="5"), EndpointUnavailable),
        (HtmlPage(), EndpointUnavailable),
        (Redirect(), EndpointUnavailable),
        (Reset(), EndpointUnavailable),
    ],
    ids=str,
)
async def test_every_failure_is_typed(
    fake: FakeEndpoint, http: httpx.AsyncClient, fault: Fault, kind: type[EndpointFault]
) -> None:
    fake.fail(fault)
    with pytest.raises(kind) as raised:
        await client(fake, http).complete_json("s", CANARY, SCHEMA)
    assert CANARY not in str(raised.value)
