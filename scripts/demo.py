"""`make demo`: the whole stack on this machine, real text in, questions answered, a worker killed, nothing lost.

Ends with 0 only if all that it shows is true.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from memory_plane.client import AsyncMemoryClient
from memory_plane.contracts.errors import PlaneError
from memory_plane.dev.errors import StackError
from memory_plane.dev.stack import DevStack
from scripts.demo_corpus import python_documents, repository_documents

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = {
    "Who may forget or purge a document?": ("docs/forgetting.md", "docs/concepts.md"),
    "What happens to an add while Temporal is down?": ("docs/architecture.md", "docs/operations/troubleshooting.md"),
    "find the position where an item belongs in a sorted list": ("bisect.",),
    "recursively delete a whole directory tree": ("shutil.rmtree",),
    "compare two digests without leaking timing": ("compare_digest",),
}
"""Each with the places that answer it, by a part of their reference."""
SHOWN = 3
EMBED_PATIENCE = 150.0
"""Seconds after the last add in which all of it must be embedded."""


class Untrue(Exception):
    """Something that the demo claims did not hold."""


async def main() -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="memory-demo-") as folder:
        say("Starting PostgreSQL, Temporal, a model endpoint, the worker and the API …")
        async with DevStack(Path(folder), port=0, say=say) as stack:
            access = stack.access
            say(f"… up after {time.monotonic() - began:.0f} s. API {access.api}, Temporal UI {access.temporal_ui}")
            async with AsyncMemoryClient(access.api, access.tenant, access.token) as memory:
                database = await asyncpg.connect(access.database)
                try:
                    await show(stack, memory, database)
                finally:
                    await database.close()
            say(f"\nThe Temporal UI was at {access.temporal_ui}; `make dev` keeps a stack up until Ctrl-C.")
    say(f"All of it held. {time.monotonic() - began:.0f} s.")


async def show(stack: DevStack, memory: AsyncMemoryClient, database: "asyncpg.Connection[asyncpg.Record]") -> None:
    documents = [*repository_documents(ROOT), *python_documents()]
    half = len(documents) // 2
    say(f"\nImporting {len(documents)} documents: README.md, docs/, and Python's own documentation strings.")
    await add_all(memory, documents[:half])
    await until_embedded(database, at_least=half // 4)

    say("\nkill -9 of the worker, in the middle of it …")
    await stack.kill("worker")
    await add_all(memory, documents[half:])
    embedded, total = await progress(database)
    say(f"… the other half was added while it was dead: {total} captured, {embedded} embedded. Starting it again.")
    check(embedded < total, "the worker was killed after all its work was done, so nothing was shown")
    await stack.restart("worker")
    await until_embedded(database, at_least=len(documents))
    await nothing_lost(memory, documents)
    say(f"Nothing is lost and nothing is doubled: {len(documents)} documents, each there once, each embedded.")

    for question, expected in QUESTIONS.items():
        await ask(memory, question, expected)


async def add_all(memory: AsyncMemoryClient, documents: list[dict[str, Any]]) -> None:
    async for item in memory.add_many(documents, batch_size=100):
        check(item.error is None, f"document {item.index} was refused: {item.error.detail if item.error else ''}")


async def progress(database: "asyncpg.Connection[asyncpg.Record]") -> tuple[int, int]:
    row = await database.fetchrow(
        "SELECT count(*) FILTER (WHERE embed_state = 'embedded') AS embedded, count(*) AS total FROM memory.derivation"
    )
    check(row is not None, "the database did not answer")
    return (row["embedded"], row["total"]) if row else (0, 0)


async def until_embedded(database: "asyncpg.Connection[asyncpg.Record]", *, at_least: int) -> None:
    deadline = time.monotonic() + EMBED_PATIENCE
    last = -1
    while True:
        embedded, total = await progress(database)
        if embedded != last and sys.stdout.isatty():
            print(f"\r  embedded {embedded} of {total} ", end="", flush=True)
        last = embedded
        if embedded >= at_least:
            say(f"\r  embedded {embedded} of {total}")
            return
        check(time.monotonic() < deadline, f"only {embedded} of {total} were embedded within {EMBED_PATIENCE:.0f} s")
        await asyncio.sleep(0.5)


async def nothing_lost(memory: AsyncMemoryClient, documents: Iterable[dict[str, Any]]) -> None:
    listed = [event.document_id async for event in memory.list_all()]
    check(len(listed) == len(set(listed)), "a document is listed twice")
    expected = {(document["adapter"], document["external_ref"]) for document in documents}
    check(len(listed) == len(expected), f"{len(listed)} documents are listed and {len(expected)} were added")


async def ask(memory: AsyncMemoryClient, question: str, expected: tuple[str, ...]) -> None:
    found = await memory.search(question, limit=5)
    say(f"\n? {question}   (evidence: {found.evidence.value if found.evidence else 'none'})")
    check(not found.degraded, f"the search was degraded: {found.degraded}")
    for rank, item in enumerate(found.items[:SHOWN], 1):
        say(f"  {rank}. {item.title}  [{item.citation.adapter}:{item.citation.external_ref}]  {item.score:.2f}")
        say(f"     {' '.join(item.snippet.split())[:150]}")
    cited = [item.citation.external_ref or "" for item in found.items[:SHOWN]]
    check(
        any(part in reference for part in expected for reference in cited),
        f"none of the first {SHOWN} answers cites {' or '.join(expected)}",
    )


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Untrue(otherwise)


def say(sentence: str) -> None:
    print(sentence, flush=True)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except (Untrue, StackError, PlaneError) as failure:
        sys.exit(f"The demo failed: {failure}")
