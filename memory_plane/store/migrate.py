"""The migration runner: plain SQL files in name order, a ledger with checksums, one runner at a time."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from memory_plane.store.database import Connection
from memory_plane.store.fts_language import require_known_language, verify_fts_language

__all__ = ["MINIMUM_PGVECTOR", "Migration", "MigrationFailed", "migrate", "pending", "verify_fts_language"]

MINIMUM_PGVECTOR = (0, 8, 4)
_LANGUAGE_TOKEN = "{{FTS_LANGUAGE}}"  # noqa: S105 - a placeholder
_NO_TRANSACTION = "-- memory: no-transaction"
_LOCK = 0x6D656D6F72796D67  # "memorymg"
_LOCK_POLL_SECONDS = 0.1

_LEDGER = """
CREATE SCHEMA IF NOT EXISTS memory;
CREATE TABLE IF NOT EXISTS memory.migration (
    name text PRIMARY KEY,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
"""


class MigrationFailed(Exception):
    """The database cannot be brought up to date; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file. The checksum is of the file as written, before the language is put in."""

    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def in_transaction(self) -> bool:
        return self.sql.split("\n", 1)[0].strip() != _NO_TRANSACTION


async def migrate(database: Connection | str, fts_language: str, directory: Path) -> list[str]:
    """Apply what is missing, in name order; the names applied. Any number of starters may call it at once.

    ``database`` is a connection of its own or a DSN, not one through transaction pooling: the
    lock is the session's. Raises MigrationFailed.
    """
    files = _read(directory)
    async with _connection(database) as connection, _only_runner(connection):
        await require_known_language(connection, fts_language)
        await _require_pgvector(connection)
        await connection.execute(_LEDGER)
        missing = _missing(files, await _ledger(connection))
        for migration in missing:
            await _apply(connection, migration, fts_language)
        await verify_fts_language(connection, fts_language)
    return [migration.name for migration in missing]


async def pending(connection: Connection, directory: Path) -> list[str]:
    """The names of files not applied yet; raises MigrationFailed where an applied one was edited."""
    files = _read(directory)
    if await connection.fetchval("SELECT to_regclass('memory.migration')") is None:
        return [migration.name for migration in files]
    return [migration.name for migration in _missing(files, await _ledger(connection))]


def _read(directory: Path) -> list[Migration]:
    files = sorted(directory.glob("*.sql"))
    if not files:
        raise MigrationFailed(f"There are no migrations in {directory}; run from a checkout or the image.")
    return [Migration(path.name, path.read_text(encoding="utf-8")) for path in files]


def _missing(files: list[Migration], applied: Mapping[str, str]) -> list[Migration]:
    for migration in files:
        recorded = applied.get(migration.name)
        if recorded is not None and recorded != migration.checksum:
            raise MigrationFailed(
                f"{migration.name} was edited after it had been applied; restore the file as it was "
                "and put the change into a new one."
            )
    unknown = sorted(applied.keys() - {migration.name for migration in files})
    if unknown:
        raise MigrationFailed(
            f"The database has {unknown[-1]}, which this version does not know: it is newer than this program; "
            "run the version that migrated it, or a newer one."
        )
    return [migration for migration in files if migration.name not in applied]


async def _ledger(connection: Connection) -> dict[str, str]:
    rows = await connection.fetch("SELECT name, checksum FROM memory.migration")
    return {row["name"]: row["checksum"] for row in rows}


async def _apply(connection: Connection, migration: Migration, fts_language: str) -> None:
    sql = migration.sql.replace(_LANGUAGE_TOKEN, fts_language)
    record = "INSERT INTO memory.migration (name, checksum) VALUES ($1, $2)"
    try:
        if migration.in_transaction:
            async with connection.transaction():
                await connection.execute(sql)
                await connection.execute(record, migration.name, migration.checksum)
        else:
            for statement in _statements(sql):
                await connection.execute(statement)
            await connection.execute(record, migration.name, migration.checksum)
    except asyncpg.PostgresError as failure:
        # The server's message names tables and types; its DETAIL may hold values of rows and is left out.
        raise MigrationFailed(
            f"{migration.name} failed and was not recorded ({failure.sqlstate}: {failure.args[0]}); "
            "put right what it says and run memory migrate again."
        ) from None


def _statements(sql: str) -> list[str]:
    """The statements of a file outside a transaction: a query of several would be one transaction again."""
    uncommented = re.sub(r"^\s*--.*$", "", sql, flags=re.MULTILINE)
    return [statement.strip() for statement in uncommented.split(";") if statement.strip()]


async def _require_pgvector(connection: Connection) -> None:
    wanted = ".".join(map(str, MINIMUM_PGVECTOR))
    try:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except asyncpg.InsufficientPrivilegeError:
        raise MigrationFailed(
            "The extension vector is not in this database and this role may not create it; "
            "let a superuser run CREATE EXTENSION vector."
        ) from None
    except (asyncpg.UndefinedFileError, asyncpg.FeatureNotSupportedError):
        raise MigrationFailed(
            f"This PostgreSQL has no pgvector; install pgvector {wanted} or newer on the server."
        ) from None
    version: str = await connection.fetchval("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    if tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < MINIMUM_PGVECTOR:
        raise MigrationFailed(
            f"This database has pgvector {version} and at least {wanted} is needed; install it on the server "
            "and run ALTER EXTENSION vector UPDATE."
        )


@asynccontextmanager
async def _only_runner(connection: Connection) -> AsyncIterator[None]:
    """Hold the lock. Asked for again and again: a statement that waits for it keeps a snapshot alive, for which the
    holder's CREATE INDEX CONCURRENTLY would wait in turn.
    """
    await connection.execute("SET statement_timeout = 0")
    while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):  # noqa: ASYNC110 - an event in the database
        await asyncio.sleep(_LOCK_POLL_SECONDS)
    try:
        yield
    finally:
        if not connection.is_closed():
            await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


@asynccontextmanager
async def _connection(
    database: Connection | str,
) -> AsyncIterator[Connection]:
    if not isinstance(database, str):
        yield database
        return
    connection = await asyncpg.connect(database)
    try:
        yield connection
    finally:
        await connection.close()
