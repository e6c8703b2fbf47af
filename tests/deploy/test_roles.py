"""The whole service under the least privileges it is deployed with."""

import asyncio
from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import asyncpg
import pytest

from api.app import create_app
from memory_plane.dev.checkout import checkout
from memory_plane.dev.postgres import PostgresServer
from memory_plane.plane.engine import Engine
from memory_plane.store.migrate import migrate
from tests.api.conftest import Facade, by_header, running
from tests.fakes.endpoint import FakeEndpoint
from tests.fixtures.database import FTS_LANGUAGE, MIGRATIONS, settings_for

ROLES = ("memory_owner", "memory_worker", "memory_api")
As = Callable[[str], str]


async def psql(server: PostgresServer, dsn: str) -> None:
    """Run the file as operators do."""
    file = checkout() / "deploy" / "sql" / "roles.sql"
    process = await asyncio.create_subprocess_exec(
        str(server.bin / "psql"), dsn, "-q", "-v", "ON_ERROR_STOP=1", "-f", "-",
        stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, told = await process.communicate(file.read_bytes())
    assert process.returncode == 0, told.decode()


@pytest.fixture
async def dsn_as(postgres: PostgresServer, empty_database: str) -> AsyncIterator[As]:
    """The DSN of a migrated database for each of the three roles."""
    await psql(postgres, empty_database)
    admin = await asyncpg.connect(empty_database)
    password = uuid4().hex
    for role in ROLES:
        await admin.execute(f"ALTER ROLE {role} PASSWORD '{password}'")
    _, _, place = empty_database.rpartition("@")

    def dsn(role: str) -> str:
        return f"postgresql://{role}:{password}@{place}"

    await migrate(dsn("memory_owner"), FTS_LANGUAGE, MIGRATIONS)
    await psql(postgres, empty_database)
    await admin.close()
    yield dsn


async def refused(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)
    finally:
        await connection.close()


async def test_every_part_works_with_its_own_role(dsn_as: As) -> None:
    async with FakeEndpoint(dims=64) as fake:
        model = {"embed_base_url": fake.url, "embed_model": "fake"}
        async with Engine.open(settings_for(dsn_as("memory_worker"), **model)) as worker:
            assert await worker.embedding.ensure_engine_model() is not None
        async with (
            Engine.open(settings_for(dsn_as("memory_api"), **model)) as engine,
            running(create_app(engine=engine, caller_resolver=by_header)) as app,
        ):
            facade = Facade(app, engine, "acme")
            await facade.allow("ann")
            async with facade.caller() as ann:
                added = await ann.post("/add", json={"title": "Harbour", "text": "The boats lie by the harbour."})
                assert added.json().get("degraded") is None, added.text
                found = await ann.post("/search", json={"query": "harbour"})
                [item] = found.json()["items"]
                assert "dense" in item["attribution"]["channels"]
                document = f"/documents/{added.json()['documentId']}"
                assert (await ann.post(f"{document}/forget", json={"reason": "asked to"})).status_code == 200
                assert (await ann.post(f"{document}/purge")).status_code == 200


async def test_the_api_changes_no_table_and_the_worker_none_but_its_own(dsn_as: As) -> None:
    for role in ("memory_api", "memory_worker"):
        await refused(dsn_as(role), "ALTER TABLE memory.document ADD COLUMN extra text")
        await refused(dsn_as(role), "DROP TABLE memory.document CASCADE")
        await refused(dsn_as(role), "TRUNCATE memory.document CASCADE")
        await refused(dsn_as(role), "INSERT INTO memory.migration (name, checksum) VALUES ('x', 'x')")
        await refused(dsn_as(role), "CREATE TABLE public.mine (id int)")
        await refused(dsn_as(role), "CREATE ROLE mine")
    await refused(dsn_as("memory_api"), "CREATE TABLE memory.mine (id int)")
    await refused(dsn_as("memory_api"), "CREATE INDEX mine ON memory.chunk (id)")
