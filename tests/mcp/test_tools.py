"""The tools through the SDK's own client: schemas a strict client takes, arguments as models send them, refusals."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from memory_plane.client import AsyncMemoryClient
from memory_plane.client.mcp_server import build_server
from memory_plane.client.tools import TOOLS

ADDED = {"documentId": "kdoc_1", "versionId": "kver_1", "status": "captured"}
FOUND = {
    "items": [
        {
            "documentId": "kdoc_1",
            "title": "Standup",
            "snippet": "We ship on Friday.",
            "score": 0.9,
            "kind": "note",
            "citation": {"adapter": "http", "external_ref": "r", "open": {"type": "memory", "id": "kdoc_1"}},
        }
    ],
    "evidence": "strong",
    "degraded": ["dense_unavailable"],
}


class Facade:
    """Answers every request with `answer` and keeps what was asked."""

    def __init__(self, answer: dict[str, Any], status: int = 200) -> None:
        self.answer = answer
        self.status = status
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(self.status, json=self.answer)

    @property
    def body(self) -> Any:
        return json.loads(self.requests[-1].content)

    @property
    def query(self) -> dict[str, str]:
        return dict(self.requests[-1].url.params)


def connected(
    facade: Callable[[httpx.Request], httpx.Response], *, allow_forget: bool = False, mode: str = "auto"
) -> Client:
    memory = AsyncMemoryClient("http://memory.test", "t", "s", attempts=1, transport=httpx.MockTransport(facade))
    return Client(build_server(lambda context: memory, allow_forget=allow_forget), mode=mode)


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_strict_client_takes_every_schema(mode: str) -> None:
    async with connected(Facade({}), allow_forget=True, mode=mode) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == [
        "memory_add",
        "memory_search",
        "memory_list",
        "memory_feed",
        "memory_get",
        "memory_forget",
    ]
    for tool in tools:
        assert tool.description
        assert tool.output_schema
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            for node in nodes(schema):
                assert not {"$ref", "$defs", "anyOf", "oneOf", "allOf"} & node.keys()
                assert node.get("type") != "array" or node["items"].get("type")
                assert not isinstance(node.get("type"), list)
        for argument in tool.input_schema["properties"].values():
            assert argument["type"]
            assert argument["description"]


async def test_what_destroys_is_off_unless_allowed_and_says_so() -> None:
    async with connected(Facade({})) as client:
        tools = (await client.list_tools()).tools
        assert "memory_forget" not in {tool.name for tool in tools}
        with pytest.raises(MCPError):
            await client.call_tool("memory_forget", {"document_id": "kdoc_1"})
    facade = Facade({"documentId": "kdoc_1", "versions": 2, "derivedForgotten": 0})
    async with connected(facade, allow_forget=True) as client:
        hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        result = await client.call_tool("memory_forget", {"document_id": "kdoc_1"})
    assert {name for name, hint in hints.items() if hint and hint.destructive_hint} == {"memory_forget"}
    assert {name for name, hint in hints.items() if hint and not hint.read_only_hint} == {"memory_add", "memory_forget"}
    assert result.structured_content == facade.answer


async def test_a_search_answers_structured_and_as_text() -> None:
    facade = Facade(FOUND)
    async with connected(facade) as client:
        result = await client.call_tool("memory_search", {"query": "when?", "limit": "5", "kinds": '["note"]'})
    assert not result.is_error
    assert result.structured_content == FOUND
    [text] = result.content
    assert isinstance(text, TextContent)
    assert "We ship on Friday." in text.text
    assert "kdoc_1" in text.text
    assert "dense_unavailable" in text.text
    assert facade.body == {"query": "when?", "limit": 5, "kinds": ["note"]}


async def test_an_add_maps_to_the_facades_fields() -> None:
    facade = Facade(ADDED)
    async with connected(facade) as client:
        await client.call_tool(
            "memory_add",
            {
                "title": "T",
                "text": "x",
                "share_with_tenant": "true",
                "share_with": "bob",
                "access_tags": ["memory.space:eng"],
                "attributes": '{"n": 1}',
                "external_ref": 7,
                "kind": None,
            },
        )
    assert facade.body == {
        "title": "T",
        "text": "x",
        "share": {"tenant": True, "principals": ["bob"]},
        "access_tags": ["memory.space:eng"],
        "attributes": {"n": 1},
        "external_ref": "7",
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "query is required"),
        ({"query": "q", "limit": "ten"}, "limit must be a whole number"),
        ({"query": "q", "limit": True}, "limit must be a whole number"),
        ({"query": "q", "kinds": "[1"}, "kinds must be a list"),
        ({"query": ["q"]}, "query must be a string"),
        ({"query": "q", "top_k": 3}, "top_k is not an argument"),
        ({"query": "q", "include_deprecated": "maybe"}, "include_deprecated must be true or false"),
    ],
)
async def test_wrong_arguments_are_a_result_that_says_what_is_wrong(arguments: dict[str, Any], sentence: str) -> None:
    facade = Facade(FOUND)
    async with connected(facade) as client:
        result = await client.call_tool("memory_search", arguments)
    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    assert sentence in result.content[0].text
    assert facade.requests == []


async def test_a_refusal_of_the_facade_is_a_result() -> None:
    problem = {"status": 403, "code": "capability_missing", "detail": "The grant memory:search is missing."}
    async with connected(Facade(problem, 403)) as client:
        result = await client.call_tool("memory_list", {})
    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    assert result.content[0].text == "The grant memory:search is missing."


async def test_a_facade_that_is_gone_or_strange_is_a_result_without_its_words() -> None:
    def gone(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("secret-host refused")

    def strange(request: httpx.Request) -> httpx.Response:
        raise ZeroDivisionError("secret-value")

    for facade in (gone, strange):
        async with connected(facade) as client:
            result = await client.call_tool("memory_list", {})
        assert result.is_error
        assert isinstance(result.content[0], TextContent)
        assert "secret" not in result.content[0].text


def test_tools_are_few_and_named_alike() -> None:
    assert len(TOOLS) <= 10
    assert all(tool.name.startswith("memory_") for tool in TOOLS)
