"""Run, stage, promote, demote, promote: in process, step by step."""

from tests.generations.world import Tenant


async def test_a_generation_is_built_promoted_and_demoted(tenant: Tenant) -> None:
    first = await tenant.add("the otter swims in the river", title="otter")
    second = await tenant.add("the heron stands in the reeds", title="heron")
    old = await tenant.live()

    run_id = await tenant.staged()
    assert await tenant.live() == old
    third = await tenant.add("the beaver builds a dam", title="beaver")
    assert await tenant.found("beaver dam", generation=run_id) and third.document_id not in await tenant.found(
        "beaver dam", generation=run_id
    )

    cut = await tenant.promote(run_id)
    assert cut.flipped
    assert await tenant.live() == run_id and await tenant.state(old) == "archived"
    for each, query in ((first, "otter"), (second, "heron reeds"), (third, "beaver dam")):
        answer = await tenant.search(query)
        assert answer.items[0].document_id == each.document_id
        assert answer.degraded is None
        attribution = answer.items[0].attribution
        assert attribution is not None and set(attribution.channels) == {"lexical", "dense"}

    fourth = await tenant.add("the newt hides under a stone", title="newt")
    await tenant.forget(first.document_id)
    await tenant.demote(run_id)
    assert await tenant.live() == old and await tenant.state(run_id) == "staged"
    assert (await tenant.found("newt stone"))[0] == fourth.document_id
    assert first.document_id not in await tenant.found("otter river")

    await tenant.promote(run_id)
    assert await tenant.live() == run_id
    assert (await tenant.found("newt stone"))[0] == fourth.document_id
    assert first.document_id not in await tenant.found("otter river")
