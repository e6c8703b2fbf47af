"""Schedules and search attributes, applied to the real server."""

from datetime import timedelta

import pytest
from temporalio.client import Client, Schedule, ScheduleActionStartWorkflow

import schedules
from memory_plane.contracts import names
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from tests.embedding.corpus import make_generation, store
from tests.eventually import eventually
from tests.workflows.conftest import RunWorkers


def _action(schedule: Schedule) -> ScheduleActionStartWorkflow:
    assert isinstance(schedule.action, ScheduleActionStartWorkflow)
    return schedule.action


async def test_applied_twice_they_are_there_once_and_a_pause_is_kept(client: Client, settings: Settings) -> None:
    await schedules.apply(client, settings)
    handle = client.get_schedule_handle(names.SCHEDULE_RECONCILE)
    await handle.pause(note="an operator's reasons")

    await schedules.apply(client, settings)

    described = await handle.describe()
    assert described.schedule.state.paused
    assert described.schedule.state.note == "an operator's reasons"


async def test_what_an_earlier_version_declared_is_brought_up_to_date(
    client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, *_) = schedules.declared(settings)
    _action(first.schedule).static_summary = "as it was"
    with monkeypatch.context() as earlier:
        earlier.setattr(schedules, "declared", lambda settings: [first])
        await schedules.apply(client, settings)
    await schedules.apply(client, settings)
    described = await client.get_schedule_handle(first.id).describe()
    assert "as it was" not in str(_action(described.schedule).static_summary)


async def test_the_reconciler_runs_by_its_schedule(
    engine: Engine, client: Client, settings: Settings, workers: RunWorkers
) -> None:
    generation = await make_generation(engine.pool, "acme", engine.settings.default_recipe())
    await store(engine.pool, "acme", generation, ["text"], age_seconds=600)
    await schedules.apply(client, settings)

    async with workers():
        await client.get_schedule_handle(names.SCHEDULE_RECONCILE).trigger()

        async def embedded() -> bool:
            return bool(await engine.pool.fetchval("SELECT embed_state = 'embedded' FROM memory.derivation"))

        await eventually(embedded, what="the scheduled reconciler to start the ingest")


async def test_search_attributes_are_registered_once(client: Client) -> None:
    await schedules.register_search_attributes(client)
    await schedules.register_search_attributes(client)


async def test_every_schedule_is_bounded(settings: Settings) -> None:
    for each in schedules.declared(settings):
        assert _action(each.schedule).execution_timeout is not None, each.id
        window = each.schedule.policy.catchup_window
        assert window is not None, each.id
        assert window <= timedelta(hours=1), each.id
