"""Where the configuration and the recipes that serve say different things. The live recipe decides: a changed
EMBED_MODEL changes nothing until a transform run is promoted, and that it changed nothing is to be known."""

from memory_plane.contracts.recipe import Recipe
from memory_plane.core.recipes import differences
from memory_plane.settings import Settings
from memory_plane.store import diagnosis
from memory_plane.store.database import Connection


async def recipe_drift(conn: Connection, settings: Settings) -> list[str]:
    """One sentence for each recipe that serves and differs; names of knobs, never values."""
    configured = settings.default_recipe()
    sentences = []
    for stored, tenants in await diagnosis.live_recipes(conn):
        differing = differences(configured, Recipe.model_validate(stored))
        if differing:
            who = "1 tenant is" if tenants == 1 else f"{tenants} tenants are"
            sentences.append(
                f"{who} served by a recipe that differs from the configuration in {', '.join(differing)}; the live "
                "recipe decides, and memory transform run changes it."
            )
    return sentences
