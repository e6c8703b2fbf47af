"""The pure plan of a capture: everything that will be written, decided before any lock is taken."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memory_plane.contracts.enums import (
    CreatedByKind,
    EdgeRel,
    EndpointType,
    Lineage,
    Provenance,
    RetentionClass,
    TemporalClass,
)
from memory_plane.contracts.errors import FieldError
from memory_plane.contracts.ids import IdKind
from memory_plane.contracts.recipe import ChunkRecipe, Recipe
from memory_plane.contracts.validation import refusal
from memory_plane.core.authority import authority
from memory_plane.core.chunking import ChunkCaps, SuppliedChunk, TextChunk, chunk, chunk_supplied
from memory_plane.core.grams import grams
from memory_plane.core.hashing import digest
from memory_plane.core.source_document import EntityHint, SourceDocument
from memory_plane.core.text import clean_json, clean_text, is_blank

_SPEAKER_ATTRIBUTE = "speaker"
_NO_WORD = re.compile(r"\W+")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True)
class PlannedChunk:
    """`text` is `source_text[start:end]`; `context` goes before it in the index and, by recipe, the embedding."""

    ordinal: int
    text: str
    context: str
    grams: str
    start: int
    end: int
    token_count: int
    role: str | None


@dataclass(frozen=True, slots=True)
class EdgeHint:
    """An edge that starts at the new version."""

    rel: EdgeRel
    to_type: EndpointType
    to_id: str


@dataclass(frozen=True, slots=True)
class CapturePlan:
    """Clean values with their defaults. `occurred_at` None means the moment of capture."""

    title: str
    kind: str
    source_text: str
    attributes: dict[str, Any]
    chunks: tuple[PlannedChunk, ...]
    entities: tuple[EntityHint, ...]
    edges: tuple[EdgeHint, ...]
    content_hash: str
    occurred_at: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None
    temporal_class: TemporalClass
    provenance: Provenance
    lineage: Lineage
    retention_class: RetentionClass
    generator_agent_id: str | None
    created_by_kind: CreatedByKind
    authority: float
    actor_count: int
    has_social_signal: bool


def plan(document: SourceDocument, recipe: Recipe) -> CapturePlan:
    """What capturing `document` under `recipe` writes. Invalid when title, kind or text is blank.

    Sizes are not judged here (`limits`): what was accepted once can be planned again for ever.
    """
    title, kind = clean_text(document.title).strip(), clean_text(document.kind).strip()
    source, parts = _source(document)
    _refuse_blank(title=title, kind=kind, text=source)
    source, cuts = _cut(source, parts, recipe.chunk)
    attributes: dict[str, Any] = clean_json(dict(document.attributes))
    provenance = document.provenance or (Provenance.INFERRED if document.generator_agent_id else Provenance.STATED)
    created_by = document.created_by_kind or (
        CreatedByKind.AGENT if document.generator_agent_id else CreatedByKind.HUMAN
    )
    entities = _entities(document.entities)
    edges = _edges(document)
    return CapturePlan(
        title=title,
        kind=kind,
        source_text=source,
        attributes=attributes,
        chunks=_chunks(source, cuts, chunk_context(document)),
        entities=entities,
        edges=edges,
        content_hash=_content_hash(document, title, kind, attributes, source, edges, entities),
        occurred_at=_utc(document.occurred_at),
        valid_from=_utc(document.valid_from),
        valid_until=_utc(document.valid_until),
        temporal_class=document.temporal_class or _temporal_class(provenance),
        provenance=provenance,
        lineage=_lineage(document),
        retention_class=document.retention_class or RetentionClass.STANDARD,
        generator_agent_id=document.generator_agent_id,
        created_by_kind=created_by,
        authority=authority(
            created_by,
            actor_count=document.actor_count,
            channel=document.channel,
            has_social_signal=document.has_social_signal,
        ),
        actor_count=document.actor_count,
        has_social_signal=document.has_social_signal,
    )


def chunk_context(document: SourceDocument) -> str:
    """What every chunk of `document` is indexed with besides its text: title, speaker and the date it speaks of.

    The date is as its sender's calendar has it. The moment of capture is no date of the content and is left out, and
    so is the kind, which is a filter. The speaker may be given as an attribute of that name.
    """
    title = clean_text(document.title).strip()
    speaker = document.speaker or document.attributes.get(_SPEAKER_ATTRIBUTE)
    named = clean_text(speaker).strip() if isinstance(speaker, str) else ""
    when = document.occurred_at
    date = f"{when.day} {_MONTHS[when.month - 1]} {when.year}" if when else ""
    if named and named.casefold() in title.casefold():
        named = ""
    about = f"{named} ({date})" if named and date else named or date
    return "\n".join(line for line in (title, about) if line)


def _refuse_blank(**values: str) -> None:
    blank = [name for name, value in values.items() if is_blank(value)]
    if blank:
        raise refusal([FieldError(name, "must not be blank") for name in blank])


def _source(document: SourceDocument) -> tuple[str, list[SuppliedChunk]]:
    """The clean source text, and the clean ready-made chunks where it is made of these."""
    if not document.chunks:
        return clean_text(document.text), []
    parts = [SuppliedChunk(clean_text(part.text), part.role) for part in document.chunks]
    return "".join(part.text for part in parts), parts


def _cut(source: str, parts: list[SuppliedChunk], recipe: ChunkRecipe) -> tuple[str, list[TextChunk]]:
    caps = ChunkCaps(recipe.max_tokens, recipe.min_tokens, recipe.overlap_tokens)
    return chunk_supplied(parts, caps) if parts else (source, chunk(source, caps))


def _chunks(source: str, cuts: Iterable[TextChunk], context: str) -> tuple[PlannedChunk, ...]:
    planned = []
    for ordinal, cut in enumerate(cuts):
        text = source[cut.start : cut.end]
        about = _unsaid(context, text)
        planned.append(
            PlannedChunk(
                ordinal=ordinal,
                text=text,
                context=about,
                grams=grams(f"{about}\n{text}"),
                start=cut.start,
                end=cut.end,
                token_count=cut.token_count,
                role=cut.role,
            )
        )
    return tuple(planned)


def _unsaid(context: str, text: str) -> str:
    """The lines of `context` that `text` does not have word by word: a title is often the beginning of its text, and
    said twice its words would count twice."""
    said = _words(text)
    return "\n".join(line for line in context.split("\n") if _words(line) not in said)


def _words(text: str) -> str:
    return f" {_NO_WORD.sub(' ', text.casefold()).strip()} "


def _entities(hints: Iterable[EntityHint]) -> tuple[EntityHint, ...]:
    """Each once, under its first label; `native` is the host's word for one of its principals."""
    unique: dict[tuple[str, str], EntityHint] = {}
    for hint in hints:
        kind = "principal" if hint.kind == "native" else hint.kind
        label = clean_text(hint.label).strip() or None if hint.label else None
        unique.setdefault((kind, hint.identifier), EntityHint(kind, hint.identifier, label))
    return tuple(unique.values())


def _edges(document: SourceDocument) -> tuple[EdgeHint, ...]:
    wanted = (
        (EdgeRel.DERIVED_FROM, document.derived_from),
        (EdgeRel.SUPPORTS, document.supports),
        (EdgeRel.CONTRADICTS, document.contradicts),
    )
    return tuple(EdgeHint(rel, _endpoint(rel, to_id), to_id) for rel, ids in wanted for to_id in dict.fromkeys(ids))


def _endpoint(rel: EdgeRel, to_id: str) -> EndpointType:
    """Only versions are derived from; what a claim supports may be a document, a chunk or an entity as well."""
    if rel != EdgeRel.DERIVED_FROM:
        for id_kind, endpoint in (
            (IdKind.DOCUMENT, EndpointType.DOCUMENT),
            (IdKind.CHUNK, EndpointType.CHUNK),
            (IdKind.ENTITY, EndpointType.ENTITY),
        ):
            if to_id.startswith(f"{id_kind}_"):
                return endpoint
    return EndpointType.VERSION


def _temporal_class(provenance: Provenance) -> TemporalClass:
    return TemporalClass.STATE if provenance == Provenance.INFERRED else TemporalClass.EVENT


def _lineage(document: SourceDocument) -> Lineage:
    """`derived` says that there are sources to follow, so it holds exactly when some are named."""
    if document.derived_from:
        return Lineage.DERIVED
    return Lineage.IMPORTED if document.lineage == Lineage.IMPORTED else Lineage.NATIVE


def _content_hash(
    document: SourceDocument,
    title: str,
    kind: str,
    attributes: dict[str, Any],
    source: str,
    edges: Iterable[EdgeHint],
    entities: Iterable[EntityHint],
) -> str:
    """Of the source text, not of chunks, so that it means the same in every generation; of what else was given, so
    that no change of it is taken for none. What was not given leaves no trace, so new fields change no old hash."""
    given: dict[str, Any] = {
        "occurred_at": _stamp(document.occurred_at),
        "valid_from": _stamp(document.valid_from),
        "valid_until": _stamp(document.valid_until),
        "temporal_class": document.temporal_class,
        "provenance": document.provenance,
        "lineage": document.lineage,
        "generator_agent_id": document.generator_agent_id,
        "speaker": document.speaker,
        "roles": [part.role for part in document.chunks] if any(part.role for part in document.chunks) else None,
        "edges": sorted([edge.rel, edge.to_id] for edge in edges),
        "entities": sorted([entity.kind, entity.identifier] for entity in entities),
    }
    content = {
        "title": title,
        "kind": kind,
        "external_ref": document.external_ref,
        "attributes": attributes,
        "text": source,
    }
    return digest(content | {name: value for name, value in given.items() if value})


def _stamp(value: datetime | None) -> str | None:
    utc = _utc(value)
    return None if utc is None else utc.isoformat()


def _utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)
