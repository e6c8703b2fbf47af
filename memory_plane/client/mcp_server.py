"""The memory as an MCP server: the tools over a client, whatever the transport.

Run over stdio it speaks for the credential in MEMORY_API, MEMORY_TENANT and MEMORY_TOKEN.
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from io import TextIOWrapper

import anyio
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ToolDefinition

from memory_plane.client.asynchronous import AsyncMemoryClient
from memory_plane.client.tools import TOOLS, Tool
from memory_plane.contracts.errors import PlaneError
from memory_plane.contracts.validation import NAMED_IN_DETAIL
from memory_plane.core.text import clean_json

ALLOW_FORGET = "MEMORY_MCP_ALLOW_FORGET"
INSTRUCTIONS = (
    "This is your long-term memory. Search it before you rely on an assumption about people, projects or earlier "
    "decisions, and add what will matter later: one subject a note, understandable on its own."
)

ClientOf = Callable[[ServerRequestContext], AsyncMemoryClient]

_log = logging.getLogger(__name__)


def build_server(client_of: ClientOf, *, allow_forget: bool = False) -> Server:
    """An MCP server whose calls go through the client that `client_of` gives for each request."""
    offered = {tool.name: tool for tool in TOOLS if allow_forget or not tool.destroys}

    async def list_tools(context: ServerRequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_definition(tool) for tool in offered.values()])

    async def call_tool(context: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
        tool = offered.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no such tool; there are {', '.join(offered)}.")
        try:
            structured, text = await tool(client_of(context), params.arguments or {})
        except PlaneError as refusal:
            return _failed(_sentences(refusal))
        except Exception as error:  # noqa: BLE001 - the boundary: a model is told, a conversation does not end
            _log.error("unexpected %s in tool %s", type(error).__name__, tool.name)
            return _failed("Something failed inside the memory; it may work later.")
        return CallToolResult(content=[TextContent(text=text)], structured_content=structured)

    return Server(
        "memory",
        title="Memory",
        version=version("memory-plane"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(client: AsyncMemoryClient, *, allow_forget: bool = False) -> None:
    """Serve one host over stdin and stdout until it closes them."""
    server = build_server(lambda context: client, allow_forget=allow_forget)
    stdin = anyio.wrap_file(_ReadableLines(sys.stdin.buffer, encoding="utf-8", errors="replace"))
    async with client, stdio_server(stdin=stdin) as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_from_environment(*, allow_forget: bool = False) -> None:
    """Also offers memory_forget when MEMORY_MCP_ALLOW_FORGET says so.

    Raises Invalid when the environment does not say where, as whom and with which token.
    """
    # stdout belongs to the protocol.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    allowed = allow_forget or os.environ.get(ALLOW_FORGET, "").lower() in ("1", "true", "yes")
    await serve_stdio(AsyncMemoryClient.from_environment(), allow_forget=allowed)


def readable(message: str) -> str:
    """The JSON text with half characters mended: the SDK's parser drops a message that has one, and the call would
    never be answered."""
    if "\\ud" not in message.lower():
        return message
    try:
        return json.dumps(clean_json(json.loads(message)))
    except (ValueError, RecursionError, PlaneError):
        return message


class _ReadableLines(TextIOWrapper):
    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # the text form of it
        return readable(super().readline(size))


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.repeatable,
            open_world_hint=False,
        ),
    )


def _sentences(refusal: PlaneError) -> str:
    unnamed = refusal.errors[NAMED_IN_DETAIL:]
    lines = [refusal.detail, *(f"- {error.field} {error.message}" for error in unnamed)]
    if refusal.retry_after is not None:
        lines.append(f"Try again in {refusal.retry_after:g} seconds.")
    return "\n".join(lines)


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)
