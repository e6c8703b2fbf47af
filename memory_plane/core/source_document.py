"""What is to be captured, as the planner takes it: resolved, but not yet cleaned, cut or defaulted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory_plane.contracts.enums import (
    CreatedByKind,
    Lineage,
    Provenance,
    RetentionClass,
    SourceChannel,
    TemporalClass,
)
from memory_plane.core.chunking import SuppliedChunk


@dataclass(frozen=True, slots=True)
class EntityHint:
    """An entity that the document names; (kind, identifier) is its identity within the tenant."""

    kind: str
    identifier: str
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDocument:
    """One document. None, or an empty collection, means not given: the defaults are `plan`'s to make.

    `text` is the whole source; in-process callers may give ready-made `chunks` instead. `external_ref` is resolved:
    the caller's, or minted. `speaker` is who said it, for chats. `channel` is a ranking prior and is not stored.
    """

    adapter: str
    external_ref: str
    title: str
    kind: str
    text: str = ""
    chunks: tuple[SuppliedChunk, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    occurred_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    temporal_class: TemporalClass | None = None
    provenance: Provenance | None = None
    lineage: Lineage | None = None
    retention_class: RetentionClass | None = None
    generator_agent_id: str | None = None
    created_by_kind: CreatedByKind | None = None
    derived_from: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    entities: tuple[EntityHint, ...] = ()
    actor_count: int = 1
    has_social_signal: bool = False
    channel: SourceChannel = SourceChannel.NATIVE
    speaker: str | None = None
