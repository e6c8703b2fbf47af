"""Talks to a peer in its own process and virtual environment, see bench/peers/peer.py."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from bench.add import ROOT
from bench.service import MODEL, PEER_PYTHON, Service

PEERS = {"mem0": "mem0", "LangGraph": "langgraph"}
BASELINE = {"BM25 (bm25s)": "bm25"}
_LONGEST_LINE = 256 * 1024 * 1024


class PeerProcess:
    """`dsn` is of its database; `is_new`: that was made for it just now, and is empty."""

    def __init__(self, child: asyncio.subprocess.Process, dsn: str, *, is_new: bool) -> None:
        self._child = child
        self.dsn = dsn
        self.is_new = is_new

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(json.dumps(question).encode() + b"\n")
        await self._child.stdin.drain()
        line = await self._child.stdout.readline()
        assert line, "the peer ended; see its log"
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def load(self, collection: str, documents: Sequence[tuple[str, str]]) -> None:
        await self.ask({"load": collection, "documents": documents})

    async def search(self, collection: str, query: str, limit: int) -> list[str]:
        keys: list[str] = (await self.ask({"search": collection, "query": query, "limit": limit}))["keys"]
        return keys


@asynccontextmanager
async def peer(name: str, service: Service, folder: Path) -> AsyncIterator[PeerProcess]:
    """The peer with a database of its own on the product's server."""
    dsn, is_new = await _database(service, f"peer_{name}")
    arguments = (str(ROOT / "bench" / "peers" / "peer.py"), name, dsn, service.endpoint_url, MODEL, "384")
    with (folder / f"{name}.log").open("wb") as log:
        child = await asyncio.create_subprocess_exec(
            str(PEER_PYTHON),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            limit=_LONGEST_LINE,
        )
        try:
            yield PeerProcess(child, dsn, is_new=is_new)
        finally:
            if child.returncode is None:
                child.terminate()
            await child.wait()


async def _database(service: Service, name: str) -> tuple[str, bool]:
    """Its DSN, and whether it was made just now."""
    connection = await asyncpg.connect(service.dsn)
    try:
        is_new = not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name)
        if is_new:
            await connection.execute(f'CREATE DATABASE "{name}"')
    finally:
        await connection.close()
    head, _, query = service.dsn.partition("?")
    return f"{head.rpartition('/')[0]}/{name}?{query}", is_new
