"""`/mcp` on the real facade: the SDK's own client, and the raw JSON-RPC that a strict client sends."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from memory_plane.client import AsyncMemoryClient
from memory_plane.client.tools import TOOLS, Tool
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import Forbidden
from tests.api.conftest import Facade, ann, facade, service

__all__ = ["ann", "facade", "service"]

JSON = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@asynccontextmanager
async def connected(facade: Facade, principal: str = "ann", mode: str = "auto") -> AsyncIterator[Client]:
    """The SDK's client over HTTP, into the app."""
    http = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(facade.app),
        headers={"Authorization": f"Bearer {facade.tenant}/{principal}"},
        timeout=60,
    )
    async with http, Client(streamable_http_client("http://facade/mcp", http_client=http), mode=mode) as client:
        yield client


def text_of(result: Any) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_adds_finds_reads_and_follows(facade: Facade, mode: str) -> None:
    async with connected(facade, mode=mode) as client:
        assert len((await client.list_tools()).tools) == 5
        added = await client.call_tool("memory_add", {"title": "Standup", "text": "The parser ships on Friday."})
        assert not added.is_error, text_of(added)
        document = added.structured_content["documentId"]
        found = await client.call_tool("memory_search", {"query": "when does the parser ship", "limit": "3"})
        assert [item["documentId"] for item in found.structured_content["items"]] == [document]
        assert document in text_of(found)
        read = await client.call_tool("memory_get", {"document_id": document})
        assert read.structured_content["text"] == "The parser ships on Friday."
        assert "The parser ships on Friday." in text_of(read)
        listed = await client.call_tool("memory_list", {})
        assert [event["documentId"] for event in listed.structured_content["events"]] == [document]
        news = await client.call_tool("memory_feed", {"after": "0"})
        assert [entry["documentId"] for entry in news.structured_content["entries"]] == [document]


async def test_a_tool_may_and_sees_what_its_caller_may_and_sees(facade: Facade) -> None:
    await facade.allow("bob", Verb.SEARCH)
    async with connected(facade) as client:
        added = await client.call_tool("memory_add", {"title": "T", "text": "for ann alone"})
    async with connected(facade, "bob") as client:
        refused = await client.call_tool("memory_add", {"title": "T", "text": "x"})
        assert refused.is_error
        assert "memory:add" in text_of(refused)
        unseen = await client.call_tool("memory_get", {"document_id": added.structured_content["documentId"]})
        assert unseen.is_error
        unknown = await client.call_tool("memory_get", {"document_id": "kdoc_none"})
        assert text_of(unseen) == text_of(unknown)
        assert (await client.call_tool("memory_list", {})).structured_content == {"events": []}


async def rpc(
    client: httpx.AsyncClient,
    method: str,
    params: dict[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params is not None else {})}
    return await client.post("/mcp", content=json.dumps(body), headers={**JSON, **(headers or {})})


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_raw_json_rpc_of_every_protocol_version(facade: Facade, version: str) -> None:
    async with facade.caller(path="") as client:
        hello = await rpc(
            client,
            "initialize",
            {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "strict", "version": "1"}},
        )
        assert hello.status_code == 200, hello.text
        assert hello.json()["result"]["protocolVersion"] == version
        more = {"MCP-Protocol-Version": version}
        told = await client.post(
            "/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers={**JSON, **more}
        )
        assert told.status_code == 202
        tools = (await rpc(client, "tools/list", headers=more)).json()["result"]["tools"]
        assert {tool["name"] for tool in tools} >= {"memory_add", "memory_search"}
        called = await rpc(client, "tools/call", {"name": "memory_list", "arguments": {"limit": "1"}}, more)
        assert called.json()["result"]["isError"] is False


async def test_half_a_character_is_taken(facade: Facade) -> None:
    async with facade.caller(path="") as client:
        answer = await rpc(
            client, "tools/call", {"name": "memory_add", "arguments": {"title": "cut \ud83d", "text": "x"}}
        )
    assert answer.json()["result"]["isError"] is False, answer.text


async def test_a_hosts_fixed_headers_do_not_make_two_adds_one(facade: Facade) -> None:
    async with facade.caller(path="") as client:
        for text in ("one", "two"):
            added = {"name": "memory_add", "arguments": {"title": text, "text": text}}
            answer = await rpc(client, "tools/call", added, {"Idempotency-Key": "of-the-connection"})
            assert answer.json()["result"]["isError"] is False, answer.text
        listed = await rpc(client, "tools/call", {"name": "memory_list", "arguments": {}})
    assert {event["title"] for event in listed.json()["result"]["structuredContent"]["events"]} == {"one", "two"}


async def test_errors_of_a_call_are_results_and_those_of_the_protocol_are_not(facade: Facade) -> None:
    async with facade.caller(path="") as client:
        wrong = await rpc(client, "tools/call", {"name": "memory_list", "arguments": {"limit": "ten"}})
        assert wrong.json()["result"]["isError"] is True
        unknown = await rpc(client, "tools/call", {"name": "memory_purge", "arguments": {}})
        assert unknown.json()["error"]["code"] == -32602
        nothing = await rpc(client, "no/such")
        assert nothing.json()["error"]["code"] == -32601
        garbage = await client.post("/mcp", content=b"{", headers=JSON)
        assert garbage.status_code == 400


async def test_identity_and_bounds_are_the_facades(facade: Facade) -> None:
    async with facade.caller(None, path="") as nobody:
        refused = await rpc(nobody, "tools/list")
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
        assert refused.headers["www-authenticate"].startswith("Bearer")
    async with facade.caller(path="") as client:
        large = await rpc(client, "tools/list", headers={"Content-Length": "10000001"})
        assert (large.status_code, large.json()["code"]) == (413, "body_too_large")
        for method in ("GET", "DELETE"):
            assert (await client.request(method, "/mcp", headers=JSON)).status_code == 405


VERBS = {
    "memory_add": Verb.ADD,
    "memory_search": Verb.SEARCH,
    "memory_list": Verb.SEARCH,
    "memory_feed": Verb.SEARCH,
    "memory_get": Verb.SEARCH,
    "memory_forget": Verb.FORGET,
}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
async def test_inv_29_every_tool_asks_whether_its_caller_may(facade: Facade, tool: Tool) -> None:
    """With every capability but the one it needs, each tool refuses and names it."""
    needed = VERBS[tool.name]
    await facade.allow("other", *(verb for verb in Verb if verb is not needed))
    arguments = dict.fromkeys(tool.required, "x")
    async with AsyncMemoryClient(
        "http://facade",
        facade.tenant,
        f"{facade.tenant}/other",
        transport=httpx.ASGITransport(facade.app),
    ) as memory:
        with pytest.raises(Forbidden, match=f"memory:{needed.value}"):
            await tool(memory, arguments)
    if not tool.destroys:
        async with connected(facade, "other") as client:
            refused = await client.call_tool(tool.name, arguments)
        assert refused.is_error
        assert f"memory:{needed.value}" in text_of(refused)
