"""The lexical channel on a real text index, without vectors."""

import pytest

from tests.search.world import World, add_all

CHAT = [
    "Caroline (8 May 2023): I went to a LGBTQ support group yesterday and it was powerful.",
    "Melanie (8 May 2023): That is great, Caroline! What happened there?",
    "Caroline (8 May 2023): The stories were inspiring, I felt accepted.",
    "Melanie (25 May 2023): I ran a charity race for mental health last Saturday.",
    "Caroline (25 May 2023): The zoo with the kids was fun.",
]


async def test_a_question_matches_by_any_of_its_words_and_the_rare_ones_count(words: World) -> None:
    added = await add_all(words, CHAT)
    found = await words.found("When did Caroline go to the LGBTQ support group?")
    assert found[0] == added[0].document_id
    assert added[4].document_id in found  # has only the common name


async def test_title_words_count_where_the_body_has_none_of_them(words: World) -> None:
    await words.add("Nothing of that kind here.", title="Groceries")
    wanted = await words.add("It costs three hundred a month.", title="Apartment lease")
    assert (await words.found("apartment lease"))[0] == wanted.document_id


async def test_a_phrase_must_stand_as_it_is_quoted(words: World) -> None:
    together = await words.add("We joined the support group in May.")
    await words.add("The group will support the school.")
    assert await words.found('"support group"') == [together.document_id]


async def test_a_phrase_that_nobody_wrote_leaves_the_other_words(words: World) -> None:
    added = await words.add("We joined a club in May.")
    assert await words.found('club "purple giraffe"') == [added.document_id]
    assert await words.found('"purple giraffe"') == []


async def test_an_excluded_word_keeps_a_text_out(words: World) -> None:
    added = await add_all(words, CHAT)
    found = await words.found("Caroline -zoo")
    assert added[0].document_id in found
    assert added[4].document_id not in found


NOTHING = ["the of and", "?!", "& | ! ( )", "🙂🙂", "-", '"', "x\u0000y", "a" * 4096, "'; DROP --"]


@pytest.mark.parametrize("query", NOTHING)
async def test_a_query_of_nothing_is_answered(words: World, query: str) -> None:
    await words.add("Some text about a house.")
    response = await words.search(query)
    assert response.evidence is not None


async def test_a_chinese_phrase_within_a_sentence_is_found(words: World) -> None:
    wanted = await words.add("昨天我参加了一个支持小组的活动，感觉很好。")
    await words.add("今天天气很好，我们去了公园。")
    assert (await words.found("支持小组"))[0] == wanted.document_id
    assert (await words.found('"支持小组"')) == [wanted.document_id]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我家的猫很可爱", "猫"),
        ("ประชุมวันพรุ่งนี้ที่สำนักงาน", "วันพรุ่งนี้"),
        ("東京タワーへ行きました", "タワー"),
        ("어제 도서관에서 책을 읽었다", "도서관"),
    ],
)
async def test_a_word_of_an_unspaced_script_is_found_within_its_run(words: World, text: str, query: str) -> None:
    wanted = await words.add(text)
    await words.add("Something in English.")
    assert await words.found(query) == [wanted.document_id]


async def test_accents_composed_and_decomposed_match(words: World) -> None:
    wanted = await words.add("We met at the cafe\u0301 Bolo\u0301.")
    assert await words.found("caf\u00e9") == [wanted.document_id]
    composed = await words.add("The r\u00e9sum\u00e9 is on the desk.")
    assert await words.found("re\u0301sume\u0301") == [composed.document_id]


async def test_the_last_sentence_of_a_long_text_is_found(words: World) -> None:
    filler = " ".join(f"some{number:07}uniqueword{number}" for number in range(200_000))
    assert len(filler) > 5_000_000
    wanted = await words.add(f"{filler}. The treasure lies under the oak.")
    await words.add("An oak tree stood alone.")
    response = await words.search("treasure under the oak")
    assert response.items[0].document_id == wanted.document_id
    assert "treasure" in response.items[0].snippet


async def test_under_a_recipe_of_all_words_fewer_find_nothing(words: World) -> None:
    wanted = await words.add("We joined the support group in May.")
    await words.engine.pool.execute(
        """
        UPDATE memory.generation SET recipe = jsonb_set(recipe, '{fusion,lexical}', '"and"') WHERE tenant_id = $1
        """,
        words.tenant,
    )
    assert await words.found("support group") == [wanted.document_id]
    assert await words.found("support zeppelin") == []


async def test_a_whole_chunk_with_all_the_words_beats_short_notes_with_one_of_them(words: World) -> None:
    """Lengths are those of chunks, which have a cap: they must not count against a document without one."""
    for number in range(40):
        await words.add(f"Note {number}.")
    wanted = await words.add(f"{'Nothing of interest happened on that day. ' * 18}The zirconbrook met a quokkafish.")
    await words.add("A zirconbrook.")
    await words.add("A quokkafish.")
    assert (await words.found("zirconbrook quokkafish"))[0] == wanted.document_id


async def test_common_terms_are_pruned_and_the_answer_stays(words: World) -> None:
    """Enough texts with a common word to go beyond what drives a search; the rare word still decides."""
    from memory_plane.core import lexical_query

    count = 60
    for number in range(count):
        await words.add(f"The project meeting number {number} was about budgets.")
    wanted = await words.add("The project meeting was about zeppelins.")
    plan = lexical_query.plan_terms(
        [lexical_query.Term("project", count + 1), lexical_query.Term("zeppelin", 1)], count + 1, budget=10
    )
    assert plan.driving == ("zeppelin",)
    assert (await words.found("project zeppelins"))[0] == wanted.document_id
    assert len(await words.found("project", limit=50)) == 50


async def test_statistics_are_counted_behind_the_searches_and_rank_the_same(words: World) -> None:
    added = await add_all(words, CHAT)
    for number in range(70):
        await words.add(f"Caroline spoke of day {number}.")
    query = "Caroline LGBTQ support"
    before = await words.found(query, limit=50)
    await words.engine.search.upkeep.settled()
    pool = words.engine.pool
    counted = await pool.fetchval("SELECT chunk_count FROM memory.lexical_corpus WHERE tenant_id = $1", words.tenant)
    assert counted == len(CHAT) + 70
    carolines = await pool.fetchval(
        """
        SELECT chunk_count FROM memory.lexical_term
        WHERE tenant_id = $1 AND term_hash = hashtextextended('carolin', 0)
        """,
        words.tenant,
    )
    assert carolines == 4 + 70
    after = await words.found(query, limit=50)
    assert before[0] == after[0] == added[0].document_id
    assert set(before) == set(after)
