"""`memory import` of many documents of about 200 words: interrupted once, resumed, and embedded to the last.

Prints the rate beside its floor: the same texts straight to the same endpoint, in the same batches.
    python -m bench.importing [DOCUMENTS=10000]
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asyncpg
import httpx

from memory_plane.dev.stack import Access, DevStack
from scripts.demo_corpus import python_documents

WORDS = 200
FLOOR_SAMPLE = 640
BATCH = 32


async def main(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="memory-bench-") as folder:
        file = Path(folder) / "documents.jsonl"
        texts = write_documents(file, count)
        async with DevStack(Path(folder) / "stack", port=0) as stack:
            floor = await endpoint_rate(stack.access, texts[:FLOOR_SAMPLE])
            began = time.monotonic()
            first = await import_until(stack.access, file, folder, fraction=0.3, count=count)
            outcome = await import_to_the_end(stack.access, file, folder)
            seconds = time.monotonic() - began
            await verify(stack.access, count)
    report = {
        "documents": count,
        "words each": WORDS,
        "captured before the interrupt": first,
        "outcome": outcome,
        "seconds": round(seconds, 1),
        "documents a second": round(count / seconds, 1),
        "floor: texts a second straight to the endpoint": round(floor, 1),
        "share of the floor": round(count / seconds / floor, 2),
    }
    print(json.dumps(report, indent=2))


def write_documents(file: Path, count: int) -> list[str]:
    """Real sentences of Python's documentation, shuffled into texts of WORDS words, no two alike."""
    words = " ".join(document["text"] for document in python_documents()).split()
    generator = random.Random(7)
    texts = []
    with file.open("w", encoding="utf-8") as stream:
        for number in range(count):
            start = generator.randrange(len(words) - WORDS)
            text = f"Note {number}. " + " ".join(words[start : start + WORDS])
            texts.append(text)
            stream.write(json.dumps({"title": f"Note {number}", "text": text}) + "\n")
    return texts


async def endpoint_rate(access: Access, texts: list[str]) -> float:
    """Texts a second that the stack's endpoint embeds when nothing stands between."""
    database = await asyncpg.connect(access.database)
    try:
        # The endpoint's address is what the stack's worker registered.
        base_url = None
        while base_url is None:
            base_url = await database.fetchval("SELECT base_url FROM memory.embed_model LIMIT 1")
            await asyncio.sleep(0.1)
    finally:
        await database.close()
    batches = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
    async with httpx.AsyncClient(base_url=base_url, timeout=120) as http:

        async def embed(batch: list[str]) -> None:
            reply = await http.post("/v1/embeddings", json={"model": "all-MiniLM-L6-v2", "input": batch})
            reply.raise_for_status()

        await embed(batches[0])
        began = time.monotonic()
        for at in range(0, len(batches), 2):
            await asyncio.gather(*(embed(batch) for batch in batches[at : at + 2]))
        return len(texts) / (time.monotonic() - began)


def command(access: Access, file: Path, folder: str) -> tuple[list[str], dict[str, str]]:
    environment = os.environ | {
        "MEMORY_API": access.api,
        "MEMORY_TENANT": access.tenant,
        "MEMORY_TOKEN": access.token,
        "XDG_CACHE_HOME": folder,
    }
    return [sys.executable, "-m", "memory_plane.cli.main", "import", str(file), "--json"], environment


async def import_until(access: Access, file: Path, folder: str, *, fraction: float, count: int) -> int:
    """Run the import and interrupt it, as Ctrl-C does, once that fraction is captured; how many were by then."""
    arguments, environment = command(access, file, folder)
    process = await asyncio.create_subprocess_exec(*arguments, env=environment, stdout=subprocess.DEVNULL)
    database = await asyncpg.connect(access.database)
    try:
        while process.returncode is None:
            captured: int = await database.fetchval("SELECT count(*) FROM memory.document")
            if captured >= count * fraction:
                process.send_signal(signal.SIGINT)
                await process.wait()
                return captured
            await asyncio.sleep(0.2)
    finally:
        await database.close()
    raise SystemExit(f"the import ended by itself with {process.returncode} before it could be interrupted")


async def import_to_the_end(access: Access, file: Path, folder: str) -> dict[str, object]:
    arguments, environment = command(access, file, folder)
    process = await asyncio.create_subprocess_exec(*arguments, env=environment, stdout=subprocess.PIPE)
    printed, _ = await process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"the resumed import ended with {process.returncode}: {printed.decode()[:500]}")
    outcome: dict[str, object] = json.loads(printed)
    return outcome


async def verify(access: Access, count: int) -> None:
    database = await asyncpg.connect(access.database)
    try:
        documents, embedded = await database.fetchrow(  # type: ignore[misc]
            "SELECT (SELECT count(*) FROM memory.document),"
            " (SELECT count(*) FROM memory.derivation WHERE embed_state = 'embedded')"
        )
    finally:
        await database.close()
    if (documents, embedded) != (count, count):
        raise SystemExit(f"{documents} documents and {embedded} embedded, {count} expected")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
