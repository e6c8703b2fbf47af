"""The release before, populated, under the migrations of today: nothing lost, all served, its own program works on."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from api.app import create_app
from memory_plane.dev.postgres import PostgresServer
from memory_plane.plane.engine import Engine
from memory_plane.store.database import Connection
from memory_plane.store.fts_language import FtsLanguageMismatch
from memory_plane.store.migrate import Migration, migrate, pending
from tests.api.conftest import Facade, by_header, running
from tests.fakes.endpoint import FakeEndpoint
from tests.fixtures.database import FTS_LANGUAGE, MIGRATIONS
from tests.migrations.build import ENDPOINT, HERE, MODELS, TENANT, settings

RELEASED = json.loads((HERE / "released.json").read_text())
RELEASE = RELEASED["release"]
NAMES = sorted(file.name for file in MIGRATIONS.glob("*.sql"))


@pytest.fixture
async def fake() -> AsyncIterator[FakeEndpoint]:
    async with FakeEndpoint(models=MODELS) as endpoint:
        yield endpoint


@pytest.fixture
async def released(postgres: PostgresServer, empty_database: str, fake: FakeEndpoint) -> str:
    """The DSN of a database as the release left it."""
    dump = (HERE / f"{RELEASE}.sql").read_text().replace(ENDPOINT, fake.url)
    process = await asyncio.create_subprocess_exec(
        *(str(postgres.bin / "psql"), empty_database, "-q", "-v", "ON_ERROR_STOP=1", "-f", "-"),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, told = await process.communicate(dump.encode())
    assert process.returncode == 0, told.decode()
    return empty_database


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def columns(conn: Connection) -> dict[str, list[str]]:
    """Of each table, what is stored in it rather than computed."""
    rows = await conn.fetch(
        "SELECT table_name, array_agg(column_name::text ORDER BY ordinal_position) AS names "
        "FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name) "
        "WHERE table_schema = 'memory' AND is_generated = 'NEVER' AND table_type = 'BASE TABLE' GROUP BY 1"
    )
    return {row["table_name"]: row["names"] for row in rows if row["table_name"] != "migration"}


async def counts(conn: Connection) -> dict[str, int]:
    return {table: await conn.fetchval(f"SELECT count(*) FROM memory.{table}") for table in await columns(conn)}


async def broken_statements(conn: Connection, statements: Sequence[str]) -> list[str]:
    """Those that this schema does not understand any more."""
    broken = []
    for statement in statements:
        try:
            await conn.prepare(statement)
        except asyncpg.PostgresError as error:
            broken.append(f"{error.args[0]}: {statement[:120]}")
    return broken


def test_no_released_migration_was_edited_and_new_ones_come_after() -> None:
    for name, checksum in RELEASED["migrations"].items():
        found = Migration(name, (MIGRATIONS / name).read_text()).checksum
        assert found == checksum, f"{name} was released with {RELEASE}: put the change into a new file"
    assert NAMES[: len(RELEASED["migrations"])] == sorted(RELEASED["migrations"])


async def test_a_released_database_is_upgraded_and_served(released: str, fake: FakeEndpoint) -> None:
    async with connected(released) as conn:
        before = await counts(conn)
        assert min(before.values()) > 0
        missing = await pending(conn, MIGRATIONS)
        assert missing == [name for name in NAMES if name not in RELEASED["migrations"]]
        assert await migrate(conn, FTS_LANGUAGE, MIGRATIONS) == missing
        after = await counts(conn)
        assert {table: after.get(table) for table in before} == before
    async with (
        Engine.open(settings(released, fake)) as engine,
        running(create_app(engine=engine, caller_resolver=by_header)) as app,
    ):
        facade = Facade(app, engine, TENANT)
        async with facade.caller("bob") as bob:
            found = (await bob.post("/search", json={"query": "old harbour"})).json()["items"]
            [item] = [each for each in found if each["title"] == "Harbour"]
            assert {"lexical", "dense"} <= set(item["attribution"]["channels"])
            fed = (await bob.get("/feed")).json()["entries"]
            assert (await bob.get(f"/documents/{item['documentId']}")).json()["text"].endswith("old harbour.")
        async with facade.caller("ann") as ann:
            same = {
                "external_ref": "harbour", "title": "Harbour", "text": "The boats lie by the old harbour.",
                "share": {"tenant": True},
            }  # fmt: skip
            assert (await ann.post("/add", json=same)).json()["status"] == "noop"
            added = (await ann.post("/add", json={**same, "text": "The boats have left."})).json()
            assert added.get("degraded") is None
            assert (await ann.get(f"/documents/{item['documentId']}")).json()["version"]["versionId"] == added[
                "versionId"
            ]
        async with facade.caller("bob") as bob:
            assert (await bob.get("/feed")).json()["entries"][len(fed) :][0]["versionId"] == added["versionId"]


async def test_the_program_of_the_release_works_on_the_newer_schema(released: str) -> None:
    """As far as its statements show: while a deploy is under way, and after one that was taken back."""
    statements = json.loads((HERE / f"{RELEASE}.statements.json").read_text())
    assert len(statements) > 50
    async with connected(released) as conn:
        await migrate(conn, FTS_LANGUAGE, MIGRATIONS)
        assert await broken_statements(conn, statements) == []


@pytest.mark.parametrize("change", ["DROP COLUMN context", "RENAME COLUMN context TO surroundings"])
async def test_a_migration_that_takes_something_away_at_once_is_caught(
    released: str, tmp_path: Path, change: str
) -> None:
    for file in MIGRATIONS.glob("*.sql"):
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "9999_contract.sql").write_text(
        f"ALTER TABLE memory.chunk DROP COLUMN text_fts; ALTER TABLE memory.chunk {change};"
        "ALTER TABLE memory.chunk ADD COLUMN text_fts tsvector GENERATED ALWAYS AS"
        " (to_tsvector('english'::regconfig, text)) STORED;"
    )
    statements = json.loads((HERE / f"{RELEASE}.statements.json").read_text())
    async with connected(released) as conn:
        await migrate(conn, FTS_LANGUAGE, tmp_path)
        assert any('"context"' in each for each in await broken_statements(conn, statements))


async def _copy(source: Connection, target: Connection, kept: Callable[[str], bool]) -> None:
    """Of each table that both have, the columns that both have."""
    theirs = await columns(source)
    await target.execute("SET session_replication_role = replica")
    for table, names in (await columns(target)).items():
        if not kept(table):
            continue
        shared = [name for name in theirs[table] if name in names]
        await target.execute(f"DELETE FROM memory.{table}")
        lines: list[bytes] = []

        async def take(data: bytes, into: list[bytes] = lines) -> None:
            into.append(data)

        await source.copy_from_table(table, schema_name="memory", columns=shared, output=take)

        async def give(out: list[bytes] = lines) -> Any:
            for line in out:
                yield line

        await target.copy_to_table(table, schema_name="memory", columns=shared, source=give())
    await target.execute("SET session_replication_role = origin")


@pytest.mark.parametrize("number", range(2, len(NAMES) + 1), ids=lambda number: NAMES[number - 1])
async def test_each_migration_takes_the_rows_that_were_there(
    released: str, postgres: PostgresServer, tmp_path: Path, number: int
) -> None:
    """With rows in every table from before it, as a database that was left behind has them."""
    for name in NAMES[: number - 1]:
        (tmp_path / name).write_text((MIGRATIONS / name).read_text())
    older = await postgres.ensure_database(f"before_{number}")
    async with connected(released) as source, connected(older) as conn:
        await migrate_to(conn, tmp_path)
        await _copy(source, conn, lambda table: not table.startswith("embedding_"))
        before = await counts(conn)
        assert min(before.values()) > 0
        assert await migrate(conn, FTS_LANGUAGE, MIGRATIONS) == NAMES[number - 1 :]
        after = await counts(conn)
        assert {table: after[table] for table in before} == before


async def migrate_to(conn: Connection, directory: Path) -> None:
    """Where the search column does not exist yet, its language cannot be verified."""
    try:
        await migrate(conn, FTS_LANGUAGE, directory)
    except FtsLanguageMismatch:
        assert not await conn.fetchval("SELECT to_regclass('memory.chunk') IS NOT NULL")
