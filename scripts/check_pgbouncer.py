"""The service through a real PgBouncer in transaction mode: `python -m scripts.check_pgbouncer [--pgbouncer PATH]`.

There is no wheel of PgBouncer, so this is no part of the tests: run it where one is installed, before a change of how
connections are used. Two server connections for twenty callers: whoever keeps anything on a session fails here.
"""

import argparse
import asyncio
import pwd
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from starlette.requests import HTTPConnection

from api.app import create_app
from memory_plane.contracts.enums import Verb
from memory_plane.core.caller import Caller
from memory_plane.dev.ports import HOST, free_port
from memory_plane.dev.postgres import PostgresServer
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from memory_plane.store.grants import PostgresGrantStore
from memory_plane.store.migrate import migrate
from tests.api.conftest import rule, running
from tests.eventually import eventually
from tests.fakes.endpoint import FakeEndpoint

ROOT = Path(__file__).resolve().parents[1]
CALLERS = 20
ROUNDS = 5
SERVER_CONNECTIONS = 2

_INI = """
[databases]
memory = host={host} port={server_port} dbname=memory user={user} password={password}
[pgbouncer]
listen_addr = {host}
listen_port = {port}
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
unix_socket_dir =
"""


async def check(pgbouncer: str, directory: Path) -> None:
    server = PostgresServer(directory / "pg", durable=False)
    try:
        await server.start()
        dsn = await server.ensure_database("memory")
        await migrate(dsn, "english", ROOT / "migrations")
        async with _bouncer(pgbouncer, directory, dsn) as port, FakeEndpoint(dims=64) as fake:
            settings = Settings.model_validate(
                {
                    "database_url": f"postgresql://anyone@{HOST}:{port}/memory",
                    "database_direct_url": dsn,
                    "db_pgbouncer": True,
                    "db_pool_max": CALLERS,
                    "search_deadline_ms": 60_000,
                    "embed_base_url": fake.url,
                    "embed_model": "fake",
                }
            )
            await _use(settings)
    finally:
        await server.stop()


@asynccontextmanager
async def _bouncer(program: str, directory: Path, dsn: str) -> AsyncIterator[int]:
    url, port = urlsplit(dsn), free_port()
    ini = directory / "pgbouncer.ini"
    ini.write_text(
        _INI.format(
            host=HOST,
            server_port=url.port,
            user=url.username,
            password=url.password,
            port=port,
            connections=SERVER_CONNECTIONS,
        )
    )
    account = pwd.getpwuid(65534).pw_name
    process = await asyncio.create_subprocess_exec(
        program, "-u", account, str(ini), stderr=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        await eventually(lambda: _listens(port), what="PgBouncer to listen")
        yield port
    finally:
        process.terminate()
        await process.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True


def require(right: bool, otherwise: str) -> None:
    if not right:
        sys.exit(otherwise)


async def _use(settings: Settings) -> None:
    async def who(_: HTTPConnection) -> Caller:
        return Caller("acme", "ann")

    async with Engine.open(settings) as engine:
        await engine.embedding.ensure_engine_model()
        await _allow_all(engine)
        async with running(create_app(engine=engine, caller_resolver=who)) as app:
            client = httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://memory/api/tenants/acme/memory", timeout=60
            )
            async with client, asyncio.TaskGroup() as group:
                for number in range(CALLERS):
                    group.create_task(_caller(client, number))
    print(f"{CALLERS} callers over {SERVER_CONNECTIONS} server connections: every answer was right.")


async def _allow_all(engine: Engine) -> None:
    for verb in Verb:
        await PostgresGrantStore(engine.pool).put_grant("acme", rule("ann", "memory", verb.value))


async def _caller(client: httpx.AsyncClient, number: int) -> None:
    for turn in range(ROUNDS):
        words = f"caller{number} turn{turn}"
        added = await client.post(
            "/add", json={"title": words, "text": f"{words} by the harbour", "external_ref": f"{number}"}
        )
        require(added.status_code == 200, added.text)
        found = await client.post("/search", json={"query": words})
        titles = [item["title"] for item in found.json().get("items", [])]
        require(words in titles, f"{words} was not found: {found.text}")
    gone = await client.post(f"/documents/{added.json()['documentId']}/forget", json={"reason": "asked to"})
    require(gone.status_code == 200, gone.text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pgbouncer", default=shutil.which("pgbouncer"))
    program = parser.parse_args().pgbouncer
    if program is None:
        sys.exit("Install pgbouncer, or say where it is with --pgbouncer.")
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)  # PgBouncer does not run as root
        asyncio.run(check(program, Path(made)))
