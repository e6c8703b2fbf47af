"""The pool, and the one way into a transaction: bounded waits, retried lock conflicts, errors without content."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg
from pgvector.asyncpg import register_vector

from memory_plane.contracts.errors import Unavailable
from memory_plane.settings import Settings
from memory_plane.telemetry import metrics, tracing

T = TypeVar("T")
if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
    Pool = asyncpg.Pool[asyncpg.Record]
else:  # the classes take parameters in the stubs only
    Connection = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy
    Pool = asyncpg.Pool

ACQUIRE_TIMEOUT = 5.0
"""Seconds a caller waits for a connection before it is told 503."""
LOCK_ATTEMPTS = 5
LONGEST_PAUSE = 0.1
"""Seconds between two of them, at most."""

SAME = "IS NOT DISTINCT FROM"
"""How a statement that finds its rows by id compares the tenant: as `=` does, but served by no index.

A plan made while tables are still small takes an index on (tenant_id, …) for as good as the primary key. It is kept
for long, and reads the whole tenant, once for each row that is wanted.
"""

LOCK_CONFLICTS = (
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.SerializationError,
)
OUTAGES = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.InsufficientResourcesError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)


class StatementFailed(Exception):
    """The database refused a statement for a reason that no caller can mend: a fault of ours.

    Says the SQLSTATE alone. The server's own words, and asyncpg's, quote parameters, and those are what people wrote.
    """


async def _prepare(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    tracing.watch_statements(connection)
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    if await connection.fetchval("SELECT to_regtype('vector') IS NOT NULL"):
        await register_vector(connection)


async def _keep_session(connection: Any) -> None:
    """No reset on release: nothing here is session-scoped (locks are the transaction's), and it is a round trip."""


async def open_pool(settings: Settings, *, max_size: int | None = None) -> Pool:
    """One pool per process. Opens lazily: a database that is down fails calls, not the start."""
    pgbouncer = settings.db_pgbouncer
    metrics.DATABASE_CONNECTIONS_MAX.inc(max_size or settings.db_pool_max)
    return await asyncpg.create_pool(
        settings.database_url.get_secret_value(),
        min_size=0,
        max_size=max_size or settings.db_pool_max,
        command_timeout=settings.db_statement_timeout_ms / 1000 + 5,
        statement_cache_size=0 if pgbouncer else 256,
        server_settings=None
        if pgbouncer
        else {
            "application_name": "memory-plane",
            "timezone": "UTC",
            "statement_timeout": str(settings.db_statement_timeout_ms),
            "idle_in_transaction_session_timeout": "60000",
        },
        init=_prepare,
        reset=_keep_session,
    )


@asynccontextmanager
async def connection(pool: Pool) -> AsyncIterator[Connection]:
    """A pooled connection, waited for at most ACQUIRE_TIMEOUT.

    An outage becomes `Unavailable`, any other error that leaves the block `StatementFailed`, but for lock conflicts.
    """
    try:
        with metrics.DATABASE_WAITING.track_inprogress():
            # Waiting under a clock costs a task of its own; where one is free there is nothing to wait for.
            acquired = await pool.acquire(timeout=None if pool.get_idle_size() else ACQUIRE_TIMEOUT)
        try:
            with metrics.DATABASE_CONNECTIONS_IN_USE.track_inprogress():
                yield acquired
        except asyncpg.InternalClientError:
            # A session that the server ended between two statements: the driver has read its farewell and not its
            # end, and takes no statement on it any more.
            acquired.terminate()
            raise
        finally:
            await pool.release(acquired)
    except TimeoutError:
        raise _refusal("database_busy", "did not answer in time") from None
    except asyncpg.InsufficientResourcesError:
        raise _refusal("database_exhausted", "has no room left (disk, memory or connections)") from None
    except OUTAGES:
        raise _refusal("database_unavailable", "cannot be reached") from None
    except asyncpg.QueryCanceledError:
        raise took_too_long() from None
    except LOCK_CONFLICTS:
        raise
    except asyncpg.PostgresError as failure:
        raise StatementFailed(f"{type(failure).__name__} ({failure.sqlstate})") from None


def took_too_long() -> Unavailable:
    """For a statement that was given up, by the server's clock or by ours."""
    return _refusal("statement_timeout", "took too long over this")


def _refusal(code: str, what: str) -> Unavailable:
    metrics.DATABASE_REFUSALS.labels(code).inc()
    return Unavailable(f"The database {what}; nothing was promised. Try again.", code=code, retry_after=2)


@asynccontextmanager
async def transaction(pool: Pool) -> AsyncIterator[Connection]:
    """One READ COMMITTED transaction on a pooled connection."""
    async with connection(pool) as acquired, acquired.transaction():
        yield acquired


async def in_transaction(pool: Pool, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Run `work` in one transaction; deadlocks and lock timeouts run it anew, up to LOCK_ATTEMPTS times.

    `work` must keep no state between attempts.
    """
    return await _retried(pool, transaction, work)


async def in_statement(pool: Pool, work: Callable[[Connection], Awaitable[T]]) -> T:
    """`in_transaction` for a single statement, which is a transaction of its own: two round trips less."""
    return await _retried(pool, connection, work)


async def _retried(
    pool: Pool,
    scope: Callable[[Pool], AbstractAsyncContextManager[Connection]],
    work: Callable[[Connection], Awaitable[T]],
) -> T:
    for attempt in range(LOCK_ATTEMPTS):
        if attempt:
            await asyncio.sleep(random.uniform(0, LONGEST_PAUSE))  # noqa: S311 - so that rivals do not meet again
        try:
            async with scope(pool) as acquired:
                return await work(acquired)
        except LOCK_CONFLICTS:
            continue
    metrics.DATABASE_REFUSALS.labels("lock_conflict").inc()
    raise Unavailable(
        "Other writers held the same rows for too long; nothing was written. Try again.",
        code="lock_conflict",
        retry_after=1,
    )
