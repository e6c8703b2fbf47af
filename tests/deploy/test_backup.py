"""docs/operations/backup.md, done: dumped, restored elsewhere, and serving."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from api.app import create_app
from memory_plane.dev.checkout import checkout
from memory_plane.dev.postgres import PostgresServer
from memory_plane.plane.engine import Engine
from memory_plane.store.migrate import pending
from tests.api.conftest import Facade, by_header, running
from tests.fakes.endpoint import FakeEndpoint
from tests.fixtures.database import MIGRATIONS, settings_for

GUIDE = checkout() / "docs" / "operations" / "backup.md"


async def run(program: Path, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(str(program), *arguments, stderr=asyncio.subprocess.PIPE)
    _, told = await process.communicate()
    assert process.returncode == 0, told.decode()


@asynccontextmanager
async def facade_on(dsn: str, fake: FakeEndpoint) -> AsyncIterator[Facade]:
    settings = settings_for(dsn, embed_base_url=fake.url, embed_model="fake")
    async with (
        Engine.open(settings) as engine,
        running(create_app(engine=engine, caller_resolver=by_header)) as app,
    ):
        await engine.embedding.ensure_engine_model()
        yield Facade(app, engine, "acme")


async def counts(dsn: str) -> dict[str, int]:
    connection = await asyncpg.connect(dsn)
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'memory' ORDER BY 1")
        return {
            row["tablename"]: await connection.fetchval(f"SELECT count(*) FROM memory.{row['tablename']}")
            for row in tables
        }
    finally:
        await connection.close()


async def test_what_was_dumped_is_restored_and_serves(
    postgres: PostgresServer, database: str, empty_database: str, tmp_path: Path
) -> None:
    dump = tmp_path / "memory.dump"
    async with FakeEndpoint(dims=64) as fake:
        async with facade_on(database, fake) as before:
            await before.allow("ann")
            async with before.caller() as ann:
                for number in range(5):
                    note = {
                        "external_ref": f"n{number}",
                        "title": f"Note {number}",
                        "text": f"The boat number {number}",
                    }
                    assert (await ann.post("/add", json=note)).status_code == 200
                last = (await ann.get("/feed")).json()
            await run(postgres.bin / "pg_dump", "--format=custom", f"--file={dump}", database)
        await run(
            postgres.bin / "pg_restore",
            "--no-owner",
            "--exit-on-error",
            "--jobs=2",
            f"--dbname={empty_database}",
            str(dump),
        )
        assert await counts(empty_database) == await counts(database)
        connection = await asyncpg.connect(empty_database)
        assert await pending(connection, MIGRATIONS) == []
        await connection.close()
        async with facade_on(empty_database, fake) as after, after.caller() as ann:
            found = (await ann.post("/search", json={"query": "boat number 3"})).json()["items"][0]
            assert found["title"] == "Note 3"
            assert "dense" in found["attribution"]["channels"]
            again = {"external_ref": "n3", "title": "Note 3", "text": "The boat number 3"}
            assert (await ann.post("/add", json=again)).json()["status"] == "noop"
            assert (await ann.post("/add", json={"title": "New", "text": "After the restore"})).status_code == 200
            followed = (await ann.get("/feed")).json()
            assert followed["entries"][: len(last["entries"])] == last["entries"]
            assert len(followed["entries"]) == len(last["entries"]) + 1


@pytest.mark.parametrize(
    "command", ["pg_dump --format=custom", "pg_restore --no-owner --exit-on-error", "memory doctor"]
)
def test_the_guide_says_what_is_tested(command: str) -> None:
    assert command in GUIDE.read_text()
