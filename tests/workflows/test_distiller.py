"""DistillerWorkflow on the real server: ticks and residents, poison, outages, hosts' processors, a killed worker."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest
from temporalio import activity
from temporalio.client import Client, ScheduleActionStartWorkflow, WorkflowFailureError, WorkflowHandle
from temporalio.worker import Worker

import schedules
from memory_plane.contracts import names
from memory_plane.contracts.distilling import DistillCounts, DistillerInput, DistillerResult
from memory_plane.contracts.workflows import ProcessInput, ProcessorSpec, ProcessResult
from memory_plane.dev.child import Child
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from tests.canaries import CANARY, leaks
from tests.distilling.notes import AGENT, Notes, Scribe
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Poison, Status
from tests.replay.recording import record
from tests.workflows.conftest import RunWorkers
from tests.workflows.test_worker import Start, start
from workflows import policies
from workflows.distiller import DistillerWorkflow

__all__ = ["start"]

TENANT = "acme"
Handle = WorkflowHandle[DistillerWorkflow, DistillerResult]


@pytest.fixture
def configured(configured: Settings, fake: FakeEndpoint) -> Settings:
    fake.chat_answer = Scribe()
    return configured.model_copy(
        update={"distill_base_url": fake.url, "distill_model": "fake", "distill_timeout_ms": 5000}
    )


@pytest.fixture
async def notes(engine: Engine) -> Notes:
    return await Notes.of(engine, TENANT)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "pause_after", lambda rounds: timedelta(milliseconds=10))


async def begin(client: Client, given: DistillerInput | None = None) -> Handle:
    return await client.start_workflow(
        DistillerWorkflow.run,
        given or DistillerInput(tenant_id=TENANT, agent_id=AGENT),
        id=f"{names.distiller_id(TENANT, AGENT)}-{uuid4().hex[:8]}",
        task_queue=names.QUEUE,
    )


async def test_a_tick_distils_embeds_and_ends(
    engine: Engine, client: Client, workers: RunWorkers, notes: Notes
) -> None:
    await notes.add(f"The kettle is blue. {CANARY} is its name.")
    await notes.add("Bob moved to Oslo.", "bob")
    async with workers():
        handle = await begin(client)
        assert await handle.result() == DistillerResult(written=2, claims=3, drained=True)
        await record(handle, "distiller-tick")
        again = await (await begin(client)).result()
        assert (again.written, again.claims) == (0, 0)

        async def embedded() -> bool:
            return not await engine.pool.fetchval(
                "SELECT count(*) FROM memory.derivation e JOIN memory.edge d ON d.from_id = e.version_id"
                " WHERE d.rel = 'derived_from' AND e.embed_state <> 'embedded'"
            )

        await eventually(embedded, what="the claims to be embedded")
    assert await leaks(client) == []


async def test_inv_25_a_poison_entry_delays_nothing_and_is_found_in_quarantine(
    engine: Engine, client: Client, workers: RunWorkers, notes: Notes, fake: FakeEndpoint
) -> None:
    await notes.add("Before it.")
    poison = await notes.add(f"POISON {CANARY}.")
    await notes.add("After it.")
    fake.fail(Poison("POISON", 500), on="chat")
    async with workers():
        handle = await begin(client)
        result = await handle.result()
        await record(handle, "distiller-poisoned")
        assert (result.written, result.quarantined, result.drained) == (2, 1, True)
        assert await notes.refs() == [f"{AGENT}/{notes.ids[0]}/0", f"{AGENT}/{notes.ids[2]}/0"]
        (entry,) = await engine.distilling.quarantined(TENANT)
        assert (entry.version_id, entry.attempts) == (poison, policies.DISTILL_ATTEMPTS)
        assert "fails (500)" in entry.reason
        assert CANARY not in entry.reason

        fake.heal()
        assert await engine.distilling.retry(TENANT, AGENT, [poison]) == 1
        assert (await (await begin(client)).result()).written == 1
    assert f"{AGENT}/{poison}/0" in await notes.refs()
    assert await engine.distilling.quarantined(TENANT) == []
    assert await leaks(client) == []


@pytest.mark.usefixtures("no_pauses")
async def test_an_endpoint_that_is_away_costs_no_entry_its_attempts(
    engine: Engine, client: Client, workers: RunWorkers, notes: Notes, fake: FakeEndpoint
) -> None:
    await notes.add("The kettle is blue.")
    fake.fail(Status(503), on="chat")
    async with workers():
        first = await (await begin(client)).result()
        assert (first.drained, first.quarantined, await notes.cursor()) == (False, 0, 0)
        fake.heal()
        fake.fail(Status(500), on="chat")  # to every question, a harmless one too
        assert (await (await begin(client)).result()).quarantined == 0
        fake.heal()
        assert (await (await begin(client)).result()).written == 1


async def test_a_resident_one_wakes_by_a_nudge_and_is_cancelled(
    engine: Engine, client: Client, workers: RunWorkers, notes: Notes
) -> None:
    async with workers():
        handle = await begin(
            client, DistillerInput(tenant_id=TENANT, agent_id=AGENT, mode="resident", idle_seconds=3600)
        )
        for number in range(2):
            await notes.add(f"Note {number}.")
            await handle.signal(DistillerWorkflow.nudge)

            async def done(wanted: int = number + 1) -> bool:
                counts: DistillCounts = await handle.query(DistillerWorkflow.status)
                return counts.claims == wanted

            await eventually(done, what="the resident distiller to distil")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        await record(handle, "distiller-resident")


async def test_without_its_grants_it_fails_and_says_which(
    engine: Engine, client: Client, workers: RunWorkers, notes: Notes
) -> None:
    await notes.add("The kettle is blue.")
    await engine.pool.execute("DELETE FROM memory.grant_rule WHERE principal_id = 'distiller'")
    async with workers():
        with pytest.raises(WorkflowFailureError) as failed:
            await (await begin(client)).result()
    assert "memory:search" in str(failed.value.cause.__cause__)


async def test_inv_24_a_worker_killed_while_the_model_thinks_writes_each_claim_once(
    engine: Engine, client: Client, notes: Notes, fake: FakeEndpoint, start: Start
) -> None:
    distils = {"DISTILL_BASE_URL": fake.url, "DISTILL_MODEL": "fake"}
    await notes.add("The kettle is blue. It was bought in May.")
    await notes.add("Bob moved to Oslo.")
    hold = fake.hold(on="chat")
    first: Child = await start(distils)
    handle = await begin(client)
    await hold.reached(1)
    await first.kill()
    hold.release()
    await start(distils)
    assert await handle.result() == DistillerResult(written=2, claims=3, drained=True)
    claims = await notes.claims()
    assert [claim["version"] for claim in claims] == [1, 1, 1]


class HostDistiller:
    """A host's own processor: it writes its claims through the facade, here as many as it is told."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.claims = 3
        self.failures = 0

    @activity.defn(name="host_distil")
    async def distil(self, given: ProcessInput) -> ProcessResult:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("what the host says is in the history of the workflow that asked it")
        notes = Notes(self.engine, given.tenant_id)
        ids = [
            await notes.add(
                f"Claim {number}.",
                "distiller",
                share=None,
                adapter="claim",
                external_ref=f"{given.processor}/{given.version_id}/{number}",
                derived_from=[given.version_id],
                generator_agent_id=given.processor,
            )
            for number in range(self.claims)
        ]
        return ProcessResult(outcome="written", version_ids=ids)


class TestHost:
    @pytest.fixture
    def configured(self, configured: Settings) -> Settings:
        spec = ProcessorSpec(type="host_distil", task_queue="host-distil", timeout_seconds=20)
        return configured.model_copy(update={"distill_processor": spec, "distill_base_url": None})

    @pytest.fixture
    async def host(self, engine: Engine, client: Client) -> AsyncIterator[HostDistiller]:
        host = HostDistiller(engine)
        async with Worker(client, task_queue="host-distil", activities=[host.distil]):
            yield host

    @pytest.mark.usefixtures("no_pauses")
    async def test_inv_24_a_run_that_writes_fewer_withdraws_the_higher_ones(
        self, engine: Engine, client: Client, workers: RunWorkers, notes: Notes, host: HostDistiller
    ) -> None:
        source = await notes.add("The kettle is blue.")
        host.failures = 1
        async with workers():
            handle = await begin(client)
            assert (await handle.result()).claims == 3
            await record(handle, "distiller-host")
            assert await notes.refs() == [f"{AGENT}/{source}/{number}" for number in range(3)]

            # As if the worker had died between the host's last claim and our cursor.
            await engine.pool.execute("UPDATE memory.consumer_cursor SET position = 0")
            host.claims = 1
            assert (await (await begin(client)).result()).claims == 1
        assert await notes.refs() == [f"{AGENT}/{source}/0"]
        assert await notes.refs("deprecated") == [f"{AGENT}/{source}/1", f"{AGENT}/{source}/2"]
        assert await leaks(client) == []

    @pytest.mark.usefixtures("no_pauses")
    async def test_inv_25_one_that_the_host_cannot_do_is_put_aside_without_its_words(
        self, engine: Engine, client: Client, workers: RunWorkers, notes: Notes, host: HostDistiller
    ) -> None:
        await notes.add("The kettle is blue.")
        host.failures = policies.DISTILL_ATTEMPTS
        async with workers():
            assert (await (await begin(client)).result()).quarantined == 1
        (entry,) = await engine.distilling.quarantined(TENANT)
        assert entry.reason == "The processor failed (RuntimeError)."


async def test_it_is_scheduled_where_it_is_configured(client: Client, configured: Settings) -> None:
    assert not any(
        each.id.startswith("memory-distiller") for each in schedules.declared(configured)
    )  # for no tenant by itself
    settings = configured.model_copy(update={"distill_tenants": [TENANT]})
    await schedules.apply(client, settings)
    described = await client.get_schedule_handle(names.distiller_id(TENANT, AGENT)).describe()
    action = described.schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    assert action.workflow == names.DISTILLER
