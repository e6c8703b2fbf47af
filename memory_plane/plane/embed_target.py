"""From a generation to what embeds for it: its registered model, its table, and the shared client of its endpoint."""

import time
from dataclasses import dataclass

from memory_plane.contracts.errors import Conflict
from memory_plane.contracts.recipe import EmbedRecipe
from memory_plane.models.embedder import Embedder
from memory_plane.models.endpoint import Endpoint
from memory_plane.models.errors import EndpointMisconfigured
from memory_plane.models.pool import ModelPool
from memory_plane.settings import Settings
from memory_plane.store import derivations
from memory_plane.store.database import Connection, Pool, connection
from memory_plane.store.derivations import Generation
from memory_plane.store.embed_models import EmbedModel, ModelProbe, model_by_key, model_for, pin_generation
from memory_plane.store.model_tables import register_model

REMEMBER_SECONDS = 10.0
"""How long a process trusts what it knows of a generation; an endpoint that has moved is found after that."""
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class EmbedTarget:
    """A generation that has a model with a table. `embedder` is shared by the process."""

    tenant_id: str
    generation_id: str
    recipe: EmbedRecipe
    model: EmbedModel
    embedder: Embedder

    @property
    def table(self) -> str:
        return self.model.table


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a generation embeds with. `recipe` None: no endpoint is configured. `target` None beside a recipe: the
    model is not registered yet, which the worker does."""

    generation_id: str
    recipe: EmbedRecipe | None
    target: EmbedTarget | None


class EmbedTargets:
    """Resolves generations, for searches and adds from memory where it can."""

    def __init__(self, pool: Pool, settings: Settings, models: ModelPool) -> None:
        self._pool = pool
        self._settings = settings
        self._models = models
        self._known: dict[tuple[str, str], tuple[float, Resolution]] = {}

    async def resolve(self, tenant_id: str, generation_id: str) -> Resolution | None:
        """None for a generation that the tenant does not have. What is not complete yet is never remembered."""
        known = self._known.get((tenant_id, generation_id))
        if known is not None and known[0] > time.monotonic():
            return known[1]
        async with connection(self._pool) as conn:
            generation = await derivations.generation(conn, tenant_id, generation_id)
            if generation is None:
                return None
            resolution = await self._look_up(conn, tenant_id, generation)
        if resolution.target is not None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[tenant_id, generation_id] = (time.monotonic() + REMEMBER_SECONDS, resolution)
        return resolution

    async def make(self, tenant_id: str, generation: Generation, *, indexed: bool = True) -> EmbedTarget | None:
        """The target, its model registered and its table made where they were not; None without an endpoint.

        The worker's alone: it asks the endpoint and issues DDL. Raises EndpointFault, ModelUnusable, Unavailable.
        """
        if generation.recipe.embed is None:
            return None
        async with connection(self._pool) as conn:
            found = (await self._look_up(conn, tenant_id, generation)).target
        if found is not None and found.model.tenant_id == tenant_id and generation.model_key is not None:
            return found
        model = await self.register(tenant_id, generation.recipe.embed, found.model if found else None, indexed=indexed)
        async with connection(self._pool) as conn:
            await pin_generation(conn, tenant_id, generation.id, model)
        return self._target(tenant_id, generation.id, generation.recipe.embed, model)

    async def register(
        self, tenant_id: str, recipe: EmbedRecipe, known: EmbedModel | None = None, *, indexed: bool = True
    ) -> EmbedModel:
        """The tenant's row for the recipe's model. The endpoint is asked for its dims unless `known` has them."""
        if known is None:
            dims = await self._models.dims_of(self._endpoint(recipe, recipe.base_url))
            probe = ModelProbe(recipe.base_url, recipe.model, recipe.style, dims)
        else:
            probe = ModelProbe(known.base_url, known.model, known.style, known.dims)
        try:
            return await register_model(self._settings.direct_dsn, tenant_id, probe, indexed=indexed)
        except Conflict as conflict:
            # For the operator to put right at the endpoint; until then retrying costs a probe now and then.
            raise EndpointMisconfigured(conflict.detail) from None

    async def probe(self, target: EmbedTarget) -> None:
        """Ask the endpoint for a vector; raises EndpointFault where none of the right length comes."""
        dims = await self._models.dims_of(self._endpoint(target.recipe, target.model.base_url))
        if dims != target.model.dims:
            raise EndpointMisconfigured(
                f"The model {target.model.model!r} now answers vectors of {dims} dimensions, and those stored have "
                f"{target.model.dims}: another model is served under its name."
            )

    async def _look_up(self, conn: Connection, tenant_id: str, generation: Generation) -> Resolution:
        recipe = generation.recipe.embed
        if recipe is None:
            return Resolution(generation.id, None, None)
        if generation.model_key is not None:
            model = await model_by_key(conn, tenant_id, generation.model_key)
        else:
            model = await model_for(conn, tenant_id, recipe.base_url, recipe.model)
        target = self._target(tenant_id, generation.id, recipe, model) if model is not None else None
        return Resolution(generation.id, recipe, target)

    def _target(self, tenant_id: str, generation_id: str, recipe: EmbedRecipe, model: EmbedModel) -> EmbedTarget:
        embedder = self._models.embedder(self._endpoint(recipe, model.base_url), model.dims)
        return EmbedTarget(tenant_id, generation_id, recipe, model, embedder)

    def _endpoint(self, recipe: EmbedRecipe, base_url: str) -> Endpoint:
        return Endpoint(
            base_url,
            recipe.model,
            recipe.style.value,
            self._settings.secret(recipe.api_key_env),
            self._settings.embed_timeout_ms / 1000,
        )
