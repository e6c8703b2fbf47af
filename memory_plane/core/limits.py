"""The bounds of one document, all in one place, checked all at once. Characters are code points.

What is a key of a B-tree is bounded in UTF-8 bytes: an index row takes about 2,700 at most, and a name within a
tenant must fit beside the tenant's own.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from memory_plane.contracts.errors import FieldError
from memory_plane.contracts.validation import LONGEST_NAME, refusal
from memory_plane.core.hashing import canonical_json
from memory_plane.core.source_document import SourceDocument
from memory_plane.core.text import clean_text, is_blank, is_storable

MAX_TITLE_CHARS = 500
MAX_KIND_CHARS = 200
MAX_SUPPLIED_CHUNKS = 2_000
MAX_SUPPLIED_CHUNK_CHARS = 100_000
MAX_ATTRIBUTES = 64
MAX_ATTRIBUTE_KEY_CHARS = 200
MAX_ATTRIBUTES_BYTES = 65_536
MAX_INTEGER = 10**38
"""Attributes beyond it are text, not numbers: they would lose digits in most clients."""
MAX_ADAPTER_BYTES = 200
MAX_EXTERNAL_REF_BYTES = 1_000
MAX_ID_BYTES = 200
MAX_IDS = 100
MAX_ENTITIES = 200
MAX_ENTITY_KIND_BYTES = 200
MAX_ENTITY_IDENTIFIER_BYTES = 1_000
MAX_LABEL_CHARS = 500
MAX_ACTORS = 1_000_000
UNSTORABLE_NAME = "must not hold a NUL or half a character: names are stored as sent"


def refuse_over_limits(document: SourceDocument) -> None:
    """Invalid, naming every violation, when there is one."""
    found = check_limits(document)
    if found:
        raise refusal(found)


def check_limits(document: SourceDocument) -> list[FieldError]:
    """Every bound that `document` breaks: the field, never its value, and a sentence.

    Access tags have their own check, `access_tags.tag_problems`; the body's size is bounded before it is parsed.
    """
    return [
        *_title_and_kind(document),
        *_names(document),
        *_content(document),
        *_attributes(document.attributes),
        *_dates(document),
        *_edges(document),
        *_entities(document),
    ]


def _title_and_kind(document: SourceDocument) -> Iterator[FieldError]:
    for field, value, most in (("title", document.title, MAX_TITLE_CHARS), ("kind", document.kind, MAX_KIND_CHARS)):
        if is_blank(value):
            yield FieldError(field, "must not be blank")
        elif len(clean_text(value).strip()) > most:
            yield FieldError(field, f"must have at most {most} characters")


def _names(document: SourceDocument) -> Iterator[FieldError]:
    yield from _name("adapter", document.adapter, MAX_ADAPTER_BYTES)
    yield from _name("external_ref", document.external_ref, MAX_EXTERNAL_REF_BYTES)
    for field, value in (("generator_agent_id", document.generator_agent_id), ("speaker", document.speaker)):
        if value is not None:
            yield from _name(field, value, MAX_ID_BYTES)


def _content(document: SourceDocument) -> Iterator[FieldError]:
    if len(document.chunks) > MAX_SUPPLIED_CHUNKS:
        yield FieldError("chunks", f"must be at most {MAX_SUPPLIED_CHUNKS} ready-made chunks")
    for index, chunk in enumerate(document.chunks):
        if len(chunk.text) > MAX_SUPPLIED_CHUNK_CHARS:
            message = f"must have at most {MAX_SUPPLIED_CHUNK_CHARS} characters"
            yield FieldError(f"chunks.{index}", message)
        if chunk.role is not None:
            yield from _name(f"chunks.{index}.role", chunk.role, MAX_ID_BYTES)
    if not 1 <= document.actor_count <= MAX_ACTORS:
        yield FieldError("actor_count", f"must be from 1 to {MAX_ACTORS}")


def _attributes(attributes: Mapping[str, Any]) -> Iterator[FieldError]:
    if len(attributes) > MAX_ATTRIBUTES:
        yield FieldError("attributes", f"must have at most {MAX_ATTRIBUTES} entries")
        return
    flat = True
    for number, (key, value) in enumerate(attributes.items()):
        if is_blank(key) or len(key) > MAX_ATTRIBUTE_KEY_CHARS:
            message = f"must have a name of 1 to {MAX_ATTRIBUTE_KEY_CHARS} characters that is not blank"
            yield FieldError(f"attributes.{number}", message)
        elif problem := _scalar_problem(value):
            flat = False
            yield FieldError(f"attributes.{clean_text(key)[:LONGEST_NAME]}", problem)
    if flat and len(canonical_json(attributes).encode("utf-8", "surrogatepass")) > MAX_ATTRIBUTES_BYTES:
        yield FieldError("attributes", f"must be at most {MAX_ATTRIBUTES_BYTES} bytes as JSON, all together")


def _scalar_problem(value: Any) -> str | None:
    if value is None or isinstance(value, str | bool):
        return None
    if isinstance(value, int):
        return None if abs(value) < MAX_INTEGER else "must have at most 38 digits as a number; send it as a string"
    if isinstance(value, float):
        return None if math.isfinite(value) else "must be a finite number"
    return "must be a string, a number, true, false or null; flatten what is nested"


def _dates(document: SourceDocument) -> Iterator[FieldError]:
    begin, end = document.valid_from, document.valid_until
    problems = [
        FieldError(field, problem)
        for field, value in (("occurred_at", document.occurred_at), ("valid_from", begin), ("valid_until", end))
        if value is not None and (problem := _date_problem(value))
    ]
    yield from problems
    if not problems and begin is not None and end is not None and begin > end:
        yield FieldError("valid_until", "must not be before valid_from")


def _date_problem(value: datetime) -> str | None:
    if value.utcoffset() is None:
        return "must have an offset, as in 2026-01-31T12:00:00+01:00"
    try:
        value.astimezone(UTC)
    except OverflowError:
        return "must lie between the years 1 and 9999 in UTC"
    return None


def _edges(document: SourceDocument) -> Iterator[FieldError]:
    for field, ids in (
        ("derived_from", document.derived_from),
        ("supports", document.supports),
        ("contradicts", document.contradicts),
    ):
        if len(ids) > MAX_IDS:
            yield FieldError(field, f"must be at most {MAX_IDS} ids")
            continue
        for index, value in enumerate(ids):
            yield from _name(f"{field}.{index}", value, MAX_ID_BYTES)


def _entities(document: SourceDocument) -> Iterator[FieldError]:
    if len(document.entities) > MAX_ENTITIES:
        yield FieldError("entities", f"must be at most {MAX_ENTITIES}")
        return
    for index, entity in enumerate(document.entities):
        yield from _name(f"entities.{index}.kind", entity.kind, MAX_ENTITY_KIND_BYTES)
        yield from _name(f"entities.{index}.identifier", entity.identifier, MAX_ENTITY_IDENTIFIER_BYTES)
        if entity.label is not None and len(entity.label) > MAX_LABEL_CHARS:
            yield FieldError(f"entities.{index}.label", f"must have at most {MAX_LABEL_CHARS} characters")


def _name(field: str, value: str, most: int) -> Iterator[FieldError]:
    """An identity is stored exactly as sent or not at all: cleaning it could make two of them one."""
    if is_blank(value):
        yield FieldError(field, "must not be blank")
    elif not is_storable(value):
        yield FieldError(field, UNSTORABLE_NAME)
    elif len(value.encode()) > most:
        yield FieldError(field, f"must have at most {most} bytes in UTF-8")
