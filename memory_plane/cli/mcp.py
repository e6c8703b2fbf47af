"""`memory mcp`: the memory as tools for an agent's host, over stdin and stdout."""

from typing import Annotated

import typer

from memory_plane.cli.output import fail
from memory_plane.cli.running import run


def mcp(
    allow_forget: Annotated[
        bool, typer.Option("--allow-forget", help="Also offer memory_forget, which cannot be undone.")
    ] = False,
) -> None:
    """Serve the memory as MCP tools over stdio, as the credential in MEMORY_TOKEN."""
    try:
        from memory_plane.client.mcp_server import serve_from_environment
    except ModuleNotFoundError:
        fail("This command needs the MCP SDK: pip install 'memory-plane[mcp]'.")
    run(serve_from_environment(allow_forget=allow_forget))
