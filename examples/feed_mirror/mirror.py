"""Mirrors what one principal sees of a tenant into SQLite, and is right after any kill.

Two rules make it so. Each page of events is applied in one SQLite transaction together with its cursor: a kill in
between repeats the page, and applying an event twice changes nothing. And an event says only *that* a document changed:
what is mirrored is what the facade answers for it now, or nothing when it answers that there is nothing.
"""

import argparse
import sqlite3

from memory_plane.client import MemoryClient
from memory_plane.contracts.errors import NotFound

SCHEMA = """
CREATE TABLE IF NOT EXISTS document (
    id TEXT PRIMARY KEY, version_id TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, is_claim INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS cursor (only INTEGER PRIMARY KEY CHECK (only = 1), position INTEGER NOT NULL);
INSERT OR IGNORE INTO cursor VALUES (1, 0);
"""


def open_mirror(path: str) -> sqlite3.Connection:
    """The mirror's file, made where there is none."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous = FULL")
    database.executescript(SCHEMA)
    return database


def follow(database: sqlite3.Connection, memory: MemoryClient, poll: float | None = None) -> None:
    """Apply every change from where the mirror stands; with `poll` go on for ever, looking every so many seconds."""
    (position,) = database.execute("SELECT position FROM cursor").fetchone()
    for page in memory.feed_event_pages(after=position, poll=poll):
        changed = {entry.document_id for entry in page.entries}
        if any(entry.event == "retagged" for entry in page.entries):
            # A claim is hidden with its source, and no event names it: all that are mirrored are looked at again.
            changed |= {document_id for (document_id,) in database.execute("SELECT id FROM document WHERE is_claim")}
        rows = {document_id: _now(memory, document_id) for document_id in sorted(changed)}
        database.execute("BEGIN IMMEDIATE")
        for document_id, row in rows.items():
            database.execute("DELETE FROM document WHERE id = ?", (document_id,))
            if row is not None:
                database.execute("INSERT INTO document VALUES (?, ?, ?, ?, ?)", (document_id, *row))
        database.execute("UPDATE cursor SET position = ?", (page.next_cursor,))
        database.execute("COMMIT")


def _now(memory: MemoryClient, document_id: str) -> tuple[str, str, str, bool] | None:
    """What is to be mirrored of the document as it is now; None: nothing."""
    try:
        found = memory.get(document_id)
    except NotFound:
        return None
    version = found.version
    if found.text is None or version.status != "active":
        return None
    return version.version_id, version.title or "", found.text, bool(version.derived_from)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="the SQLite file")
    parser.add_argument("--follow", type=float, metavar="SECONDS", help="go on, looking every so many seconds")
    options = parser.parse_args()
    with MemoryClient.from_environment() as memory:
        follow(open_mirror(options.file), memory, options.follow)


if __name__ == "__main__":
    main()
