"""The facade's add: capture, embed within a budget, and hand over to a workflow only what is left."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from memory_plane.contracts.enums import Degraded, EmbedState
from memory_plane.contracts.errors import Invalid, PlaneError, Unavailable
from memory_plane.contracts.validation import invalid
from memory_plane.contracts.wire import (
    AddItem,
    AddRequest,
    AddResponse,
    BatchItem,
    BatchResponse,
    ItemError,
)
from memory_plane.core.text import clean_json
from memory_plane.core.visibility import Visibility
from memory_plane.plane.capture import Capture
from memory_plane.plane.capture_request import KEY_ITEM_SEPARATOR
from memory_plane.plane.captured import Captured
from memory_plane.plane.embedding import Embedding
from memory_plane.plane.ports import WideningStarter, WorkflowStarter
from memory_plane.settings import Settings
from memory_plane.store.database import StatementFailed
from memory_plane.telemetry import metrics

_log = logging.getLogger(__name__)

WAIT_MS = 10_000
"""How long `wait` waits where `wait_ms` is not given."""
MAX_BATCH = 500
BATCH_CAPTURES = 4
"""Items of one batch that are captured at a time, so that a batch leaves connections to others."""


@dataclass(frozen=True, slots=True)
class AddOutcome:
    """`replayed`: the answer repeats what an earlier request with the same key did."""

    response: AddResponse
    replayed: bool


@dataclass(frozen=True, slots=True)
class _Left:
    """Where a captured version stands. `embed` None: the endpoint failed just now, and it is tried again."""

    embed: EmbedState | None
    process: bool

    @property
    def needs_ingest(self) -> bool:
        return self.process or self.embed in (EmbedState.PENDING, None)


class Adding:
    """`starter` None: there is no Temporal here, and what is left waits for a reconciler elsewhere."""

    def __init__(
        self, capture: Capture, embedding: Embedding, starter: WorkflowStarter | None, settings: Settings
    ) -> None:
        self._capture = capture
        self._embedding = embedding
        self._starter = starter
        self._budget = settings.embed_inline_budget_ms / 1000

    async def add(
        self, visibility: Visibility, request: AddRequest, payload: Any, idempotency_key: str | None
    ) -> AddOutcome:
        """Durable once captured: whatever fails after that is told in `degraded` and made good later.

        `request.wait` says for what the caller waits, `wait_ms` for how long at most; without it, for an inline embed
        within the configured budget.
        """
        captured = await self._capture.capture(visibility, request, payload=payload, idempotency_key=idempotency_key)
        await self._start_widenings(visibility.caller.tenant_id, [captured])
        left, delayed = await self._finish(visibility.caller.tenant_id, captured, request)
        response = AddResponse(
            document_id=captured.document_id,
            version_id=captured.version_id,
            status=captured.status,
            degraded=_degraded([left], delayed=delayed),
            grants_materialized=captured.grants_materialized,
        )
        return AddOutcome(response, captured.replayed)

    async def add_batch(
        self, visibility: Visibility, items: Sequence[Any], idempotency_key: str | None
    ) -> BatchResponse:
        """Each item is judged and stored alone; two of one document in their order. Embedding is left to a workflow.

        Raises Unavailable when not one item could be promised for the same reason.
        """
        if not 1 <= len(items) <= MAX_BATCH:
            raise Invalid(f"A batch has 1 to {MAX_BATCH} items.")
        results = await self._capture_all(visibility, items, idempotency_key)
        outages = [result for result in results if isinstance(result, Unavailable)]
        if len(outages) == len(results):
            raise outages[0]
        captured = [result for result in results if isinstance(result, Captured)]
        await self._start_widenings(visibility.caller.tenant_id, captured)
        left = [_Left(each.embed_state or EmbedState.EMBEDDED, each.process_pending) for each in captured]
        pending = [each.version_id for each, rest in zip(captured, left, strict=True) if rest.needs_ingest]
        delayed = not await self._start(visibility.caller.tenant_id, list(dict.fromkeys(pending)))
        return BatchResponse(
            items=[_batch_item(index, result) for index, result in enumerate(results)],
            degraded=_degraded(left, delayed=delayed),
        )

    async def _finish(self, tenant_id: str, captured: Captured, request: AddRequest) -> tuple[_Left, bool]:
        loop = asyncio.get_running_loop()
        waits = (WAIT_MS if request.wait_ms is None else request.wait_ms) / 1000
        end = loop.time() + waits
        budget = {None: self._budget, "captured": 0.0}.get(request.wait, min(self._budget, waits))
        left = _Left(captured.embed_state or EmbedState.EMBEDDED, captured.process_pending)
        if left.embed is EmbedState.PENDING and budget > 0:
            left = _Left(await self._embed(tenant_id, captured, budget), captured.process_pending)
        if not left.needs_ingest:
            return left, False
        if not await self._start(tenant_id, [captured.version_id]):
            return left, True
        if request.wait == "processed" or (request.wait == "embedded" and left.embed is not EmbedState.EMBEDDED):
            left = await self._wait(tenant_id, captured.version_id, left, end - loop.time())
        return left, False

    async def _embed(self, tenant_id: str, captured: Captured, within: float) -> EmbedState | None:
        try:
            return await self._embedding.embed_inline(tenant_id, captured, within)
        except (PlaneError, StatementFailed) as failure:
            _log.warning("version %s was captured and not embedded: %s", captured.version_id, type(failure).__name__)
            return EmbedState.PENDING

    async def _start(self, tenant_id: str, version_ids: Sequence[str]) -> bool:
        """False where it could not be started now; the reconciler will."""
        if not version_ids:
            return True
        if self._starter is None:
            return False
        try:
            await self._starter.start_ingest(tenant_id, version_ids)
        except Unavailable:
            return False
        return True

    async def _start_widenings(self, tenant_id: str, captured: Sequence[Captured]) -> None:
        """Have the owners asked now; where that cannot be started, the reconciler does."""
        requests = [request_id for each in captured for request_id in each.audience_request_ids]
        if not requests or not isinstance(self._starter, WideningStarter):
            return
        with suppress(Unavailable):
            for request_id in requests:
                await self._starter.start_widening(tenant_id, request_id)

    async def _wait(self, tenant_id: str, version_id: str, left: _Left, within: float) -> _Left:
        """How it stands when the ingest has ended, or when the time is over."""
        if self._starter is None or within <= 0:
            return left
        try:
            await self._starter.wait_ingest(tenant_id, [version_id], within)
            return await self._look(tenant_id, version_id, left)
        except (Unavailable, StatementFailed):
            return left

    async def _look(self, tenant_id: str, version_id: str, left: _Left) -> _Left:
        now = await self._capture.remaining(tenant_id, version_id)
        if now is None:
            return left
        if now.embed_state is EmbedState.PENDING:  # and why it is, is known already
            return _Left(left.embed, now.process_pending)
        return _Left(now.embed_state or EmbedState.EMBEDDED, now.process_pending)

    async def _capture_all(
        self, visibility: Visibility, items: Sequence[Any], key: str | None
    ) -> list[Captured | Exception]:
        results: list[Captured | Exception] = [Invalid("not reached")] * len(items)
        places = asyncio.Semaphore(BATCH_CAPTURES)

        async def in_order(indexes: Sequence[int]) -> None:
            for index in indexes:
                async with places:
                    item_key = None if key is None else f"{key}{KEY_ITEM_SEPARATOR}{index}"
                    results[index] = await self._capture_item(visibility, items[index], item_key)

        async with asyncio.TaskGroup() as group:
            for indexes in _by_document(items):
                group.create_task(in_order(indexes))
        return results

    async def _capture_item(self, visibility: Visibility, item: Any, key: str | None) -> Captured | Exception:
        try:
            parsed = AddItem.model_validate(clean_json(item))
            return await self._capture.capture(visibility, parsed, payload=item, idempotency_key=key)
        except ValidationError as error:
            return invalid(error, AddItem)
        except (PlaneError, StatementFailed) as error:
            return error


def _by_document(items: Sequence[Any]) -> list[list[int]]:
    """The places of items that name the same document, in their order; every other item by itself."""
    named: dict[tuple[str, str], list[int]] = {}
    alone: list[list[int]] = []
    for index, item in enumerate(items):
        adapter = item.get("adapter", "http") if isinstance(item, dict) else None
        external_ref = item.get("external_ref") if isinstance(item, dict) else None
        if isinstance(adapter, str) and isinstance(external_ref, str):
            named.setdefault((adapter, external_ref), []).append(index)
        else:
            alone.append([index])
    return [*named.values(), *alone]


def _batch_item(index: int, result: Captured | Exception) -> BatchItem:
    if isinstance(result, Captured):
        return BatchItem(
            index=index,
            document_id=result.document_id,
            version_id=result.version_id,
            status=result.status,
            grants_materialized=result.grants_materialized,
        )
    if isinstance(result, PlaneError):
        return BatchItem(index=index, error=ItemError(code=result.code, detail=result.detail))
    _log.error(
        "an item of a batch failed: %s", result if isinstance(result, StatementFailed) else type(result).__name__
    )
    return BatchItem(
        index=index, error=ItemError(code="internal", detail="This item met a fault of ours; it was not stored.")
    )


def _degraded(left: Iterable[_Left], *, delayed: bool) -> list[str] | None:
    """Why this is less than it could be, each reason once; None when it is not."""
    reasons: dict[str, None] = {}
    for each in left:
        if each.embed is EmbedState.PENDING:
            reasons[Degraded.EMBED_PENDING] = None
        elif each.embed is EmbedState.NOT_CONFIGURED:
            reasons |= {Degraded.EMBED_UNAVAILABLE: None, Degraded.LEXICAL_ONLY: None}
        elif each.embed is not EmbedState.EMBEDDED:
            reasons[Degraded.EMBED_UNAVAILABLE] = None
    if delayed:
        reasons[Degraded.INGEST_DELAYED] = None
    metrics.degraded_answer("add", reasons)
    return list(reasons) or None
