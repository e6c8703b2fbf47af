"""The report that proves it: each table of the catalog is searched, and whatever nobody has judged is content."""

import json
import os
import subprocess
import sys

from memory_plane.store.database import connection
from memory_plane.store.erasure_report import ErasureReport, erasure_report
from tests.retention.conftest import Plane
from tests.retention.test_forget import full_of


async def report(plane: Plane, document_id: str) -> ErasureReport:
    async with connection(plane.pool) as conn:
        found = await erasure_report(conn, document_id)
    assert found is not None
    return found


def by_table(found: ErasureReport) -> dict[str, dict[str, int]]:
    return {table.table: dict(table.content) for table in found.tables if table.content}


async def test_it_searches_every_table_and_finds_what_is_there(plane: Plane) -> None:
    source, claim = await full_of(plane, "canary")
    before = await report(plane, source.document_id)
    assert not before.is_erased
    async with connection(plane.pool) as conn:
        tables = {
            row["table_name"]
            for row in await conn.fetch(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'memory'"
            )
        }
    assert {table.table for table in before.tables} == tables
    content = by_table(before)
    assert {"title", "kind", "attributes", "access_tags"} <= content["document"].keys()
    assert {"text", "context", "grams", "role"} <= content["chunk"].keys()
    assert {"raw_text", "raw_bytes", "source_hash"} <= content["raw_capture"].keys()
    assert {"identifier", "label", "kind"} <= content["entity"].keys()
    assert "embedding" in content["embedding_00000000000000aa"]
    chunks = next(table for table in before.tables if table.table == "chunk")
    assert set(chunks.generations) >= {"kgen_two"} and len(chunks.generations) == 2

    await plane.retention.forget(await plane.sight(), source.document_id)
    for document_id in (source.document_id, claim.document_id):
        after = await report(plane, document_id)
        assert after.is_erased, by_table(after)
        assert set(after.statuses) == {"tombstoned"}
    await plane.retention.purge(await plane.sight(), source.document_id)
    purged = await report(plane, source.document_id)
    assert purged.is_erased and purged.statuses == {}
    assert {table.table for table in purged.tables if table.rows} == {"feed_event"}


async def test_a_table_or_column_of_tomorrow_is_content_until_it_is_judged(plane: Plane) -> None:
    captured = await plane.add()
    await plane.retention.forget(await plane.sight(), captured.document_id)
    assert (await report(plane, captured.document_id)).is_erased
    async with connection(plane.pool) as conn:
        await conn.execute("CREATE TABLE memory.summary (version_id text, summary text)")
        await conn.execute("ALTER TABLE memory.document ADD COLUMN note text")
        await conn.execute("INSERT INTO memory.summary VALUES ($1, 'what it said')", captured.version_id)
        await conn.execute("UPDATE memory.document SET note = 'a note'")
    assert by_table(await report(plane, captured.document_id)) == {"document": {"note": 1}, "summary": {"summary": 1}}


async def test_what_nobody_has_heard_of_is_none(plane: Plane) -> None:
    async with connection(plane.pool) as conn:
        assert await erasure_report(conn, "kdoc_unknown") is None


PROGRAM = """
import typer
from memory_plane.cli import retention
app = typer.Typer()
app.command("sweep")(retention.sweep)
app.command("deprecate")(retention.deprecate)
app.command("erasure-report")(retention.erasure_report)
app()
"""


def cli(database: str, *arguments: str, code: int = 0) -> str:
    environment = {**os.environ, "DATABASE_URL": database}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout if done.stdout else done.stderr


async def test_the_commands(plane: Plane, database: str) -> None:
    captured = await plane.add(external_ref="one")
    expired = await plane.add(retention_class="ephemeral", valid_until="2020-01-01T00:00:00+00:00")
    assert json.loads(cli(database, "sweep", "--json")) == {"deprecated": 1}
    assert await plane.statuses(expired.document_id) == ["deprecated"]
    assert json.loads(cli(database, "sweep", "--tenant", "t", "--json"))["deprecated"] == 0
    words = ("deprecate", captured.version_id, "--tenant", "t", "--json")
    assert json.loads(cli(database, *words))["status"] == "deprecated"
    assert not json.loads(cli(database, "erasure-report", captured.document_id, "--json", code=1))["erased"]
    await plane.retention.forget(await plane.sight(), captured.document_id)
    assert json.loads(cli(database, "erasure-report", captured.document_id, "--json"))["erased"]
    assert "Nothing it said is left" in cli(database, "erasure-report", captured.document_id)
    assert "No table has heard" in cli(database, "erasure-report", "kdoc_unknown", code=1)
