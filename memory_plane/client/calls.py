"""What each verb sends and expects: shared by the sync and the async client."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypedDict, TypeVar
from urllib.parse import quote
from uuid import uuid4

from pydantic import BaseModel

from memory_plane.contracts.enums import Lineage, Provenance, RetentionClass, TemporalClass
from memory_plane.contracts.errors import Invalid
from memory_plane.contracts.wire import (
    AddResponse,
    BatchResponse,
    DocumentResponse,
    EntityHint,
    FeedEventsResponse,
    FeedResponse,
    ForgetResponse,
    ListResponse,
    PurgeResponse,
    RetentionClassResponse,
    SearchResponse,
    Share,
)

R = TypeVar("R", bound=BaseModel)

MAX_BATCH = 500
"""Items of one add/batch request."""
MAX_BATCH_BYTES = 8_000_000
"""Where `split` ends a batch early, well under the facade's limit of 10 MB a body."""


class DocumentOptions(TypedDict, total=False):
    """What may be said of a document beside title and text. Times are aware datetimes or ISO 8601 with an offset."""

    access_tags: Sequence[str]
    share: Share | Mapping[str, Any]
    kind: str
    adapter: str
    external_ref: str
    occurred_at: datetime | str
    attributes: Mapping[str, str | int | float | bool | None]
    generator_agent_id: str
    provenance: Provenance | str
    lineage_class: Lineage | str
    temporal_class: TemporalClass | str
    derived_from: Sequence[str]
    supports: Sequence[str]
    contradicts: Sequence[str]
    entities: Sequence[EntityHint | Mapping[str, str]]
    valid_from: datetime | str
    valid_until: datetime | str
    retention_class: RetentionClass | str
    process: Sequence[str]
    request_widening: bool


class Document(DocumentOptions):
    """One item of a batch."""

    title: str
    text: str


class AddOptions(DocumentOptions, total=False):
    """The optional fields of `add`, by keyword. `wait` asks the server to answer later, at most `wait_ms`."""

    wait: Literal["captured", "embedded", "processed"]
    wait_ms: int


class SearchOptions(TypedDict, total=False):
    """The optional fields of `search`, by keyword."""

    limit: int
    kinds: Sequence[str]
    entity_ids: Sequence[str]
    sources: Sequence[str]
    adapters: Sequence[str]
    include_evidence: bool
    include_deprecated: bool
    generation: str
    as_of: datetime | str
    attributes: Mapping[str, str | int | float | bool | None]
    explain: bool


@dataclass(frozen=True, slots=True)
class Call(Generic[R]):
    """One request. `repeatable`: sent twice, it does and answers the same, so that a lost answer may be retried."""

    method: str
    path: str
    response: type[R]
    params: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True


class Calls:
    """The requests of one tenant."""

    def __init__(self, tenant: str) -> None:
        if not tenant:
            raise Invalid("The tenant must not be empty.", code="client_configuration")
        self._base = f"/api/tenants/{quote(tenant, safe='')}/memory"

    def add(self, body: Mapping[str, Any], key: str | None) -> Call[AddResponse]:
        return Call("POST", f"{self._base}/add", AddResponse, content=encode(body), headers=_key(key))

    def add_batch(self, items: Sequence[Mapping[str, Any]], key: str | None) -> Call[BatchResponse]:
        body = encode({"items": list(items)})
        return Call("POST", f"{self._base}/add/batch", BatchResponse, content=body, headers=_key(key))

    def search(self, query: str, options: Mapping[str, Any]) -> Call[SearchResponse]:
        return Call("POST", f"{self._base}/search", SearchResponse, content=encode({"query": query, **options}))

    def list(self, limit: int | None, cursor: str | None) -> Call[ListResponse]:
        return Call("GET", f"{self._base}/list", ListResponse, _present(limit=limit, cursor=cursor))

    def feed(self, after: int, limit: int | None, exclude_generator: str | None) -> Call[FeedResponse]:
        params = _present(after=after, limit=limit, exclude_generator=exclude_generator)
        return Call("GET", f"{self._base}/feed", FeedResponse, params)

    def events(self, after: int, limit: int | None) -> Call[FeedEventsResponse]:
        params = _present(events="all", after=after, limit=limit)
        return Call("GET", f"{self._base}/feed", FeedEventsResponse, params)

    def get(self, document_id: str, version: int | str | None) -> Call[DocumentResponse]:
        return Call("GET", self._document(document_id), DocumentResponse, _present(version=version))

    def forget(self, document_id: str, reason: str | None) -> Call[ForgetResponse]:
        body = encode({} if reason is None else {"reason": reason})
        return Call("POST", f"{self._document(document_id)}/forget", ForgetResponse, content=body)

    def purge(self, document_id: str) -> Call[PurgeResponse]:
        # Not repeatable: the second of two purges answers 404, and the caller would take it for a failure.
        return Call("POST", f"{self._document(document_id)}/purge", PurgeResponse, repeatable=False)

    def set_retention_class(self, version_id: str, retention_class: str) -> Call[RetentionClassResponse]:
        path = f"{self._base}/versions/{quote(version_id, safe='')}/retention-class"
        return Call("POST", path, RetentionClassResponse, content=encode({"retention_class": retention_class}))

    def _document(self, document_id: str) -> str:
        return f"{self._base}/documents/{quote(document_id, safe='')}"


def encode(body: Mapping[str, Any]) -> bytes:
    """JSON in ASCII: a lone surrogate in a text travels as an escape instead of failing here."""
    try:
        return json.dumps(body, default=_plain, allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as problem:
        raise Invalid(f"The request cannot be written as JSON: {problem}.", code="client_request") from None


def split(items: Iterable[Mapping[str, Any]], size: int) -> Iterable[list[Mapping[str, Any]]]:
    """Batches of at most `size` items and MAX_BATCH_BYTES bytes; an item larger than that goes alone."""
    if not 1 <= size <= MAX_BATCH:
        raise Invalid(f"batch_size must be from 1 to {MAX_BATCH}.", code="client_request")
    batch: list[Mapping[str, Any]] = []
    weight = 0
    for item in items:
        item_weight = len(encode(item))
        if batch and (len(batch) == size or weight + item_weight > MAX_BATCH_BYTES):
            yield batch
            batch, weight = [], 0
        batch.append(item)
        weight += item_weight
    if batch:
        yield batch


def new_key() -> str:
    return uuid4().hex


def _key(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": key or new_key()}


def _present(**params: object) -> dict[str, str]:
    return {name: str(value) for name, value in params.items() if value is not None}


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")
