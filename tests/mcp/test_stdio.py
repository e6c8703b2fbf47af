"""`memory mcp` as an agent's host starts it: a process of its own that speaks over stdin and stdout."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent

from api.app import create_app
from tests.api.conftest import Facade, by_header, service
from tests.api.server import served
from tests.fixtures.database import settings_for

__all__ = ["service"]

COMMAND = ["-m", "memory_plane.cli.main", "mcp"]


@pytest.fixture(scope="module")
async def grants(service: tuple[Any, Any]) -> None:
    await Facade(*service, tenant="desk").allow("ann")


@pytest.fixture(scope="module")
def environment(module_database: str, grants: None) -> Iterator[dict[str, str]]:
    app = create_app(settings_for(module_database, temporal_address="127.0.0.1:1"), caller_resolver=by_header)
    with served(app) as url:
        yield {"MEMORY_API": url, "MEMORY_TENANT": "desk", "MEMORY_TOKEN": "desk/ann"}


async def test_the_sdks_client_starts_it_and_uses_the_memory(environment: dict[str, str]) -> None:
    process = StdioServerParameters(command=sys.executable, args=COMMAND, env=environment)
    async with Client(stdio_client(process)) as client:
        added = await client.call_tool("memory_add", {"title": "Stdio", "text": "Speaks over pipes."})
        assert not added.is_error, added.content
        found = await client.call_tool("memory_search", {"query": "pipes"})
        assert [item["title"] for item in found.structured_content["items"]] == ["Stdio"]
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "memory_forget" not in names


async def test_forgetting_is_offered_where_the_operator_allows_it(environment: dict[str, str]) -> None:
    process = StdioServerParameters(command=sys.executable, args=[*COMMAND, "--allow-forget"], env=environment)
    async with Client(stdio_client(process)) as client:
        added = await client.call_tool("memory_add", {"title": "Gone", "text": "soon"})
        forgotten = await client.call_tool("memory_forget", {"document_id": added.structured_content["documentId"]})
        assert isinstance(forgotten.content[0], TextContent)
        assert forgotten.structured_content["versions"] == 1


def test_raw_lines_are_answered_line_by_line(environment: dict[str, str]) -> None:
    """Half a character, nonsense between the lines, and the end of input ends the process."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    half = {"name": "memory_add", "arguments": {"title": "cut \ud83d", "text": "x"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "this is no JSON",
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": half}),
    ]
    process = subprocess.Popen(
        [sys.executable, *COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        for line in lines:
            process.stdin.write(line + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.stdout.read() == ""
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[1]["result"]["isError"] is False, answers[1]
    assert process.returncode == 0


def test_without_a_credential_it_says_what_to_set() -> None:
    done = subprocess.run([sys.executable, *COMMAND], env={}, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "MEMORY_API, MEMORY_TENANT, MEMORY_TOKEN" in done.stderr
    assert "Traceback" not in done.stderr
