"""Corpora by the hundred thousand, copied straight into the tables: what speed is measured on.

Texts are made of real sentences (of the judged sets, where they are there), so that words are as common as words
are. Vectors are mixtures of real ones of those sentences: near and far as a model has them, at no model's cost.
"""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.asyncpg import register_vector

from bench.http_client import HttpClient
from bench.judged import SETS
from bench.service import MODEL, Service
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.dev.ports import HOST
from memory_plane.store.lexical_statistics import refresh
from memory_plane.store.vectors import index_name, index_sql

WORDS = 60
BASE_VECTORS = 2_000
RARE_TAGS = {1_000: "memory.space:rare", 10_000: "memory.space:rarest"}
"""One document in so many carries the tag, the only one that a reader with little to see has."""
_COPIED_AT_ONCE = 5_000
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_COLUMNS = {
    "document": "id tenant_id adapter external_ref title kind access_tags attributes created_by_principal_id "
    "created_at last_seen_at occurred_at",
    "raw_capture": "id tenant_id document_id source_hash adapter raw_text fetched_at",
    "version": "id tenant_id document_id version status status_at title kind content_hash occurred_at ingested_at "
    "temporal_class retention_class provenance source_class created_by_principal_id created_by_kind authority "
    "raw_capture_id feed_position",
    "chunk": "id tenant_id generation_id document_id version_id ordinal text context span_start span_end token_count",
    "derivation": "version_id generation_id tenant_id chunk_count embed_state",
    "vectors": "chunk_id slot tenant_id generation_id version_id embedding",
}


@dataclass(frozen=True)
class Layout:
    """`tenants` tenants of `chunks` chunks each, one a document."""

    name: str
    tenants: int
    chunks: int

    def tenant(self, number: int = 0) -> str:
        return f"{self.name}-{number}".replace(" ", "-").replace(",", "")


LAYOUTS = (
    Layout("1k", 1, 1_000),
    Layout("10k", 1, 10_000),
    Layout("100k", 1, 100_000),
    Layout("1,000 tenants x 100", 1_000, 100),
)


class Corpus:
    """Makes texts with their vectors."""

    def __init__(self, sentences: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self._sentences = sentences
        self._vectors = vectors
        self._random = random.Random(7)
        self._numbers = np.random.default_rng(7)

    @classmethod
    async def of(cls, data: Path, endpoint_port: int) -> "Corpus":
        found = _sentences(data)
        chosen = random.Random(3).sample(found, min(BASE_VECTORS, len(found)))
        vectors: list[Any] = []
        async with HttpClient(HOST, endpoint_port) as client:
            for start in range(0, len(chosen), 16):
                body = {"model": MODEL, "input": chosen[start : start + 16]}
                answer = await client.post_json("/v1/embeddings", body)
                vectors += [entry["embedding"] for entry in sorted(answer["data"], key=lambda each: each["index"])]
        return cls(found, np.asarray(vectors, dtype=np.float32))

    def text(self) -> str:
        words = 0
        parts = []
        while words < WORDS:
            parts.append(self._random.choice(self._sentences))
            words += parts[-1].count(" ") + 1
        return " ".join(parts)

    def vector(self) -> NDArray[np.float32]:
        left, right = self._numbers.integers(len(self._vectors), size=2)
        noise = self._numbers.normal(0.0, 0.02, self._vectors.shape[1])
        mixed = 0.8 * self._vectors[left] + 0.4 * self._vectors[right] + noise
        return np.asarray(mixed / np.linalg.norm(mixed), dtype=np.float32)

    def query(self) -> str:
        """Some words in a row of some sentence, as someone half remembers it."""
        words = self._random.choice(self._sentences).split()
        length = self._random.randint(4, 10)
        start = self._random.randrange(max(1, len(words) - length))
        return " ".join(words[start : start + length]).strip(".,;:!?\"'()-")


def _sentences(data: Path) -> list[str]:
    if data.is_dir():
        texts = [document.text for make in SETS.values() for each in make(data) for document in each.documents]
        found = [sentence for text in texts for sentence in _SENTENCE.split(text)]
        return list(dict.fromkeys(sentence for sentence in found if 20 < len(sentence) < 400 and '"' not in sentence))
    rng = random.Random(5)
    words = ["".join(rng.choices("abcdefghijklmnoprstuvwy", k=rng.randint(3, 9))) for _ in range(30_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    return [" ".join(rng.choices(words, weights, k=rng.randint(8, 20))) for _ in range(30_000)]


class Loader:
    """Copies layouts into the tables of one service; the vector index is built last, as a transform does."""

    def __init__(self, opened: Service, corpus: Corpus) -> None:
        self._service = opened
        self._corpus = corpus

    async def load(self, layouts: Sequence[Layout]) -> None:
        """Those that are not there yet."""
        connection = await asyncpg.connect(self._service.dsn)
        try:
            layouts = [layout for layout in layouts if not await self._is_there(connection, layout)]
            if not layouts:
                return
            await register_vector(connection)
            row = await connection.fetchrow("SELECT model_key, table_name, dims FROM memory.embed_model LIMIT 1")
            assert row is not None
            await connection.execute(f"DROP INDEX IF EXISTS memory.{index_name(row['table_name'])}")
            for layout in layouts:
                for number in range(layout.tenants):
                    await self._tenant(connection, layout.tenant(number), layout.chunks, row)
            await connection.execute("SET maintenance_work_mem = '512MB'")
            await connection.execute(index_sql(row["table_name"], row["dims"], concurrently=False))
            await connection.execute("VACUUM ANALYZE")
        finally:
            await connection.close()
        for layout in layouts:
            for number in range(min(layout.tenants, 50)):
                await self._counted(layout.tenant(number))

    async def _is_there(self, conn: asyncpg.Connection, layout: Layout) -> bool:
        statement = "SELECT EXISTS (SELECT FROM memory.tenant_counter WHERE tenant_id = $1)"
        return bool(await conn.fetchval(statement, layout.tenant(layout.tenants - 1)))

    async def _counted(self, tenant: str) -> None:
        statement = "SELECT id FROM memory.generation WHERE tenant_id = $1 AND state = 'live'"
        await refresh(self._service.pool, tenant, await self._service.pool.fetchval(statement, tenant))

    async def _tenant(self, conn: asyncpg.Connection, tenant: str, count: int, model: asyncpg.Record) -> None:
        generation = new_id(IdKind.GENERATION)
        await conn.execute(
            "INSERT INTO memory.generation (id, tenant_id, state, recipe, model_key, dims) "
            "VALUES ($1, $2, 'live', $3::jsonb, $4, $5)",
            *(generation, tenant, json.dumps(self._service.settings.default_recipe().stored())),
            *(model["model_key"], model["dims"]),
        )
        began = datetime.now(UTC) - timedelta(seconds=count)
        for start in range(0, count, _COPIED_AT_ONCE):
            rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _COLUMNS}
            for number in range(start, min(start + _COPIED_AT_ONCE, count)):
                self._document(rows, tenant, generation, number, began + timedelta(seconds=number))
            for name, records in rows.items():
                table = model["table_name"] if name == "vectors" else name
                await conn.copy_records_to_table(
                    table, schema_name="memory", columns=_COLUMNS[name].split(), records=records
                )
        await conn.execute("INSERT INTO memory.tenant_counter (tenant_id, position) VALUES ($1, $2)", tenant, count)

    def _document(
        self, rows: dict[str, list[tuple[Any, ...]]], tenant: str, generation: str, number: int, at: datetime
    ) -> None:
        document, raw = new_id(IdKind.DOCUMENT), new_id(IdKind.RAW_CAPTURE)
        version, chunk = new_id(IdKind.VERSION), new_id(IdKind.CHUNK)
        text = self._corpus.text()
        title = " ".join(text.split()[:6])
        tags = ["memory.owner:writer", "memory.space:all"]
        tags += [tag for one_in, tag in RARE_TAGS.items() if number % one_in == 0]
        rows["document"].append((document, tenant, "http", document, title, "note", tags, "{}", "writer", at, at, at))
        rows["raw_capture"].append((raw, tenant, document, raw, "http", "…", at))
        rows["version"].append(
            (
                version,
                tenant,
                document,
                1,
                "active",
                at,
                title,
                "note",
                version,
                at,
                at,
                "event",
                "standard",
                "stated",
                "native",
                "writer",
                "human",
                0.42,
                raw,
                number + 1,
            )
        )
        rows["chunk"].append((chunk, tenant, generation, document, version, 0, text, "", 0, len(text), len(text) // 4))
        rows["derivation"].append((version, generation, tenant, 1, "embedded"))
        vector = HalfVector(self._corpus.vector().astype(np.float16))
        rows["vectors"].append((chunk, 0, tenant, generation, version, vector))
