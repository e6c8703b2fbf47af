"""The walk of the guide, by the commands it gives: set up, add, distil, search, and look into quarantine."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memory_plane.client import AsyncMemoryClient
from memory_plane.dev.checkout import checkout
from memory_plane.dev.stack import DevStack
from tests.distilling.notes import Scribe
from tests.fakes.endpoint import FakeEndpoint
from tests.fakes.faults import Poison
from tests.fixtures.stack import clean_environment


@pytest.fixture
async def fake() -> AsyncIterator[FakeEndpoint]:
    async with FakeEndpoint(dims=64) as endpoint:
        endpoint.chat_answer = Scribe()
        yield endpoint


@pytest.fixture
def environment(fake: FakeEndpoint) -> dict[str, str]:
    return {
        **clean_environment(),
        "EMBED_BASE_URL": fake.url,
        "EMBED_MODEL": "fake",
        "DISTILL_BASE_URL": fake.url,
        "DISTILL_MODEL": "fake",
    }


@pytest.fixture
async def distilling(environment: dict[str, str], tmp_path: Path) -> AsyncIterator[DevStack]:
    async with DevStack(tmp_path / "stack", port=0, durable=False, environment=environment) as running:
        yield running


@pytest.mark.timeout(300)
async def test_a_note_is_distilled_and_its_claim_found(
    distilling: DevStack, environment: dict[str, str], fake: FakeEndpoint
) -> None:
    access = distilling.access
    operator = {
        **environment,
        "PATH": os.environ["PATH"],
        "DATABASE_URL": access.database,
        "TEMPORAL_ADDRESS": access.temporal,
    }

    async def memory(*words: str) -> Any:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "memory_plane.cli.main", *words, "--json"),
            cwd=checkout(),
            env=operator,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        said, complained = await process.communicate()
        assert process.returncode == 0, complained.decode()
        return json.loads(said)

    made = await memory("setup", "distiller", "--tenant", access.tenant)
    assert (made["principal"], made["scheduled"], len(made["granted"])) == ("distiller", True, 3)
    assert (await memory("setup", "distiller", "--tenant", access.tenant))["granted"] == []

    fake.fail(Poison("POISON"), on="chat")
    async with AsyncMemoryClient(access.api, access.tenant, access.token) as client:
        share = {"tenant": True}
        note = await client.add("Standup", "Ana signs the release off.", share=share)
        poison = await client.add("Poison", "POISON.", share=share)
        ran = await memory("distill", "run", "--tenant", access.tenant, "--wait")
        assert (ran["written"], ran["claims"], ran["quarantined"]) == (1, 1, 1)

        found = await client.search("who signs the release off?")
        claims = [item for item in found.items if item.kind == "claim"]
        assert claims[0].attribution is not None
        assert claims[0].attribution.derived_from == [note.version_id]
        assert claims[0].attribution.generator_agent_id == "distiller"

        [entry] = (await memory("distill", "quarantine", "list", "--tenant", access.tenant))["entries"]
        assert entry["versionId"] == poison.version_id
        fake.heal()
        asked = await memory("distill", "quarantine", "retry", "--tenant", access.tenant, poison.version_id)
        assert asked == {"requested": 1}
        assert (await memory("distill", "run", "--tenant", access.tenant, "--wait"))["written"] == 1
        assert (await memory("distill", "quarantine", "list", "--tenant", access.tenant))["entries"] == []

        await client.forget(note.document_id)
        again = await client.search("who signs the release off?")
        assert not [item for item in again.items if "Ana" in item.snippet]
