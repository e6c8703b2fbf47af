"""What a chunk takes in the database, table by table, on real text: `python -m bench.sizes [--dims 768]`."""

import argparse
import asyncio
import os
import sys
import tempfile
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import asyncpg

from memory_plane.core.caller import Caller
from memory_plane.core.visibility import Visibility
from memory_plane.dev.ports import HOST, free_port
from memory_plane.dev.postgres import PostgresServer
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from memory_plane.store.migrate import migrate
from scripts.demo_corpus import python_documents

ROOT = Path(__file__).resolve().parents[1]
TENANT = "bench"
BATCH = 100
_SIZES = """
SELECT CASE WHEN relname LIKE 'embedding\\_%' THEN 'embedding_…' ELSE relname END AS name,
       sum(pg_table_size(c.oid)) AS rows, sum(pg_indexes_size(c.oid)) AS indexes
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'memory' AND c.relkind = 'r' GROUP BY 1 ORDER BY 2 DESC
"""
# By row: the reference to chunk_id keeps the planner from making one vector for all.
_RANDOM = "ARRAY(SELECT random() - 0.5 FROM generate_series(1, {dims}) WHERE chunk_id IS NOT NULL)::real[]::halfvec"


async def main(documents: int, dims: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        server = PostgresServer(Path(directory) / "pg", durable=False)
        port = free_port()
        endpoint = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.instant_endpoint", str(port), str(dims), cwd=ROOT, env=dict(os.environ)
        )
        try:
            await server.start()
            dsn = await server.ensure_database("sizes")
            await migrate(dsn, "english", ROOT / "migrations")
            await _fill(dsn, f"http://{HOST}:{port}", documents)
            await _tell(dsn, dims)
        finally:
            endpoint.terminate()
            await endpoint.wait()
            await server.stop()


async def _fill(dsn: str, endpoint: str, documents: int) -> None:
    settings = Settings.model_validate({"database_url": dsn, "embed_base_url": endpoint, "embed_model": "instant"})
    async with Engine.open(settings) as engine:
        await engine.embedding.ensure_engine_model()
        visibility = Visibility(Caller(TENANT, "bench"), None, datetime.now(UTC))  # as a library: no grants
        items = iter(islice(python_documents(), documents))
        while batch := list(islice(items, BATCH)):
            answer = await engine.adding.add_batch(visibility, batch, None)
            versions = [item.version_id for item in answer.items if item.version_id is not None]
            await engine.embedding.embed_versions(TENANT, versions)


async def _tell(dsn: str, dims: int) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for (table,) in await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'memory'"):
            if table.startswith("embedding_"):
                # The endpoint has few vectors, and an HNSW index keeps equal ones once: give each chunk its own.
                await connection.execute(f"UPDATE memory.{table} SET embedding = {_RANDOM.format(dims=dims)}")
            await connection.execute(f"VACUUM FULL memory.{table}")
        counted = await connection.fetchrow(
            "SELECT count(*), count(DISTINCT document_id), sum(length(text)) FROM memory.chunk"
        )
        assert counted is not None
        chunks, documents, characters = counted
        print(f"{documents} documents, {chunks} chunks of {characters / chunks:.0f} characters, {dims} dimensions")
        total = 0
        for name, rows, indexes in await connection.fetch(_SIZES):
            total += rows + indexes
            if rows + indexes > chunks * 100:
                print(f"{name:24} {rows / chunks:8.0f} + {indexes / chunks:6.0f} bytes a chunk")
        print(f"{'all':24} {total / chunks:8.0f} bytes a chunk")
    finally:
        await connection.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--dims", type=int, default=768)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.documents, arguments.dims))
