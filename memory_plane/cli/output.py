"""What a person or a script reads: a table on a terminal, JSON with `--json`, errors as one sentence on stderr."""

import json
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

PIPED_WIDTH = 400
"""Columns where nobody looks: an id must stay on its line for the next program."""

ID_WIDTH = 37

out = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False)
err = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on stdout; models by their wire names."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str = "Nothing found.") -> None:
    """A plain table; `empty` is said when there are no rows."""
    if not rows:
        out.print(empty, style="dim")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        whole = column in ("document", "id", "version id")
        table.add_column(column, overflow="fold", no_wrap=whole, min_width=ID_WIDTH if whole else None)
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    out.print(table)


def fail(sentence: str) -> NoReturn:
    """Say what failed and the way out, and end with exit code 1."""
    err.print(sentence, markup=False, soft_wrap=True)
    raise typer.Exit(1)


def usage(sentence: str) -> NoReturn:
    """The call's words are off: exit code 2."""
    err.print(sentence, markup=False, soft_wrap=True)
    raise typer.Exit(2)
