"""What a user asks and gets, on real parts."""

from tests.search.world import World


async def test_a_question_finds_the_line_that_answers_it_without_vectors(words: World) -> None:
    await words.add("Melanie (8 May 2023): I painted a sunrise last year.")
    answer = await words.add("Caroline (8 May 2023): I went to a LGBTQ support group yesterday.")
    await words.add("Melanie (8 May 2023): The kids and work keep me busy.")
    response = await words.search("When did Caroline go to the LGBTQ support group?")
    assert response.items[0].document_id == answer.document_id
    assert response.degraded == ["dense_unavailable", "lexical_only"]


async def test_both_channels_find_it(world: World) -> None:
    answer = await world.add("The reactor was cooled with liquid sodium.")
    await world.add("Bread rises in a warm kitchen.")
    response = await world.search("liquid sodium reactor")
    first = response.items[0]
    assert first.document_id == answer.document_id
    assert first.attribution is not None and first.attribution.channels == ["lexical", "dense"]
    assert response.degraded is None


async def test_a_tenant_without_documents_has_none(words: World) -> None:
    response = await words.search("anything")
    assert response.items == []
