"""Making vector tables and their indexes: the only DDL at run time, the worker's alone, on sessions of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import asyncpg
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from memory_plane.contracts.errors import Unavailable
from memory_plane.store.database import LOCK_CONFLICTS, OUTAGES, Connection
from memory_plane.store.embed_models import EmbedModel, ModelProbe, register
from memory_plane.store.vectors import checked_table, index_name, index_sql

LOCK_TIMEOUT_MS = 200
"""How long DDL waits for writers of `chunk`, who all queue behind it meanwhile."""
REGISTER_SECONDS = 60
BUILD_MEMORY = "256MB"
"""An HNSW graph that does not fit here is built several times slower; more is better for millions of vectors."""
POLL_SECONDS = 1.0
_BUILD_LOCK = 0x6D656D6F72796978  # "memoryix"


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """`phase` is PostgreSQL's word for it; counts are 0 where it gives none."""

    phase: str
    done: int
    total: int


async def register_model(dsn: str, tenant_id: str, probe: ModelProbe, *, indexed: bool = True) -> EmbedModel:
    """Register a probed model and make its table, once, however many ask at a time; see `embed_models.register`.

    Raises Unavailable when writers of `chunk` let it in at no time for a minute, or the database is down.
    """
    async with _session(dsn) as conn:
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception_type(LOCK_CONFLICTS),
                stop=stop_after_delay(REGISTER_SECONDS),
                wait=wait_random_exponential(multiplier=0.05, max=2.0),
                reraise=True,
            ):
                with attempt:
                    async with conn.transaction():
                        await conn.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
                        return await register(conn, tenant_id, probe, indexed=indexed)
        except LOCK_CONFLICTS:
            raise Unavailable(
                "The table for a new embedding model could not be made: writers held the chunks without a pause. "
                "It is tried again.",
                code="lock_conflict",
                retry_after=5,
            ) from None
    raise AssertionError("AsyncRetrying either returns or raises")


async def index_is_valid(conn: Connection, table: str) -> bool | None:
    """Whether the table's HNSW index is there and whole; None when there is none."""
    valid: bool | None = await conn.fetchval(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('memory.' || $1::text)", index_name(table)
    )
    return valid


async def build_index(dsn: str, table: str, dims: int, on_progress: Callable[[BuildProgress], None]) -> bool:
    """Build the HNSW index of a filled table without keeping its writers out; False where it was there already.

    One builder at a time; an index that a broken build left behind is dropped first. `on_progress` is called about
    once a second. Cancelled, it leaves an invalid index, which the next call drops.
    """
    checked_table(table)
    async with _session(dsn) as conn:
        # Polled and never waited for: whoever waits holds a snapshot, and a concurrent build waits for all of those.
        while not await conn.fetchval("SELECT pg_try_advisory_lock($1)", _BUILD_LOCK):
            on_progress(BuildProgress("waiting for another build", 0, 0))
            await asyncio.sleep(POLL_SECONDS)
        valid = await index_is_valid(conn, table)
        if valid:
            return False
        if valid is False:
            await conn.execute(f"DROP INDEX CONCURRENTLY IF EXISTS memory.{index_name(table)}")
        await conn.execute(f"SET maintenance_work_mem = '{BUILD_MEMORY}'")
        pid: int = await conn.fetchval("SELECT pg_backend_pid()")
        async with _session(dsn) as watcher, asyncio.TaskGroup() as group:
            build = group.create_task(_run(conn, index_sql(table, dims, concurrently=True)))
            while not build.done():
                on_progress(await _progress(watcher, pid))
                await asyncio.wait([build], timeout=POLL_SECONDS)
        return True


async def _run(conn: Connection, statement: str) -> None:
    await conn.execute(statement)


async def _progress(conn: Connection, pid: int) -> BuildProgress:
    row = await conn.fetchrow(
        """
        SELECT phase, greatest(blocks_done, tuples_done) AS done, greatest(blocks_total, tuples_total) AS total
        FROM pg_stat_progress_create_index WHERE pid = $1
        """,
        pid,
    )
    return BuildProgress(row["phase"], row["done"], row["total"]) if row else BuildProgress("starting", 0, 0)


@asynccontextmanager
async def _session(dsn: str) -> AsyncIterator[Connection]:
    """A session of its own, bounded by no statement timeout: what runs here may take long and waits for little."""
    try:
        conn = await asyncpg.connect(
            dsn, timeout=10, statement_cache_size=0, server_settings={"application_name": "memory-plane-ddl"}
        )
    except (*OUTAGES, TimeoutError):
        raise Unavailable(
            "The database cannot be reached; nothing was changed. Try again.",
            code="database_unavailable",
            retry_after=2,
        ) from None
    try:
        yield conn
    finally:
        with suppress(*OUTAGES, TimeoutError):
            await conn.close(timeout=5)
