"""Recipes by name and version, runs of them, and what would not derive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from memory_plane.contracts.enums import RunStatus
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.transforms import Review, TransformScope
from memory_plane.store.database import Connection


@dataclass(frozen=True, slots=True)
class TransformConfig:
    """`params` is the recipe as it was given, partial or whole."""

    id: str
    name: str
    version: int
    params: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TransformRun:
    """A run is its own generation: `id` names both. `walk_goal` None: the walk has not begun."""

    id: str
    config_id: str
    status: RunStatus
    scope: TransformScope
    walk_goal: int | None
    walk_total: int
    raw_count: int
    version_count: int
    chunk_count: int
    failed_count: int
    error: str | None
    review: Review | None
    archived_live_generation: str | None
    archived_live_model_key: str | None
    promoted_at: datetime | None
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class TransformFailure:
    version_id: str
    error: str
    attempts: int


async def create_config(
    conn: Connection, tenant_id: str, name: str, params: Mapping[str, Any]
) -> TransformConfig | None:
    """The next version of that name; None where another was faster, and it is to be tried again."""
    row = await conn.fetchrow(
        """
        INSERT INTO memory.transform_config (id, tenant_id, name, version, params)
        SELECT $1, $2, $3, coalesce(max(version), 0) + 1, $4 FROM memory.transform_config
        WHERE tenant_id = $2 AND name = $3
        ON CONFLICT (tenant_id, name, version) DO NOTHING
        RETURNING id, name, version, params, created_at
        """,
        new_id(IdKind.TRANSFORM_CONFIG),
        tenant_id,
        name,
        params,
    )
    return None if row is None else _config(row)


async def config(conn: Connection, tenant_id: str, config_id: str) -> TransformConfig | None:
    row = await conn.fetchrow(
        "SELECT id, name, version, params, created_at FROM memory.transform_config WHERE tenant_id = $1 AND id = $2",
        tenant_id,
        config_id,
    )
    return None if row is None else _config(row)


async def configs(conn: Connection, tenant_id: str) -> list[TransformConfig]:
    """All of a tenant, by name and version."""
    rows = await conn.fetch(
        """
        SELECT id, name, version, params, created_at FROM memory.transform_config
        WHERE tenant_id = $1 ORDER BY name, version
        """,
        tenant_id,
    )
    return [_config(row) for row in rows]


async def delete_config(conn: Connection, tenant_id: str, config_id: str) -> bool:
    """Delete one that no run was made of; False where there is none such. Raises ForeignKeyViolationError where one is
    made at the same moment."""
    status: str = await conn.execute(
        """
        DELETE FROM memory.transform_config c WHERE c.tenant_id = $1 AND c.id = $2
          AND NOT EXISTS (SELECT FROM memory.transform_run r WHERE r.tenant_id = $1 AND r.config_id = c.id)
        """,
        tenant_id,
        config_id,
    )
    return status == "DELETE 1"


async def insert_run(conn: Connection, tenant_id: str, run_id: str, config_id: str, scope: TransformScope) -> None:
    await conn.execute(
        """
        INSERT INTO memory.transform_run (id, tenant_id, config_id, generation_id, status, scope)
        VALUES ($2, $1, $3, $2, 'running', $4) ON CONFLICT (id) DO NOTHING
        """,
        tenant_id,
        run_id,
        config_id,
        scope.model_dump(mode="json", exclude_none=True),
    )


async def run(conn: Connection, tenant_id: str, run_id: str) -> TransformRun | None:
    row = await conn.fetchrow("SELECT * FROM memory.transform_run WHERE tenant_id = $1 AND id = $2", tenant_id, run_id)
    return None if row is None else _run(row)


async def runs(conn: Connection, tenant_id: str) -> list[TransformRun]:
    """All of a tenant, the newest first."""
    rows = await conn.fetch(
        "SELECT * FROM memory.transform_run WHERE tenant_id = $1 ORDER BY created_at DESC, id DESC", tenant_id
    )
    return [_run(row) for row in rows]


async def begin_walk(conn: Connection, tenant_id: str, run_id: str, goal: int, total: int) -> None:
    """Write down where the walk ends, unless it has begun."""
    await conn.execute(
        """
        UPDATE memory.transform_run SET walk_goal = $3, walk_total = $4
        WHERE tenant_id = $1 AND id = $2 AND walk_goal IS NULL
        """,
        tenant_id,
        run_id,
        goal,
        total,
    )


async def finish_run(conn: Connection, tenant_id: str, run_id: str, status: RunStatus, error: str | None) -> None:
    """End a running run, with its counts as the rows are now: what was forgotten meanwhile no longer counts."""
    await conn.execute(
        """
        UPDATE memory.transform_run SET status = $3, error = $4, finished_at = clock_timestamp(),
            (raw_count, version_count, chunk_count) = (
                SELECT count(DISTINCT v.raw_capture_id), count(*), coalesce(sum(d.chunk_count), 0)
                FROM memory.derivation d JOIN memory.version v ON v.id = d.version_id
                WHERE d.tenant_id = $1 AND d.generation_id = $2
            )
        WHERE tenant_id = $1 AND id = $2 AND status = 'running'
        """,
        tenant_id,
        run_id,
        status.value,
        error,
    )


async def reopen_run(conn: Connection, tenant_id: str, run_id: str) -> bool:
    """A failed run goes on; False where it had not failed."""
    status: str = await conn.execute(
        """
        UPDATE memory.transform_run SET status = 'running', error = NULL, finished_at = NULL
        WHERE tenant_id = $1 AND id = $2 AND status = 'failed'
        """,
        tenant_id,
        run_id,
    )
    return status == "UPDATE 1"


async def keep_review(conn: Connection, tenant_id: str, run_id: str, review: Review) -> None:
    await conn.execute(
        "UPDATE memory.transform_run SET review = $3 WHERE tenant_id = $1 AND id = $2",
        tenant_id,
        run_id,
        review.model_dump(mode="json"),
    )


async def failures(conn: Connection, tenant_id: str, run_id: str, *, limit: int) -> list[TransformFailure]:
    """What would not derive and is not forgotten, in order of id."""
    rows = await conn.fetch(
        """
        SELECT f.version_id, f.error, f.attempts FROM memory.transform_failure f
        JOIN memory.version v ON v.tenant_id = $1 AND v.id = f.version_id AND v.status <> 'tombstoned'
        WHERE f.tenant_id = $1 AND f.run_id = $2 ORDER BY f.version_id LIMIT $3
        """,
        tenant_id,
        run_id,
        limit,
    )
    return [TransformFailure(row["version_id"], row["error"], row["attempts"]) for row in rows]


async def failure_total(conn: Connection, tenant_id: str, run_id: str) -> int:
    total: int = await conn.fetchval(
        """
        SELECT count(*) FROM memory.transform_failure f
        JOIN memory.version v ON v.tenant_id = $1 AND v.id = f.version_id AND v.status <> 'tombstoned'
        WHERE f.tenant_id = $1 AND f.run_id = $2
        """,
        tenant_id,
        run_id,
    )
    return total


async def underived_failures(
    conn: Connection, tenant_id: str, run_id: str, before: datetime, limit: int
) -> Sequence[str]:
    """Versions that have no derivation because they failed, last tried before that moment."""
    rows = await conn.fetch(
        """
        SELECT f.version_id FROM memory.transform_failure f
        JOIN memory.version v ON v.tenant_id = $1 AND v.id = f.version_id AND v.status <> 'tombstoned'
        WHERE f.tenant_id = $1 AND f.run_id = $2 AND f.updated_at < $3
          AND NOT EXISTS (SELECT FROM memory.derivation d WHERE d.version_id = f.version_id AND d.generation_id = $2)
        ORDER BY f.version_id LIMIT $4
        """,
        tenant_id,
        run_id,
        before,
        limit,
    )
    return [row["version_id"] for row in rows]


def _config(row: asyncpg.Record) -> TransformConfig:
    return TransformConfig(row["id"], row["name"], row["version"], row["params"], row["created_at"])


def _run(row: asyncpg.Record) -> TransformRun:
    return TransformRun(
        id=row["id"],
        config_id=row["config_id"],
        status=RunStatus(row["status"]),
        scope=TransformScope.model_validate(row["scope"]),
        walk_goal=row["walk_goal"],
        walk_total=row["walk_total"],
        raw_count=row["raw_count"],
        version_count=row["version_count"],
        chunk_count=row["chunk_count"],
        failed_count=row["failed_count"],
        error=row["error"],
        review=None if row["review"] is None else Review.model_validate(row["review"]),
        archived_live_generation=row["archived_live_generation"],
        archived_live_model_key=row["archived_live_model_key"],
        promoted_at=row["promoted_at"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
    )
