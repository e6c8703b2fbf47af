"""A whole stack with a proxy in each wire, on a small disk of its own where one can be made, and its tenants."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from temporalio.client import Client

from memory_plane.contracts.enums import GrantEffect, GrantOrigin
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.core.grants import GrantRule
from memory_plane.dev.ports import HOST
from memory_plane.dev.postgres import PostgresServer
from memory_plane.dev.stack import DevStack
from memory_plane.dev.temporal import TemporalServer
from memory_plane.plane.engine import Engine
from memory_plane.store import tokens
from memory_plane.store.database import connection
from memory_plane.store.grants import put_rules
from memory_plane.temporal import DATA_CONVERTER
from tests.chaos.history import SEES_ALL, TEAM_TAG
from tests.chaos.proxy import TcpProxy
from tests.fakes.endpoint import FakeEndpoint
from tests.fixtures.database import settings_for
from tests.fixtures.stack import clean_environment

TENANTS = ("north", "south", "west")
WRITERS = ("ann", "bob")
READER = "cat"
"""Holds the team's tag now and then."""
MODELS = {"small": 64, "other": 96}
DISK_MEGABYTES = 1_500


@dataclass
class World:
    """What the load talks to, what the faults break, and a way past every proxy for the checker and the operator."""

    stack: DevStack
    postgres: PostgresServer
    temporal: TemporalServer
    endpoint: FakeEndpoint
    wires: Mapping[str, TcpProxy]
    disk: Path | None
    no_disk: str
    """Why there is no small disk; empty where there is one."""
    engine: Engine
    client: Client
    tokens: Mapping[tuple[str, str], str]
    team_rules: dict[tuple[str, str], GrantRule]
    deaths: list[str]
    """What the stack's own watch had to say: of parts that ended without being asked to."""

    @property
    def api(self) -> str:
        return self.stack.access.api

    def pid(self, part: str) -> int:
        if part == "postgres":
            return self.postgres.child.pid
        return self.temporal.child.pid if part == "temporal" else self.stack.pid(part)


@asynccontextmanager
async def opened(folder: Path, *, small_disk: bool) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        state = folder / "state"
        state.mkdir()
        disk, why = None, "not asked for"
        if small_disk:
            disk, why = await stack.enter_async_context(_mounted(state))
        postgres = PostgresServer(state / "postgres", durable=True, settings={"max_wal_size": "256MB"})
        stack.push_async_callback(postgres.stop)
        temporal = TemporalServer(state / "temporal")
        stack.push_async_callback(temporal.stop)
        endpoint = await stack.enter_async_context(FakeEndpoint(models=MODELS))
        await asyncio.gather(postgres.start(), temporal.start())
        dsn = await postgres.ensure_database()
        ports = {"postgres": postgres.port, "temporal": temporal.ports.grpc, "endpoint": endpoint.port}
        wires = {name: await stack.enter_async_context(TcpProxy(port)) for name, port in ports.items()}
        environment = {
            **clean_environment(),
            "DATABASE_URL": _through(dsn, wires["postgres"].port),
            "TEMPORAL_ADDRESS": f"{HOST}:{wires['temporal'].port}",
            "EMBED_BASE_URL": f"http://{HOST}:{wires['endpoint'].port}",
            "EMBED_MODEL": "small",
            "EMBED_INLINE_BUDGET_MS": "500",
        }
        deaths: list[str] = []
        dev = await stack.enter_async_context(
            DevStack(folder / "stack", port=0, environment=environment, say=deaths.append)
        )
        settings = settings_for(dsn, embed_base_url=environment["EMBED_BASE_URL"], embed_model="small")
        engine = await stack.enter_async_context(Engine.open(settings))
        client = await Client.connect(temporal.address, data_converter=DATA_CONVERTER)
        issued, team = await _settle(engine)
        yield World(dev, postgres, temporal, endpoint, wires, disk, why, engine, client, issued, team, deaths)
        for wire in wires.values():
            wire.heal()


async def _settle(engine: Engine) -> tuple[dict[tuple[str, str], str], dict[tuple[str, str], GrantRule]]:
    """Tokens and rules: writers may do everything to their own, the reader reads, the mirror sees all."""
    issued: dict[tuple[str, str], str] = {}
    team: dict[tuple[str, str], GrantRule] = {}
    async with connection(engine.pool) as conn:
        for tenant in TENANTS:
            for principal in (*WRITERS, READER, SEES_ALL):
                actions = ("add", "search", "forget", "purge") if principal in WRITERS else ("search",)
                rules = [_rule(principal, "memory", action) for action in actions]
                if principal == SEES_ALL:
                    rules.append(_rule(principal, "memory.*", "search"))
                await put_rules(conn, tenant, rules)
                issued[tenant, principal], _ = await tokens.issue(conn, tenant, principal)
            for principal in (*WRITERS, READER):
                team[tenant, principal] = _rule(principal, TEAM_TAG, "search")
    return issued, team


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


def _through(dsn: str, port: int) -> str:
    real = urlsplit(dsn).port
    return dsn.replace(f":{real}/", f":{port}/")


@asynccontextmanager
async def _mounted(folder: Path) -> AsyncIterator[tuple[Path | None, str]]:
    """A small file system on this folder, and an empty string; or None, and why not."""
    if os.geteuid() != 0:
        yield None, "only root can mount a small file system"
        return
    options = f"size={DISK_MEGABYTES}m,mode=0755"
    made = await asyncio.to_thread(
        subprocess.run, ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode != 0:
        yield None, "the system does not let us mount a small file system"
        return
    try:
        yield folder, ""
    finally:
        # Lazily: whatever still writes there ends by itself.
        await asyncio.to_thread(subprocess.run, ["umount", "-l", str(folder)], check=False)
