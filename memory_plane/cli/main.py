"""The `memory` command: every verb registered once; typed refusals end as one sentence and an exit code."""

import os
import sys

import typer

from memory_plane.cli import (
    access,
    audience,
    dev,
    distill,
    documents,
    embedding,
    importing,
    mcp,
    operate,
    retention,
    setup,
    transform,
)
from memory_plane.cli.output import err
from memory_plane.contracts.errors import PlaneError

app = typer.Typer(
    name="memory",
    help="A durable memory for software agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

USE = "Use the memory (MEMORY_API, MEMORY_TENANT, MEMORY_TOKEN)"
RUN = "Run the service (DATABASE_URL, TEMPORAL_ADDRESS, …)"

app.command(rich_help_panel=USE)(documents.add)
app.command(rich_help_panel=USE)(documents.search)
app.command("list", rich_help_panel=USE)(documents.list_documents)
app.command(rich_help_panel=USE)(documents.feed)
app.command(rich_help_panel=USE)(documents.get)
app.command(rich_help_panel=USE)(documents.forget)
app.command(rich_help_panel=USE)(documents.purge)
app.command("import", rich_help_panel=USE)(importing.import_documents)
app.command(rich_help_panel=USE)(importing.export)
app.command(rich_help_panel=USE)(mcp.mcp)

app.command(rich_help_panel=RUN)(dev.dev)
app.command(rich_help_panel=RUN)(operate.migrate)
app.add_typer(setup.setup, name="setup", rich_help_panel=RUN)
app.command(rich_help_panel=RUN)(operate.doctor)
app.command(rich_help_panel=RUN)(operate.config)
app.command(rich_help_panel=RUN)(operate.api)
app.command(rich_help_panel=RUN)(operate.worker)
app.command("codec-server", rich_help_panel=RUN)(operate.codec_server)
app.command(rich_help_panel=RUN)(embedding.reembed)
app.add_typer(embedding.endpoint, name="endpoint", rich_help_panel=RUN)
app.add_typer(transform.transform, name="transform", rich_help_panel=RUN)
app.add_typer(access.token, name="token", rich_help_panel=RUN)
app.add_typer(access.grant, name="grant", rich_help_panel=RUN)
app.add_typer(access.role, name="role", rich_help_panel=RUN)
app.add_typer(audience.audience, name="audience", rich_help_panel=RUN)
app.add_typer(distill.distill, name="distill", rich_help_panel=RUN)
app.command(rich_help_panel=RUN)(retention.sweep)
app.command(rich_help_panel=RUN)(retention.deprecate)
app.command("erasure-report", rich_help_panel=RUN)(retention.erasure_report)


def main() -> None:
    """Exit codes: 0 done, 1 failed, 2 usage."""
    try:
        app()
    except PlaneError as refusal:
        err.print(refusal.detail, markup=False, soft_wrap=True)
        for item in refusal.errors:
            err.print(f"  {item.field}: {item.message}", markup=False, soft_wrap=True)
        sys.exit(2 if refusal.code == "usage" else 1)
    except KeyboardInterrupt:
        err.print("Stopped.")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (as in `memory list | head`): nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
