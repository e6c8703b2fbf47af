"""What was captured, as it stands: the recent documents, and one document with its versions and text."""

import asyncio
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import asyncpg

from memory_plane.contracts.enums import VersionStatus
from memory_plane.contracts.errors import Invalid, NotFound
from memory_plane.contracts.wire import DocumentResponse, DocumentSummary, ListEvent, ListResponse, VersionSummary
from memory_plane.core.text import clean_text
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import visible_documents, visible_versions
from memory_plane.store import library as store
from memory_plane.store.database import Connection, Pool, connection, took_too_long
from memory_plane.store.library import Place

MAX_LIMIT = 100
_LARGEST_BATCH = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_CURSOR = 300


class Library:
    def __init__(self, pool: Pool, list_seconds: float = 5.0) -> None:
        self._pool = pool
        self._list_seconds = list_seconds

    async def list(self, visibility: Visibility, limit: int, cursor: str | None) -> ListResponse:
        """A page of `limit` documents the caller sees, last seen first; full whenever there are so many.

        Raises Unavailable where finding them takes longer than a search may.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise Invalid(f"limit must be a whole number from 1 to {MAX_LIMIT}.", code="invalid")
        after = None if cursor is None else _place(cursor, visibility.caller.tenant_id)
        async with connection(self._pool) as conn:
            try:
                async with asyncio.timeout(self._list_seconds):
                    found = await _visible(conn, visibility, after, limit + 1)
            except TimeoutError:
                raise took_too_long() from None
        page = found[:limit]
        return ListResponse(
            events=[_event(row, visibility.caller.tenant_id) for row in page],
            next_cursor=_cursor(page[-1], visibility.caller.tenant_id) if len(found) > limit else None,
        )

    async def get(self, visibility: Visibility, document_id: str, version: int | None = None) -> DocumentResponse:
        """A document with the text of the version of that number, else of the active one, else of the newest that is
        not tombstoned. NotFound for what the caller does not see, as for what is not there.

        A document is seen by who sees its current version, whose title and tags it shows. `versions` are those the
        caller sees, newest first, at most `store.library.MAX_VERSIONS`.
        """
        tenant = visibility.caller.tenant_id
        async with connection(self._pool) as conn:
            document = await store.document(conn, tenant, document_id)
            rows = await store.versions(conn, tenant, document_id) if document is not None else ()
            sources = {source for row in rows for source in row["derived_from"]}
            seen = await visible_versions(conn, visibility, {row["id"] for row in rows} | sources)
            current = _chosen(rows, None)
            rows = [row for row in rows if row["id"] in seen]
            chosen = _chosen(rows, version)
            if document is None or current is None or current["id"] not in seen or chosen is None:
                raise NotFound("There is nothing under this id, or it is not yours to see.")
            text = await _text(conn, tenant, chosen)
        return DocumentResponse(
            document=_document(document, erased=all(_is_erased(row) for row in rows)),
            version=_version(chosen, seen),
            text=text,
            versions=[_version(row, seen) for row in rows],
        )


async def _visible(conn: Connection, visibility: Visibility, after: Place | None, wanted: int) -> list[asyncpg.Record]:
    """Read on until so many visible documents are found or there are no more."""
    found: list[asyncpg.Record] = []
    batch = wanted
    while True:
        rows = await store.recent(conn, visibility.caller.tenant_id, visibility.scope, after, batch)
        seen = await visible_documents(conn, visibility, [row["id"] for row in rows])
        found += [row for row in rows if row["id"] in seen]
        if len(found) >= wanted or len(rows) < batch:
            return found[:wanted]
        after = rows[-1]["last_seen_at"], rows[-1]["id"]
        batch = min(batch * 4, _LARGEST_BATCH)


def _event(row: asyncpg.Record, tenant_id: str) -> ListEvent:
    return ListEvent(
        at=row["last_seen_at"],
        title=row["title"],
        source=row["adapter"],
        tenant_id=tenant_id,
        principal_id=row["principal_id"],
        document_id=row["id"],
        version_id=row["version_id"],
        kind=row["kind"],
    )


def _cursor(row: asyncpg.Record, tenant_id: str) -> str:
    place = [_mark(tenant_id), (row["last_seen_at"] - _EPOCH) // timedelta(microseconds=1), row["id"]]
    return urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def _place(cursor: str, tenant_id: str) -> Place:
    try:
        if len(cursor) > _LONGEST_CURSOR:
            raise ValueError
        mark, micros, document_id = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if mark != _mark(tenant_id) or not isinstance(micros, int) or not isinstance(document_id, str):
            raise ValueError
        if not document_id.isascii() or not document_id.isprintable():
            raise ValueError
        return _EPOCH + timedelta(microseconds=micros), document_id
    except (ValueError, TypeError, OverflowError, NotBase64):
        raise Invalid(
            "cursor is not one that a list of this tenant has given; leave it out to start from the front.",
            code="invalid_cursor",
        ) from None


def _mark(tenant_id: str) -> str:
    """Binds a cursor to its tenant: one that strays into another's list is refused, not silently some place there."""
    return sha256(tenant_id.encode()).hexdigest()[:8]


def _chosen(rows: Collection[asyncpg.Record], number: int | None) -> asyncpg.Record | None:
    if number is not None:
        return next((row for row in rows if row["version"] == number), None)
    kept = [row for row in rows if row["status"] != VersionStatus.TOMBSTONED]
    active = [row for row in kept if row["status"] == VersionStatus.ACTIVE]
    return next(iter([*active, *kept, *rows]), None)


def _is_erased(row: asyncpg.Record) -> bool:
    return bool(row["status"] == VersionStatus.TOMBSTONED)


async def _text(conn: Connection, tenant_id: str, version: asyncpg.Record) -> str | None:
    """The source text, from the payload as it was accepted; None where it was forgotten."""
    if _is_erased(version):
        return None
    stored = await store.raw_payload(conn, tenant_id, version["raw_capture_id"])
    if stored is None:
        return None
    payload: dict[str, Any] = json.loads(stored)
    return clean_text(payload["text"])


def _document(row: asyncpg.Record, *, erased: bool) -> DocumentSummary:
    return DocumentSummary(
        document_id=row["id"],
        adapter=row["adapter"],
        external_ref=row["external_ref"],
        title=None if erased else row["title"],
        kind=row["kind"],
        access_tags=list(row["access_tags"]),
        attributes={} if erased else row["attributes"],
        created_by_principal_id=row["created_by_principal_id"],
        created_at=row["created_at"],
        last_seen_at=row["last_seen_at"],
    )


def _version(row: asyncpg.Record, seen: Collection[str]) -> VersionSummary:
    """`derived_from` names only sources that the caller sees. One past its time shows as the sweep will leave it."""
    return VersionSummary(
        version_id=row["id"],
        version=row["version"],
        status=VersionStatus.DEPRECATED if row["is_expired"] else row["status"],
        kind=row["kind"],
        title=None if _is_erased(row) else row["title"],
        provenance=row["provenance"],
        source_class=row["source_class"],
        temporal_class=row["temporal_class"],
        retention_class=row["retention_class"],
        created_by_kind=row["created_by_kind"],
        generator_agent_id=row["generator_agent_id"],
        occurred_at=row["occurred_at"],
        ingested_at=row["ingested_at"],
        valid_from=row["valid_from"],
        valid_until=row["valid_until"],
        supersedes_version_id=row["supersedes_version_id"] if row["supersedes_version_id"] in seen else None,
        derived_from=[source for source in row["derived_from"] if source in seen],
        embed_state=row["embed_state"],
    )
