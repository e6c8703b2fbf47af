"""Deriving under another recipe than live's: stored payloads become chunks of a generation, page by page.

What has been done is in the rows alone: how far the generation has walked the feed, what has a derivation, what of it
has vectors, what failed. So any page may be run twice, beside itself, or after a crash, and nothing is lost or doubled.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from memory_plane.contracts.enums import EmbedState
from memory_plane.contracts.errors import Invalid, NotFound
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.recipe import Recipe
from memory_plane.contracts.transforms import StepInput, StepResult, TransformScope
from memory_plane.contracts.validation import invalid
from memory_plane.contracts.wire import AddFields
from memory_plane.core.planning import plan
from memory_plane.core.text import clean_json
from memory_plane.plane.capture_request import source_document
from memory_plane.plane.embed_pass import OnProgress
from memory_plane.plane.embedding import Embedding
from memory_plane.store import derivations, deriving, generations, transforms
from memory_plane.store.captures import NewChunk
from memory_plane.store.database import Connection, Pool, connection, in_transaction
from memory_plane.store.deriving import DerivedVersion, StoredPayload
from memory_plane.store.generations import Candidate, Filter, GenerationRow
from memory_plane.store.locks import share_documents

PAGE_VERSIONS = 200
PAGE_BYTES = 4_000_000
"""Of payloads in memory at a time; a larger one is a page of its own."""
WRITE_VERSIONS = 20
WRITE_BYTES = 500_000
"""In one transaction, which keeps writers of its documents waiting."""
MOST_PENDING = 500
"""Derivations without vectors beyond which the endpoint is waited for before more is derived."""
SHORT_PAGE = 32
"""Versions; a page of so few is the end of a walk, or near it."""
LONGEST_REASON = 300


@dataclass
class Planned:
    """What stored payloads say under a recipe; `reasons`, by version, where one cannot be planned."""

    versions: list[DerivedVersion] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)


def plan_payloads(payloads: Sequence[StoredPayload], recipe: Recipe) -> Planned:
    """Pure, and long for long texts. A payload comes from storage, and is checked as if it came from outside."""
    planned = Planned()
    for payload in payloads:
        try:
            chunks = _chunks(payload, recipe)
        except Invalid as refusal:
            planned.reasons[payload.version_id] = refusal.detail[:LONGEST_REASON]
        else:
            planned.versions.append(DerivedVersion(payload.version_id, payload.document_id, chunks))
    return planned


def _chunks(payload: StoredPayload, recipe: Recipe) -> list[NewChunk]:
    raw = payload.raw if isinstance(payload.raw, str) else payload.raw.decode("utf-8", "surrogatepass")
    try:
        item = AddFields.model_validate(clean_json(json.loads(raw)))
    except ValidationError as error:
        raise Invalid(f"The stored payload is none that an add accepts: {invalid(error, AddFields).detail}") from None
    except ValueError:
        raise Invalid("The stored payload is not JSON.") from None
    except RecursionError:
        raise Invalid("The stored payload is nested too deeply to be read.") from None
    planned = plan(source_document(item, external_ref=payload.external_ref), recipe)
    return [
        NewChunk(
            id=new_id(IdKind.CHUNK),
            text=chunk.text,
            context=chunk.context,
            grams=chunk.grams,
            span_start=chunk.start,
            span_end=chunk.end,
            token_count=chunk.token_count,
            role=chunk.role,
        )
        for chunk in planned.chunks
    ]


async def derivation_filter(conn: Connection, tenant_id: str, generation: GenerationRow) -> Filter:
    """What this generation derives. A tenant's first one, which no run made, has everything that was captured under
    it; so it gets everything that came since."""
    run = await transforms.run(conn, tenant_id, generation.id)
    if run is None:
        return Filter(TransformScope(), history=True)
    return Filter(run.scope, generation.recipe.history)


def embed_state(recipe: Recipe) -> EmbedState:
    return EmbedState.PENDING if recipe.embed else EmbedState.NOT_CONFIGURED


async def write_planned(
    conn: Connection, tenant_id: str, generation: GenerationRow, planned: Planned
) -> deriving.Written:
    """Write a plan in the running transaction, under its documents' locks; nothing where the generation has retired."""
    await share_documents(conn, tenant_id, {each.document_id for each in planned.versions})
    if not await deriving.keep_open(conn, tenant_id, generation.id):
        return deriving.Written(0, 0)
    written = await deriving.write(conn, tenant_id, generation.id, planned.versions, embed_state(generation.recipe))
    if planned.reasons:
        await deriving.record_failures(conn, tenant_id, generation.id, planned.reasons)
    return written


class Deriving:
    def __init__(self, pool: Pool, embedding: Embedding) -> None:
        self._pool = pool
        self._embedding = embedding

    async def step(self, given: StepInput, on_progress: OnProgress = lambda done: None) -> StepResult:
        """Derive the next page of what the generation has not, while the page before is embedded; how it stands then.

        Raises NotFound, and the EndpointFault of an endpoint that is down, after the deriving is done.
        """
        async with connection(self._pool) as conn:
            generation = await generations.generation_row(conn, given.tenant_id, given.generation)
            if generation is None:
                raise generation_not_found()
            waiting = await generations.pending(conn, given.tenant_id, generation.id)
        embedding = self._embed(given, on_progress) if given.embed and waiting.total else _nothing()
        full = given.embed and waiting.total > MOST_PENDING
        derived, embedded = await asyncio.gather(
            _no_page() if full else self._derive(given, generation), embedding, return_exceptions=True
        )
        for outcome in (embedded, derived):
            if isinstance(outcome, BaseException):
                raise outcome
        assert isinstance(derived, _Page) and isinstance(embedded, _Embedded)  # noqa: S101 - said to the type checker
        if given.embed and 0 < derived.versions <= SHORT_PAGE:
            # What was never tried is not known to embed: a short page is tried at once, so that no cut overtakes it.
            again = await self._embed(given, on_progress)
            embedded = _Embedded(embedded.embedded + again.embedded, embedded.failed + again.failed)
        return await self._standing(given, derived, embedded)

    async def _standing(self, given: StepInput, derived: "_Page", embedded: "_Embedded") -> StepResult:
        tenant = given.tenant_id
        async with connection(self._pool) as conn:
            generation = await generations.generation_row(conn, tenant, given.generation)
            if generation is None:
                raise generation_not_found()
            left = await generations.pending(conn, tenant, generation.id)
            head = await generations.head(conn, tenant)
            run = await transforms.run(conn, tenant, generation.id)
            failed = await transforms.failure_total(conn, tenant, generation.id)
            retrying: Sequence[str] = ()
            if given.retry_before is not None:
                retrying = await transforms.underived_failures(
                    conn, tenant, generation.id, given.retry_before, PAGE_VERSIONS
                )
        return StepResult(
            derived=derived.versions,
            chunks=derived.chunks,
            embedded=embedded.embedded,
            failed=derived.failed + embedded.failed,
            pending=left.total,
            unsettled=left.unsettled,
            retrying=len(retrying),
            behind=max(0, head - generation.caught_up_to),
            walked_to=generation.caught_up_to,
            total_versions=run.version_count if run else 0,
            total_chunks=run.chunk_count if run else 0,
            total_failed=failed,
        )

    async def _derive(self, given: StepInput, generation: GenerationRow) -> "_Page":
        page = _Page()
        if given.retry_before is not None:
            async with connection(self._pool) as conn:
                failed = await transforms.underived_failures(
                    conn, given.tenant_id, generation.id, given.retry_before, PAGE_VERSIONS
                )
            if failed:
                await self._derive_versions(given.tenant_id, generation, failed, page)
                return page
        async with connection(self._pool) as conn:
            upto, wanted = await self._next(conn, given, generation)
        for portion in portions(wanted, PAGE_VERSIONS, PAGE_BYTES):
            ids = [candidate.version_id for candidate in portion]
            await self._derive_versions(given.tenant_id, generation, ids, page)
            await self._walked(given.tenant_id, generation.id, portion[-1].position)
        await self._walked(given.tenant_id, generation.id, upto)
        return page

    async def _next(self, conn: Connection, given: StepInput, generation: GenerationRow) -> tuple[int, list[Candidate]]:
        tenant_id, after = given.tenant_id, generation.caught_up_to
        # The counter first: whatever has a position up to it has committed, and is seen by the statements after.
        head = await generations.head(conn, tenant_id)
        goal = head if given.upto is None else min(head, given.upto)
        if goal <= after:
            return after, []
        upto = await generations.reach(conn, tenant_id, after, goal, PAGE_VERSIONS)
        wanted = await derivation_filter(conn, tenant_id, generation)
        return upto, await generations.candidates(conn, tenant_id, generation.id, wanted, after, upto)

    async def _derive_versions(
        self, tenant_id: str, generation: GenerationRow, version_ids: Sequence[str], page: "_Page"
    ) -> None:
        async with connection(self._pool) as conn:
            payloads = await deriving.payloads(conn, tenant_id, version_ids)
        planned = await asyncio.to_thread(plan_payloads, payloads, generation.recipe)
        sizes = {payload.version_id: len(payload.raw) for payload in payloads}
        group: list[DerivedVersion] = []
        for version in planned.versions:
            weight = sum(sizes[each.version_id] for each in group) + sizes[version.version_id]
            if group and (len(group) == WRITE_VERSIONS or weight > WRITE_BYTES):
                await self._write(tenant_id, generation, Planned(group), page)
                group = []
            group.append(version)
        await self._write(tenant_id, generation, Planned(group, planned.reasons), page)

    async def _write(self, tenant_id: str, generation: GenerationRow, planned: Planned, page: "_Page") -> None:
        async def work(conn: Connection) -> deriving.Written:
            return await write_planned(conn, tenant_id, generation, planned)

        written = await in_transaction(self._pool, work)
        page.versions += written.versions
        page.chunks += written.chunks
        page.failed += len(planned.reasons)

    async def _walked(self, tenant_id: str, generation_id: str, position: int) -> None:
        async with connection(self._pool) as conn:
            await generations.walked(conn, tenant_id, generation_id, position)

    async def _embed(self, given: StepInput, on_progress: OnProgress) -> "_Embedded":
        tenant, generation_id = given.tenant_id, given.generation
        async with connection(self._pool) as conn:
            versions = await derivations.page(conn, tenant, generation_id, [EmbedState.PENDING], limit=PAGE_VERSIONS)
        result = await self._embedding.embed_versions(
            tenant, versions, generation_id=generation_id, on_progress=on_progress
        )
        async with connection(self._pool) as conn:
            failed = await deriving.settle_embeds(conn, tenant, generation_id, versions)
        return _Embedded(result.embedded, failed)


@dataclass
class _Page:
    versions: int = 0
    chunks: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class _Embedded:
    embedded: int = 0
    failed: int = 0


async def _nothing() -> _Embedded:
    return _Embedded()


async def _no_page() -> _Page:
    return _Page()


def portions(candidates: Sequence[Candidate], most: int, most_bytes: int) -> list[list[Candidate]]:
    """In order, each of at most so many versions and bytes, and of one version at least."""
    found: list[list[Candidate]] = []
    weight = 0
    for candidate in candidates:
        if not found or len(found[-1]) == most or weight + candidate.size > most_bytes:
            found.append([])
            weight = 0
        found[-1].append(candidate)
        weight += candidate.size
    return found


def generation_not_found() -> NotFound:
    return NotFound(
        "The tenant has no generation of this id; `memory transform status --tenant T` shows those it has.",
        code="generation_not_found",
    )
