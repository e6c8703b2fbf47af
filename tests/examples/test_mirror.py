"""The mirror of the examples, killed in the middle of things, ends as the tenant is."""

import asyncio
import os
import random
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from memory_plane.client import AsyncMemoryClient
from memory_plane.contracts.wire import AddResponse
from memory_plane.dev.checkout import checkout
from memory_plane.dev.child import Child, Command
from memory_plane.dev.stack import DevStack
from memory_plane.store import tokens
from memory_plane.store.grants import put_rules
from tests.access.seed import allow
from tests.eventually import eventually

READER = "mirror-reader"
TEAM = "memory.space:mirror-team"
KILLS = 6


@pytest.fixture
async def reader_token(stack: DevStack) -> str:
    """Of a principal who sees what the team shares, and nothing else."""
    conn = await asyncpg.connect(stack.access.database)
    try:
        await conn.set_type_codec("jsonb", encoder=str, decoder=str, schema="pg_catalog")
        tenant = stack.access.tenant
        await put_rules(conn, tenant, [allow(READER, "memory", "search"), allow(READER, TEAM)])
        token, _ = await tokens.issue(conn, tenant, READER)
        return token
    finally:
        await conn.close()


@pytest.fixture
async def memory(stack: DevStack) -> AsyncIterator[AsyncMemoryClient]:
    access = stack.access
    async with AsyncMemoryClient(access.api, access.tenant, access.token) as client:
        yield client


def mirrored(file: Path) -> dict[str, tuple[str, str]]:
    with sqlite3.connect(file) as database:
        rows = database.execute("SELECT id, version_id, text FROM document").fetchall()
    return {document: (version, text) for document, version, text in rows}


def position(file: Path) -> int:
    if not file.exists():
        return 0
    with sqlite3.connect(file) as database:
        try:
            found = database.execute("SELECT position FROM cursor").fetchone()
        except sqlite3.OperationalError:  # killed before it had made its tables
            return 0
    return int(found[0]) if found else 0


async def changes(memory: AsyncMemoryClient, chance: random.Random) -> None:
    """Documents come, change, are hidden, are claimed upon and go."""
    known: list[str] = []
    for number in range(60):
        ref = f"mirror-{number}"
        added = await memory.add(f"Note {number}", f"Text {number}.", external_ref=ref, access_tags=[TEAM])
        known.append(ref)
        again = chance.choice(known)
        match chance.randrange(5):
            case 0:
                await memory.add("Changed", f"Changed by {number}.", external_ref=again)
            case 1:
                await memory.add(f"Note {number}", f"Text {number}.", external_ref=ref, access_tags=[])
            case 2:
                await memory.forget(added.document_id)
                known.remove(ref)
            case 3:
                await memory.add(f"Claim {number}", f"Of text {number}.", derived_from=[added.version_id])
                if chance.random() < 0.5:
                    await memory.add(f"Note {number}", f"Text {number}.", external_ref=ref, access_tags=[])
            case _:
                pass


async def test_killed_again_and_again_it_ends_as_the_tenant_is(
    stack: DevStack, memory: AsyncMemoryClient, reader_token: str, tmp_path: Path
) -> None:
    chance = random.Random(20261201)
    file = tmp_path / "mirror.sqlite"
    access = stack.access
    command = Command(
        name="mirror",
        argv=(sys.executable, str(checkout() / "examples/feed_mirror/mirror.py"), str(file), "--follow", "0.05"),
        log=tmp_path / "mirror.log",
        env={
            "PATH": os.environ["PATH"],
            "MEMORY_API": access.api,
            "MEMORY_TENANT": access.tenant,
            "MEMORY_TOKEN": reader_token,
        },
    )
    changing = asyncio.create_task(changes(memory, chance))
    for _ in range(KILLS):
        child = await Child.start(command)
        before = position(file)

        async def moved(before: int = before) -> bool:
            return position(file) > before or (changing.done() and position(file) > 0)

        await eventually(moved, what="the mirror to come further")
        await child.kill()
    await changing

    async with AsyncMemoryClient(access.api, access.tenant, reader_token) as reader:
        listed = [event.document_id async for event in reader.list_all()]
        expected = {}
        for document_id in listed:
            found = await reader.get(document_id)
            expected[document_id] = (found.version.version_id, found.text)
        assert len(expected) > 20, "so little is visible: the mirror proved nothing"

    child = await Child.start(command)
    try:

        async def same() -> bool:
            return mirrored(file) == expected

        await eventually(same, what="the mirror to be what the tenant is")

        # A claim goes with the sight of its source, which is the only one of the two that the feed names.
        async def kettle(*tags: str) -> AddResponse:
            return await memory.add("Kettle", "It is blue.", external_ref="mirror-kettle", access_tags=list(tags))

        source = await kettle(TEAM)
        claim = await memory.add("Claim", "There is a kettle.", derived_from=[source.version_id])

        async def there() -> bool:
            return {source.document_id, claim.document_id} <= set(mirrored(file))

        await eventually(there, what="note and claim to be mirrored")
        await kettle()
        await eventually(same, what="both to be gone from the mirror")
    finally:
        await child.stop()
