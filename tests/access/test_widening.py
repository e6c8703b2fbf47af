"""A wider audience for a claim: each owner decides for his own source, and nothing widens before all have."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from memory_plane.contracts.enums import WideningState
from memory_plane.contracts.errors import Conflict, Forbidden, NotFound
from memory_plane.core.access_tags import document_tag, owner_tag
from memory_plane.plane.access import visible_documents
from memory_plane.plane.captured import Captured
from memory_plane.plane.widening import Widening
from memory_plane.settings import Settings
from memory_plane.store.database import connection
from tests.access.seed import TENANT
from tests.retention.conftest import Plane, opened_plane

TEAM, WIDE = "memory.space:team", "memory.space:wide"


@dataclass
class Asked:
    """dora's claim from a source of alice's and one of bob's, which asks for WIDE and for carl."""

    plane: Plane
    widening: Widening
    sources: list[Captured]
    claim: Captured

    async def sees(self, principal: str, captured: Captured | None = None) -> bool:
        document_id = (captured or self.claim).document_id
        async with connection(self.plane.pool) as conn:
            return bool(await visible_documents(conn, await self.plane.sight(principal), [document_id]))

    async def request_of(self, owner: str) -> str:
        found = await self.widening.open_requests(TENANT)
        [request] = [each.request.id for each in found if each.owner == owner]
        return request

    async def approve(self, owner: str) -> WideningState:
        return (await self.widening.decide(TENANT, await self.request_of(owner), owner, approve=True)).state

    async def tags(self) -> list[str]:
        async with connection(self.plane.pool) as conn:
            tags: list[str] = await conn.fetchval(
                "SELECT access_tags FROM memory.document WHERE id = $1", self.claim.document_id
            )
        return tags


@pytest.fixture
async def plane(settings: Settings) -> AsyncIterator[Plane]:
    async with opened_plane(settings) as opened:
        yield opened


@pytest.fixture
async def asked(plane: Plane) -> Asked:
    await plane.grant("dora", TEAM)
    await plane.grant("erin", WIDE)
    sources = [await plane.add(owner, access_tags=[TEAM]) for owner in ("alice", "bob")]
    claim = await plane.add(
        "dora",
        derived_from=[each.version_id for each in sources],
        access_tags=[TEAM, WIDE],
        share={"principals": ["carl"]},
        request_widening=True,
    )
    assert len(claim.audience_request_ids) == 2
    return Asked(plane, Widening(plane.pool, plane.engine.access, None), sources, claim)


async def test_nothing_widens_before_every_owner_has_approved(asked: Asked) -> None:
    assert await asked.tags() == [owner_tag("dora"), TEAM]
    assert not await asked.sees("carl") and not await asked.sees("erin")
    assert await asked.approve("alice") is WideningState.APPROVED
    assert await asked.tags() == [owner_tag("dora"), TEAM]
    assert not await asked.sees("carl") and not await asked.sees("erin")
    events = len(await asked.plane.events())
    assert await asked.approve("bob") is WideningState.APPROVED
    assert set(await asked.tags()) == {
        owner_tag("dora"), TEAM, WIDE, owner_tag("carl"), document_tag(asked.claim.document_id)
    }  # fmt: skip
    assert await asked.sees("carl") and await asked.sees("erin") and await asked.sees("dora")
    assert not await asked.sees("frank")
    for source in asked.sources:
        assert not await asked.sees("carl", source) and not await asked.sees("erin", source)
    kinds = [kind for kind, document, _ in (await asked.plane.events())[events:]]
    assert kinds == ["retagged", "shared"]
    assert await asked.plane.count("grant_rule", "principal_id = 'carl' AND conditions ? 'memoryShare'") == 1
    assert await asked.plane.count("audience_receipt", "approved_by IN ('alice', 'bob')") == 2


async def test_only_the_owner_decides_and_only_once(asked: Asked) -> None:
    of_alice = await asked.request_of("alice")
    for principal in ("bob", "dora", "carl", ""):
        with pytest.raises(Forbidden) as refused:
            await asked.widening.decide(TENANT, of_alice, principal, approve=True)
        assert refused.value.code == "not_source_owner"
    for tenant, request in (("other", of_alice), (TENANT, "kaud_unknown")):
        with pytest.raises(NotFound):
            await asked.widening.decide(tenant, request, "alice", approve=True)
    for _ in range(2):
        standing = await asked.widening.decide(TENANT, of_alice, "alice", approve=False)
        assert standing.state is WideningState.DECLINED
    with pytest.raises(Conflict) as decided:
        await asked.widening.decide(TENANT, of_alice, "alice", approve=True)
    assert decided.value.code == "already_decided"
    await asked.approve("bob")
    assert await asked.tags() == [owner_tag("dora"), TEAM]


async def test_a_receipt_is_for_its_version_and_ends_with_its_tag(asked: Asked) -> None:
    await asked.approve("alice")
    await asked.approve("bob")
    async with connection(asked.plane.pool) as conn:
        await conn.execute(
            "UPDATE memory.document SET access_tags = array_remove(access_tags, $2) WHERE id = $1",
            asked.claim.document_id,
            WIDE,
        )
    assert not await asked.sees("erin") and await asked.sees("carl")


async def test_a_claim_that_moved_on_or_went_is_not_widened(asked: Asked) -> None:
    of_alice = await asked.request_of("alice")
    async with connection(asked.plane.pool) as conn:
        await conn.execute("UPDATE memory.version SET status = 'superseded' WHERE id = $1", asked.claim.version_id)
    with pytest.raises(Conflict) as moved:
        await asked.widening.decide(TENANT, of_alice, "alice", approve=True)
    assert moved.value.code == "claim_not_active"
    await asked.plane.retention.forget(await asked.plane.sight("alice"), asked.sources[0].document_id)
    with pytest.raises(NotFound):
        await asked.widening.decide(TENANT, of_alice, "alice", approve=True)
    assert await asked.widening.wait_for(TENANT, of_alice) is None


async def test_who_made_a_claim_cannot_open_what_it_was_made_from(asked: Asked) -> None:
    """A claim upon dora's own claim: her word as the owner of its source does not stand in for alice's and bob's."""
    upon = await asked.plane.add(
        "dora", derived_from=[asked.claim.version_id], access_tags=[TEAM, WIDE], request_widening=True
    )
    await asked.approve("dora")
    assert not await asked.sees("erin", upon)
    await asked.approve("alice")
    await asked.approve("bob")
    assert await asked.sees("erin", upon)


async def test_forgetting_a_source_ends_the_widened_claim(asked: Asked) -> None:
    await asked.approve("alice")
    await asked.approve("bob")
    await asked.plane.retention.forget(await asked.plane.sight("bob"), asked.sources[1].document_id)
    assert not await asked.sees("carl") and not await asked.sees("erin")
    assert await asked.plane.count("audience_receipt") == await asked.plane.count("audience_request") == 0
    assert await asked.plane.count("grant_rule", "conditions ? 'memoryShare'") == 0


PROGRAM = "from memory_plane.cli.audience import audience; audience()"


async def test_the_commands(asked: Asked, database: str) -> None:
    def cli(*arguments: str, code: int = 0) -> str:
        environment = {**os.environ, "DATABASE_URL": database, "TEMPORAL_ADDRESS": "127.0.0.1:9"}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        return done.stdout or done.stderr

    of_alice = await asked.request_of("alice")
    [listed] = json.loads(cli("list", "--tenant", TENANT, "--principal", "alice", "--json"))["requests"]
    assert listed["id"] == of_alice and set(listed["tags"]) == {WIDE, owner_tag("carl")}
    assert "Only the creator" in cli("approve", of_alice, "--tenant", TENANT, "--principal", "bob", code=1)
    approved = json.loads(cli("approve", of_alice, "--tenant", TENANT, "--principal", "alice", "--json"))
    assert approved["state"] == "approved"
    cli("decline", await asked.request_of("bob"), "--tenant", TENANT, "--principal", "bob")
    assert json.loads(cli("list", "--tenant", TENANT, "--json")) == {"requests": []}
