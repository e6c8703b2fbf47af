"""Which generation serves a tenant, and the making of its first one."""

from dataclasses import dataclass

from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.recipe import Recipe
from memory_plane.store.database import Connection
from memory_plane.store.embed_models import model_for


@dataclass(frozen=True, slots=True)
class LiveGeneration:
    """`stamp` is another one once the row has changed: a recipe may get an endpoint in place."""

    id: str
    stamp: str
    recipe: Recipe


async def live_generation(conn: Connection, tenant_id: str) -> LiveGeneration | None:
    """None before the tenant's first capture."""
    row = await conn.fetchrow(
        "SELECT id, xmin::text AS stamp, recipe FROM memory.generation WHERE tenant_id = $1 AND state = 'live'",
        tenant_id,
    )
    return None if row is None else LiveGeneration(row["id"], row["stamp"], Recipe.model_validate(row["recipe"]))


async def make_first_generation(conn: Connection, tenant_id: str, recipe: Recipe) -> None:
    """Make the tenant's first generation live, unless somebody else has; to be read in a later statement.

    A model that is not registered yet is filled in by the tenant's first embed.
    """
    model = await model_for(conn, tenant_id, recipe.embed.base_url, recipe.embed.model) if recipe.embed else None
    await conn.execute(
        """
        INSERT INTO memory.generation (id, tenant_id, state, recipe, model_key, dims)
        VALUES ($1, $2, 'live', $3, $4, $5)
        ON CONFLICT (tenant_id) WHERE state = 'live' DO NOTHING
        """,
        new_id(IdKind.GENERATION),
        tenant_id,
        recipe.stored(),
        model.model_key if model else None,
        model.dims if model else None,
    )
