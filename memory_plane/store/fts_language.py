"""The text search language that is fixed into `memory.chunk.text_fts`, read back from the catalog."""

import re

from memory_plane.store.database import Connection

_LANGUAGE = re.compile(r"[a-z_]{1,63}")
# As the catalog prints it; a configuration outside of the search path comes with its schema.
_CONFIGURED = re.compile(r"to_tsvector\('([^']+)'::regconfig, (?:context|text)\)")

_EXPRESSION = """
SELECT pg_get_expr(d.adbin, d.adrelid)
FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = to_regclass('memory.chunk') AND a.attname = 'text_fts' AND a.attgenerated = 's'
"""


class FtsLanguageMismatch(Exception):
    """FTS_LANGUAGE and the database differ; the message says how and what to do."""


async def require_known_language(connection: Connection, language: str) -> None:
    """Raise FtsLanguageMismatch unless this is a well-formed name of a text search configuration of the server."""
    if not _LANGUAGE.fullmatch(language):
        raise FtsLanguageMismatch(
            "FTS_LANGUAGE must be 1 to 63 lower-case letters or underscores, as in english or simple."
        )
    rows = await connection.fetch("SELECT DISTINCT cfgname FROM pg_ts_config ORDER BY 1")
    known = [row["cfgname"] for row in rows]
    if language not in known:
        raise FtsLanguageMismatch(
            f"FTS_LANGUAGE {language} is not a text search configuration of this database; it has {', '.join(known)}."
        )


async def verify_fts_language(connection: Connection, expected: str) -> None:
    """Raise FtsLanguageMismatch unless the generated column was built with `expected`.

    To be called at the end of a migration and at the start of every API and worker process, so
    that a mismatch fails there and not as empty answers to queries.
    """
    expression: str | None = await connection.fetchval(_EXPRESSION)
    if expression is None:
        raise FtsLanguageMismatch("The database has no generated column memory.chunk.text_fts; run memory migrate.")
    languages = sorted(set(_CONFIGURED.findall(expression)))
    if len(languages) != 1:
        raise FtsLanguageMismatch(
            "The definition of memory.chunk.text_fts was changed by hand and names "
            f"{' and '.join(languages) or 'no language'}; put back the definition that the migrations have."
        )
    language = languages[0]
    if "." in language or '"' in language:
        raise FtsLanguageMismatch(
            f"memory.chunk.text_fts was built with the schema-qualified configuration {language}, which FTS_LANGUAGE "
            "cannot name; set FTS_LANGUAGE to a plain name (CREATE TEXT SEARCH CONFIGURATION … (COPY = …) in a schema "
            f"of the search path makes one) and rebuild the column:\n{_rebuild(expression, language, expected)}"
        )
    if language != expected:
        raise FtsLanguageMismatch(
            f"FTS_LANGUAGE is {expected} and the database was migrated with {language}; set FTS_LANGUAGE={language}, "
            "or rebuild the column, with the API and the workers stopped:\n" + _rebuild(expression, language, expected)
        )


def _rebuild(expression: str, language: str, wanted: str) -> str:
    rebuilt = re.sub(r"\s+", " ", expression.replace(f"'{language}'::regconfig", f"'{wanted}'::regconfig"))
    return (
        "  BEGIN;\n"
        "  ALTER TABLE memory.chunk DROP COLUMN text_fts;\n"
        "  ALTER TABLE memory.chunk ADD COLUMN text_fts tsvector NOT NULL\n"
        f"    GENERATED ALWAYS AS ({rebuilt}) STORED;\n"
        "  COMMIT;\n"
        "  CREATE INDEX CONCURRENTLY chunk_text_fts ON memory.chunk USING gin (text_fts);\n"
        "  ANALYZE memory.chunk;"
    )
