"""A tenant whose generations are built, promoted and demoted in process, as the workflows do it step by step."""

from dataclasses import dataclass
from typing import Any

from memory_plane.contracts.enums import EmbedState
from memory_plane.contracts.transforms import (
    CutoverInput,
    CutPlan,
    CutResult,
    Cutting,
    Standing,
    StepInput,
    StepResult,
    TransformScope,
)
from memory_plane.contracts.wire import AddFields
from memory_plane.plane.captured import Captured
from memory_plane.plane.transforms import step_input
from memory_plane.store.database import connection
from tests.search.world import World
from workflows import policies

OTHER_MODEL: dict[str, Any] = {"embed": {"model": "two"}, "chunk": {"maxTokens": 64}}


@dataclass(frozen=True)
class Tenant(World):
    async def live(self) -> str:
        found: str = await self.engine.pool.fetchval(
            "SELECT id FROM memory.generation WHERE tenant_id = $1 AND state = 'live'", self.tenant
        )
        return found

    async def state(self, generation: str) -> str:
        found: str = await self.engine.pool.fetchval("SELECT state FROM memory.generation WHERE id = $1", generation)
        return found

    async def capture(self, text: str, *, principal: str = "ann", title: str = "note", **fields: Any) -> Captured:
        """Captured, and not embedded."""
        payload = {"title": title, "text": text, **fields}
        return await self.engine.capture.capture(
            await self.visibility(principal), AddFields.model_validate(payload), payload=payload
        )

    async def embed_live(self) -> None:
        """As the ingest does it: whatever is pending under the live generation."""
        live = await self.live()
        rows = await self.engine.pool.fetch(
            "SELECT version_id FROM memory.derivation WHERE generation_id = $1 AND embed_state = 'pending'", live
        )
        await self.engine.embedding.embed_versions(self.tenant, [row["version_id"] for row in rows])

    async def forget(self, document_id: str, principal: str = "ann") -> None:
        await self.engine.retention.forget(await self.visibility(principal), document_id)

    async def run(self, params: dict[str, Any] | None = None, scope: TransformScope | None = None) -> str:
        """A run of these params, prepared."""
        config = await self.engine.transforms.create_config(
            self.tenant, "other", OTHER_MODEL if params is None else params
        )
        run_id = await self.engine.transforms.create_run(self.tenant, config.id, scope)
        await self.engine.transforms.prepare(self.tenant, run_id)
        return run_id

    async def step(self, run_id: str, **values: Any) -> StepResult:
        standing = await self.engine.transforms.standing(self.tenant, run_id)
        return await self.engine.deriving.step(step_input(standing, **values))

    async def build(self, run_id: str, **values: Any) -> Standing:
        """Step to the goal and end the run."""
        while True:
            standing = await self.engine.transforms.standing(self.tenant, run_id)
            assert standing.goal is not None
            result = await self.step(run_id, **values)
            if result.walked_to >= standing.goal and not (result.pending or result.retrying):
                break
        await self.engine.transforms.build_index(self.tenant, run_id, lambda progress: None)
        return await self.engine.transforms.finish(self.tenant, run_id)

    async def staged(self, params: dict[str, Any] | None = None) -> str:
        run_id = await self.run(params)
        standing = await self.build(run_id)
        assert standing.state == "staged", standing
        return run_id

    async def check(self, kind: Cutting, generation: str, **values: Any) -> CutPlan:
        return await self.engine.cutover.check(
            kind, CutoverInput(tenant_id=self.tenant, generation=generation, **values)
        )

    async def catch_up(self, plan: CutPlan) -> StepResult:
        while True:
            result = await self.engine.deriving.step(
                StepInput(tenant_id=self.tenant, generation=plan.target, embed=plan.embed, retry_before=plan.begun_at)
            )
            near = result.behind <= policies.CUT_WHEN_BEHIND and not result.retrying
            if near and not (plan.embed and (result.unsettled or result.pending > policies.CUT_WHEN_PENDING)):
                return result

    async def cutover(self, kind: Cutting, generation: str, **values: Any) -> CutResult:
        plan = await self.check(kind, generation, **values)
        while True:
            await self.catch_up(plan)
            await self.engine.cutover.require_derived(plan)
            result = await self.engine.cutover.cut(plan)
            if result.flipped:
                break
        if plan.embed:
            await self.embed_live()
        return result

    async def promote(self, generation: str, **values: Any) -> CutResult:
        return await self.cutover("promote", generation, **values)

    async def demote(self, generation: str, **values: Any) -> CutResult:
        return await self.cutover("demote", generation, **values)

    async def chunks(self, generation: str) -> int:
        found: int = await self.engine.pool.fetchval(
            "SELECT count(*) FROM memory.chunk WHERE generation_id = $1", generation
        )
        return found


async def embed_states(tenant: Tenant, generation: str) -> dict[str, int]:
    async with connection(tenant.engine.pool) as conn:
        rows = await conn.fetch(
            "SELECT embed_state, count(*) AS number FROM memory.derivation WHERE generation_id = $1 GROUP BY 1",
            generation,
        )
    return {EmbedState(row["embed_state"]).value: row["number"] for row in rows}
