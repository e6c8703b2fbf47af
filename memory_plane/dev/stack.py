"""The whole embedded stack as one process tree on one data directory."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from temporalio.client import Client

from memory_plane.dev.checkout import checkout
from memory_plane.dev.data_dir import DataDir
from memory_plane.dev.errors import StackError
from memory_plane.dev.parts import Part
from memory_plane.dev.ports import HOST, free_port, is_free
from memory_plane.dev.postgres import PostgresServer
from memory_plane.dev.private_files import write_private
from memory_plane.dev.programs import Programs, endpoint_variables
from memory_plane.dev.seed import PRINCIPAL, TENANT, migrated, seeded
from memory_plane.dev.supervisor import Supervised
from memory_plane.dev.temporal import TemporalPorts, TemporalServer
from memory_plane.settings import Settings
from memory_plane.temporal import connect

__all__ = ["PARTS", "PRINCIPAL", "TENANT", "Access", "DevStack"]

PARTS = ("postgres", "temporal", "endpoint", "worker", "api")


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a running stack; what the ready file holds. `temporal_ui` is None for a server that is not ours."""

    api: str
    temporal: str
    temporal_ui: str | None
    database: str
    tenant: str
    token: str


class DevStack:
    """PostgreSQL, Temporal, a local model endpoint, worker and API: started, watched and stopped together.

    `DATABASE_URL`, `TEMPORAL_ADDRESS` and `EMBED_BASE_URL` in `environment` stand in for the part
    of ours. `port` is the API's: None takes the last one if it is free, 0 a free one. `variables`
    go to worker and API on top. `durable=False` turns fsync off, for tests.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int | None = None,
        ready_file: Path | None = None,
        rerank: bool = False,
        durable: bool = True,
        environment: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.data_dir = DataDir(data_dir)
        self._port = port
        self._ready_file = ready_file
        self._rerank = rerank
        self._durable = durable
        self._environment = dict(os.environ if environment is None else environment)
        self._variables = dict(variables or {})
        self._say = say
        self._parts: dict[str, Supervised] = {}
        self._access: Access | None = None
        self._failure: asyncio.Future[StackError] | None = None

    @property
    def principal(self) -> str:
        """Whom the token speaks for."""
        return PRINCIPAL

    @property
    def access(self) -> Access:
        if self._access is None:
            raise StackError("The stack is not running.")
        return self._access

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start everything and wait until all of it is ready. Raises StackError, with nothing left running."""
        self._failure = asyncio.get_running_loop().create_future()
        self.data_dir.acquire()
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop everything: those who use first, those who are used last."""
        if self._ready_file is not None:
            self._ready_file.unlink(missing_ok=True)
        self._access = None
        for names in (("api",), ("worker",), ("endpoint", "temporal", "postgres")):
            await asyncio.gather(*(self._parts[name].stop() for name in names if name in self._parts))
        self._parts.clear()
        self.data_dir.release()

    async def kill(self, name: str) -> None:
        """Kill a part with SIGKILL, as a crash would; it stays down until :meth:`restart`."""
        await self._parts[name].kill()

    async def restart(self, name: str) -> None:
        """Start a part again, stopping it first if it is up, and wait until it is ready."""
        await self._parts[name].stop()
        await self._parts[name].start()

    async def ready(self, name: str) -> None:
        """Wait until a part is up, after a death that nobody asked for too."""
        await self._parts[name].ready()

    def pid(self, name: str) -> int:
        return self._parts[name].part.child.pid

    def log(self, name: str) -> Path:
        return self._parts[name].part.log

    async def failed(self) -> StackError:
        """Wait until the stack gives up because a part keeps dying; why."""
        assert self._failure is not None  # noqa: S101 - set by start
        return await self._failure

    async def _start(self) -> None:
        if self._ready_file is not None:
            self._ready_file.unlink(missing_ok=True)
        for name in await self.data_dir.clear_orphans():
            self._say(f"ended a {name} that an earlier stack had left running")
        programs = Programs(self.data_dir, self._children_environment())
        port = self._api_port()
        async with _together() as group:
            models = group.create_task(self._start_endpoint(programs))
            database = group.create_task(self._start_database())
            temporal = group.create_task(self._start_temporal())
        dsn, (client, address, ui) = database.result(), temporal.result()
        await migrated(dsn, self._environment.get("FTS_LANGUAGE", "english"), checkout() / "migrations")
        token = await self._token(dsn)
        variables = {
            "DATABASE_URL": dsn,
            "TEMPORAL_ADDRESS": address,
            "TEMPORAL_NAMESPACE": client.namespace,
            "MEMORY_AUTH": "token",
            **models.result(),
            **self._variables,
        }
        async with _together() as group:
            group.create_task(programs.setup(variables))
            group.create_task(self._run("worker", programs.worker(variables, client)))
            group.create_task(self._run("api", programs.api(port, variables)))
        self.data_dir.remember_port("api", port)
        self._access = Access(f"http://{HOST}:{port}", address, ui, dsn, TENANT, token)
        if self._ready_file is not None:
            write_private(self._ready_file, json.dumps(asdict(self._access)) + "\n")

    def _children_environment(self) -> dict[str, str]:
        """Ours, less what would lead the Temporal client (TLS, keys, profiles) away from a server that we start."""
        if self._environment.get("TEMPORAL_ADDRESS"):
            return self._environment
        kept = {name: value for name, value in self._environment.items() if not name.startswith("TEMPORAL_")}
        return {**kept, "TEMPORAL_CONFIG_FILE": os.devnull}

    async def _token(self, dsn: str) -> str:
        seed = await seeded(dsn, self.data_dir.read_secret("token"))
        if seed.fresh:
            self.data_dir.write_secret("token", seed.token)
        return seed.token

    def _api_port(self) -> int:
        if self._port and not is_free(self._port):
            raise StackError(
                f"Port {self._port} is in use; stop what uses it, or choose another --port (0 takes a free one)."
            )
        return self._port or free_port(self.data_dir.port("api") if self._port is None else None)

    async def _start_database(self) -> str:
        if given := self._environment.get("DATABASE_URL"):
            return given
        server = PostgresServer(
            self.data_dir.path / "postgres",
            port=free_port(self.data_dir.port("postgres")),
            durable=self._durable,
            log=self.data_dir.logs() / "postgres.log",
            trace=self.data_dir.trace("postgres"),
        )
        await self._run("postgres", server)
        self.data_dir.remember_port("postgres", server.port)
        return await server.ensure_database()

    async def _start_temporal(self) -> tuple[Client, str, str | None]:
        if given := self._environment.get("TEMPORAL_ADDRESS"):
            return await _connected(given), given, None
        names = ("grpc", "ui", "http", "metrics")
        server = TemporalServer(
            self.data_dir.path / "temporal",
            namespace=self._environment.get("TEMPORAL_NAMESPACE", "default"),
            ports=TemporalPorts(**{name: free_port(self.data_dir.port(f"temporal-{name}")) for name in names}),
            log=self.data_dir.logs() / "temporal.log",
            trace=self.data_dir.trace("temporal"),
        )
        await self._run("temporal", server)
        for name in names:
            self.data_dir.remember_port(f"temporal-{name}", getattr(server.ports, name))
        return await server.client(), server.address, server.ui

    async def _start_endpoint(self, programs: Programs) -> dict[str, str]:
        """Start the local model endpoint unless one is given; the configuration that leads to it."""
        if self._environment.get("EMBED_BASE_URL"):
            return {}
        port = self.data_dir.port("endpoint") or free_port()
        if not is_free(port):
            raise StackError(
                f"Port {port} of the local model endpoint is in use, and the recipes in {self.data_dir.path} name it; "
                "stop what uses it, or choose another --data-dir."
            )
        await self._run("endpoint", programs.endpoint(port, rerank=self._rerank))
        self.data_dir.remember_port("endpoint", port)
        return endpoint_variables(port, rerank=self._rerank)

    async def _run(self, name: str, part: Part) -> None:
        self._parts[name] = Supervised(name, part, say=self._say, give_up=self._give_up)
        await self._parts[name].start()

    def _give_up(self, failure: StackError) -> None:
        if self._failure is not None and not self._failure.done():
            self._failure.set_result(failure)


@asynccontextmanager
async def _together() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group whose first failure is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def _connected(address: str) -> Client:
    """A client to a server that is not ours, by the same configuration as worker and API."""
    try:
        return await connect(Settings.load(_env_file=None, database_url="postgresql://", temporal_address=address))
    except RuntimeError as failure:
        raise StackError(
            f"Temporal at {address} does not answer; check TEMPORAL_ADDRESS, or unset it to start one here."
        ) from failure
