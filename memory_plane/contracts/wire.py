"""Requests and responses of the facade: snake_case in, camelCase out, as the origin has them.

Requests refuse unknown keys by name, so that a mistyped `acess_tags` cannot widen or hide a document.
Size limits with sentences of their own live in `core.limits`; the bounds here keep payloads bounded.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from memory_plane.contracts.enums import (
    CreatedByKind,
    Evidence,
    FeedEventKind,
    Lineage,
    Provenance,
    RetentionClass,
    TemporalClass,
    VersionStatus,
)
from memory_plane.contracts.validation import IsoTime, Whole

Scalar = str | int | float | bool | None
Attributes = dict[str, Scalar]
Ids = Annotated[list[str], Field(max_length=100)]
Filter = Annotated[list[str], Field(max_length=100)]


class Fields(BaseModel):
    model_config = ConfigDict(frozen=True)


class Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Response(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class Share(Request):
    """Sugar for access tags. To keep a document private, omit `share`."""

    tenant: bool = False
    principals: Annotated[list[str], Field(max_length=64)] = []
    tags: Annotated[list[str], Field(max_length=64)] = []


class EntityHint(Request):
    kind: Annotated[str, Field(min_length=1, max_length=100)]
    identifier: Annotated[str, Field(min_length=1, max_length=500)]
    label: Annotated[str, Field(max_length=500)] | None = None


class AddFields(Fields):
    """One document to capture. Tenant and principal come from the authenticated caller, never from here."""

    title: str
    text: str
    access_tags: list[str] | None = None
    share: Share | None = None
    kind: str = "note"
    adapter: str = "http"
    external_ref: str | None = None
    occurred_at: IsoTime | None = None
    attributes: dict[str, Any] | None = None
    generator_agent_id: str | None = None
    provenance: Provenance | None = None
    lineage_class: Lineage | None = None
    temporal_class: TemporalClass | None = None
    derived_from: Ids | None = None
    supports: Ids | None = None
    contradicts: Ids | None = None
    entities: Annotated[list[EntityHint], Field(max_length=200)] | None = None
    valid_from: IsoTime | None = None
    valid_until: IsoTime | None = None
    retention_class: RetentionClass | None = None
    process: Annotated[list[str], Field(max_length=16)] | None = None
    request_widening: bool = False


class AddItem(AddFields):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AddRequest(AddItem):
    wait: Literal["captured", "embedded", "processed"] | None = None
    wait_ms: Annotated[int, Whole(0, 30_000)] | None = None


class BatchRequest(Request):
    """Items are validated one by one, so that one bad item, whatever it is, fails alone."""

    items: Annotated[list[Any], Field(min_length=1, max_length=500)]


class AddResponse(Response):
    document_id: str
    version_id: str
    status: Literal["captured", "noop"]
    degraded: list[str] | None = None
    grants_materialized: bool | None = None


class ItemError(Response):
    code: str
    detail: str


class BatchItem(Response):
    """Either the three ids and status, or `error`."""

    index: int
    document_id: str | None = None
    version_id: str | None = None
    status: Literal["captured", "noop"] | None = None
    grants_materialized: bool | None = None
    error: ItemError | None = None


class BatchResponse(Response):
    items: list[BatchItem]
    degraded: list[str] | None = None


class SearchRequest(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    query: str = ""
    limit: Annotated[int, Whole(1, 50)] = 8
    kinds: Filter | None = None
    entity_ids: Filter | None = None
    sources: Filter | None = None
    adapters: Filter | None = None
    include_evidence: bool = Field(True, alias="includeEvidence")
    include_deprecated: bool = Field(False, alias="includeDeprecated")
    generation: str | None = None
    as_of: IsoTime | None = None
    attributes: dict[str, Any] | None = None
    passages: Annotated[int, Whole(0, 5)] = 0
    """So many whole passages of each document come with its hit: what an agent reads without a call for each."""
    explain: bool = False


class OpenTarget(Response):
    type: str
    id: str


class Citation(BaseModel):
    """`external_ref` stays snake_case on the wire, as in the origin."""

    model_config = ConfigDict(frozen=True)

    adapter: str
    external_ref: str
    open: OpenTarget


class Attribution(Response):
    version_id: str
    version: int
    provenance: Provenance
    source_class: Lineage
    temporal_class: TemporalClass
    created_by_kind: CreatedByKind
    generator_agent_id: str | None = None
    occurred_at: datetime
    valid_until: datetime | None = None
    supports: int
    contradicts: int
    derived_from: list[str]
    channels: list[str]


class Passage(Response):
    """A chunk of the document: `text` is its source text from `start` to `end`. Scores of one page compare."""

    text: str
    start: int
    end: int
    score: float


class SearchItem(Response):
    document_id: str
    title: str
    snippet: str
    score: float
    kind: str
    citation: Citation
    updated_at: datetime | None = None
    attribution: Attribution | None = None
    passages: list[Passage] | None = None
    explain: dict[str, Any] | None = None


class SearchResponse(Response):
    items: list[SearchItem]
    evidence: Evidence | None = None
    degraded: list[str] | None = None
    explain: dict[str, Any] | None = None


class ListEvent(Response):
    at: datetime
    title: str
    source: str
    tenant_id: str
    principal_id: str
    document_id: str
    version_id: str
    kind: str


class ListResponse(Response):
    events: list[ListEvent]
    next_cursor: str | None = None


class FeedEntry(Response):
    feed_seq: int
    version_id: str
    document_id: str
    kind: str
    title: str
    status: VersionStatus
    created_by_kind: CreatedByKind
    generator_agent_id: str | None = None
    provenance: Provenance
    occurred_at: datetime
    created_at: datetime
    access_tags: list[str]


class FeedResponse(Response):
    entries: list[FeedEntry]
    next_cursor: int
    degraded: list[str] | None = None


class FeedEvent(Response):
    position: int
    event: FeedEventKind
    document_id: str
    version_id: str | None = None
    at: datetime


class FeedEventsResponse(Response):
    entries: list[FeedEvent]
    next_cursor: int
    degraded: list[str] | None = None


class VersionSummary(Response):
    version_id: str
    version: int
    status: VersionStatus
    kind: str
    title: str | None = None
    provenance: Provenance
    source_class: Lineage
    temporal_class: TemporalClass
    retention_class: RetentionClass
    created_by_kind: CreatedByKind
    generator_agent_id: str | None = None
    occurred_at: datetime
    ingested_at: datetime
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    supersedes_version_id: str | None = None
    derived_from: list[str] = []
    embed_state: str | None = None


class DocumentSummary(Response):
    document_id: str
    adapter: str
    external_ref: str
    title: str | None = None
    kind: str
    access_tags: list[str]
    attributes: dict[str, Any]
    created_by_principal_id: str
    created_at: datetime
    last_seen_at: datetime


class DocumentResponse(Response):
    document: DocumentSummary
    version: VersionSummary
    text: str | None
    versions: list[VersionSummary]


class ForgetRequest(Request):
    """`reason` is the caller's own words and is kept for audit."""

    reason: Annotated[str, Field(max_length=1000)] | None = None


class ForgetResponse(Response):
    document_id: str
    versions: int
    derived_forgotten: int


class PurgeResponse(Response):
    document_id: str
    deleted: bool
    reason: str | None = None


class RetentionClassRequest(Request):
    retention_class: RetentionClass


class RetentionClassResponse(Response):
    version_id: str
    document_id: str
    status: VersionStatus
