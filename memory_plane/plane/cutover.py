"""Moving the pointer: what may be promoted or demoted, and the one short transaction that does it and loses no write.

Before it the target is caught up with while adds flow; in it captures are kept out, the last few versions are derived
(chunks alone, no network) and the two generations change places.
"""

import asyncio
import random
import time

from memory_plane.contracts.enums import GenerationState, RunStatus
from memory_plane.contracts.errors import Conflict, PlaneError, Unavailable
from memory_plane.contracts.transforms import CutoverInput, CutPlan, CutResult, Cutting
from memory_plane.models.errors import EndpointFault, ModelUnusable
from memory_plane.plane.deriving import derivation_filter, generation_not_found, plan_payloads, write_planned
from memory_plane.plane.embedding import Embedding
from memory_plane.store import cutover, derivations, deriving, generations, transforms
from memory_plane.store.database import LOCK_CONFLICTS, Connection, Pool, connection, in_transaction, transaction
from memory_plane.store.embed_models import model_by_key
from memory_plane.store.generations import Candidate, GenerationRow
from memory_plane.store.locks import own_cutover

LIVE, STAGED, ARCHIVED = GenerationState.LIVE, GenerationState.STAGED, GenerationState.ARCHIVED
MOST_IN_CUT = 16
"""Versions that are derived while captures are kept out; more are caught up with first."""
MOST_BYTES_IN_CUT = 64_000
CUT_ATTEMPTS = 40
LOCK_MS = 100
"""How long the cut waits for captures in flight: new ones queue behind it meanwhile. So it waits briefly, and often."""
STATEMENT_MS = 2_000


class Behind(Exception):
    """Too much has come since the catch-up to be derived within the cut."""

    def __init__(self, versions: int) -> None:
        self.versions = versions


class Cutover:
    def __init__(self, pool: Pool, embedding: Embedding) -> None:
        self._pool = pool
        self._embedding = embedding

    async def check(self, kind: Cutting, given: CutoverInput) -> CutPlan:
        """Whether this may be done now. Raises Conflict or NotFound, each with a code of its own and a sentence.

        What would not embed into the target is set to be tried again.
        """
        async with connection(self._pool) as conn:
            named = await generations.generation_row(conn, given.tenant_id, given.generation)
            if named is None:
                raise generation_not_found()
            live = await generations.live_row(conn, given.tenant_id)
            if live is None:
                raise Conflict("The tenant has no live generation: nothing was captured for it.", code="nothing_live")
            if kind == "promote":
                await _may_promote(conn, given.tenant_id, named)
                target = named
            else:
                target = await _to_restore(conn, given.tenant_id, named)
        embed = await self._reachable(kind, given, target)
        return await self._plan(kind, given, target, live, embed=embed)

    async def _plan(
        self, kind: Cutting, given: CutoverInput, target: GenerationRow, live: GenerationRow, *, embed: bool
    ) -> CutPlan:
        async def work(conn: Connection) -> CutPlan:
            await generations.redrive_failed(conn, given.tenant_id, target.id)
            return CutPlan(
                kind=kind,
                tenant_id=given.tenant_id,
                target=target.id,
                source=live.id,
                source_since=live.state_at,
                begun_at=await generations.now(conn),
                embed=embed,
                allow_failed=given.allow_failed,
                lag=max(0, await generations.head(conn, given.tenant_id) - target.caught_up_to),
            )

        return await in_transaction(self._pool, work)

    async def _reachable(self, kind: Cutting, given: CutoverInput, target: GenerationRow) -> bool:
        """Whether the target's model answers, and as it did; False where it need not, by the operator's word."""
        tenant = given.tenant_id
        if target.recipe.embed is None:
            # What comes back after a demote never had vectors: it is restored as it was.
            if kind == "demote" or given.allow_partial_dense:
                return False
            raise Conflict(
                "The generation's recipe has no embed endpoint, so searches would match words alone; promote with "
                '{"allow_partial_dense": true} if that is wanted.',
                code="embed_not_configured",
            )
        try:
            async with connection(self._pool) as conn:
                await _require_model(conn, tenant, target)
                known = await derivations.generation(conn, tenant, target.id)
            if known is None:
                raise generation_not_found()
            await self._embedding.probe(tenant, known)
        except (EndpointFault, ModelUnusable, Conflict) as fault:
            if given.allow_partial_dense:
                return False
            code = fault.code if isinstance(fault, Conflict) else "embed_unreachable"
            raise Conflict(
                f"The model of generation {target.id} cannot be reached: {fault.detail} Bring its endpoint back, or "
                f'{kind} with {{"allow_partial_dense": true}}: then searches match words alone until it is.',
                code=code,
            ) from None
        return True

    async def require_derived(self, plan: CutPlan) -> int:
        """How many versions would not derive into the target. Raises Conflict where that is not allowed."""
        async with connection(self._pool) as conn:
            failed = await transforms.failure_total(conn, plan.tenant_id, plan.target)
            listed = await transforms.failures(conn, plan.tenant_id, plan.target, limit=5)
        if failed and not plan.allow_failed:
            raise catch_up_failed(failed, [(each.version_id, each.error) for each in listed])
        return failed

    async def cut(self, plan: CutPlan) -> CutResult:
        """Flip, once; where it has been done, say so. Raises Conflict where the tenant's live generation is another.

        Tries for the lock again and again, each time briefly; Unavailable when captures let it in at no time.
        """
        for attempt in range(CUT_ATTEMPTS):
            if attempt:
                await asyncio.sleep(random.uniform(0.02, 0.1))  # noqa: S311 - so that captures flow meanwhile
            began = time.perf_counter()
            try:
                async with transaction(self._pool) as conn:
                    await own_cutover(conn, plan.tenant_id, wait_ms=LOCK_MS)
                    await cutover.limit_waits(conn, LOCK_MS, STATEMENT_MS)
                    stragglers = await self._cut(conn, plan)
            except LOCK_CONFLICTS:
                continue
            except Behind as behind:
                return CutResult(flipped=False, behind=behind.versions)
            held = (time.perf_counter() - began) * 1000
            return CutResult(flipped=True, stragglers=stragglers, milliseconds=round(held, 1))
        raise Unavailable(
            "Captures of the tenant left no moment for the cut; nothing has changed. It is tried again.",
            code="lock_conflict",
            retry_after=1,
        )

    async def _cut(self, conn: Connection, plan: CutPlan) -> int:
        tenant = plan.tenant_id
        live = await generations.live_row(conn, tenant)
        target = await generations.generation_row(conn, tenant, plan.target)
        if live is not None and live.id == plan.target:
            return 0
        if live is None or (live.id, live.state_at) != (plan.source, plan.source_since):
            raise Conflict(
                "Another generation went live since this cutover was checked; look at it, and start again.",
                code="live_moved",
            )
        if target is None or target.state not in (STAGED, ARCHIVED):
            raise Conflict("The generation was retired since this cutover was checked.", code="generation_retired")
        head = await generations.head(conn, tenant)
        stragglers = await self._derive_last(conn, plan, target, head)
        down = ARCHIVED if plan.kind == "promote" else STAGED
        await cutover.flip(conn, tenant, source=live, source_becomes=down, target=target.id, head=head)
        if plan.kind == "promote":
            await cutover.promoted(conn, tenant, target.id, live)
        else:
            await cutover.demoted(conn, tenant, live.id)
        return stragglers

    async def _derive_last(self, conn: Connection, plan: CutPlan, target: GenerationRow, head: int) -> int:
        tenant = plan.tenant_id
        if await generations.reach(conn, tenant, target.caught_up_to, head, MOST_IN_CUT + 1) < head:
            raise Behind(head - target.caught_up_to)
        wanted = await derivation_filter(conn, tenant, target)
        last = await generations.candidates(conn, tenant, target.id, wanted, target.caught_up_to, head)
        if len(last) > MOST_IN_CUT or _bytes(last) > MOST_BYTES_IN_CUT:
            raise Behind(len(last))
        if not last:
            return 0
        payloads = await deriving.payloads(conn, tenant, [each.version_id for each in last])
        planned = plan_payloads(payloads, target.recipe)
        if planned.reasons and not plan.allow_failed:
            raise catch_up_failed(len(planned.reasons), list(planned.reasons.items()))
        await write_planned(conn, tenant, target, planned)
        return len(planned.versions)


async def _may_promote(conn: Connection, tenant_id: str, named: GenerationRow) -> None:
    if named.state is LIVE:
        raise Conflict("This generation is the live one already.", code="generation_is_live")
    if named.state is GenerationState.RETIRED:
        raise Conflict(
            "This generation is retired: its chunks are deleted. Run a transform again.", code="generation_retired"
        )
    run = await transforms.run(conn, tenant_id, named.id)
    if run is not None and not run.scope.is_empty:
        raise Conflict(
            "This run was scoped, so its generation does not hold the whole tenant: what is outside of the scope would "
            "vanish. Run the config without a scope, and promote that.",
            code="run_scoped",
        )
    completed = run is None or run.status is RunStatus.COMPLETED
    if not completed or named.state not in (STAGED, ARCHIVED):
        raise Conflict(
            "This run has not completed; wait for it, or retry its failures (retry_failures).", code="run_not_completed"
        )


async def _to_restore(conn: Connection, tenant_id: str, named: GenerationRow) -> GenerationRow:
    """What a demote of the named generation brings back."""
    if named.state is not LIVE:
        raise Conflict(
            f"Demote names the live generation to take down, and this one is {named.state.value}.",
            code="generation_not_live",
        )
    run = await transforms.run(conn, tenant_id, named.id)
    restored = None
    if run is not None and run.archived_live_generation is not None:
        restored = await generations.generation_row(conn, tenant_id, run.archived_live_generation)
    if restored is None:
        raise Conflict(
            "This generation took over from none that is on record; promote the one that is to serve instead.",
            code="nothing_archived",
        )
    if restored.state is GenerationState.RETIRED:
        raise Conflict(
            f"Generation {restored.id}, which served before, is retired: its chunks are deleted. Run a transform with "
            "its recipe, and promote that.",
            code="archived_retired",
        )
    if restored.state not in (ARCHIVED, STAGED):
        raise Conflict(
            f"Generation {restored.id}, which served before, is {restored.state.value} and cannot come back.",
            code="nothing_archived",
        )
    return restored


async def _require_model(conn: Connection, tenant_id: str, target: GenerationRow) -> None:
    if target.model_key is not None and await model_by_key(conn, tenant_id, target.model_key) is None:
        raise Conflict("It is no longer registered, so its vectors cannot be found.", code="model_gone")


def catch_up_failed(count: int, listed: list[tuple[str, str]]) -> PlaneError:
    named = "; ".join(f"{version_id}: {error}" for version_id, error in listed[:5])
    return Conflict(
        f"{count} versions would not derive into the generation ({named}). Mend what they need and start the cutover "
        "again, which tries them again; or forget them.",
        code="catch_up_failed",
    )


def _bytes(candidates: list[Candidate]) -> int:
    return sum(candidate.size for candidate in candidates)
