"""Logs of a service process: one JSON object a line, with the ids of what is being done and never its content."""

import json
import logging
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from traceback import extract_tb
from types import TracebackType
from typing import Any

from memory_plane.telemetry.tracing import trace_id

CONTEXT: ContextVar[Mapping[str, str]] = ContextVar("memory_log_context", default={})  # noqa: B039 - never written to
"""What every line of the current task names, such as request_id and tenant."""

_PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}


def name_in_logs(**ids: str) -> None:
    """Add ids to what the current task's log lines name."""
    CONTEXT.set({**CONTEXT.get(), **ids})


def configure(level: str) -> None:
    """Everything that is logged goes to stderr as JSON; libraries speak from warnings up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.WARNING, logging.getLevelName(level.upper())))
    logging.getLogger("memory_plane").setLevel(level.upper())


class JsonLines(logging.Formatter):
    """Of an exception it tells type and place, not the message: messages of databases and parsers quote values."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **CONTEXT.get(),
            **{name: value for name, value in record.__dict__.items() if name not in _PLAIN},
        }
        if (trace := trace_id()) is not None:
            line["trace_id"] = trace
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
            line["where"] = where(record.exc_info[2])
        return json.dumps(line, default=str)


def where(traceback: TracebackType | None, frames: int = 8) -> str:
    """The innermost frames, the last call first."""
    return " < ".join(
        f"{frame.filename}:{frame.lineno} {frame.name}" for frame in extract_tb(traceback)[: -frames - 1 : -1]
    )
