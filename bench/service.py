"""The product as it runs: PostgreSQL on disk, the local endpoint with the real model, the API; each its own process."""

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.add import ROOT, answers, process
from bench.http_client import HttpClient
from memory_plane.contracts.enums import GrantEffect, GrantOrigin, Verb
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.grants import GrantRule
from memory_plane.dev.ports import HOST, free_port
from memory_plane.dev.postgres import PostgresServer
from memory_plane.models.pool import ModelPool
from memory_plane.plane.embedding import Embedding
from memory_plane.settings import Settings
from memory_plane.store import tokens
from memory_plane.store.database import Pool, connection, open_pool
from memory_plane.store.grants import put_rules
from memory_plane.store.migrate import migrate

MODEL = "all-MiniLM-L6-v2"
MODEL_TOKENS = 256
PRINCIPAL = "bench"
DATA = Path(os.environ.get("DATA", ROOT.parent / "shared" / "data"))
PEER_PYTHON = ROOT / ".venv-bench" / "bin" / "python"


@dataclass(frozen=True)
class Service:
    """What a benchmark talks to. `processes` are process ids by name, for CPU accounts."""

    dsn: str
    settings: Settings
    pool: Pool
    embedding: Embedding
    endpoint_port: int
    api_port: int
    processes: Mapping[str, int]

    @property
    def endpoint_url(self) -> str:
        return f"http://{HOST}:{self.endpoint_port}"

    async def token(self, tenant: str, principal: str = PRINCIPAL, resources: Sequence[tuple[str, str]] = ()) -> str:
        """A token whose bearer may use every verb, and what else is listed as (resource, action)."""
        rules = [*(("memory", verb.value) for verb in Verb), *resources]
        async with connection(self.pool) as conn:
            await put_rules(conn, tenant, [_rule(principal, resource, action) for resource, action in rules])
            token, _ = await tokens.issue(conn, tenant, principal)
        return token

    def client(self, token: str) -> HttpClient:
        return HttpClient(HOST, self.api_port, {"Authorization": f"Bearer {token}"})


def _rule(principal: str, resource: str, action: str) -> GrantRule:
    return GrantRule(
        id=new_id(IdKind.GRANT_RULE),
        principal_id=principal,
        role_id=None,
        resource=resource,
        action=action,
        effect=GrantEffect.ALLOW,
        origin=GrantOrigin.SYSTEM,
    )


@asynccontextmanager
async def service(folder: Path, *, remember: Path | None = None) -> AsyncIterator[Service]:
    """Everything up and the model registered; all of it ends with the block. A folder that has served before serves
    what is in it. With `remember` vectors are kept in that file, for benchmarks of quality."""
    async with AsyncExitStack() as stack:
        server = PostgresServer(folder / "postgres")
        await server.start()
        stack.push_async_callback(server.stop)
        dsn = await server.ensure_database()
        await migrate(dsn, "english", ROOT / "migrations")
        endpoint_port, api_port = _kept_port(folder / "endpoint.port"), free_port()
        arguments: tuple[str, ...] = ("-m", "memory_plane.dev.endpoint", "--port", str(endpoint_port))
        endpoint_pid = await stack.enter_async_context(process(folder / "endpoint.log", *arguments))
        await answers(endpoint_port, folder / "endpoint.log")
        if remember is not None:
            behind, endpoint_port = endpoint_port, free_port()
            arguments = (
                "-m",
                "bench.remembering_endpoint",
                str(endpoint_port),
                f"http://{HOST}:{behind}",
                str(remember),
            )
            await stack.enter_async_context(process(folder / "remembering.log", *arguments))
            await answers(endpoint_port, folder / "remembering.log")
        environment = {
            "DATABASE_URL": dsn,
            "EMBED_BASE_URL": f"http://{HOST}:{endpoint_port}",
            "EMBED_MODEL": MODEL,
            "EMBED_MAX_INPUT_TOKENS": str(MODEL_TOKENS),
            "EMBED_TIMEOUT_MS": "60000",
            "MEMORY_AUTH": "token",
            "DB_POOL_MAX": "16",
        }
        settings = Settings.model_validate({name.lower(): value for name, value in environment.items()})
        pool = await open_pool(settings)
        stack.callback(pool.terminate)
        models = await stack.enter_async_context(ModelPool())
        embedding = Embedding(pool, settings, models)
        await embedding.ensure_engine_model()
        arguments = ("-m", "uvicorn", "--factory", "api.app:app_from_environment", "--host", HOST)
        arguments += ("--port", str(api_port), "--no-access-log", "--no-server-header")
        api_pid = await stack.enter_async_context(process(folder / "api.log", *arguments, environment=environment))
        await answers(api_port, folder / "api.log")
        processes = {"database": server.child.pid, "endpoint": endpoint_pid, "api": api_pid}
        yield Service(dsn, settings, pool, embedding, endpoint_port, api_port, processes)


def _kept_port(file: Path) -> int:
    """Recipes name the endpoint with its port, so a folder keeps it."""
    port = free_port(int(file.read_text()) if file.exists() else None)
    file.write_text(str(port))
    return port


async def embedded(service: Service, tenant: str) -> None:
    """Embed what the adds left to a worker: the benchmark runs none."""
    while True:
        rows = await service.pool.fetch(
            "SELECT version_id FROM memory.derivation WHERE tenant_id = $1 AND embed_state = 'pending' LIMIT 200",
            tenant,
        )
        if not rows:
            return
        await service.embedding.embed_versions(tenant, [row["version_id"] for row in rows])


def peers_installed() -> bool:
    if PEER_PYTHON.exists():
        return True
    print(f"The peers are not installed ({PEER_PYTHON}); see bench/peers/requirements.txt.", file=sys.stderr)
    return False
