"""An add, made ready for capture: resolved and checked, with its payload as it will be kept. No I/O."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from memory_plane.contracts.enums import CreatedByKind, RetentionClass
from memory_plane.contracts.errors import FieldError, Invalid
from memory_plane.contracts.validation import refusal
from memory_plane.contracts.wire import AddFields
from memory_plane.core.access_tags import refuse_bad_tags
from memory_plane.core.caller import Caller
from memory_plane.core.hashing import keyed_hash, source_hash
from memory_plane.core.limits import UNSTORABLE_NAME, refuse_over_limits
from memory_plane.core.source_document import EntityHint, SourceDocument
from memory_plane.core.text import is_blank, is_storable
from memory_plane.plane.audience import WantedAudience
from memory_plane.store.captures import RawCapture
from memory_plane.store.idempotency import KeyedBody

MAX_KEY_CHARS = 255
MAX_PROCESSOR_CHARS = 200
_NAMES = ("adapter", "external_ref", "generator_agent_id", "access_tags", "share", "entities", "process")
_NAMES_WITHIN = ("principals", "tags", "kind", "identifier")
_AS_SENT = json.JSONEncoder(ensure_ascii=False)
KEY_ITEM_SEPARATOR = "\x1f"
"""Between a batch's key and an item's number: no header can carry it, so no single add has such a key."""


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    caller: Caller
    document: SourceDocument
    is_named: bool
    """By the caller. A name of our own minting is nobody else's, so its document is new."""
    raw: RawCapture
    wanted: WantedAudience
    processors: Sequence[str]
    retention_class: RetentionClass | None
    """As given; None leaves that of a version that exists."""
    keyed: KeyedBody | None


def capture_request(
    caller: Caller,
    item: AddFields,
    payload: Any,
    *,
    over_http: bool,
    key: str | None,
    hash_key: bytes,
    known_processors: Collection[str] | None,
) -> CaptureRequest:
    """Raises Invalid for anything that could not be stored or meant; nothing has been written then.

    `payload` is the JSON as it was sent. A document without `external_ref` gets one of its own.
    """
    _refuse_names_unlike_sent(payload)
    external_ref = _mint(caller.tenant_id) if item.external_ref is None else item.external_ref
    document = source_document(item, external_ref=external_ref, over_http=over_http)
    refuse_over_limits(document)
    _refuse_tags(caller, item)
    return CaptureRequest(
        caller=caller,
        document=document,
        is_named=item.external_ref is not None,
        raw=_raw(document, payload),
        wanted=WantedAudience(item.access_tags, item.share, item.request_widening),
        processors=_processors(item.process or (), known_processors),
        retention_class=item.retention_class,
        keyed=None if key is None else _keyed(caller, key, payload, hash_key),
    )


def source_document(item: AddFields, *, external_ref: str, over_http: bool = True) -> SourceDocument:
    """The document that an add describes; a transform makes it anew from the stored payload."""
    return SourceDocument(
        adapter=item.adapter,
        external_ref=external_ref,
        title=item.title,
        kind=item.kind,
        text=item.text,
        attributes=item.attributes or {},
        occurred_at=item.occurred_at,
        valid_from=item.valid_from,
        valid_until=item.valid_until,
        temporal_class=item.temporal_class,
        provenance=item.provenance,
        lineage=item.lineage_class,
        retention_class=item.retention_class,
        generator_agent_id=item.generator_agent_id,
        created_by_kind=None if over_http or item.generator_agent_id else CreatedByKind.SYSTEM,
        derived_from=tuple(item.derived_from or ()),
        supports=tuple(item.supports or ()),
        contradicts=tuple(item.contradicts or ()),
        entities=tuple(EntityHint(hint.kind, hint.identifier, hint.label) for hint in item.entities or ()),
    )


def _refuse_names_unlike_sent(payload: Any) -> None:
    """A name that is cleaned may be that of another document, another tag: it is stored as sent or not at all."""
    if isinstance(payload, dict):
        errors = [error for name in _NAMES for error in _unlike_sent(name, payload.get(name))]
        if errors:
            raise refusal(errors)


def _unlike_sent(field: str, value: Any) -> Iterator[FieldError]:
    if isinstance(value, str):
        if not is_storable(value):
            yield FieldError(field, UNSTORABLE_NAME)
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _unlike_sent(f"{field}.{place}", each)
    elif isinstance(value, dict):
        for name in _NAMES_WITHIN:
            yield from _unlike_sent(f"{field}.{name}", value.get(name))


def _refuse_tags(caller: Caller, item: AddFields) -> None:
    if item.access_tags is None and item.share is None:
        return
    refuse_bad_tags(caller.tenant_id, item.access_tags or (), item.share)


def _mint(tenant_id: str) -> str:
    return f"memory:{tenant_id}:{uuid4()}"


def _raw(document: SourceDocument, payload: Any) -> RawCapture:
    identity = source_hash(document.adapter, document.external_ref, payload)
    text = _AS_SENT.encode(payload)
    if "\\u0000" in text or not is_storable(text):
        return RawCapture(identity, None, text.encode("utf-8", "surrogatepass"))
    return RawCapture(identity, text, None)


def _processors(names: Sequence[str], known: Collection[str] | None) -> list[str]:
    errors = [
        FieldError(f"process.{place}", "must be the name of a configured processor")
        for place, name in enumerate(names)
        if is_blank(name)
        or not is_storable(name)
        or len(name) > MAX_PROCESSOR_CHARS
        or (known is not None and name not in known)
    ]
    if errors:
        raise Invalid(
            f"process names what is not configured ({len(errors)} of {len(names)}); leave it out, or configure it.",
            code="unknown_processor",
            errors=errors,
        )
    return list(dict.fromkeys(names))


def _keyed(caller: Caller, key: str, payload: Any, hash_key: bytes) -> KeyedBody:
    own = key.split(KEY_ITEM_SEPARATOR)[0]
    if not own or len(own) > MAX_KEY_CHARS or not is_storable(key):
        raise Invalid(f"An Idempotency-Key has 1 to {MAX_KEY_CHARS} characters.", code="idempotency_key")
    return KeyedBody(caller.principal_id, key, keyed_hash(hash_key, payload))
