"""PostgreSQL 18 with pgvector from a wheel, its binaries driven directly: no service, no Docker, no root needed."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

import asyncpg

from memory_plane.dev.child import Child
from memory_plane.dev.cluster import SUPERUSER, Cluster
from memory_plane.dev.errors import StackError
from memory_plane.dev.ports import HOST, free_port, is_free

DATABASE = "memory"
_START_SECONDS = 60.0
_POLL_SECONDS = 0.02
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - asked for its size only

# For a laptop or a CI runner with two cores. The level `log` leaves failed statements out of the log: what the server
# says of them quotes values. The caller is told anyway.
_SETTINGS: Mapping[str, str] = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    "effective_cache_size": "1GB",
    "max_wal_size": "1GB",
    "max_parallel_workers_per_gather": "1",
    "max_parallel_maintenance_workers": "1",
    "random_page_cost": "1.1",
    "jit": "off",
    "huge_pages": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "log",
    "log_error_verbosity": "terse",
}
_NOT_DURABLE: Mapping[str, str] = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}

# The packaged vector.so is built for its build machine's processor; on a lesser one the first distance kills a backend.
PROCESSOR_PROBE = (
    "SELECT a <=> b, a <-> b, a::halfvec(64) <=> b::halfvec(64) FROM ("
    "SELECT array_fill(0.5::real, ARRAY[64])::vector(64) a, array_fill(0.25::real, ARRAY[64])::vector(64) b) s"
)


class PostgresServer:
    """One server on one directory; the cluster and its password live below it and survive restarts.

    ``port`` 0 takes a free one. ``durable=False`` turns fsync off: for tests whose data need not
    survive a crash of the machine. ``settings`` override the built-in ones.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
        log: Path | None = None,
        trace: Path | None = None,
    ) -> None:
        self.port = port
        self.log = log or directory.absolute() / "postgres.log"
        self.cluster = Cluster(directory, self.log, trace)
        self._durable = durable
        self._settings = {**_SETTINGS, **({} if durable else _NOT_DURABLE), **(settings or {})}
        self._child: Child | None = None

    @property
    def child(self) -> Child:
        if self._child is None:
            raise StackError("PostgreSQL has not been started.")
        return self._child

    @property
    def bin(self) -> Path:
        """The directory of ``pg_dump`` and the like, of the server's own version."""
        return self.cluster.bin

    def dsn(self, database: str = DATABASE) -> str:
        """The connection string of a database, with the superuser's password."""
        return f"postgresql://{SUPERUSER}:{self.cluster.password()}@{HOST}:{self.port}/{database}?sslmode=disable"

    async def start(self) -> None:
        """Start, after a crash too, and wait until it answers; makes the cluster first where there is none."""
        self.cluster.prepare()
        await self.cluster.ensure(durable=self._durable)
        if self.port == 0:
            self.port = free_port()
        elif not is_free(self.port):
            raise StackError(
                f"Port {self.port} for PostgreSQL is in use; stop what uses it, "
                "or choose another port (0 takes a free one)."
            )
        await self._launch()

    async def stop(self) -> None:
        """Stop fast: open transactions are rolled back, everything committed is on disk."""
        if self._child is not None:
            await self._child.stop()

    async def kill(self) -> None:
        """Kill the postmaster with SIGKILL, as a crash would."""
        await self.child.kill()

    async def ensure_database(self, name: str = DATABASE) -> str:
        """Make the database with pgvector in it unless it is there; check the processor; return its DSN."""
        connection = await asyncpg.connect(self.dsn("postgres"))
        try:
            if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name):
                await connection.execute(f'CREATE DATABASE "{name}"')
        finally:
            await connection.close()
        await self.probe_processor(name)
        return self.dsn(name)

    async def probe_processor(self, database: str = DATABASE, probe: str = PROCESSOR_PROBE) -> None:
        """Raise StackError, in words, when pgvector's machine code does not run on this processor."""
        connection = await asyncpg.connect(self.dsn(database))
        try:
            await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            await connection.fetch(probe)
        except (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError) as failure:
            raise StackError(
                "This processor lacks instructions that the packaged pgvector was built with (its backend died on the "
                "first vector distance); set DATABASE_URL to a PostgreSQL with pgvector 0.8.4 or newer."
            ) from failure
        finally:
            connection.terminate()

    async def _launch(self) -> None:
        """Start the server; backends that outlive a killed postmaster hold the cluster for a moment: retry."""
        deadline = asyncio.get_running_loop().time() + _START_SECONDS
        while True:
            child = self._child = await self.cluster.run("postgres", self._arguments)
            if await self._is_ready(child, deadline):
                return
            if asyncio.get_running_loop().time() > deadline or not self._crash_left_backends():
                await child.stop()
                raise StackError(f"PostgreSQL did not start ({self._last_error()}); see {self.log}.")
            await asyncio.sleep(_POLL_SECONDS * 10)

    def _arguments(self, directory: str) -> list[str]:
        settings = {**self._settings, "port": str(self.port)}
        if _SHARED_MEMORY.exists() and shutil.disk_usage(_SHARED_MEMORY).free < 1024**3:
            # A container's default of 64 MB is less than one parallel index build asks for.
            settings["dynamic_shared_memory_type"] = "mmap"
        arguments = ["-D", f"{directory}/cluster"]
        for name, value in settings.items():
            arguments += ["-c", f"{name}={value}"]
        return arguments

    async def _is_ready(self, child: Child, deadline: float) -> bool:
        """Wait for the status line that the server keeps beside its data; a stale file has another pid in it."""
        status = self.cluster.path / "postmaster.pid"
        while child.exit_code is None and asyncio.get_running_loop().time() < deadline:
            try:
                lines = status.read_text().split("\n")
            except FileNotFoundError:
                lines = []
            if len(lines) > 7 and lines[0] == str(child.pid) and lines[7].strip() == "ready":
                return True
            await asyncio.sleep(_POLL_SECONDS)
        return False

    def _crash_left_backends(self) -> bool:
        return "pre-existing shared memory block" in self._last_error()

    def _last_error(self) -> str:
        for line in reversed(self.log.read_text(errors="replace").splitlines()[-20:]):
            if "FATAL" in line:
                return line.partition("FATAL:")[2].strip()
        return "no reason given"
