"""The add path: captured first, embedded within a budget, and only what is left handed to a workflow."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from memory_plane.contracts.errors import Invalid, Unavailable
from memory_plane.contracts.wire import AddRequest
from memory_plane.core.text import clean_json
from memory_plane.models.pool import ModelPool
from memory_plane.plane.adding import Adding, AddOutcome
from memory_plane.plane.embedding import Embedding
from memory_plane.settings import Settings
from memory_plane.store.database import Pool
from tests.capture.memory import Memory
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Status


@dataclass
class Starter:
    """Stands for Temporal: remembers what it was asked to start, and ingests when told to."""

    embedding: Embedding | None = None
    down: bool = False
    started: list[tuple[str, list[str]]] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    widenings: list[tuple[str, str]] = field(default_factory=list)

    async def start_ingest(self, tenant_id: str, version_ids: Sequence[str]) -> None:
        if self.down:
            raise Unavailable("Temporal is down.")
        self.started.append((tenant_id, list(version_ids)))

    async def start_widening(self, tenant_id: str, request_id: str) -> None:
        if self.down:
            raise Unavailable("Temporal is down.")
        self.widenings.append((tenant_id, request_id))

    async def wait_ingest(self, tenant_id: str, version_ids: Sequence[str], within: float) -> bool:
        self.waited.append(within)
        if self.embedding is None:
            return False
        await self.embedding.embed_versions(tenant_id, version_ids)
        return True


@dataclass
class Facade:
    memory: Memory
    adding: Adding
    embedding: Embedding
    starter: Starter
    fake: FakeEndpoint

    async def add(self, *, key: str | None = None, **fields: Any) -> AddOutcome:
        payload = {"title": "A title", "text": "A text.", **fields}
        visibility = await self.memory.visibility("alice")
        return await self.adding.add(visibility, AddRequest.model_validate(clean_json(payload)), payload, key)

    async def batch(self, *items: Any, key: str | None = None) -> Any:
        return await self.adding.add_batch(await self.memory.visibility("alice"), items, key)

    @property
    def embed_calls(self) -> int:
        """Without the probe of the model's registration."""
        return sum(call.texts != ("memory",) for call in self.fake.calls)

    async def states(self) -> list[str]:
        return [row["embed_state"] for row in await self.memory.rows("derivation")]


@pytest.fixture
async def facade(pool: Pool, settings: Settings) -> AsyncIterator[Facade]:
    """With an endpoint that answers and whose model is registered, as by a worker's start."""
    async with FakeEndpoint(dims=64) as fake, ModelPool() as models:
        configured = settings.model_copy(update={"embed_base_url": fake.url, "embed_model": "fake"})
        memory = Memory.on(pool, configured)
        embedding = Embedding(pool, configured, models)
        await embedding.ensure_engine_model()
        starter = Starter()
        yield Facade(memory, Adding(memory.capture, embedding, starter, configured), embedding, starter, fake)


def item(n: int, **fields: Any) -> dict[str, Any]:
    return {"title": f"title {n}", "text": f"text {n}", **fields}


async def test_an_add_that_is_embedded_in_time_is_complete_and_starts_nothing(facade: Facade) -> None:
    outcome = await facade.add()

    assert (outcome.response.status, outcome.response.degraded) == ("captured", None)
    assert await facade.states() == ["embedded"]
    assert facade.starter.started == []


async def test_without_an_endpoint_an_add_is_lexical_and_starts_nothing(
    memory: Memory, facade: Facade, settings: Settings
) -> None:
    other = Memory.on(memory.pool, settings, tenant="lexical")
    facade.memory, facade.adding = other, Adding(other.capture, facade.embedding, facade.starter, settings)

    assert (await facade.add()).response.degraded == ["embed_unavailable", "lexical_only"]
    assert (await facade.batch(item(1))).degraded == ["embed_unavailable", "lexical_only"]
    assert facade.starter.started == []


async def test_a_failing_endpoint_leaves_the_embed_to_a_workflow(facade: Facade) -> None:
    facade.fake.fail(Status(500))
    outcome = await facade.add()

    assert outcome.response.degraded == ["embed_unavailable"]
    assert facade.starter.started == [(facade.memory.tenant, [outcome.response.version_id])]
    assert await facade.states() == ["pending"]


async def test_an_endpoint_that_is_late_costs_the_budget_and_no_more(facade: Facade, settings: Settings) -> None:
    hasty = settings.model_copy(update={"embed_inline_budget_ms": 50})
    facade.adding = Adding(facade.memory.capture, facade.embedding, facade.starter, hasty)
    hold = facade.fake.hold(on="embed")
    try:
        outcome = await facade.add()
    finally:
        hold.release()

    assert outcome.response.degraded == ["embed_pending"]
    assert facade.starter.started == [(facade.memory.tenant, [outcome.response.version_id])]


async def test_without_temporal_an_add_is_still_durable_and_says_so(facade: Facade) -> None:
    facade.fake.fail(Status(500))
    facade.starter.down = True
    assert (await facade.add()).response.degraded == ["embed_unavailable", "ingest_delayed"]
    assert (await facade.batch(item(1))).degraded == ["embed_pending", "ingest_delayed"]


async def test_a_database_that_fails_after_the_capture_fails_no_add(
    facade: Facade, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_: object) -> None:
        raise Unavailable("gone", code="database_unavailable")

    monkeypatch.setattr(facade.embedding, "embed_inline", gone)
    assert (await facade.add()).response.degraded == ["embed_pending"]


async def test_a_requested_processor_starts_an_ingest_though_all_is_embedded(facade: Facade) -> None:
    outcome = await facade.add(process=["tag"])
    assert outcome.response.degraded is None
    assert facade.starter.started == [(facade.memory.tenant, [outcome.response.version_id])]
    assert facade.starter.waited == []


async def test_a_wider_audience_asked_for_is_waited_for_by_a_workflow(facade: Facade) -> None:
    source = await facade.memory.add()
    asked: dict[str, Any] = {
        "derived_from": [source.version_id],
        "access_tags": ["memory.space:x"],
        "request_widening": True,
    }
    await facade.add(**asked)
    facade.starter.down = True
    assert (await facade.batch(item(1, **asked))).items[0].status == "captured"

    first, second = await facade.memory.rows("audience_request")
    assert facade.starter.widenings == [(facade.memory.tenant, min(first["id"], second["id"]))]


async def test_waiting_for_captured_calls_no_endpoint(facade: Facade) -> None:
    outcome = await facade.add(wait="captured")
    assert outcome.response.degraded == ["embed_pending"]
    assert facade.embed_calls == 0
    assert len(facade.starter.started) == 1
    assert facade.starter.waited == []


async def test_waiting_for_embedded_waits_for_the_workflow_and_tells_how_it_stands(facade: Facade) -> None:
    facade.fake.fail(Status(500), times=1)
    facade.starter.embedding = facade.embedding
    outcome = await facade.add(wait="embedded", wait_ms=20_000)

    assert outcome.response.degraded is None
    assert await facade.states() == ["embedded"]
    (waited,) = facade.starter.waited
    assert 0 < waited <= 20


async def test_waiting_ends_with_its_time(facade: Facade) -> None:
    facade.fake.fail(Status(500))
    assert (await facade.add(wait="embedded", wait_ms=0)).response.degraded == ["embed_pending"]
    assert facade.starter.waited == []
    assert (await facade.add(text="another", wait="processed", wait_ms=5_000)).response.degraded == [
        "embed_unavailable"
    ]
    assert len(facade.starter.waited) == 1


async def test_the_same_add_again_completes_what_was_left(facade: Facade) -> None:
    facade.fake.fail(Status(500))
    await facade.add(external_ref="note", key="k")
    facade.fake.heal()

    again = await facade.add(external_ref="note", key="k")

    assert again.replayed
    assert again.response.degraded is None, "told anew"
    assert await facade.states() == ["embedded"]


async def test_a_long_document_is_left_to_the_workflow_at_once(facade: Facade) -> None:
    outcome = await facade.add(text="many words " * 20_000)
    assert outcome.response.degraded == ["embed_pending"]
    assert facade.embed_calls == 0


async def test_no_connection_is_held_while_the_endpoint_is_waited_for(facade: Facade) -> None:
    """Two hundred adds, half of their callers gone, against an endpoint that does not answer yet."""
    await facade.add(text="warms up")
    hold = facade.fake.hold(on="embed")
    adds = [asyncio.create_task(facade.add(text=f"text {n}")) for n in range(200)]
    await hold.reached(1)
    await _all_captured(facade, 201)
    for gone in adds[::2]:
        gone.cancel()
    assert await facade.memory.pool.fetchval("SELECT 1") == 1
    assert facade.memory.pool.get_size() - facade.memory.pool.get_idle_size() == 0
    hold.release()
    results = await asyncio.gather(*adds, return_exceptions=True)

    assert all(isinstance(result, AddOutcome | asyncio.CancelledError) for result in results)
    assert facade.memory.pool.get_size() - facade.memory.pool.get_idle_size() == 0
    assert await facade.memory.count("version") == 201


async def _all_captured(facade: Facade, wanted: int) -> None:
    async def captured() -> bool:
        return await facade.memory.count("version") == wanted

    await eventually(captured, what="every add to be captured")


async def test_a_batch_captures_each_item_and_starts_one_ingest(facade: Facade) -> None:
    answer = await facade.batch(*(item(n) for n in range(20)))

    assert [each.status for each in answer.items] == ["captured"] * 20
    assert [each.index for each in answer.items] == list(range(20))
    assert answer.degraded == ["embed_pending"]
    ((tenant, ids),) = facade.starter.started
    assert (tenant, set(ids)) == (facade.memory.tenant, {each.version_id for each in answer.items})
    assert facade.embed_calls == 0


async def test_each_item_of_a_batch_stands_alone(facade: Facade) -> None:
    await facade.memory.add("bob", external_ref="bobs")
    answer = await facade.batch(
        item(0),
        {"title": "no text"},
        item(2, acess_tags=[]),
        item(3, tenant_id="globex"),
        item(4, external_ref="bobs"),
        item(5, derived_from=["kver_unknown"]),
        "no object",
        item(7, text="\ud800 kept \x00"),
        item(8, wait="embedded"),
    )

    errors = {each.index: each.error for each in answer.items if each.error is not None}
    assert {index: error.code for index, error in errors.items()} == {
        1: "invalid",
        2: "invalid",
        3: "invalid",
        4: "not_document_writer",
        5: "source_gone",
        6: "invalid",
        8: "invalid",
    }
    assert "access_tags" in errors[2].detail
    assert "credential" in errors[3].detail
    assert await facade.memory.count("version") == 3


async def test_two_items_of_one_document_are_captured_in_their_order(facade: Facade) -> None:
    answer = await facade.batch(*(item(n, external_ref=f"note {n % 2}") for n in range(30)))

    for place in (0, 1):
        chain = await facade.memory.chain(answer.items[place].document_id)
        assert [row["title"] for row in chain] == [f"title {n}" for n in range(place, 30, 2)]


async def test_a_batch_key_counts_for_each_item(facade: Facade) -> None:
    first = await facade.batch(item(0), item(1), key="k")
    again = await facade.batch(item(0), item(1, text="changed"), item(2), key="k")

    assert again.items[0].version_id == first.items[0].version_id
    assert again.items[1].error.code == "idempotency_key_reused"
    assert again.items[2].status == "captured"
    assert (await facade.add(key="k", text="a single add")).replayed is False


@pytest.mark.parametrize("count", [0, 501])
async def test_a_batch_has_its_bounds(facade: Facade, count: int) -> None:
    with pytest.raises(Invalid):
        await facade.batch(*[item(0)] * count)


async def test_a_batch_that_nobody_can_promise_is_refused_as_a_whole(
    facade: Facade, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: object, **__: object) -> None:
        raise Unavailable("down", code="database_unavailable", retry_after=2)

    monkeypatch.setattr(facade.memory.capture, "capture", down)
    with pytest.raises(Unavailable) as refused:
        await facade.batch(item(0), item(1))
    assert refused.value.code == "database_unavailable"
