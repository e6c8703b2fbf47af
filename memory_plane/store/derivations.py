"""What has been derived of each version, and what is still to be embedded: the embedder's durable to-do list."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from memory_plane.contracts.enums import EmbedState, GenerationState
from memory_plane.contracts.recipe import EmbedRecipe, Recipe
from memory_plane.core.embed_text import SourceChunk
from memory_plane.store.database import Connection
from memory_plane.store.vectors import checked_table

MAX_ATTEMPTS = 5
"""A version whose text will not embed is tried so often before it is `failed`."""
HOLD = timedelta(minutes=5)
"""How long the reconciler leaves alone what a workflow is on; longer than the pause between two attempts. A worker
that dies is noticed by Temporal: this bounds the wait only where the workflow itself is gone."""


@dataclass(frozen=True, slots=True)
class Generation:
    id: str
    state: GenerationState
    recipe: Recipe
    model_key: str | None


@dataclass(frozen=True, slots=True)
class MissingChunk:
    """A chunk without a vector; `source` is what the embedder makes its texts from."""

    source: SourceChunk
    version_id: str
    ordinal: int


@dataclass(frozen=True, slots=True)
class EmbedCounts:
    embedded: int = 0
    pending: int = 0
    failed: int = 0
    not_configured: int = 0


async def generation(conn: Connection, tenant_id: str, generation_id: str | None = None) -> Generation | None:
    """The generation of that id, or the live one."""
    row = await conn.fetchrow(
        """
        SELECT id, state, recipe, model_key FROM memory.generation
        WHERE tenant_id = $1 AND CASE WHEN $2::text IS NULL THEN state = 'live' ELSE id = $2 END
        """,
        tenant_id,
        generation_id,
    )
    if row is None:
        return None
    return Generation(row["id"], GenerationState(row["state"]), Recipe.model_validate(row["recipe"]), row["model_key"])


async def missing_chunks(
    conn: Connection,
    tenant_id: str,
    generation_id: str,
    version_ids: Sequence[str],
    table: str,
    *,
    after: tuple[str, int] = ("", -1),
    limit: int,
    neighbours: bool = False,
) -> list[MissingChunk]:
    """Chunks of pending versions that have no vector, in order of (version, ordinal), from `after` on.

    With `neighbours` each comes with the texts of the chunks beside it.
    """
    rows = await conn.fetch(
        f"""
        SELECT c.id, c.version_id, c.ordinal, c.text, c.context,
               coalesce(before.text, '') AS before, coalesce(after.text, '') AS after
        FROM memory.derivation d
        JOIN memory.version v ON v.id = d.version_id AND v.status <> 'tombstoned'
        JOIN memory.chunk c ON c.version_id = d.version_id AND c.generation_id = d.generation_id
        LEFT JOIN memory.chunk before ON $7 AND before.version_id = c.version_id
            AND before.generation_id = c.generation_id AND before.ordinal = c.ordinal - 1
        LEFT JOIN memory.chunk after ON $7 AND after.version_id = c.version_id
            AND after.generation_id = c.generation_id AND after.ordinal = c.ordinal + 1
        WHERE d.tenant_id = $1 AND d.generation_id = $2 AND d.version_id = ANY ($3::text[])
          AND d.embed_state = 'pending' AND (c.version_id, c.ordinal) > ($4, $5)
          AND NOT EXISTS (SELECT FROM memory.{checked_table(table)} e WHERE e.chunk_id = c.id AND e.slot = 0)
        ORDER BY c.version_id, c.ordinal LIMIT $6
        """,  # noqa: S608 - the name is checked
        tenant_id,
        generation_id,
        version_ids,
        *after,
        limit,
        neighbours,
    )
    return [
        MissingChunk(
            SourceChunk(row["id"], row["text"], row["context"], row["before"], row["after"]),
            row["version_id"],
            row["ordinal"],
        )
        for row in rows
    ]


async def mark_not_configured(
    conn: Connection, tenant_id: str, generation_id: str, version_ids: Collection[str]
) -> None:
    """Pending versions of a generation whose recipe has no endpoint wait for a re-embed, not for a workflow."""
    await conn.execute(
        """
        UPDATE memory.derivation
        SET embed_state = 'not_configured', held_until = NULL, updated_at = clock_timestamp()
        WHERE tenant_id = $1 AND generation_id = $2 AND version_id = ANY ($3::text[]) AND embed_state = 'pending'
        """,
        tenant_id,
        generation_id,
        list(version_ids),
    )


async def record_faults(conn: Connection, tenant_id: str, generation_id: str, reasons: Mapping[str, str]) -> None:
    """Count one more attempt for versions whose text would not embed, by version id; the last one allowed fails them.

    Reasons are sentences without content.
    """
    await conn.execute(
        """
        UPDATE memory.derivation d
        SET attempts = d.attempts + 1, last_error = given.reason, updated_at = clock_timestamp(),
            embed_state = CASE WHEN d.attempts + 1 >= $5 THEN 'failed' ELSE 'pending' END
        FROM unnest($3::text[], $4::text[]) AS given (version_id, reason)
        WHERE d.tenant_id = $1 AND d.generation_id = $2 AND d.version_id = given.version_id
          AND d.embed_state = 'pending'
        """,
        tenant_id,
        generation_id,
        list(reasons.keys()),
        list(reasons.values()),
        MAX_ATTEMPTS,
    )


async def fail(conn: Connection, tenant_id: str, generation_id: str, version_ids: Collection[str], reason: str) -> None:
    """Fail pending versions at once, for a reason that no retry cures."""
    await conn.execute(
        """
        UPDATE memory.derivation
        SET embed_state = 'failed', last_error = $4, held_until = NULL, updated_at = clock_timestamp()
        WHERE tenant_id = $1 AND generation_id = $2 AND version_id = ANY ($3::text[]) AND embed_state = 'pending'
        """,
        tenant_id,
        generation_id,
        list(version_ids),
        reason,
    )


async def hold(
    conn: Connection, tenant_id: str, generation_id: str, version_ids: Collection[str], duration: timedelta = HOLD
) -> None:
    """Tell the reconciler that these pending versions are being driven; told again only when half of it has passed."""
    await conn.execute(
        """
        UPDATE memory.derivation SET held_until = clock_timestamp() + $4::interval
        WHERE tenant_id = $1 AND generation_id = $2 AND version_id = ANY ($3::text[]) AND embed_state = 'pending'
          AND (held_until IS NULL OR held_until < clock_timestamp() + $4::interval / 2)
        """,
        tenant_id,
        generation_id,
        list(version_ids),
        duration,
    )


async def counts(conn: Connection, tenant_id: str, generation_id: str, version_ids: Collection[str]) -> EmbedCounts:
    """How many of these versions are in which state; forgotten ones are in none."""
    rows = await conn.fetch(
        """
        SELECT d.embed_state, count(*) AS number FROM memory.derivation d
        JOIN memory.version v ON v.id = d.version_id AND v.status <> 'tombstoned'
        WHERE d.tenant_id = $1 AND d.generation_id = $2 AND d.version_id = ANY ($3::text[])
        GROUP BY d.embed_state
        """,
        tenant_id,
        generation_id,
        list(version_ids),
    )
    by_state = {EmbedState(row["embed_state"]): int(row["number"]) for row in rows}
    return EmbedCounts(**{state.value: number for state, number in by_state.items()})


async def page(
    conn: Connection,
    tenant_id: str,
    generation_id: str,
    states: Collection[EmbedState],
    *,
    after: str = "",
    limit: int,
) -> list[str]:
    """Versions of a generation in these states, in order of id, from `after` on: a stable walk for back-fills."""
    rows = await conn.fetch(
        """
        SELECT d.version_id FROM memory.derivation d
        JOIN memory.version v ON v.id = d.version_id AND v.status <> 'tombstoned'
        WHERE d.tenant_id = $1 AND d.generation_id = $2 AND d.embed_state = ANY ($3::text[]) AND d.version_id > $4
        ORDER BY d.version_id LIMIT $5
        """,
        tenant_id,
        generation_id,
        [state.value for state in states],
        after,
        limit,
    )
    return [row["version_id"] for row in rows]


async def redrive(
    conn: Connection, tenant_id: str, generation_id: str, version_ids: Collection[str], states: Collection[EmbedState]
) -> int:
    """Set these versions, where they are in one of these states, to be embedded again with all attempts."""
    status: str = await conn.execute(
        """
        UPDATE memory.derivation
        SET embed_state = 'pending', attempts = 0, last_error = NULL, held_until = NULL,
            updated_at = clock_timestamp()
        WHERE tenant_id = $1 AND generation_id = $2 AND version_id = ANY ($3::text[])
          AND embed_state = ANY ($4::text[])
        """,
        tenant_id,
        generation_id,
        list(version_ids),
        [state.value for state in states],
    )
    return int(status.rpartition(" ")[2])


async def missing_total(conn: Connection, tenant_id: str, generation_id: str, states: Collection[EmbedState]) -> int:
    total: int = await conn.fetchval(
        """
        SELECT count(*) FROM memory.derivation
        WHERE tenant_id = $1 AND generation_id = $2 AND embed_state = ANY ($3::text[])
        """,
        tenant_id,
        generation_id,
        [state.value for state in states],
    )
    return total


async def give_endpoint(conn: Connection, tenant_id: str, generation_id: str, embed: EmbedRecipe) -> None:
    """Give a generation that was made without an endpoint this one, under the tenant's exclusive cutover lock."""
    await conn.execute(
        """
        UPDATE memory.generation SET recipe = jsonb_set(recipe, '{embed}', $3)
        WHERE tenant_id = $1 AND id = $2 AND recipe -> 'embed' = 'null'
        """,
        tenant_id,
        generation_id,
        embed.model_dump(mode="json", by_alias=True),
    )
