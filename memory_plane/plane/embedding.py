"""Vectors for what was captured, inline within an add's budget or in full batches by the worker, and for queries.

No connection is held while an endpoint is waited for, and what is written is checked again under the documents'
locks: a version that was forgotten meanwhile gets no vector.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from memory_plane.contracts.enums import EmbedState
from memory_plane.contracts.recipe import EmbedRecipe
from memory_plane.contracts.workflows import EmbedResult
from memory_plane.core.embed_text import CHUNK_SLOT, Slot, is_plain, query_text, slots
from memory_plane.models.breaker import Breaker
from memory_plane.models.errors import EndpointFault, EndpointTimeout, ModelUnusable
from memory_plane.models.isolate import Outcome, TextFault, Vector
from memory_plane.models.pool import ModelPool
from memory_plane.plane.embed_pass import EmbedPass, OnProgress, write_vectors
from memory_plane.plane.embed_target import EmbedTarget, EmbedTargets, Resolution
from memory_plane.settings import Settings
from memory_plane.store import derivations
from memory_plane.store.database import Connection, Pool, connection, in_transaction
from memory_plane.store.derivations import Generation
from memory_plane.store.embed_models import ENGINE, EmbedModel
from memory_plane.store.vectors import SlotVector

INLINE_CHUNKS = 16
"""A longer document is left to the worker at once: its embedding would not fit the budget of an add."""


class CapturedText(Protocol):
    """`text_to_embed` as `core.embed_text` makes it."""

    @property
    def chunk_id(self) -> str: ...

    @property
    def text_to_embed(self) -> str: ...


class JustCaptured(Protocol):
    """What a capture says of itself. `chunks` is empty for a NOOP whose embed is pending: they are read anew."""

    @property
    def version_id(self) -> str: ...

    @property
    def generation_id(self) -> str: ...

    @property
    def chunks(self) -> Sequence[CapturedText]: ...


class Embedding:
    """The embedding plane of one process. Only the worker calls what may issue DDL: `embed_versions`, `ensure_model`,
    `ensure_engine_model`, `target_for`."""

    def __init__(self, pool: Pool, settings: Settings, models: ModelPool) -> None:
        self._pool = pool
        self._settings = settings
        self._targets = EmbedTargets(pool, settings, models)
        self._inline: dict[str, Breaker] = {}

    # Searches

    async def resolve(self, tenant_id: str, generation_id: str) -> Resolution | None:
        """What a generation embeds with, remembered for some seconds; None for a generation the tenant has not."""
        return await self._targets.resolve(tenant_id, generation_id)

    async def query_vector(self, target: EmbedTarget, query: str, within: float) -> Vector:
        """The vector of a query within so many seconds, of unit length or not. Raises EndpointFault."""
        return await target.embedder.embed_query(query_text(target.recipe, query), within)

    # Adds

    async def embed_inline(self, tenant_id: str, captured: JustCaptured, within: float) -> EmbedState | None:
        """Embed what was just captured, waiting for the endpoint at most `within` seconds.

        EMBEDDED; PENDING when it was not done in time, or is too long, or its model is not registered yet;
        NOT_CONFIGURED; None when the endpoint failed. All but the first and third are left to a workflow.
        """
        resolution = await self._targets.resolve(tenant_id, captured.generation_id)
        if resolution is None:
            return EmbedState.PENDING
        if resolution.recipe is None:
            return EmbedState.NOT_CONFIGURED
        if resolution.target is None or len(captured.chunks) > INLINE_CHUNKS:
            return EmbedState.PENDING
        target = resolution.target
        made = await self._slots(target, captured)
        breaker = self._inline.setdefault(target.model.model_key, Breaker(target.embedder.client.endpoint.name))
        if len(made) > INLINE_CHUNKS:
            return EmbedState.PENDING
        try:
            outcomes = await _in_time(target, [slot.text for slot in made], within, breaker)
        except EndpointTimeout:
            return EmbedState.PENDING
        except EndpointFault:
            too_slow = breaker.state != "closed" and target.embedder.reachable.state == "closed"
            return EmbedState.PENDING if too_slow else None
        return await self._finish(target, captured, made, outcomes)

    async def _slots(self, target: EmbedTarget, captured: JustCaptured) -> list[Slot]:
        texts = [chunk.text_to_embed for chunk in captured.chunks]
        if texts and is_plain(target.recipe, texts):
            return [Slot(chunk.chunk_id, CHUNK_SLOT, chunk.text_to_embed) for chunk in captured.chunks]
        async with connection(self._pool) as conn:
            missing = await derivations.missing_chunks(
                conn,
                target.tenant_id,
                target.generation_id,
                [captured.version_id],
                target.table,
                limit=INLINE_CHUNKS + 1,
                neighbours=target.recipe.neighbours,
            )
        return [slot for chunk in missing for slot in slots(target.recipe, chunk.source)]

    async def _finish(
        self, target: EmbedTarget, captured: JustCaptured, made: Sequence[Slot], outcomes: Sequence[Outcome]
    ) -> EmbedState | None:
        faults = {slot.chunk_id: each for slot, each in zip(made, outcomes, strict=True) if isinstance(each, TextFault)}
        rows = [
            SlotVector(slot.chunk_id, slot.slot, each)
            for slot, each in zip(made, outcomes, strict=True)
            if not isinstance(each, TextFault) and slot.chunk_id not in faults
        ]
        version = {captured.version_id}
        embedded = await write_vectors(self._pool, target, rows, version_ids=version, complete=version)
        if faults:
            reason = next(iter(faults.values())).reason
            await self._record_faults(target, {captured.version_id: reason})
            return None
        return EmbedState.EMBEDDED if captured.version_id in embedded else EmbedState.PENDING

    # The worker

    async def ensure_model(self, tenant_id: str, recipe: EmbedRecipe, *, indexed: bool = True) -> EmbedModel:
        """The tenant's row for the recipe's model, its table made where it is missing. Raises EndpointFault,
        ModelUnusable, Unavailable. A transform says `indexed=False`, fills the table and builds the index after."""
        return await self._targets.register(tenant_id, recipe, indexed=indexed)

    async def ensure_engine_model(self) -> EmbedModel | None:
        """Register the configured model as the engine's own; None where none is configured."""
        recipe = self._settings.default_recipe().embed
        return await self.ensure_model(ENGINE, recipe) if recipe is not None else None

    async def target_for(self, tenant_id: str, generation: Generation, *, indexed: bool = True) -> EmbedTarget | None:
        """What this generation embeds with, registered where it was not; None without an endpoint."""
        return await self._targets.make(tenant_id, generation, indexed=indexed)

    async def probe(self, tenant_id: str, generation: Generation) -> None:
        """Ask the generation's endpoint for a vector now, past every cache and breaker. Raises EndpointFault or
        ModelUnusable where none comes, or one of another length than its vectors have."""
        target = await self._targets.make(tenant_id, generation, indexed=False)
        if target is not None:
            await self._targets.probe(target)

    async def embed_versions(
        self,
        tenant_id: str,
        version_ids: Sequence[str],
        *,
        generation_id: str | None = None,
        on_progress: OnProgress = lambda done: None,
    ) -> EmbedResult:
        """Embed what is pending of these versions, under the live generation or the given one; how they stand then.

        Idempotent, and harmless beside another embedder of the same versions. Raises EndpointFault when the endpoint
        is at fault; a text at fault counts an attempt for its version, which the fifth one fails.
        """
        async with connection(self._pool) as conn:
            generation = await derivations.generation(conn, tenant_id, generation_id)
            if generation is None:
                return EmbedResult()
            before = await derivations.counts(conn, tenant_id, generation.id, version_ids)
            if before.pending and generation.recipe.embed is None:
                await derivations.mark_not_configured(conn, tenant_id, generation.id, version_ids)
            elif before.pending:
                await derivations.hold(conn, tenant_id, generation.id, version_ids)
        if before.pending and generation.recipe.embed is not None:
            await self._pass(tenant_id, generation, version_ids, on_progress)
        async with connection(self._pool) as conn:
            after = await derivations.counts(conn, tenant_id, generation.id, version_ids)
        return EmbedResult(
            embedded=after.embedded,
            pending=after.pending,
            failed=after.failed,
            not_configured=after.not_configured,
        )

    async def _pass(
        self, tenant_id: str, generation: Generation, version_ids: Sequence[str], on_progress: OnProgress
    ) -> None:
        try:
            target = await self._targets.make(tenant_id, generation)
        except ModelUnusable as unusable:
            # Nothing that is retried makes its vectors fit; visible, and driven again by a re-embed or a transform.
            async with connection(self._pool) as conn:
                await derivations.fail(conn, tenant_id, generation.id, version_ids, unusable.detail)
            return
        if target is None:
            return
        embed_pass = EmbedPass(self._pool, target, version_ids, self._settings.embed_batch_size, on_progress)
        try:
            await embed_pass.run()
        finally:
            if embed_pass.faults:
                await self._record_faults(target, embed_pass.faults)

    async def _record_faults(self, target: EmbedTarget, reasons: dict[str, str]) -> None:
        async def work(conn: Connection) -> None:
            await derivations.record_faults(conn, target.tenant_id, target.generation_id, reasons)

        await in_transaction(self._pool, work)


async def _in_time(target: EmbedTarget, texts: list[str], within: float, breaker: Breaker) -> Sequence[Outcome]:
    """Adds take the background lane, behind queries, and have a breaker of their own: an endpoint too slow for adds
    of many chunks may well be fast enough for a query."""
    with breaker.guard():
        try:
            async with asyncio.timeout(within):
                return await target.embedder.embed_texts(texts)
        except TimeoutError:
            raise EndpointTimeout(
                f"The model endpoint at {target.embedder.client.endpoint.name} did not answer within {within:g} s."
            ) from None
