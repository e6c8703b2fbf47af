"""`memory import` and `memory export`: JSON lines in and out, resumable, with progress."""

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memory_plane.cli.documents import client
from memory_plane.cli.output import err, fail, print_json, usage
from memory_plane.client import MemoryClient
from memory_plane.contracts.errors import Unavailable
from memory_plane.contracts.wire import BatchItem, BatchResponse

CHECKERS = 4
"""Concurrent reads while waiting for the last embeddings."""
POLL_SECONDS = 1.0
ATTEMPTS = 5
RETRY_SECONDS = 2.0
OURS_TO_REPEAT = frozenset(
    {
        "database_unavailable",
        "database_busy",
        "database_exhausted",
        "statement_timeout",
        "lock_conflict",
        "overloaded",
        "starting",
    }
)
"""Codes of items that met an outage: nothing is wrong with the line, and it must not count as refused."""


@dataclass
class Outcome:
    """What became of the lines of one import."""

    captured: int = 0
    unchanged: int = 0
    refused: dict[int, str] = field(default_factory=dict)
    """By line number, why it was refused."""
    embedded: int = 0
    not_embedded: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "captured": self.captured,
            "unchanged": self.unchanged,
            "refused": [{"line": line, "detail": self.refused[line]} for line in sorted(self.refused)],
            "embedded": self.embedded,
            "notEmbedded": self.not_embedded,
        }


def import_documents(
    file: Annotated[
        Path, typer.Argument(help="JSON lines: one {title, text, …} as for add a line.", exists=True, dir_okay=False)
    ],
    adapter: Annotated[str, typer.Option(help="For lines that name none.")] = "import",
    batch: Annotated[int, typer.Option(help="Documents a request.", min=1, max=500)] = 100,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until every document is embedded.")] = True,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin at the first line again; unchanged ones are no-ops.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Import JSON lines. Interrupt it whenever you like: the same command goes on where it stopped.

    A line without external_ref gets one made of its content, so that a second run makes no second document and no
    other file's lines are replaced.
    """
    outcome = Outcome()
    with client() as memory, _progress() as progress:
        checkpoint = Checkpoint(file, adapter)
        if restart:
            checkpoint.clear()
        try:
            documents = _send(memory, file, adapter, batch, checkpoint, progress, outcome)
            if wait:
                _await_embedded(memory, documents, progress, outcome)
        except KeyboardInterrupt:
            progress.stop()
            err.print(f"Interrupted. The same command goes on after line {checkpoint.lines}.")
            raise typer.Exit(130) from None
    if as_json:
        print_json(outcome.as_json())
    else:
        err.print(
            f"{outcome.captured} captured, {outcome.unchanged} unchanged, {len(outcome.refused)} refused"
            + (f"; {outcome.embedded} embedded, {outcome.not_embedded} not" if wait else "")
        )
        for line in sorted(outcome.refused)[:20]:
            err.print(f"line {line}: {outcome.refused[line]}", markup=False)
    if outcome.refused or outcome.not_embedded:
        raise typer.Exit(1)


class Checkpoint:
    """How far the import of this very file into this very tenant has come, and which documents it made."""

    def __init__(self, file: Path, adapter: str) -> None:
        stat = file.stat()
        where = [os.environ.get("MEMORY_API"), os.environ.get("MEMORY_TENANT"), adapter]
        name = json.dumps([*where, str(file.resolve()), stat.st_size, stat.st_mtime_ns])
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memory-plane" / "imports"
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
        self.lines = 0
        self.documents: list[str] = []
        self.refused: dict[int, str] = {}
        # One that is missing, torn or of another release begins anew: unchanged documents are no-ops.
        with contextlib.suppress(OSError, ValueError, KeyError):
            saved = json.loads(self._path.read_text())
            self.lines, self.documents = saved["lines"], saved["documents"]
            self.refused = {int(line): detail for line, detail in saved["refused"].items()}

    def advance(self, lines: int, documents: list[str], refused: dict[int, str]) -> None:
        """`refused` are all refusals up to `lines`: a later run tells of them again."""
        self.lines = lines
        self.documents += documents
        self.refused = refused
        partial = self._path.with_suffix(".partial")
        partial.write_text(json.dumps({"lines": self.lines, "documents": self.documents, "refused": self.refused}))
        partial.replace(self._path)

    def clear(self) -> None:
        self.lines, self.documents, self.refused = 0, [], {}
        self._path.unlink(missing_ok=True)


def _send(
    memory: MemoryClient,
    file: Path,
    adapter: str,
    size: int,
    checkpoint: Checkpoint,
    progress: Progress,
    outcome: Outcome,
) -> list[str]:
    with file.open("rb") as stream:
        total = sum(1 for _ in stream)
    task = progress.add_task("captured", total=total, completed=checkpoint.lines)
    outcome.refused |= checkpoint.refused
    if checkpoint.lines:
        err.print(f"Going on after line {checkpoint.lines}; --restart begins anew.")
    for numbers, items in _batches(file, adapter, size, checkpoint.lines, outcome):
        documents = []
        # The lines name the documents: a batch sent twice makes nothing twice.
        response = _taken(memory, items, checkpoint.lines)
        for item in response.items:
            documents += _record(item, numbers[item.index], outcome)
        checkpoint.advance(numbers[-1], documents, outcome.refused)
        progress.update(task, completed=checkpoint.lines)
    checkpoint.advance(total, [], outcome.refused)
    progress.update(task, completed=total)
    return checkpoint.documents


def _taken(memory: MemoryClient, items: list[dict[str, Any]], done: int) -> BatchResponse:
    """The answer in which no item met an outage. Raises Unavailable when there is none after some patience."""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(RETRY_SECONDS)
        response = memory.add_batch(items)
        if not any(item.error is not None and item.error.code in OURS_TO_REPEAT for item in response.items):
            return response
    raise Unavailable(f"The service does not take every line just now; the same command goes on after line {done}.")


def _record(item: BatchItem, line: int, outcome: Outcome) -> list[str]:
    if item.error is not None or item.document_id is None:
        detail = item.error.detail if item.error else "no answer for this line"
        outcome.refused[line] = detail
        return []
    if item.status == "noop":
        outcome.unchanged += 1
    else:
        outcome.captured += 1
    return [item.document_id]


def _batches(
    file: Path, adapter: str, size: int, skip: int, outcome: Outcome
) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
    numbers: list[int] = []
    items: list[dict[str, Any]] = []
    weight = 0
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if number <= skip or not line.strip():
                continue
            if items and (len(items) == size or weight + len(line) > 8_000_000):
                yield numbers, items
                numbers, items, weight = [], [], 0
            try:
                document = json.loads(line)
            except ValueError:
                document = None
            if not isinstance(document, dict):
                outcome.refused[number] = "This line is not a JSON object."
                continue
            numbers.append(number)
            items.append({"adapter": adapter, "external_ref": _reference(document), **document})
            weight += len(line)
    if items:
        yield numbers, items


def _reference(document: dict[str, Any]) -> str:
    """The same for the same content, wherever it stands."""
    said = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return f"line-{hashlib.sha256(said.encode()).hexdigest()[:32]}"


def _await_embedded(memory: MemoryClient, documents: list[str], progress: Progress, outcome: Outcome) -> None:
    """Reads each document until its newest version is embedded, or will not be."""
    waiting = list(dict.fromkeys(documents))
    task = progress.add_task("embedded", total=len(waiting))
    with ThreadPoolExecutor(CHECKERS) as pool:
        while waiting:
            # Embedding goes in the order of capture, so the head of the list tells when a look is worth it.
            head, rest = waiting[:64], waiting[64:]
            states = list(pool.map(lambda document: _embed_state(memory, document), head))
            outcome.embedded += states.count("embedded")
            outcome.not_embedded += sum(state in ("failed", "not_configured") for state in states)
            pending = [document for document, state in zip(head, states, strict=True) if state == "pending"]
            progress.update(task, completed=outcome.embedded + outcome.not_embedded)
            if len(pending) == len(head):
                time.sleep(POLL_SECONDS)
            waiting = pending + rest


def _embed_state(memory: MemoryClient, document: str) -> str | None:
    active = next((version for version in memory.get(document).versions if version.status == "active"), None)
    return active.embed_state if active else "embedded"


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:>9}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=err
    )


def export(
    file: Annotated[Path | None, typer.Argument(help="Where to write; standard output if left out.")] = None,
) -> None:
    """Export every document visible to you as JSON lines that `memory import` reads."""
    if file is not None and file.exists():
        usage(f"{file} exists already; name another file.")
    with client() as memory, _progress() as progress:
        task = progress.add_task("exported", total=None)
        stream = file.open("w", encoding="utf-8") if file else sys.stdout
        try:
            for event in memory.list_all():
                found = memory.get(event.document_id)
                if found.text is None:
                    continue
                stream.write(json.dumps(_line(found.document, found.version, found.text)) + "\n")
                progress.advance(task)
        except BrokenPipeError:
            raise
        except OSError as problem:
            fail(f"Cannot write {file}: {problem.strerror}.")
        finally:
            if file:
                stream.close()


def _line(document: Any, version: Any, text: str) -> dict[str, Any]:
    fields = {
        "title": document.title,
        "text": text,
        "kind": version.kind,
        "adapter": document.adapter,
        "external_ref": document.external_ref,
        "occurred_at": version.occurred_at.isoformat(),
        "attributes": document.attributes or None,
        "provenance": version.provenance.value,
        "temporal_class": version.temporal_class.value,
        "retention_class": version.retention_class.value,
        "valid_from": version.valid_from.isoformat() if version.valid_from else None,
        "valid_until": version.valid_until.isoformat() if version.valid_until else None,
        "generator_agent_id": version.generator_agent_id,
    }
    return {name: value for name, value in fields.items() if value is not None}
