"""Each claim once, nothing skipped: killed at every step, run twice at once, beside another distiller."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from memory_plane.contracts.workflows import ProcessOutcome
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from tests.distilling.killing import Killed, killed_after
from tests.distilling.notes import AGENT, Notes, drain
from tests.fakes.endpoint import FakeEndpoint

TEXTS = ("The kettle is blue. It was bought in May.", "Bob moved to Oslo.")


async def written(notes: Notes) -> None:
    """Two notes, a claim of another agent, a note that the distiller made itself, and one nobody shared with it."""
    first = await notes.add(TEXTS[0])
    await notes.add("Somebody else's claim.", "bob", derived_from=[first], generator_agent_id="other")
    await notes.add("My own words.", generator_agent_id=AGENT)
    await notes.add("Alice's secret.", share=None)
    await notes.add(TEXTS[1], "bob")


def expected(notes: Notes) -> list[str]:
    return sorted([f"{AGENT}/{notes.ids[0]}/0", f"{AGENT}/{notes.ids[0]}/1", f"{AGENT}/{notes.ids[4]}/0"])


async def assert_each_claim_once(notes: Notes) -> None:
    ours = [claim for claim in await notes.claims() if claim["external_ref"].startswith(f"{AGENT}/")]
    assert [claim["external_ref"] for claim in ours] == expected(notes)
    assert {(claim["version"], claim["status"]) for claim in ours} == {(1, "active")}
    assert_positions(ours)


def assert_positions(claims: Sequence[Mapping[str, Any]]) -> None:
    positions = [claim["feed_position"] for claim in claims]
    assert None not in positions
    assert len(set(positions)) == len(positions)


async def test_inv_24_killed_after_every_statement_each_claim_is_written_once(
    engine: Engine, configured: Settings
) -> None:
    statement, kills = 0, 0
    while True:
        notes = await Notes.of(engine, f"t{statement}")
        await written(notes)
        # An engine of its own, whose connections end with it as those of a killed process do.
        async with Engine.open(configured) as victim:
            try:
                with killed_after(statement):
                    await drain(victim, notes.tenant)
                killed = False
            except Killed:
                victim.pool.terminate()
                killed = True
        await drain(engine, notes.tenant)
        await assert_each_claim_once(notes)
        if not killed:
            break
        statement, kills = statement + 1, kills + 1
    assert kills > 20, "so few statements: the kills proved nothing"


async def test_inv_24_two_runs_of_one_distiller_at_once_write_each_claim_once(
    engine: Engine, notes: Notes, fake: FakeEndpoint
) -> None:
    await written(notes)
    hold = fake.hold(on="chat")
    runs = [asyncio.create_task(drain(engine, notes.tenant)) for _ in range(2)]
    await hold.reached(2)  # both have read the same entry
    hold.release()
    outcomes = [outcome.outcome for run in runs for outcome in await run]
    assert "moved" in outcomes
    assert outcomes.count("written") == 2
    await assert_each_claim_once(notes)


async def test_inv_24_two_distillers_on_one_tenant_do_not_feed_each_other(engine: Engine, notes: Notes) -> None:
    await written(notes)
    for _ in range(3):
        for agent in (AGENT, "second"):
            await drain(engine, notes.tenant, agent)
    assert len(await notes.claims()) == 3 + 4  # the second one also distils what the first one's agent made itself
    sources = await engine.pool.fetch("SELECT DISTINCT to_id FROM memory.edge WHERE rel = 'derived_from'")
    assert {row["to_id"] for row in sources} <= set(notes.ids)


async def test_inv_24_a_source_forgotten_while_the_model_thinks_is_a_skip(
    engine: Engine, notes: Notes, fake: FakeEndpoint
) -> None:
    gone = await notes.add("Soon to be forgotten.")
    await notes.add(TEXTS[1])
    hold = fake.hold(on="chat")
    run = asyncio.create_task(drain(engine, notes.tenant))
    await hold.reached(1)
    await notes.forget(gone)
    hold.release()
    assert [outcome.outcome for outcome in await run] == ["skip", "written"]
    assert await notes.refs() == [f"{AGENT}/{notes.ids[1]}/0"]


async def test_inv_24_a_claim_has_the_tags_and_the_readers_of_its_source(engine: Engine, notes: Notes) -> None:
    await notes.add("Only for the team.", share=None, access_tags=["memory.space:team"])
    await drain(engine, notes.tenant)
    assert await notes.claims() == []  # the distiller sees what its grants allow, no more

    await notes.add(TEXTS[1])
    await drain(engine, notes.tenant)
    (claim,) = await notes.claims()
    assert sorted(claim["access_tags"]) == ["memory.owner:alice", "memory.owner:distiller", "memory.tenant:acme"]
    assert (claim["generator_agent_id"], claim["provenance"], claim["source_class"]) == (AGENT, "inferred", "derived")


async def test_the_cursor_ends_behind_everything(engine: Engine, notes: Notes) -> None:
    await written(notes)
    await drain(engine, notes.tenant)
    await drain(engine, notes.tenant)
    assert await notes.cursor() == await notes.head()
    assert await drain(engine, notes.tenant) == []


async def test_no_connection_is_held_while_the_model_thinks(engine: Engine, notes: Notes, fake: FakeEndpoint) -> None:
    await notes.add(TEXTS[0])
    hold = fake.hold(on="chat")
    run = asyncio.create_task(drain(engine, notes.tenant))
    await hold.reached(1)
    assert engine.pool.get_idle_size() == engine.pool.get_size()
    hold.release()
    await run


async def test_a_processor_that_claims_less_than_before_takes_the_rest_back(engine: Engine, notes: Notes) -> None:
    source = await notes.add(TEXTS[0])
    for number in range(3):
        ref = f"tagger/{source}/{number}"
        await notes.add(f"Claim {number}.", "bob", share=None, adapter="claim", external_ref=ref, derived_from=[source])
    outcome = ProcessOutcome(tenant_id="acme", version_id=source, processor="tagger", outcome="written", claims=1)
    for _ in range(2):
        await engine.ingesting.finish_process(outcome)
    assert await notes.refs() == [f"tagger/{source}/0"]
    assert await notes.refs("deprecated") == [f"tagger/{source}/1", f"tagger/{source}/2"]
