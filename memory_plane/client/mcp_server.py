"""The memory as an MCP server: the tools over a client, whatever the transport.

Run over stdio it speaks for the credential in MEMORY_API, MEMORY_TENANT and MEMORY_TOKEN.
"""

import logging
import os
import sys
from collections.abc import Callable
from importlib.metadata import version

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
    async with client, stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_from_environment() -> None:
    """Raises Invalid when the environment does not say where, as whom and with which token."""
    # stdout belongs to the protocol.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    allowed = os.environ.get(ALLOW_FORGET, "").lower() in ("1", "true", "yes")
    await serve_stdio(AsyncMemoryClient.from_environment(), allow_forget=allowed)


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
