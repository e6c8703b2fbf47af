"""Every part is killed at random moments while documents are added; whatever was acknowledged is there once, embedded.

One stack of its own, with fsync on: a kill -9 of Postgres must lose nothing that was acknowledged.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from memory_plane.client import AsyncMemoryClient
from memory_plane.contracts.errors import Unavailable
from memory_plane.dev.stack import DevStack
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.fixtures.stack import clean_environment

ADDS = 300
WRITERS = 6
VICTIMS = ("api", "worker", "temporal", "postgres")
EMBEDDED_WITHIN = 240.0
"""Seconds: the reconciler looks each minute for what has waited for one."""


@pytest.fixture
async def crashing(tmp_path: Path) -> AsyncIterator[DevStack]:
    async with FakeEndpoint(dims=64) as fake:
        environment = {**clean_environment(), "EMBED_BASE_URL": fake.url, "EMBED_MODEL": "fake"}
        async with DevStack(tmp_path / "stack", port=0, durable=True, environment=environment) as running:
            yield running


class Writers:
    """Clients that add documents until each was acknowledged, and remember what they were told."""

    def __init__(self, stack: DevStack) -> None:
        access = stack.access
        self._client = AsyncMemoryClient(access.api, access.tenant, access.token, attempts=1)
        self._numbers = iter(range(ADDS))
        self._told = asyncio.Condition()
        self.acknowledged: dict[int, str] = {}
        self.failures = 0

    async def run(self) -> None:
        async with self._client, asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._write())

    async def reached(self, count: int) -> None:
        async with self._told:
            await self._told.wait_for(lambda: len(self.acknowledged) >= count)

    async def _write(self) -> None:
        for number in self._numbers:
            version = await self._add(number)
            async with self._told:
                self.acknowledged[number] = version
                self._told.notify_all()

    async def _add(self, number: int) -> str:
        """As a careful client does: the same key again until there is an answer."""
        while True:
            try:
                added = await self._client.add(
                    f"Note {number}", f"What was said under number {number}.", idempotency_key=f"add-{number}"
                )
            except Unavailable:
                self.failures += 1
                await asyncio.sleep(0.05)  # the client's own pause, not the test's: the API is down
                continue
            return added.version_id


@pytest.mark.timeout(600)
async def test_inv_06_nothing_acknowledged_is_lost_or_doubled_whatever_is_killed(crashing: DevStack) -> None:
    moments = random.Random(20261130)
    writers = Writers(crashing)
    running = asyncio.create_task(writers.run())
    for victim, at in zip(VICTIMS, sorted(moments.sample(range(20, ADDS - 20), len(VICTIMS))), strict=True):
        reached = asyncio.create_task(writers.reached(at))
        await asyncio.wait([running, reached], return_when=asyncio.FIRST_COMPLETED)
        assert reached.done(), "the writers ended early"
        await crashing.kill(victim)
        await crashing.restart(victim)
    await running
    assert writers.failures > 0, "nothing was down while documents were added: the kills proved nothing"

    database = await asyncpg.connect(crashing.access.database)
    try:
        rows = await database.fetch(
            "SELECT d.id, v.id AS version_id, v.title, v.status FROM memory.document d"
            " JOIN memory.version v ON v.document_id = d.id"
        )
        assert sorted(row["title"] for row in rows) == sorted(f"Note {number}" for number in range(ADDS))
        assert {row["version_id"] for row in rows} == set(writers.acknowledged.values())
        assert {row["status"] for row in rows} == {"active"}

        async def all_embedded() -> bool:
            left: int = await database.fetchval(
                "SELECT count(*) FROM memory.derivation WHERE embed_state <> 'embedded'"
            )
            return left == 0

        await eventually(all_embedded, seconds=EMBEDDED_WITHIN, what="every acknowledged document to be embedded")
        positions = [
            row["position"] for row in await database.fetch("SELECT position FROM memory.feed_event ORDER BY 1")
        ]
        assert positions == list(range(1, ADDS + 1))
    finally:
        await database.close()
