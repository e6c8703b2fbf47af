"""Which versions answer: the current one, a withdrawn one when asked for, what was known at a moment."""

import asyncio
from datetime import UTC, datetime, timedelta

from tests.search.world import World


async def test_forty_superseded_versions_do_not_compete_with_the_current_one(world: World) -> None:
    for number in range(40):
        await world.add(f"the office code is {number}", external_ref="code:1")
    current = await world.add("the office code is 4711", external_ref="code:1")
    await world.add("the office plant needs water", external_ref="plant:1")
    response = await world.search("office code", limit=10)
    assert response.items[0].attribution is not None
    assert response.items[0].attribution.version_id == current.version_id
    assert len(response.items) == len({item.document_id for item in response.items}) == 2


async def test_a_deprecated_version_is_out_unless_asked_for(words: World) -> None:
    added = await words.add("an outdated fact about foxes")
    await words.engine.pool.execute(
        "UPDATE memory.version SET status = 'deprecated', status_at = now() WHERE id = $1", added.version_id
    )
    assert await words.found("foxes") == []
    assert await words.found("foxes", includeDeprecated=True) == [added.document_id]
    again = await words.add("a new fact about foxes", external_ref="unrelated")
    assert await words.found("foxes") == [again.document_id]


async def test_a_deprecated_version_never_competes_with_its_successor(words: World) -> None:
    first = await words.add("old foxes", external_ref="fox:1")
    await words.engine.pool.execute("UPDATE memory.version SET status = 'deprecated' WHERE id = $1", first.version_id)
    second = await words.add("new foxes", external_ref="fox:1")
    response = await words.search("foxes", includeDeprecated=True)
    assert [item.attribution and item.attribution.version_id for item in response.items] == [second.version_id]


async def test_an_ephemeral_version_past_its_time_is_not_served(words: World) -> None:
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    future = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    await words.add("fleeting heron", retention_class="ephemeral", valid_until=past)
    kept = await words.add("fleeting stork", retention_class="ephemeral", valid_until=future)
    assert await words.found("fleeting") == [kept.document_id]
    assert await words.titles("", kinds=["note"]) == ["note"]


async def test_as_of_answers_from_what_was_known_and_valid_then(world: World) -> None:
    first = await world.add("the meeting is on Monday", external_ref="m:1")
    between = datetime.now(UTC)
    await asyncio.to_thread(lambda: None)
    second = await world.add("the meeting is on Friday", external_ref="m:1")
    later = await world.add("the meeting room is blue")
    now = await world.search("meeting", limit=10)
    assert {item.attribution.version_id for item in now.items if item.attribution} == {
        second.version_id,
        later.version_id,
    }
    then = await world.search("meeting", limit=10, as_of=between.isoformat())
    assert [item.attribution.version_id for item in then.items if item.attribution] == [first.version_id]
    before = await world.search("meeting", as_of=(between - timedelta(days=1)).isoformat())
    assert before.items == []


async def test_as_of_looks_at_the_validity_window(words: World) -> None:
    now = datetime.now(UTC)
    added = await words.add(
        "the bridge is closed",
        valid_from=(now - timedelta(days=2)).isoformat(),
        valid_until=(now + timedelta(days=2)).isoformat(),
    )
    moment = datetime.now(UTC)
    assert await words.found("bridge", as_of=moment.isoformat()) == [added.document_id]
    assert await words.found("bridge", as_of=(moment + timedelta(days=3)).isoformat()) == []


async def test_a_forgotten_document_is_gone(world: World) -> None:
    added = await world.add("a heron in the reeds")
    assert await world.found("heron") == [added.document_id]
    await world.engine.retention.forget(await world.visibility(), added.document_id, None)
    assert await world.found("heron") == []


async def test_the_same_search_gives_the_same_page(world: World) -> None:
    for number in range(20):
        await world.add(f"alpha beta {number % 3}", title=f"t{number}")
    pages = [await world.found("alpha beta", limit=20) for _ in range(3)]
    assert pages[0] == pages[1] == pages[2]
    assert len(pages[0]) == 20
