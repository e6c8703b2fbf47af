"""Evidence on real parts (invariant 14)."""

from memory_plane.contracts.enums import Evidence
from tests.search.world import World


async def test_inv_14_none_iff_there_is_no_visible_hit(words: World) -> None:
    assert (await words.search("heron")).evidence is Evidence.NONE
    await words.add("a heron in the reeds")
    assert (await words.search("heron")).evidence is not Evidence.NONE
    await words.allow("bob")
    assert (await words.search("heron", principal="bob")).evidence is Evidence.NONE


async def test_inv_14_a_stated_answer_is_strong_and_an_agents_guess_is_weak(words: World) -> None:
    await words.add("The heron nests in the old willow.")
    assert (await words.search("where does the heron nest")).evidence is Evidence.STRONG
    await words.add("The stork nests on the chimney.", generator_agent_id="agent-1")
    assert (await words.search("where does the stork nest")).evidence is Evidence.WEAK


async def test_inv_14_two_supports_make_an_agents_claim_strong(words: World) -> None:
    claim = await words.add("The stork nests on the chimney.", generator_agent_id="agent-1")
    for number in range(2):
        assert (await words.search("where does the stork nest")).evidence is Evidence.WEAK
        await words.add(f"Seen by witness {number}.", supports=[claim.version_id])
    assert (await words.search("where does the stork nest")).evidence is Evidence.STRONG


async def test_inv_14_a_question_about_what_is_not_there_is_weak(words: World) -> None:
    await words.add("The heron nests in the old willow.")
    response = await words.search("heron submarine periscope maintenance schedule")
    assert response.items
    assert response.evidence is Evidence.WEAK


async def test_evidence_is_told_only_where_it_is_asked_for(words: World) -> None:
    await words.add("The heron nests in the old willow.")
    response = await words.search("heron", includeEvidence=False)
    assert response.evidence is None
    assert response.degraded == ["dense_unavailable", "lexical_only"]
