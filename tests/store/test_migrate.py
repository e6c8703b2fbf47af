"""The migration runner against a real PostgreSQL: ledger, checksums, races, markers, and the search language."""

import asyncio
import re
from pathlib import Path

import asyncpg
import pytest

from memory_plane.store import migrate as migrations
from memory_plane.store.fts_language import FtsLanguageMismatch, verify_fts_language
from memory_plane.store.migrate import MigrationFailed, migrate, pending
from tests.fixtures.database import MIGRATIONS

CHUNK = """
CREATE TABLE memory.chunk (
    id integer, context text, text text, grams text,
    text_fts tsvector NOT NULL GENERATED ALWAYS AS (
        setweight(to_tsvector('{{FTS_LANGUAGE}}'::regconfig, context), 'A')
        || setweight(to_tsvector('{{FTS_LANGUAGE}}'::regconfig, text), 'D')
        || to_tsvector('simple'::regconfig, grams)
    ) STORED
);
CREATE INDEX chunk_text_fts ON memory.chunk USING gin (text_fts);
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory with the smallest set of migrations."""
    directory = tmp_path / "migrations"
    directory.mkdir()
    (directory / "0001_chunk.sql").write_text(CHUNK)
    return directory


async def _value(dsn: str, query: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def test_the_shipped_migrations_apply_once_and_in_order(empty_database: str) -> None:
    names = sorted(path.name for path in MIGRATIONS.glob("*.sql"))
    connection = await asyncpg.connect(empty_database)
    assert await pending(connection, MIGRATIONS) == names
    assert await migrate(connection, "english", MIGRATIONS) == names
    assert await migrate(connection, "english", MIGRATIONS) == []
    assert await pending(connection, MIGRATIONS) == []
    recorded = await connection.fetch("SELECT name FROM memory.migration ORDER BY applied_at, name")
    assert [row["name"] for row in recorded] == names
    await connection.close()


async def test_runners_at_once_apply_each_file_once(empty_database: str, files: Path) -> None:
    """With an index built concurrently: it must not wait for the runners that wait for it."""
    (files / "0002_index.sql").write_text(
        "-- memory: no-transaction\nCREATE INDEX CONCURRENTLY chunk_id ON memory.chunk (id);"
    )
    answers = await asyncio.gather(*(migrate(empty_database, "english", files) for _ in range(6)))
    assert sorted(answers, key=len)[-1] == ["0001_chunk.sql", "0002_index.sql"]
    assert sum(len(answer) for answer in answers) == 2


async def test_an_edited_file_is_refused_by_name(empty_database: str, files: Path) -> None:
    await migrate(empty_database, "english", files)
    (files / "0001_chunk.sql").write_text(CHUNK + "-- one more line\n")
    with pytest.raises(MigrationFailed, match=r"0001_chunk\.sql was edited"):
        await migrate(empty_database, "english", files)
    connection = await asyncpg.connect(empty_database)
    with pytest.raises(MigrationFailed, match=r"0001_chunk\.sql was edited"):
        await pending(connection, files)
    await connection.close()


async def test_a_database_newer_than_the_program_is_refused(empty_database: str, files: Path) -> None:
    later = files / "0009_later.sql"
    later.write_text("CREATE TABLE memory.later ();")
    await migrate(empty_database, "english", files)
    later.unlink()
    with pytest.raises(MigrationFailed, match=r"0009_later\.sql.*newer"):
        await migrate(empty_database, "english", files)


async def test_a_failing_file_leaves_nothing_and_tells_no_values(empty_database: str, files: Path) -> None:
    (files / "0002_bad.sql").write_text(
        "CREATE TABLE memory.half (a text PRIMARY KEY);\n"
        "INSERT INTO memory.half VALUES ('canary-value');\n"
        "INSERT INTO memory.half VALUES ('canary-value');\n"
    )
    with pytest.raises(MigrationFailed, match=r"0002_bad\.sql failed and was not recorded") as caught:
        await migrate(empty_database, "english", files)
    assert "canary-value" not in repr(caught.value)
    assert caught.value.__suppress_context__
    assert await _value(empty_database, "SELECT to_regclass('memory.half')") is None
    assert await _value(empty_database, "SELECT array_agg(name) FROM memory.migration") == ["0001_chunk.sql"]
    (files / "0002_bad.sql").write_text("CREATE TABLE memory.half ();")
    assert await migrate(empty_database, "english", files) == ["0002_bad.sql"]


async def test_a_marked_file_runs_outside_of_a_transaction(empty_database: str, files: Path) -> None:
    statements = (
        "-- comments; with semicolons\n"
        "DROP INDEX CONCURRENTLY IF EXISTS memory.chunk_id;\n"
        "CREATE INDEX CONCURRENTLY chunk_id ON memory.chunk (id);\n"
    )
    (files / "0002_index.sql").write_text(statements)
    with pytest.raises(MigrationFailed, match="cannot run inside a transaction block"):
        await migrate(empty_database, "english", files)
    (files / "0002_index.sql").write_text("-- memory: no-transaction\n" + statements)
    assert await migrate(empty_database, "english", files) == ["0002_index.sql"]
    assert await _value(empty_database, "SELECT to_regclass('memory.chunk_id')::text") == "memory.chunk_id"


async def test_an_empty_directory_is_not_taken_for_up_to_date(empty_database: str, tmp_path: Path) -> None:
    with pytest.raises(MigrationFailed, match="no migrations"):
        await migrate(empty_database, "english", tmp_path)


@pytest.mark.parametrize("language", ["English", "a'b", "pg_catalog.english", "", "x" * 64, "english\n"])
async def test_a_malformed_language_is_refused(empty_database: str, files: Path, language: str) -> None:
    with pytest.raises(FtsLanguageMismatch, match="1 to 63 lower-case letters"):
        await migrate(empty_database, language, files)


async def test_an_unknown_language_is_refused_with_the_known_ones(empty_database: str, files: Path) -> None:
    with pytest.raises(FtsLanguageMismatch, match=r"klingon is not .*german, .*simple"):
        await migrate(empty_database, "klingon", files)
    assert await _value(empty_database, "SELECT to_regclass('memory.migration')") is None


async def test_an_older_pgvector_is_refused(empty_database: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "MINIMUM_PGVECTOR", (99, 0, 0))
    with pytest.raises(MigrationFailed, match=r"pgvector 0\.\d+\.\d+ and at least 99\.0\.0 is needed"):
        await migrate(empty_database, "english", files)


async def test_a_language_mismatch_names_both_and_its_recipe_works(empty_database: str) -> None:
    """The printed recipe is run to the letter, on the shipped schema."""
    await migrate(empty_database, "german", MIGRATIONS)
    with pytest.raises(FtsLanguageMismatch, match=r"FTS_LANGUAGE is english .* migrated with german") as caught:
        await migrate(empty_database, "english", MIGRATIONS)
    connection = await asyncpg.connect(empty_database)
    await verify_fts_language(connection, "german")
    recipe = str(caught.value).split(":\n", 1)[1]
    assert "DROP COLUMN text_fts" in recipe
    assert "CREATE INDEX CONCURRENTLY" in recipe
    for statement in filter(str.strip, recipe.split(";")):
        await connection.execute(statement)
    await verify_fts_language(connection, "english")
    with pytest.raises(FtsLanguageMismatch, match=r"FTS_LANGUAGE is german .* migrated with english"):
        await verify_fts_language(connection, "german")
    index = await connection.fetchval("SELECT indexdef FROM pg_indexes WHERE indexname = 'chunk_text_fts'")
    assert re.search(r"ON memory\.chunk USING gin \(text_fts\)", index)
    await connection.close()


async def test_a_schema_qualified_configuration_has_its_own_message(empty_database: str, files: Path) -> None:
    (files / "0000_config.sql").write_text(
        "CREATE SCHEMA custom; CREATE TEXT SEARCH CONFIGURATION custom.english (COPY = pg_catalog.english);"
    )
    text = (files / "0001_chunk.sql").read_text()
    (files / "0001_chunk.sql").write_text(text.replace("{{FTS_LANGUAGE}}", "custom.{{FTS_LANGUAGE}}"))
    with pytest.raises(FtsLanguageMismatch, match=r"schema-qualified configuration custom\.english"):
        await migrate(empty_database, "english", files)


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("to_tsvector('english', context) || to_tsvector('german', text)", "english and german"),
        ("to_tsvector('simple', grams)", "no language"),
    ],
)
async def test_a_column_changed_by_hand_is_refused(
    empty_database: str, files: Path, definition: str, message: str
) -> None:
    (files / "0002_hand.sql").write_text(
        "ALTER TABLE memory.chunk DROP COLUMN text_fts; "
        f"ALTER TABLE memory.chunk ADD COLUMN text_fts tsvector GENERATED ALWAYS AS ({definition}) STORED;"
    )
    with pytest.raises(FtsLanguageMismatch, match=message):
        await migrate(empty_database, "english", files)


async def test_an_unmigrated_database_is_told_apart_from_a_mismatch(empty_database: str) -> None:
    connection = await asyncpg.connect(empty_database)
    with pytest.raises(FtsLanguageMismatch, match="run memory migrate"):
        await verify_fts_language(connection, "english")
    await connection.close()
