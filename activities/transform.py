"""What TransformWorkflow does to the world. The step and the index are the cutovers' too."""

from dataclasses import asdict

from temporalio import activity

from activities.cutover import running_cutover
from activities.heartbeat import heartbeating
from memory_plane.contracts.errors import Conflict
from memory_plane.contracts.transforms import (
    CutoverInput,
    CutoverRunning,
    Decide,
    IndexInput,
    IndexResult,
    NewRun,
    Reopened,
    RetireInput,
    RetireResult,
    Review,
    RunRef,
    Standing,
    StepInput,
    StepResult,
)
from memory_plane.plane.engine import Engine
from memory_plane.plane.transforms import CANCELLED


class TransformActivities:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @activity.defn(name="memory_transform_create")
    async def create(self, given: NewRun) -> RunRef:
        """Make the run and its generation. Idempotent: the workflow chose the id."""
        run_id = await self._engine.transforms.create_run(
            given.tenant_id, given.config_id, given.scope, run_id=given.run_id
        )
        return RunRef(tenant_id=given.tenant_id, run_id=run_id)

    @activity.defn(name="memory_transform_prepare")
    async def prepare(self, given: RunRef) -> Standing:
        """Register the model, make its table, settle the goal. Idempotent: each is done where it is not yet."""
        return await self._engine.transforms.prepare(given.tenant_id, given.run_id)

    @activity.defn(name="memory_transform_standing")
    async def standing(self, given: RunRef) -> Standing:
        """Read how the run stands. Idempotent: it writes nothing."""
        return await self._engine.transforms.standing(given.tenant_id, given.run_id)

    @activity.defn(name="memory_transform_step")
    async def step(self, given: StepInput) -> StepResult:
        """Derive the next page and embed the one before. Idempotent: what is derived or embedded is not done again,
        and two at once write the same."""
        async with heartbeating(0) as tell:
            return await self._engine.deriving.step(given, tell)

    @activity.defn(name="memory_build_index")
    async def build_index(self, given: IndexInput) -> IndexResult:
        """Index the model's table. Idempotent: an index there is stays, a broken one is dropped and built anew."""
        async with heartbeating() as tell:
            built = await self._engine.transforms.build_index(
                given.tenant_id, given.generation, lambda progress: tell(asdict(progress))
            )
        return IndexResult(built=built)

    @activity.defn(name="memory_transform_finish")
    async def finish(self, given: RunRef) -> Standing:
        """Complete or fail the run. Idempotent: only a building one is ended."""
        return await self._engine.transforms.finish(given.tenant_id, given.run_id)

    @activity.defn(name="memory_transform_review")
    async def review(self, given: RunRef) -> Review:
        """Compare the staged generation with live. Idempotent: a later review replaces the one before."""
        async with heartbeating():
            standing = await self._engine.transforms.standing(given.tenant_id, given.run_id)
            return await self._engine.reviewing.review(standing)

    @activity.defn(name="memory_transform_cancel")
    async def cancel(self, given: RunRef) -> Standing:
        """End the run as failed, by an operator's word. Idempotent: only a building one is ended."""
        return await self._engine.transforms.fail(given.tenant_id, given.run_id, CANCELLED)

    @activity.defn(name="memory_transform_reopen")
    async def reopen(self, given: RunRef) -> Reopened:
        """Let a failed run go on. Idempotent: one that goes on already is left to."""
        return await self._engine.transforms.reopen(given.tenant_id, given.run_id)

    @activity.defn(name="memory_transform_check")
    async def check(self, given: Decide) -> Standing:
        """May this be decided now? Each refusal has its own type. Idempotent: see the cutover's own check."""
        engine = self._engine
        if given.decision in ("promote", "demote"):
            running = await running_cutover(activity.client(), given.tenant_id)
            if running.kind is not None and (running.kind, running.generation) != (given.decision, given.run_id):
                raise Conflict(
                    f"Another cutover of the tenant is under way ({running.kind} of {running.generation}); wait for "
                    "its end, or cancel it.",
                    code="cutover_in_progress",
                )
            if running.kind is None:
                await engine.cutover.check(
                    "promote" if given.decision == "promote" else "demote",
                    CutoverInput(
                        tenant_id=given.tenant_id,
                        generation=given.run_id,
                        allow_partial_dense=given.allow_partial_dense,
                    ),
                )
        elif given.decision in ("discard", "finalize"):
            await engine.retiring.check(given)
        return await engine.transforms.standing(given.tenant_id, given.run_id)

    @activity.defn(name="memory_cutover_running")
    async def cutover_running(self, given: RunRef) -> CutoverRunning:
        """Read which cutover of the tenant is under way. Idempotent: it writes nothing."""
        return await running_cutover(activity.client(), given.tenant_id)

    @activity.defn(name="memory_retire")
    async def retire(self, given: RetireInput) -> RetireResult:
        """Retire the generation and delete what it holds, batch by batch. Idempotent: it deletes what is left."""
        async with heartbeating(0) as tell:
            await self._engine.retiring.retire(given.tenant_id, given.generation)
            chunks = await self._engine.retiring.delete(given.tenant_id, given.generation, on_progress=tell)
        return RetireResult(generation=given.generation, chunks=chunks)
