"""Generations as rows: their states, and how far each has walked the tenant's feed."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from memory_plane.contracts.enums import GenerationState, VersionStatus
from memory_plane.contracts.recipe import Recipe
from memory_plane.contracts.transforms import TransformScope
from memory_plane.store.database import Connection

_COLUMNS = "id, state, recipe, model_key, dims, caught_up_to, state_at"


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """`caught_up_to` is the feed position up to which it has been walked, `state_at` when its state last changed."""

    id: str
    state: GenerationState
    recipe: Recipe
    model_key: str | None
    dims: int | None
    caught_up_to: int
    state_at: datetime


@dataclass(frozen=True, slots=True)
class Filter:
    """Which versions a generation derives: of its run's scope, and superseded ones with `history`."""

    scope: TransformScope
    history: bool

    @property
    def statuses(self) -> list[str]:
        wanted = [VersionStatus.ACTIVE, VersionStatus.DEPRECATED]
        return [status.value for status in (*wanted, *([VersionStatus.SUPERSEDED] if self.history else ()))]


async def generation_row(conn: Connection, tenant_id: str, generation_id: str) -> GenerationRow | None:
    row = await conn.fetchrow(
        f"SELECT {_COLUMNS} FROM memory.generation WHERE tenant_id = $1 AND id = $2",  # noqa: S608 - constants
        tenant_id,
        generation_id,
    )
    return None if row is None else _generation(row)


async def live_row(conn: Connection, tenant_id: str) -> GenerationRow | None:
    row = await conn.fetchrow(
        f"SELECT {_COLUMNS} FROM memory.generation WHERE tenant_id = $1 AND state = 'live'",  # noqa: S608 - constants
        tenant_id,
    )
    return None if row is None else _generation(row)


async def generation_rows(conn: Connection, tenant_id: str) -> list[GenerationRow]:
    """All of a tenant, the newest first."""
    rows = await conn.fetch(
        f"SELECT {_COLUMNS} FROM memory.generation WHERE tenant_id = $1 ORDER BY created_at DESC, id DESC",  # noqa: S608
        tenant_id,
    )
    return [_generation(row) for row in rows]


async def insert(conn: Connection, tenant_id: str, generation_id: str, recipe: Recipe) -> bool:
    """A generation to be built; False where it is there already."""
    status: str = await conn.execute(
        """
        INSERT INTO memory.generation (id, tenant_id, state, recipe) VALUES ($2, $1, 'building', $3)
        ON CONFLICT (id) DO NOTHING
        """,
        tenant_id,
        generation_id,
        recipe.stored(),
    )
    return status == "INSERT 0 1"


async def change_state(
    conn: Connection, tenant_id: str, generation_id: str, old: Collection[GenerationState], new: GenerationState
) -> bool:
    """By compare-and-set; False where it was in none of the old states."""
    status: str = await conn.execute(
        """
        UPDATE memory.generation SET state = $4, state_at = clock_timestamp()
        WHERE tenant_id = $1 AND id = $2 AND state = ANY ($3::text[])
        """,
        tenant_id,
        generation_id,
        [state.value for state in old],
        new.value,
    )
    return status == "UPDATE 1"


async def head(conn: Connection, tenant_id: str) -> int:
    """The tenant's last feed position: whatever has committed is at or below it."""
    position: int | None = await conn.fetchval(
        "SELECT position FROM memory.tenant_counter WHERE tenant_id = $1", tenant_id
    )
    return position or 0


async def walked(conn: Connection, tenant_id: str, generation_id: str, position: int) -> None:
    """Everything up to this position has been looked at; never goes back."""
    await conn.execute(
        "UPDATE memory.generation SET caught_up_to = $3 WHERE tenant_id = $1 AND id = $2 AND caught_up_to < $3",
        tenant_id,
        generation_id,
        position,
    )


async def now(conn: Connection) -> datetime:
    moment: datetime = await conn.fetchval("SELECT clock_timestamp()")
    return moment


# A version deprecated after it was superseded becomes derivable again, at the position of that event.
_SEEN = """
SELECT id, feed_position AS position FROM memory.version
WHERE tenant_id = $1 AND feed_position > $2 AND feed_position <= $3
UNION ALL
SELECT version_id, position FROM memory.feed_event
WHERE tenant_id = $1 AND position > $2 AND position <= $3 AND kind = 'deprecated' AND version_id IS NOT NULL
"""
_DERIVABLE = """
v.tenant_id = $1 AND v.status = ANY ({statuses}::text[])
AND ({adapter}::text IS NULL OR r.adapter = {adapter})
AND ({since}::timestamptz IS NULL OR r.fetched_at >= {since})
AND ({until}::timestamptz IS NULL OR r.fetched_at < {until})
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A version that is to be derived; `size` is of its payload, in bytes."""

    version_id: str
    document_id: str
    position: int
    size: int


async def reach(conn: Connection, tenant_id: str, after: int, upto: int, limit: int) -> int:
    """The position up to which `limit` versions lie above `after`, at most `upto`."""
    position: int = await conn.fetchval(
        """
        SELECT CASE WHEN count(*) < $4 THEN $3 ELSE max(feed_position) END FROM (
            SELECT feed_position FROM memory.version
            WHERE tenant_id = $1 AND feed_position > $2 AND feed_position <= $3 ORDER BY feed_position LIMIT $4
        ) page
        """,
        tenant_id,
        after,
        upto,
        limit,
    )
    return position


async def candidates(
    conn: Connection, tenant_id: str, generation_id: str, wanted: Filter, after: int, upto: int
) -> list[Candidate]:
    """Derivable versions seen at positions above `after` up to `upto` that the generation has not, in that order."""
    derivable = _DERIVABLE.format(statuses="$5", adapter="$6", since="$7", until="$8")
    rows = await conn.fetch(
        f"""
        SELECT v.id, v.document_id, seen.position,
               coalesce(octet_length(r.raw_text), octet_length(r.raw_bytes)) AS size
        FROM (SELECT id, min(position) AS position FROM ({_SEEN}) events GROUP BY id) seen
        JOIN memory.version v ON v.id = seen.id
        JOIN memory.raw_capture r ON r.tenant_id = $1 AND r.id = v.raw_capture_id
        WHERE {derivable}
          AND NOT EXISTS (SELECT FROM memory.derivation d WHERE d.version_id = v.id AND d.generation_id = $4)
        ORDER BY seen.position, v.id
        """,  # noqa: S608 - constants
        tenant_id,
        after,
        upto,
        generation_id,
        wanted.statuses,
        wanted.scope.adapter,
        wanted.scope.since,
        wanted.scope.until,
    )
    return [Candidate(row["id"], row["document_id"], row["position"], row["size"]) for row in rows]


async def derivable_total(conn: Connection, tenant_id: str, wanted: Filter) -> int:
    """How many versions the tenant has for such a generation now."""
    derivable = _DERIVABLE.format(statuses="$2", adapter="$3", since="$4", until="$5")
    total: int = await conn.fetchval(
        f"""
        SELECT count(*) FROM memory.version v
        JOIN memory.raw_capture r ON r.tenant_id = $1 AND r.id = v.raw_capture_id WHERE {derivable}
        """,  # noqa: S608 - constants
        tenant_id,
        wanted.statuses,
        wanted.scope.adapter,
        wanted.scope.since,
        wanted.scope.until,
    )
    return total


@dataclass(frozen=True, slots=True)
class Held:
    """What a generation holds of versions that are not forgotten."""

    versions: int
    chunks: int


async def held(conn: Connection, tenant_id: str, generation_id: str) -> Held:
    """Counted row by row: for what is looked at now and then."""
    row = await conn.fetchrow(
        """
        SELECT count(*) AS versions, coalesce(sum(chunk_count), 0) AS chunks FROM memory.derivation
        WHERE tenant_id = $1 AND generation_id = $2
        """,
        tenant_id,
        generation_id,
    )
    assert row is not None  # noqa: S101 - an aggregate always answers one row
    return Held(row["versions"], int(row["chunks"]))


@dataclass(frozen=True, slots=True)
class Pending:
    """Derivations without vectors; `unsettled` have failed at least once and are to be tried again."""

    total: int
    unsettled: int


async def pending(conn: Connection, tenant_id: str, generation_id: str) -> Pending:
    row = await conn.fetchrow(
        """
        SELECT count(*) AS total, count(*) FILTER (WHERE attempts > 0) AS unsettled FROM memory.derivation
        WHERE tenant_id = $1 AND generation_id = $2 AND embed_state = 'pending'
        """,
        tenant_id,
        generation_id,
    )
    assert row is not None  # noqa: S101 - an aggregate always answers one row
    return Pending(row["total"], row["unsettled"])


async def redrive_failed(conn: Connection, tenant_id: str, generation_id: str) -> int:
    """Set every version whose text would not embed to be tried again, with all its attempts; their number."""
    status: str = await conn.execute(
        """
        UPDATE memory.derivation
        SET embed_state = 'pending', attempts = 0, last_error = NULL, held_until = NULL, updated_at = clock_timestamp()
        WHERE tenant_id = $1 AND generation_id = $2 AND embed_state = 'failed'
        """,
        tenant_id,
        generation_id,
    )
    return int(status.rpartition(" ")[2])


def _generation(row: asyncpg.Record) -> GenerationRow:
    return GenerationRow(
        id=row["id"],
        state=GenerationState(row["state"]),
        recipe=Recipe.model_validate(row["recipe"]),
        model_key=row["model_key"],
        dims=row["dims"],
        caught_up_to=row["caught_up_to"],
        state_at=row["state_at"],
    )
