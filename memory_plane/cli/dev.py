"""`memory dev`: the whole embedded stack in one process tree, until Ctrl-C."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_plane.cli.output import fail, out, usage
from memory_plane.cli.running import run

if TYPE_CHECKING:
    from memory_plane.dev.stack import DevStack


def dev(
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where all state is kept, over restarts too. [default: $XDG_DATA_HOME/memory-plane/dev, "
            "that is ~/.local/share/memory-plane/dev]",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="The API's port; 0 takes a free one. [default: that of the last start if it is free]",
            show_default=False,
        ),
    ] = None,
    ready_file: Annotated[
        Path | None,
        typer.Option(help="When all is ready, write how to reach it here, as JSON; removed at the end."),
    ] = None,
    rerank: Annotated[bool, typer.Option("--rerank", help="Rerank with the local model: better, and slower.")] = False,
) -> None:
    """Run PostgreSQL, Temporal, a local model endpoint, worker and API, until Ctrl-C.

    DATABASE_URL, TEMPORAL_ADDRESS and EMBED_BASE_URL in the environment stand in for the part of
    ours. A `.env` file is not read.
    """
    if sys.platform == "win32":
        fail("memory dev runs on Linux and macOS; on Windows, run it in WSL, or use docker compose.")
    try:
        from memory_plane.dev.data_dir import default_data_dir
        from memory_plane.dev.errors import StackError
        from memory_plane.dev.stack import DevStack
        from memory_plane.settings import SettingsInvalid
    except ModuleNotFoundError as missing:
        fail(f"memory dev needs {missing.name}; run pip install 'memory-plane[service,stack]'.")

    if ready_file is not None and not ready_file.absolute().parent.is_dir():
        usage(f"There is no directory {ready_file.absolute().parent} for --ready-file; make it, or name another.")
    stack = DevStack(data_dir or default_data_dir(), port=port, ready_file=ready_file, rerank=rerank, say=_say)
    try:
        run(_run_until_stopped(stack))
    except (StackError, SettingsInvalid) as failure:
        fail(str(failure))


async def _run_until_stopped(stack: "DevStack") -> None:
    stopped = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(signum, _stop_or_leave, stopped)
    stopping = asyncio.create_task(stopped.wait())
    starting = asyncio.create_task(stack.start())
    await asyncio.wait([stopping, starting], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        _say("Stopping …")
        starting.cancel()
        await asyncio.wait([starting])
        return
    starting.result()
    failing = asyncio.create_task(stack.failed())
    try:
        _say(_summary(stack))
        await asyncio.wait([stopping, failing], return_when=asyncio.FIRST_COMPLETED)
        _say("Stopping …")
    finally:
        await stack.stop()
    if failing.done():
        raise failing.result()


def _stop_or_leave(stopped: asyncio.Event) -> None:
    if stopped.is_set():
        os._exit(130)  # asked twice: leave at once; what still runs is ended by its guards
    stopped.set()


def _summary(stack: "DevStack") -> str:
    access = stack.access
    lines = [
        "",
        "Memory Plane is running.",
        f"  API          {access.api}",
        f"  Temporal UI  {access.temporal_ui or 'of the server at ' + access.temporal}",
        f"  Token        {access.token}  (tenant {access.tenant}, principal {stack.principal})",
        f"  Data, logs   {stack.data_dir.path}",
        "",
        "In another terminal:",
        f"  export MEMORY_API={access.api}",
        f"  export MEMORY_TENANT={access.tenant}",
        f"  export MEMORY_TOKEN={access.token}",
        "  memory add 'First note' 'The kettle is in the second drawer.'",
        "  memory search 'where is the kettle'",
        "",
        "For operators' commands (doctor, token, grant, transform, erasure-report), too:",
        f"  export DATABASE_URL='{access.database}'",
        f"  export TEMPORAL_ADDRESS={access.temporal}",
        "",
        "Ctrl-C stops everything; the data stays.",
    ]
    return "\n".join(lines)


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # a terminal that has gone must not keep the stack from stopping
        out.print(text, markup=False, highlight=False, soft_wrap=True)
