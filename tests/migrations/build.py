"""Write what a release's database is, with something in every table: `python -m tests.migrations.build RELEASE`.

Done once a release, before its tag: `RELEASE.sql` is a dump of schema and rows, `RELEASE.statements.json` has each
statement that the release's service made while the rows came to be, and `released.json` the checksums of its
migrations, which are never edited again. Tests upgrade the dump, and hold the statements against the newer schema.
"""

import asyncio
import json
import re
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from inspect import cleandoc
from pathlib import Path
from typing import Any

from pytest import MonkeyPatch

from api.app import create_app
from memory_plane.dev.postgres import PostgresServer
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from memory_plane.store import lexical_statistics, tokens
from memory_plane.store.database import connection
from memory_plane.store.migrate import Migration, migrate
from memory_plane.telemetry import tracing
from tests.api.conftest import Facade, by_header, running
from tests.fakes.endpoint import FakeEndpoint
from tests.fixtures.database import MIGRATIONS, settings_for
from tests.generations.world import Tenant

HERE = Path(__file__).parent
ENDPOINT = "http://endpoint.of.the.release"
MODELS = {"one": 64, "two": 96}
TENANT = "acme"


def settings(dsn: str, fake: FakeEndpoint) -> Settings:
    return settings_for(
        dsn,
        embed_base_url=fake.url,
        embed_model="one",
        memory_processors={"tagger": {"kind": "activity", "type": "tag", "task_queue": "host"}},
    )


async def build(release: str) -> None:
    statements: set[str] = set()
    with tempfile.TemporaryDirectory() as made, MonkeyPatch.context() as patch:
        patch.setattr(
            tracing, "watch_statements", lambda each: each.add_query_logger(lambda q: statements.add(q.query))
        )
        server = PostgresServer(Path(made), durable=False)
        await server.start()
        try:
            dsn = await server.ensure_database("release")
            await migrate(dsn, "english", MIGRATIONS)
            async with FakeEndpoint(models=MODELS) as fake:
                async with Engine.open(settings(dsn, fake)) as engine:
                    await populate(engine)
                dump = (await _dump(server, dsn)).replace(fake.url, ENDPOINT)
        finally:
            await server.stop()
    (HERE / f"{release}.sql").write_text(dump, encoding="utf-8")
    lasting = sorted({cleandoc(each) for each in statements if not _of_the_session(each)})
    (HERE / f"{release}.statements.json").write_text(json.dumps(lasting, indent=1) + "\n", encoding="utf-8")
    checksums = {
        file.name: Migration(file.name, file.read_text()).checksum for file in sorted(MIGRATIONS.glob("*.sql"))
    }
    (HERE / "released.json").write_text(json.dumps({"release": release, "migrations": checksums}, indent=2) + "\n")


_OF_THE_SESSION = re.compile(
    r"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET|RESET|CREATE|DROP|ANALYZE|WITH RECURSIVE typeinfo_tree)\b"
)


def _of_the_session(statement: str) -> bool:
    """Of the driver, or several in one, which cannot be prepared."""
    return _OF_THE_SESSION.match(statement) is not None or ";" in statement.strip().rstrip(";")


async def populate(engine: Engine) -> None:
    """Something in every table, by the doors where there is one."""
    await engine.embedding.ensure_engine_model()
    tenant = Tenant(engine, TENANT)
    async with running(create_app(engine=engine, caller_resolver=by_header)) as app:
        facade = Facade(app, engine, TENANT)
        await facade.allow("ann")
        await facade.allow("bob")
        async with facade.caller() as ann:
            await _capture(ann)
        for tag in ("memory.space:*", "memory.tenant:acme"):
            await tenant.grant("bob", tag)
        async with facade.caller("bob") as bob:
            await _read(bob)
            await _claim(bob)
    await _build_generations(tenant)
    await _of_operators(tenant)
    async with connection(engine.pool) as conn:
        empty = [
            row["tablename"]
            for row in await conn.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'memory' ORDER BY 1")
            if not await conn.fetchval(f"SELECT EXISTS (SELECT FROM memory.{row['tablename']})")
        ]
    assert empty == [], f"nothing in {empty}"


async def _ok(response: Any) -> Any:
    assert response.status_code == 200, response.text
    return response.json()


async def _capture(ann: Any) -> None:
    now = datetime.now(UTC)
    notes: list[dict[str, Any]] = [
        {"external_ref": "harbour", "title": "Harbour", "text": "The boats lie by the harbour.",
         "share": {"tenant": True}},
        {"external_ref": "harbour", "title": "Harbour", "text": "The boats lie by the old harbour.",
         "share": {"tenant": True}},
        {"external_ref": "plan", "title": "Plan", "text": "Ship on Friday.", "access_tags": ["memory.space:eng"],
         "entities": [{"kind": "project", "identifier": "release"}], "occurred_at": now.isoformat()},
        {"external_ref": "due", "title": "Due", "text": "The offer ends soon.", "temporal_class": "deadline",
         "valid_until": (now + timedelta(days=3650)).isoformat()},
        {"external_ref": "gone", "title": "Gone", "text": "This will be forgotten.", "share": {"tenant": True}},
        {"external_ref": "tagged", "title": "Tagged", "text": "A host tags this.", "process": ["tagger"]},
        {"external_ref": "passing", "title": "Passing", "text": "Only for today.", "retention_class": "ephemeral"},
    ]  # fmt: skip
    added = {}
    for number, note in enumerate(notes):
        added[note["external_ref"]] = await _ok(
            await ann.post("/add", json=note, headers={"Idempotency-Key": f"release-{number}"})
        )
    await _ok(await ann.post("/add/batch", json={"items": [{"title": "Batch", "text": "One of a batch."}]}))
    await _ok(await ann.post(f"/documents/{added['gone']['documentId']}/forget", json={"reason": "asked to"}))
    purged = await _ok(await ann.post("/add", json={"title": "Purged", "text": "Soon deleted."}))
    await _ok(await ann.post(f"/documents/{purged['documentId']}/forget", json={"reason": "asked to"}))
    await _ok(await ann.post(f"/documents/{purged['documentId']}/purge"))
    await _ok(
        await ann.post(f"/versions/{added['plan']['versionId']}/retention-class", json={"retention_class": "durable"})
    )


async def _read(bob: Any) -> None:
    found = await _ok(await bob.post("/search", json={"query": "old harbour"}))
    assert found["items"][0]["title"] == "Harbour"
    await _ok(await bob.post("/search", json={"query": "boats", "as_of": datetime.now(UTC).isoformat()}))
    await _ok(await bob.get("/list"))
    await _ok(await bob.get("/feed"))
    await _ok(await bob.get("/feed", params={"events": "all"}))
    await _ok(await bob.get(f"/documents/{found['items'][0]['documentId']}"))


async def _claim(bob: Any) -> None:
    """From another's note, for more than who may read that."""
    found = await _ok(await bob.post("/search", json={"query": "old harbour"}))
    document = await _ok(await bob.get(f"/documents/{found['items'][0]['documentId']}"))
    source = document["version"]["versionId"]
    claim = {
        "adapter": "claim", "external_ref": f"a/{source}/0", "title": "Old", "text": "The harbour is old.",
        "derived_from": [source], "share": {"principals": ["carl"]}, "request_widening": True,
    }  # fmt: skip
    await _ok(await bob.post("/add", json=claim))


async def _build_generations(tenant: Tenant) -> None:
    run_id = await tenant.staged({"embed": {"model": "two"}})
    before = await tenant.live()
    await tenant.promote(run_id)
    await tenant.demote(run_id)
    assert await tenant.live() == before
    await tenant.engine.transforms.overview(tenant.tenant)


async def _of_operators(tenant: Tenant) -> None:
    engine = tenant.engine
    await lexical_statistics.refresh(engine.pool, tenant.tenant, await tenant.live())
    async with connection(engine.pool) as conn:
        await tokens.issue(conn, TENANT, "ann", label="laptop")
        # Rows that come of decisions, of followers and of faults.
        for statement in (
            "INSERT INTO memory.principal_role (tenant_id, principal_id, role_id) VALUES ('acme', 'bob', 'readers')",
            "INSERT INTO memory.consumer_cursor (tenant_id, consumer, position) VALUES ('acme', 'mirror', 3)",
            "INSERT INTO memory.distill_quarantine (tenant_id, agent_id, version_id, reason, attempts)"
            " SELECT tenant_id, 'distiller', id, 'It would not be distilled.', 5 FROM memory.version LIMIT 1",
            "INSERT INTO memory.transform_failure (run_id, tenant_id, version_id, error)"
            " SELECT r.generation_id, v.tenant_id, v.id, 'It would not embed.'"
            " FROM memory.transform_run r, memory.version v LIMIT 1",
            "INSERT INTO memory.audience_receipt (request_id, tenant_id, document_id, version_id, source_version_id,"
            " tags, approved_by, approved_at) SELECT id, tenant_id, document_id, version_id, source_version_id, tags,"
            " 'ann', clock_timestamp() FROM memory.audience_request LIMIT 1",
        ):
            await conn.execute(statement)


async def _dump(server: PostgresServer, dsn: str) -> str:
    process = await asyncio.create_subprocess_exec(
        str(server.bin / "pg_dump"), "--no-owner", "--no-privileges", dsn, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    lines = out.decode().splitlines()
    # What only the psql of today understands; and comments, which name the server's version.
    kept = [line for line in lines if not re.match(r"\\(un)?restrict|--|SET transaction_timeout", line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip() + "\n"


if __name__ == "__main__":
    asyncio.run(build(sys.argv[1]))
