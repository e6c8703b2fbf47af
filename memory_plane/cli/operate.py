"""Running the service: migrate, doctor, config, api, worker, codec server."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from memory_plane.cli.output import fail, out, print_json, print_table
from memory_plane.cli.running import load_settings, run

LOCAL = "127.0.0.1"
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def checkout() -> Path:
    """Where the doors and the migrations are; ends with a sentence where only the wheel is installed."""
    from memory_plane.dev.checkout import checkout as find
    from memory_plane.dev.errors import StackError

    try:
        return find()
    except StackError as missing:
        fail(str(missing))


def migrate(as_json: AsJson = False) -> None:
    """Bring the database up to date. Safe to run by any number of starters at once."""
    settings = load_settings()
    directory = checkout() / "migrations"

    from memory_plane.store.fts_language import FtsLanguageMismatch
    from memory_plane.store.migrate import MigrationFailed
    from memory_plane.store.migrate import migrate as apply

    try:
        applied = run(apply(settings.database_url.get_secret_value(), settings.fts_language, directory))
    except (MigrationFailed, FtsLanguageMismatch) as refusal:
        fail(str(refusal))
    except OSError as problem:
        fail(f"The database cannot be reached ({type(problem).__name__}); check DATABASE_URL and that it runs.")
    if as_json:
        print_json({"applied": applied})
    elif applied:
        out.print(f"applied: {', '.join(applied)}")
    else:
        out.print("The database is up to date.")


def doctor(as_json: AsJson = False) -> None:
    """Look at every part and say what is wrong and what to do. Exit code 1 when something is."""
    settings = load_settings()
    directory = checkout() / "migrations"

    from memory_plane.plane.doctor import examine

    report = run(examine(settings, directory))
    if as_json:
        print_json(report.as_json())
    else:
        rows = [(finding.state, finding.part, finding.message) for finding in report.findings]
        print_table(("state", "part", "finding"), rows)
        if report.embed_pending is not None:
            out.print(f"waiting to be embedded: {report.embed_pending}; failed: {report.embed_failed}", style="dim")
    if not report.healthy:
        raise typer.Exit(1)


def config(as_json: AsJson = False) -> None:
    """Print the effective configuration, secrets masked."""
    masked = load_settings().masked()
    if as_json:
        print_json(masked)
    else:
        print_table(("setting", "value"), sorted(masked.items()))


def api(
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8080,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Serve the facade."""
    load_settings()
    arguments = ["--factory", "api.app:app_from_environment", "--host", host, "--port", str(port)]
    _become("-m", "uvicorn", *arguments, "--workers", str(workers), "--no-access-log", "--no-server-header")


def worker() -> None:
    """Run the Temporal worker: workflows and activities of all three queues."""
    load_settings()
    _become("worker.py")


def codec_server(
    origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Where the Temporal UI is, as its address bar says; may be repeated. "
            "[default: http://127.0.0.1:8233, http://localhost:8233]",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen. Beyond this machine it needs MEMORY_CODEC_TOKEN.")
    ] = LOCAL,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8234,
) -> None:
    """Open encrypted payloads for the Temporal UI and command line, with the keys in MEMORY_PAYLOAD_KEYS."""
    _become("-m", "api.codec_server", host, str(port), *(origin or [f"http://{LOCAL}:8233", "http://localhost:8233"]))


def _become(*arguments: str) -> None:
    """Turn into the process that serves, so that signals reach it and nothing stands between."""
    root = checkout()
    # .env is read from where the command was given, and the doors are found in the checkout.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))}
    if arguments[0] == "worker.py":
        arguments = (str(root / "worker.py"), *arguments[1:])
    os.execve(sys.executable, [sys.executable, *arguments], environment)  # noqa: S606 - our own program
