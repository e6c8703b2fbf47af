"""The main field case, on a whole stack: another model is built, promoted, taken back and promoted again while adds,
searches and forgets go on over HTTP, and the worker is killed at half.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from temporalio.client import Client

from memory_plane.client import AsyncMemoryClient
from memory_plane.contracts.transforms import Standing
from memory_plane.dev.stack import DevStack
from memory_plane.plane.engine import Engine
from memory_plane.temporal import DATA_CONVERTER
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Delay
from tests.fixtures.database import settings_for
from tests.fixtures.stack import clean_environment
from tests.generations.driving import cut_over, run_of, start
from tests.generations.world import Tenant

DOCUMENTS = 500
MODELS = {"small": 384, "large": 1024}
BATCH = 32
PLACES = ["mill", "weir", "ford", "quarry", "ferry", "orchard", "chapel", "tannery", "smithy", "brewery"]
ANIMALS = ["otter", "heron", "beaver", "newt", "pike"]
QUERIES = [f"{ANIMALS[n % 5]} at the {place}" for n, place in enumerate(PLACES)]
"""Ten documents speak of both the animal and the place of each: the best ten, whatever comes beside them."""


def text(number: int) -> str:
    animal, place = ANIMALS[number % 5], PLACES[number // 5 % 10]
    return f"Observation {number}: one {animal} at the {place}, on day {number // 50} of the watch."


@pytest.fixture
async def fake() -> AsyncIterator[FakeEndpoint]:
    async with FakeEndpoint(models=MODELS) as endpoint:
        yield endpoint


@pytest.fixture
async def stack(tmp_path: Path, fake: FakeEndpoint) -> AsyncIterator[DevStack]:
    environment = {
        **clean_environment(),
        "EMBED_BASE_URL": fake.url,
        "EMBED_MODEL": "small",
        "EMBED_BATCH_SIZE": str(BATCH),
        "SEARCH_DEADLINE_MS": "20000",
    }
    async with DevStack(tmp_path / "stack", port=0, durable=False, environment=environment) as running:
        yield running


@dataclass
class Life:
    """What goes on beside the operator: adds and searches, several a second, and a forget now and then."""

    memory: AsyncMemoryClient
    added: dict[str, str] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    searches: int = 0
    empty: int = 0
    failures: list[str] = field(default_factory=list)
    _number: int = 0

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        over = asyncio.Event()
        tasks = [asyncio.create_task(work(over)) for work in (self._adds, self._searches)]
        try:
            yield
        finally:
            over.set()
            await asyncio.gather(*tasks)

    async def _adds(self, over: asyncio.Event) -> None:
        while not over.is_set():
            await self.add()
            if self._number % 7 == 0:
                await self.forget()
            await _pause(over, 0.2)

    async def add(self) -> str:
        self._number += 1
        word = f"latecomer{self._number}"
        answer = await self.memory.add(word, f"The {word} came to the lake.", external_ref=word)
        self.added[answer.document_id] = word
        return answer.document_id

    async def forget(self) -> None:
        """The oldest of them that is left."""
        gone = next(document for document in self.added if document not in self.forgotten)
        self.forgotten.add(gone)
        await self.memory.forget(gone)

    async def _searches(self, over: asyncio.Event) -> None:
        while not over.is_set():
            query = QUERIES[self.searches % len(QUERIES)]
            answer = await self.memory.search(query, limit=10)
            self.searches += 1
            self.empty += not answer.items
            if answer.degraded:
                self.failures += answer.degraded
            await _pause(over, 0.2)


async def _pause(over: asyncio.Event, seconds: float) -> None:
    """The rate of the load, not a wait for anything."""
    try:
        await asyncio.wait_for(over.wait(), seconds)
    except TimeoutError:
        return


async def tops(memory: AsyncMemoryClient) -> list[set[str]]:
    return [{item.document_id for item in (await memory.search(query, limit=10)).items} for query in QUERIES]


async def everything_is_there(memory: AsyncMemoryClient, life: Life) -> None:
    """Each late document answers to its own word, but for those forgotten."""
    for document, word in life.added.items():
        answer = await memory.search(word, limit=3)
        found = [item.document_id for item in answer.items]
        if document in life.forgotten:
            assert document not in found, f"{word} was forgotten"
        else:
            assert found[:1] == [document], f"{word} was lost"


@pytest.mark.timeout(600)
async def test_the_main_field_case(stack: DevStack, fake: FakeEndpoint) -> None:
    access = stack.access
    settings = settings_for(access.database, embed_base_url=fake.url, embed_model="small", embed_batch_size=BATCH)
    async with (
        AsyncMemoryClient(access.api, access.tenant, access.token) as memory,
        Engine.open(settings) as engine,
    ):
        client = await Client.connect(access.temporal, data_converter=DATA_CONVERTER)
        tenant = Tenant(engine, access.tenant)
        await captured(memory, engine)
        before = await tops(memory)
        life = Life(memory)
        fake.forget_calls()
        fake.fail(Delay(0.05), on="embed")

        async with life.going_on():
            run = await start(client, tenant, {"embed": {"model": "large"}})
            generation = run_of(run)

            async def standing() -> Standing:
                return await engine.transforms.standing(access.tenant, generation)

            async def half() -> bool:
                now = await standing()
                return now.versions - now.pending >= DOCUMENTS // 2

            async def completed() -> bool:
                return (await standing()).status == "completed"

            await eventually(half, seconds=120, what="half of the generation")
            await stack.kill("worker")
            await stack.restart("worker")
            await eventually(completed, seconds=180, what="the run to complete")
            texts = [each for call in fake.calls if call.body.get("model") == "large" for each in call.texts]
            assert len(texts) - len(set(texts)) <= BATCH, "more than one batch was embedded twice"
            old = await tenant.live()
            promoted = await (await cut_over(client, "promote", tenant, generation)).result()
            assert (promoted.live, promoted.down, promoted.verified) == (generation, old, True)
        assert (life.empty, life.failures) == (0, []) and life.searches > 10 and life.forgotten
        await everything_is_there(memory, life)

        async with life.going_on():
            for _ in range(3):
                await life.add()
            await life.forget()
            demoted = await (await cut_over(client, "demote", tenant, generation)).result()
            assert (demoted.live, demoted.down, demoted.verified) == (old, generation, True)
        assert await tops(memory) == before, "the old top tens are back"
        await everything_is_there(memory, life)

        async with life.going_on():
            again = await (await cut_over(client, "promote", tenant, generation)).result()
            assert (again.live, again.verified) == (generation, True)
        await everything_is_there(memory, life)
        assert (life.empty, life.failures) == (0, [])

        async def all_embedded() -> bool:
            left: int = await engine.pool.fetchval(
                "SELECT count(*) FROM memory.derivation d JOIN memory.generation g ON g.id = d.generation_id "
                "WHERE g.state = 'live' AND d.embed_state <> 'embedded'"
            )
            return left == 0

        await eventually(all_embedded, seconds=120, what="every version to be embedded")


async def captured(memory: AsyncMemoryClient, engine: Engine) -> None:
    for first in range(0, DOCUMENTS, 100):
        items = [
            {"title": f"observation {n}", "text": text(n), "external_ref": f"obs-{n}"}
            for n in range(first, first + 100)
        ]
        await memory.add_batch(items)

    async def embedded() -> bool:
        done: int = await engine.pool.fetchval("SELECT count(*) FROM memory.derivation WHERE embed_state = 'embedded'")
        return done == DOCUMENTS

    await eventually(embedded, seconds=120, what="the documents to be embedded")
