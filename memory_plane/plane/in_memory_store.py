"""A document store in one process's memory, for tests of hosts. It keeps the port's contract, not our ranking.

It has no feed, forgets nothing, and takes no claims: who sees a claim depends on its sources.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from memory_plane.contracts.enums import Evidence, VersionStatus
from memory_plane.contracts.errors import Forbidden, Invalid, KeyReused, NotFound, Unsupported
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.recipe import Recipe
from memory_plane.contracts.wire import (
    AddRequest,
    AddResponse,
    Citation,
    DocumentResponse,
    DocumentSummary,
    ListEvent,
    ListResponse,
    OpenTarget,
    SearchItem,
    SearchRequest,
    SearchResponse,
    VersionSummary,
)
from memory_plane.core.access_tags import written_tags
from memory_plane.core.planning import CapturePlan, plan
from memory_plane.core.visibility import Visibility
from memory_plane.plane.adding import AddOutcome
from memory_plane.plane.capture_request import CaptureRequest, capture_request
from memory_plane.plane.document_store import DocumentStore

_HASH_KEY = b"of one process"
_Status = Literal["captured", "noop"]


@dataclass(frozen=True, slots=True)
class _Version:
    id: str
    number: int
    plan: CapturePlan
    at: datetime


@dataclass(frozen=True, slots=True)
class _Document:
    """`seen` orders the list: it counts captures, so that two at one moment have an order too."""

    id: str
    tenant_id: str
    adapter: str
    external_ref: str
    creator: str
    tags: tuple[str, ...]
    versions: tuple[_Version, ...]
    created_at: datetime
    last_seen_at: datetime
    seen: int

    @property
    def active(self) -> _Version:
        return self.versions[-1]


class InMemoryStore(DocumentStore):
    def __init__(self) -> None:
        self._documents: dict[tuple[str, str, str], _Document] = {}
        self._keys: dict[tuple[str, str, str], tuple[str, AddResponse]] = {}
        self._captures = 0

    async def add(
        self, visibility: Visibility, request: AddRequest, payload: Any, idempotency_key: str | None
    ) -> AddOutcome:
        wanted = capture_request(
            visibility.caller,
            request,
            payload,
            over_http=True,
            key=idempotency_key,
            hash_key=_HASH_KEY,
            known_processors=(),
        )
        if wanted.document.derived_from or wanted.document.supports or wanted.document.contradicts:
            raise Unsupported("This store takes no claims; leave out derived_from, supports and contradicts.")
        if wanted.keyed is None:
            return AddOutcome(self._capture(visibility, wanted), replayed=False)
        key = (visibility.caller.tenant_id, wanted.keyed.principal_id, wanted.keyed.key)
        if key in self._keys:
            body_hash, response = self._keys[key]
            if body_hash != wanted.keyed.body_hash:
                raise KeyReused("This Idempotency-Key was used with another body; take a new key.")
            return AddOutcome(response, replayed=True)
        response = self._capture(visibility, wanted)
        self._keys[key] = wanted.keyed.body_hash, response
        return AddOutcome(response, replayed=False)

    async def search(self, visibility: Visibility, request: SearchRequest) -> SearchResponse:
        """By the share of the query's words that a document holds; recent ones first where it is blank."""
        words = set(request.query.casefold().split())
        scored = [(self._score(document, words), document) for document in self._visible(visibility)]
        hits = [(score, document) for score, document in scored if score > 0 and _kept(document, request)]
        hits.sort(key=lambda hit: (-hit[0], -hit[1].seen))
        items = [_item(document, score) for score, document in hits[: request.limit]]
        evidence = None
        if request.include_evidence:
            evidence = Evidence.WEAK if items else Evidence.NONE
        return SearchResponse(items=items, evidence=evidence, degraded=None)

    async def list(self, visibility: Visibility, limit: int, cursor: str | None) -> ListResponse:
        if cursor is not None and not cursor.isdecimal():
            raise Invalid("cursor is not one that this list has given; leave it out.", code="invalid_cursor")
        found = [document for document in self._visible(visibility) if cursor is None or document.seen < int(cursor)]
        found.sort(key=lambda document: -document.seen)
        page = found[:limit]
        return ListResponse(
            events=[_event(document) for document in page],
            next_cursor=str(page[-1].seen) if len(found) > limit else None,
        )

    async def get(self, visibility: Visibility, document_id: str, version: int | None = None) -> DocumentResponse:
        found = next((each for each in self._visible(visibility) if each.id == document_id), None)
        chosen = None if found is None else _chosen(found, version)
        if found is None or chosen is None:
            raise NotFound("There is nothing under this id, or it is not yours to see.")
        return DocumentResponse(
            document=_document(found),
            version=_version(found, chosen),
            text=chosen.plan.source_text,
            versions=[_version(found, each) for each in reversed(found.versions)],
        )

    def _visible(self, visibility: Visibility) -> Sequence[_Document]:
        tenant = visibility.caller.tenant_id
        return [
            each
            for each in self._documents.values()
            if each.tenant_id == tenant and visibility.sees(each.creator, each.tags)
        ]

    def _score(self, document: _Document, words: set[str]) -> float:
        if not words:
            return 1.0
        planned = document.active.plan
        held = set(f"{planned.title} {planned.source_text}".casefold().replace(".", " ").replace(",", " ").split())
        return len(words & held) / len(words)

    def _capture(self, visibility: Visibility, wanted: CaptureRequest) -> AddResponse:
        caller, source = visibility.caller, wanted.document
        planned, now = plan(source, Recipe()), datetime.now(UTC)
        self._captures += 1
        name = (caller.tenant_id, source.adapter, source.external_ref)
        known = self._documents.get(name)
        document = known or _Document(
            id=new_id(IdKind.DOCUMENT),
            tenant_id=caller.tenant_id,
            adapter=source.adapter,
            external_ref=source.external_ref,
            creator=caller.principal_id,
            tags=tuple(written_tags(caller.principal_id, caller.tenant_id)),
            versions=(),
            created_at=now,
            last_seen_at=now,
            seen=self._captures,
        )
        if document.creator != caller.principal_id:
            raise Forbidden(
                "This adapter and external_ref name a document that is not yours to write; use another external_ref.",
                code="not_document_writer",
            )
        tags = document.tags
        if wanted.wanted.is_given:
            tags = tuple(
                written_tags(
                    caller.principal_id,
                    caller.tenant_id,
                    wanted.wanted.access_tags or (),
                    wanted.wanted.share,
                    document.id,
                )
            )
        status: _Status = "noop"
        versions = document.versions
        if not versions or document.active.plan.content_hash != planned.content_hash:
            status = "captured"
            versions = (*versions, _Version(new_id(IdKind.VERSION), len(versions) + 1, planned, now))
        document = replace(document, tags=tags, versions=versions, last_seen_at=now, seen=self._captures)
        self._documents[name] = document
        return AddResponse(document_id=document.id, version_id=document.active.id, status=status)


def _kept(document: _Document, request: SearchRequest) -> bool:
    kinds, adapters = request.kinds or (), request.adapters or ()
    return (not kinds or document.active.plan.kind in kinds) and (not adapters or document.adapter in adapters)


def _chosen(document: _Document, number: int | None) -> _Version | None:
    if number is None:
        return document.active
    return next((version for version in document.versions if version.number == number), None)


def _item(document: _Document, score: float) -> SearchItem:
    planned = document.active.plan
    return SearchItem(
        document_id=document.id,
        title=planned.title,
        snippet=planned.source_text[:300],
        score=score,
        kind=planned.kind,
        citation=Citation(
            adapter=document.adapter,
            external_ref=document.external_ref,
            open=OpenTarget(type="document", id=document.id),
        ),
        updated_at=document.last_seen_at,
    )


def _event(document: _Document) -> ListEvent:
    return ListEvent(
        at=document.last_seen_at,
        title=document.active.plan.title,
        source=document.adapter,
        tenant_id=document.tenant_id,
        principal_id=document.creator,
        document_id=document.id,
        version_id=document.active.id,
        kind=document.active.plan.kind,
    )


def _document(document: _Document) -> DocumentSummary:
    planned = document.active.plan
    return DocumentSummary(
        document_id=document.id,
        adapter=document.adapter,
        external_ref=document.external_ref,
        title=planned.title,
        kind=planned.kind,
        access_tags=list(document.tags),
        attributes=planned.attributes,
        created_by_principal_id=document.creator,
        created_at=document.created_at,
        last_seen_at=document.last_seen_at,
    )


def _version(document: _Document, version: _Version) -> VersionSummary:
    planned = version.plan
    return VersionSummary(
        version_id=version.id,
        version=version.number,
        status=VersionStatus.ACTIVE if version is document.active else VersionStatus.SUPERSEDED,
        kind=planned.kind,
        title=planned.title,
        provenance=planned.provenance,
        source_class=planned.lineage,
        temporal_class=planned.temporal_class,
        retention_class=planned.retention_class,
        created_by_kind=planned.created_by_kind,
        generator_agent_id=planned.generator_agent_id,
        occurred_at=planned.occurred_at or version.at,
        ingested_at=version.at,
        valid_from=planned.valid_from,
        valid_until=planned.valid_until,
        supersedes_version_id=document.versions[version.number - 2].id if version.number > 1 else None,
    )
