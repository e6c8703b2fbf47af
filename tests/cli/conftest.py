"""The `memory` command as a process, against the session's stack."""

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from memory_plane.dev.stack import DevStack
from tests.eventually import eventually
from tests.fixtures.stack import clean_environment


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Until = Callable[[], Awaitable[bool]]
Memory = Callable[..., Awaitable[Ended]]


async def run_memory(
    *arguments: str, environment: dict[str, str], cwd: Path, stdin: str = "", interrupt_when: Until | None = None
) -> Ended:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "memory_plane.cli.main", *arguments),
        env={**environment, "PYTHONPATH": str(Path.cwd())},
        cwd=cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    if interrupt_when is not None:
        await eventually(interrupt_when)
        process.send_signal(signal.SIGINT)
    out, err = await process.communicate(stdin.encode())
    return Ended(process.returncode or 0, out.decode(), err.decode())


@pytest.fixture
def memory(stack: DevStack, tmp_path: Path) -> Memory:
    access = stack.access
    environment = {
        **clean_environment(),
        "MEMORY_API": access.api,
        "MEMORY_TENANT": access.tenant,
        "MEMORY_TOKEN": access.token,
        "DATABASE_URL": access.database,
        "TEMPORAL_ADDRESS": access.temporal,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }

    async def run(
        *arguments: str,
        stdin: str = "",
        interrupt_when: Until | None = None,
        without: tuple[str, ...] = (),
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> Ended:
        kept = {name: value for name, value in environment.items() if name not in without} | dict(more)
        return await run_memory(*arguments, environment=kept, cwd=tmp_path, stdin=stdin, interrupt_when=interrupt_when)

    return run
