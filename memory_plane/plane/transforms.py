"""Transform configs and runs: a recipe becomes a generation of its own, built beside the one that serves."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import asyncpg
from pydantic import ValidationError

from memory_plane.contracts.enums import GenerationState, RunStatus
from memory_plane.contracts.errors import Conflict, FieldError, Invalid, NotFound, Unavailable
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.recipe import Recipe
from memory_plane.contracts.transforms import Failures, Reopened, Standing, StepInput, TransformScope
from memory_plane.contracts.validation import field_errors
from memory_plane.core.base_url import BaseUrlRefused, normalize_base_url
from memory_plane.core.text import is_blank, is_storable
from memory_plane.models.errors import ModelUnusable
from memory_plane.plane.deriving import derivation_filter, generation_not_found
from memory_plane.plane.embedding import Embedding
from memory_plane.settings import Settings
from memory_plane.store import derivations, generations, transforms
from memory_plane.store.database import Connection, Pool, connection, in_transaction
from memory_plane.store.embed_models import model_by_key
from memory_plane.store.generations import GenerationRow, Held
from memory_plane.store.live_generation import make_first_generation
from memory_plane.store.model_tables import BuildProgress, build_index
from memory_plane.store.transforms import TransformConfig, TransformRun

MAX_NAME_CHARS = 200
CREATE_ATTEMPTS = 100
"""Each attempt that finds its version taken has let another creator of the same name through."""
LISTED_FAILURES = 100
LONGEST_SENTENCE = 1000

BUILDING, FAILED, STAGED = GenerationState.BUILDING, GenerationState.FAILED, GenerationState.STAGED
CANCELLED = "Cancelled by an operator; it goes on where it stopped when its failures are retried."


class Transforms:
    def __init__(self, pool: Pool, settings: Settings, embedding: Embedding) -> None:
        self._pool = pool
        self._settings = settings
        self._embedding = embedding

    # Configs

    async def create_config(self, tenant_id: str, name: str, params: Mapping[str, Any]) -> TransformConfig:
        """The next version of the recipe of that name. Raises Invalid, naming each knob that is wrong."""
        if is_blank(name) or not is_storable(name) or len(name) > MAX_NAME_CHARS:
            raise Invalid(f"A config's name has 1 to {MAX_NAME_CHARS} printable characters.", code="config_name")
        self.recipe(params)
        for _ in range(CREATE_ATTEMPTS):
            async with connection(self._pool) as conn:
                created = await transforms.create_config(conn, tenant_id, name, params)
            if created is not None:
                return created
        raise Unavailable("Too many create this config at the same time; try again.", code="lock_conflict")

    async def configs(self, tenant_id: str) -> Sequence[TransformConfig]:
        async with connection(self._pool) as conn:
            return await transforms.configs(conn, tenant_id)

    async def delete_config(self, tenant_id: str, config_id: str) -> None:
        """Delete a recipe that no run was made of. Raises NotFound and Conflict."""

        async def work(conn: Connection) -> None:
            if await transforms.config(conn, tenant_id, config_id) is None:
                raise config_not_found()
            if not await transforms.delete_config(conn, tenant_id, config_id):
                raise _config_in_use()

        try:
            await in_transaction(self._pool, work)
        except asyncpg.ForeignKeyViolationError:
            raise _config_in_use() from None

    def recipe(self, params: Mapping[str, Any]) -> Recipe:
        """The whole recipe that these params make over the engine's configuration. Raises Invalid."""
        try:
            recipe = Recipe.merged_over(dict(params), self._settings.default_recipe())
        except ValidationError as error:
            raise _bad_recipe(field_errors(error.errors(include_url=False, include_input=False), Recipe)) from None
        return recipe.model_copy(
            update={
                part: given.model_copy(update={"base_url": _base_url(part, given.base_url)})
                for part in ("embed", "rerank")
                if (given := getattr(recipe, part)) is not None
            }
        )

    # Runs

    async def create_run(
        self, tenant_id: str, config_id: str, scope: TransformScope | None = None, *, run_id: str | None = None
    ) -> str:
        """A run of this config, and its generation, to be built; its id. With `run_id` creating it again is harmless.

        Raises NotFound and Invalid.
        """
        run_id = run_id or new_id(IdKind.TRANSFORM_RUN)

        async def work(conn: Connection) -> str:
            config = await transforms.config(conn, tenant_id, config_id)
            if config is None:
                raise config_not_found()
            if await generations.live_row(conn, tenant_id) is None:
                await make_first_generation(conn, tenant_id, self._settings.default_recipe())
            await generations.insert(conn, tenant_id, run_id, self.recipe(config.params))
            await transforms.insert_run(conn, tenant_id, run_id, config_id, scope or TransformScope())
            return run_id

        return await in_transaction(self._pool, work)

    async def prepare(self, tenant_id: str, run_id: str) -> Standing:
        """Register the recipe's model, its table to be indexed after it is filled, and settle where the walk ends.

        A model that cannot be used fails the run. Raises the EndpointFault of an endpoint that is down.
        """
        generation, run = await self._of(tenant_id, run_id)
        if generation.state is not BUILDING:
            return await self.standing(tenant_id, run_id)
        try:
            await self._ready_model(tenant_id, generation)
        except ModelUnusable as unusable:
            return await self.fail(tenant_id, run_id, unusable.detail)
        if run.walk_goal is None:
            async with connection(self._pool) as conn:
                goal = await generations.head(conn, tenant_id)
                wanted = await derivation_filter(conn, tenant_id, generation)
                total = await generations.derivable_total(conn, tenant_id, wanted)
                await transforms.begin_walk(conn, tenant_id, run_id, goal, total)
        return await self.standing(tenant_id, run_id)

    async def _ready_model(self, tenant_id: str, generation: GenerationRow) -> None:
        embed = generation.recipe.embed
        if embed is None:
            return
        if embed.api_key_env is not None and self._settings.secret(embed.api_key_env) is None:
            raise ModelUnusable(
                f"The recipe takes its key from {embed.api_key_env}, which is not set here; set it for worker and API, "
                "restart them, and retry."
            )
        async with connection(self._pool) as conn:
            known = await derivations.generation(conn, tenant_id, generation.id)
        if known is not None:
            await self._embedding.target_for(tenant_id, known, indexed=False)

    async def build_index(
        self, tenant_id: str, generation_id: str, on_progress: Callable[[BuildProgress], None]
    ) -> bool:
        """Index the table of the generation's model, unless it is; whether it was built now."""
        async with connection(self._pool) as conn:
            generation = await generations.generation_row(conn, tenant_id, generation_id)
            if generation is None:
                raise generation_not_found()
            if generation.model_key is None:
                return False
            model = await model_by_key(conn, tenant_id, generation.model_key)
        if model is None:
            return False
        return await build_index(self._settings.direct_dsn, model.table, model.dims, on_progress)

    async def finish(self, tenant_id: str, run_id: str) -> Standing:
        """End a walk that has come to its goal: completed and staged without failures, else failed. Idempotent.

        One that has not come there, or has vectors to come, stays as it is.
        """

        async def work(conn: Connection) -> None:
            generation = await generations.generation_row(conn, tenant_id, run_id)
            run = await transforms.run(conn, tenant_id, run_id)
            if generation is None or run is None or run.walk_goal is None or generation.caught_up_to < run.walk_goal:
                return
            if (await generations.pending(conn, tenant_id, run_id)).total:
                return
            failed = await transforms.failure_total(conn, tenant_id, run_id)
            error = None
            if failed:
                (first,) = await transforms.failures(conn, tenant_id, run_id, limit=1)
                error = f"{failed} versions would not derive; the first, {first.version_id}: {first.error}"
            status = RunStatus.FAILED if failed else RunStatus.COMPLETED
            await _end(conn, tenant_id, run_id, status, error)

        await in_transaction(self._pool, work)
        return await self.standing(tenant_id, run_id)

    async def fail(self, tenant_id: str, run_id: str, reason: str) -> Standing:
        """End a running run as failed, for this reason (a sentence without content). Idempotent."""

        async def work(conn: Connection) -> None:
            await _end(conn, tenant_id, run_id, RunStatus.FAILED, reason)

        await in_transaction(self._pool, work)
        return await self.standing(tenant_id, run_id)

    async def reopen(self, tenant_id: str, run_id: str) -> Reopened:
        """A failed run goes on: what would not embed is pending again, and what would not derive is tried again by
        steps with the `retry_before` that is answered. Raises Conflict for a run that has completed."""

        async def work(conn: Connection) -> datetime:
            moment = await generations.now(conn)
            if not await transforms.reopen_run(conn, tenant_id, run_id):
                known = await transforms.run(conn, tenant_id, run_id)
                if known is None:
                    raise generation_not_found()
                if known.status is RunStatus.RUNNING:
                    return moment
                raise Conflict("This run has completed; there is nothing to retry.", code="run_not_failed")
            if not await generations.change_state(conn, tenant_id, run_id, [FAILED], BUILDING):
                raise Conflict(
                    "This run's generation has been discarded; start another run.", code="generation_retired"
                )
            await generations.redrive_failed(conn, tenant_id, run_id)
            return moment

        retry_before = await in_transaction(self._pool, work)
        return Reopened(standing=await self.standing(tenant_id, run_id), retry_before=retry_before)

    async def standing(self, tenant_id: str, run_id: str) -> Standing:
        """How the run stands. Raises NotFound."""
        generation, run = await self._of(tenant_id, run_id)
        async with connection(self._pool) as conn:
            left = await generations.pending(conn, tenant_id, run_id)
            head = await generations.head(conn, tenant_id)
            failed = await transforms.failure_total(conn, tenant_id, run_id)
            # Once it has served, what it holds is not the run's doing alone.
            held = Held(run.version_count, run.chunk_count)
            if generation.state is not BUILDING:
                held = await generations.held(conn, tenant_id, run_id)
            archived = None
            if run.archived_live_generation is not None:
                archived = await generations.generation_row(conn, tenant_id, run.archived_live_generation)
        embed = generation.recipe.embed
        return Standing(
            tenant_id=tenant_id,
            run_id=run_id,
            state=generation.state,
            status=run.status,
            versions=held.versions,
            chunks=held.chunks,
            failed=failed,
            pending=left.total,
            total=run.walk_total,
            lag=0 if generation.state is GenerationState.LIVE else max(0, head - generation.caught_up_to),
            goal=run.walk_goal,
            scoped=not run.scope.is_empty,
            error=run.error,
            model=embed.model if embed else None,
            endpoint=embed.base_url if embed else None,
            archived=run.archived_live_generation,
            archived_state=archived.state if archived else None,
            promoted_at=run.promoted_at,
            review=run.review,
        )

    async def overview(self, tenant_id: str) -> list[dict[str, Any]]:
        """Every generation of the tenant, the newest first, as the command line and its JSON show them."""
        async with connection(self._pool) as conn:
            found = await generations.generation_rows(conn, tenant_id)
            by_run = {run.id: run for run in await transforms.runs(conn, tenant_id)}
            head = await generations.head(conn, tenant_id)
            held = {row.id: await generations.held(conn, tenant_id, row.id) for row in found}
            left = {row.id: (await generations.pending(conn, tenant_id, row.id)).total for row in found}
            failed = {row.id: await transforms.failure_total(conn, tenant_id, row.id) for row in found}
        return [_shown(row, by_run.get(row.id), head, held[row.id], left[row.id], failed[row.id]) for row in found]

    async def runs(self, tenant_id: str) -> Sequence[TransformRun]:
        async with connection(self._pool) as conn:
            return await transforms.runs(conn, tenant_id)

    async def failures(self, tenant_id: str, generation_id: str) -> Failures:
        """What would not derive under this generation and is not forgotten."""
        async with connection(self._pool) as conn:
            count = await transforms.failure_total(conn, tenant_id, generation_id)
            listed = await transforms.failures(conn, tenant_id, generation_id, limit=LISTED_FAILURES)
        return Failures(
            count=count,
            version_ids=[failure.version_id for failure in listed],
            first_error=listed[0].error[:LONGEST_SENTENCE] if listed else None,
        )

    async def _of(self, tenant_id: str, run_id: str) -> tuple[GenerationRow, TransformRun]:
        async with connection(self._pool) as conn:
            generation = await generations.generation_row(conn, tenant_id, run_id)
            run = await transforms.run(conn, tenant_id, run_id)
        if generation is None or run is None:
            raise generation_not_found()
        return generation, run


def _shown(
    generation: GenerationRow, run: TransformRun | None, head: int, held: Held, pending: int, failed: int
) -> dict[str, Any]:
    embed = generation.recipe.embed
    behind = generation.state not in (GenerationState.LIVE, GenerationState.RETIRED)
    return {
        "generation": generation.id,
        "state": generation.state.value,
        "status": run.status.value if run else None,
        "config": run.config_id if run else None,
        "model": embed.model if embed else None,
        "endpoint": embed.base_url if embed else None,
        "dims": generation.dims,
        "versions": held.versions,
        "total": run.walk_total if run else None,
        "chunks": held.chunks,
        "pending": pending,
        "failed": failed,
        "lag": max(0, head - generation.caught_up_to) if behind else 0,
        "error": run.error if run else None,
        "archived": run.archived_live_generation if run else None,
        "promotedAt": run.promoted_at if run else None,
        "review": run.review.model_dump(mode="json") if run and run.review else None,
    }


def step_input(standing: Standing, **values: Any) -> StepInput:
    """The step with which a run's walk goes on."""
    return StepInput(tenant_id=standing.tenant_id, generation=standing.run_id, upto=standing.goal, **values)


async def _end(conn: Connection, tenant_id: str, run_id: str, status: RunStatus, error: str | None) -> None:
    state = STAGED if status is RunStatus.COMPLETED else FAILED
    if await generations.change_state(conn, tenant_id, run_id, [BUILDING], state):
        sentence = error[:LONGEST_SENTENCE] if error else None
        await transforms.finish_run(conn, tenant_id, run_id, status, sentence)


def _config_in_use() -> Conflict:
    return Conflict("A run was made of this config, which says what its generation is; it stays.", code="config_in_use")


def config_not_found() -> NotFound:
    return NotFound(
        "The tenant has no config of this id; `memory transform config list --tenant T` shows them.",
        code="config_not_found",
    )


def _bad_recipe(errors: Sequence[FieldError]) -> Invalid:
    named = "; ".join(f"{error.field or 'the recipe'} {error.message}" for error in errors[:3])
    return Invalid(f"The recipe is not valid: {named}.", code="recipe_invalid", errors=errors)


def _base_url(part: str, url: str) -> str:
    try:
        return normalize_base_url(url)
    except BaseUrlRefused as refused:
        raise _bad_recipe([FieldError(f"{part}.baseUrl", str(refused))]) from None
