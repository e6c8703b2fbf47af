"""The plane on a real database, with a fake embedding endpoint, and a few people who use it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from memory_plane.contracts.enums import Verb
from memory_plane.contracts.wire import AddFields
from memory_plane.core.caller import Caller
from memory_plane.core.text import clean_json
from memory_plane.core.visibility import Visibility
from memory_plane.plane.captured import Captured
from memory_plane.plane.engine import Engine
from memory_plane.plane.retention import Retention
from memory_plane.settings import Settings
from memory_plane.store.database import Pool, connection
from memory_plane.store.grants import put_rules
from tests.access.seed import TENANT, allow
from tests.fakes.endpoint import FakeEndpoint


@dataclass
class Plane:
    engine: Engine
    retention: Retention
    fake: FakeEndpoint

    @property
    def pool(self) -> Pool:
        return self.engine.pool

    async def grant(self, principal: str, resource: str, action: str = "search") -> None:
        async with connection(self.pool) as conn:
            await put_rules(conn, TENANT, [allow(principal, resource, action)])

    async def sight(self, principal: str = "alice") -> Visibility:
        return await self.engine.access.visibility(Caller(TENANT, principal))

    async def add(self, principal: str = "alice", **fields: Any) -> Captured:
        payload = {"title": "a title", "text": "a text", **fields}
        return await self.engine.capture.capture(
            await self.sight(principal), AddFields.model_validate(clean_json(payload)), payload=payload
        )

    async def embed(self, *captured: Captured) -> None:
        await self.engine.embedding.embed_versions(
            TENANT, [each.version_id for each in captured], on_progress=lambda done: None
        )

    async def statuses(self, document_id: str) -> list[str]:
        async with connection(self.pool) as conn:
            rows = await conn.fetch(
                "SELECT status FROM memory.version WHERE document_id = $1 ORDER BY version", document_id
            )
        return [row["status"] for row in rows]

    async def events(self) -> list[tuple[str, str, str | None]]:
        async with connection(self.pool) as conn:
            rows = await conn.fetch("SELECT kind, document_id, version_id FROM memory.feed_event ORDER BY position")
        return [(row["kind"], row["document_id"], row["version_id"]) for row in rows]

    async def count(self, table: str, where: str = "true", *values: object) -> int:
        async with connection(self.pool) as conn:
            number: int = await conn.fetchval(f"SELECT count(*) FROM memory.{table} WHERE {where}", *values)
        return number


@asynccontextmanager
async def opened_plane(settings: Settings) -> AsyncIterator[Plane]:
    """alice, bob and dora (who distils) may use every verb; who sees what is each test's to say."""
    async with FakeEndpoint(dims=64) as fake:
        configured = settings.model_copy(update={"embed_base_url": fake.url, "embed_model": "fake"})
        async with Engine.open(configured) as engine:
            opened = Plane(engine, Retention(engine.pool, engine.access), fake)
            for principal in ("alice", "bob", "dora"):
                for verb in Verb:
                    await opened.grant(principal, "memory", verb.value)
            yield opened


@pytest.fixture
async def plane(settings: Settings) -> AsyncIterator[Plane]:
    async with opened_plane(settings) as opened:
        yield opened
