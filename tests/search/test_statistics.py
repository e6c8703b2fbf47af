"""What the statistics of words hold after erasures: nothing of what is gone, and no skew."""

import pytest

from memory_plane.store.lexical_statistics import refresh
from tests.search.world import World


async def counted(world: World) -> dict[str, int]:
    """Of the words of these tests, how many chunks have them."""
    rows = await world.engine.pool.fetch(
        """
        SELECT word, t.chunk_count FROM unnest(ARRAY['heron', 'harbour', 'zeppelin']) AS word
        JOIN memory.lexical_term t ON t.tenant_id = $1 AND t.term_hash = hashtextextended(word, 0)
        """,
        world.tenant,
    )
    return {row["word"]: row["chunk_count"] for row in rows}


async def chunks(world: World) -> int:
    statement = "SELECT chunk_count FROM memory.lexical_corpus WHERE tenant_id = $1"
    return int(await world.engine.pool.fetchval(statement, world.tenant))


async def count(world: World) -> int:
    statement = "SELECT id FROM memory.generation WHERE tenant_id = $1 AND state = 'live'"
    generation = await world.engine.pool.fetchval(statement, world.tenant)
    return await refresh(world.engine.pool, world.tenant, generation)


@pytest.mark.parametrize("how", ["forget", "purge"])
async def test_what_is_erased_leaves_the_statistics(words: World, how: str) -> None:
    await words.add("The heron stands in the harbour.")
    doomed = await words.add("A heron beside a zeppelin, a heron.")
    assert await count(words) == 2
    assert await counted(words) == {"heron": 2, "harbour": 1, "zeppelin": 1}
    uncounted = await words.add("A zeppelin over the harbour.")
    erase = getattr(words.engine.retention, how)
    await erase(await words.visibility(), doomed.document_id)
    if how == "forget":  # again: it must not be taken out twice
        await erase(await words.visibility(), doomed.document_id)
    await erase(await words.visibility(), uncounted.document_id)
    assert await counted(words) == {"heron": 1, "harbour": 1}
    assert await chunks(words) == 1


async def test_a_feed_of_nothing_but_erasures_is_no_reason_to_count_again(words: World) -> None:
    doomed = [await words.add(f"The heron number {number}.") for number in range(70)]
    await count(words)
    for each in doomed:
        await words.engine.retention.forget(await words.visibility(), each.document_id)
    await words.add("The heron stays.")
    await count(words)
    assert await counted(words) == {"heron": 1}
    behind = await words.engine.pool.fetchval(
        """
        SELECT t.position - k.through_position FROM memory.tenant_counter t
        JOIN memory.lexical_corpus k ON k.tenant_id = t.tenant_id WHERE t.tenant_id = $1
        """,
        words.tenant,
    )
    assert behind == 0
