"""Answers as short text for a model or a person to read, with the ids that the next call needs."""

from datetime import datetime
from functools import singledispatch

from pydantic import BaseModel

from memory_plane.contracts.wire import (
    AddResponse,
    DocumentResponse,
    FeedResponse,
    ForgetResponse,
    ListResponse,
    SearchResponse,
)


@singledispatch
def render(answer: BaseModel) -> str:
    return answer.model_dump_json(by_alias=True, exclude_none=True)


@render.register
def _(answer: AddResponse) -> str:
    done = "Stored" if answer.status == "captured" else "Already known, unchanged"
    return f"{done}: document {answer.document_id}, version {answer.version_id}.{_degraded(answer.degraded)}"


@render.register
def _(answer: SearchResponse) -> str:
    if not answer.items:
        return f"Nothing found.{_degraded(answer.degraded)}"
    lines = []
    if answer.evidence is not None:
        lines.append(f"Evidence: {answer.evidence.value}.")
    for rank, item in enumerate(answer.items, start=1):
        said = ""
        if item.attribution is not None:
            by = item.attribution.created_by_kind.value
            said = f", {item.attribution.provenance.value} by {by}, {_day(item.attribution.occurred_at)}"
        lines.append(f"{rank}. {item.title} ({item.kind}{said}; document {item.document_id})\n   {item.snippet}")
    return "\n".join(lines) + _degraded(answer.degraded)


@render.register
def _(answer: ListResponse) -> str:
    lines = [
        f"- {event.title} ({event.kind}, {_day(event.at)}; document {event.document_id})" for event in answer.events
    ]
    if answer.next_cursor is not None:
        lines.append(f"More with cursor {answer.next_cursor}")
    return "\n".join(lines) or "There are no notes yet."


@render.register
def _(answer: FeedResponse) -> str:
    lines = [
        f"- {entry.feed_seq}: {entry.title} ({entry.kind}, {_day(entry.created_at)}; document {entry.document_id}, "
        f"version {entry.version_id})"
        for entry in answer.entries
    ]
    return "\n".join([*(lines or ["Nothing new."]), f"Next: after {answer.next_cursor}"])


@render.register
def _(answer: DocumentResponse) -> str:
    version = answer.version
    head = (
        f"{answer.document.title or ''} ({version.kind}, version {version.version} of {len(answer.versions)}, "
        f"{version.status.value}, {version.provenance.value} by {version.created_by_kind.value}, "
        f"{_day(version.occurred_at)}; document {answer.document.document_id}, version {version.version_id})"
    )
    return f"{head.strip()}\n\n{answer.text if answer.text is not None else 'Its content was forgotten.'}"


@render.register
def _(answer: ForgetResponse) -> str:
    return (
        f"Forgotten: {answer.versions} versions of {answer.document_id}, and {answer.derived_forgotten} "
        "notes concluded from it."
    )


def _degraded(flags: list[str] | None) -> str:
    return f" (Less than usual: {', '.join(flags)}.)" if flags else ""


def _day(moment: datetime) -> str:
    return moment.date().isoformat()
