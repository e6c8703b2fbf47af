"""Child processes of the embedded stack, each behind a guard that ends it with the stack."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from memory_plane.dev.errors import StackError
from memory_plane.dev.private_files import write_private
from memory_plane.dev.processes import start_time

_GUARD = Path(__file__).with_name("guard.py")
_LOG_LIMIT = 16 * 1024 * 1024


class Account(NamedTuple):
    """The operating system account that a child runs under."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Command:
    """What to run and how to stop it: by signals, each with the seconds it is given, and SIGKILL after the last."""

    name: str
    argv: tuple[str, ...]
    log: Path
    cwd: Path = Path("/")
    env: Mapping[str, str] | None = None
    stop_signals: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 10.0),)
    death_signal: signal.Signals = signal.SIGKILL
    """What it gets on Linux when its guard is killed."""
    account: Account | None = None
    pass_fds: tuple[int, ...] = ()
    trace: Path | None = None
    """A file to note the processes' ids and start times in."""

    def guard_argument(self) -> str:
        return json.dumps(
            {
                "argv": self.argv,
                "cwd": str(self.cwd),
                "stop": self.stop_signals,
                "death_signal": self.death_signal,
                "account": self.account,
                "pass_fds": self.pass_fds,
            }
        )


class Child:
    """One running child. Make it with :meth:`start`."""

    def __init__(self, command: Command, guard: asyncio.subprocess.Process, control: int, pid: int) -> None:
        self.command = command
        self.pid = pid
        self.guard_pid = guard.pid
        self._guard = guard
        self._control: int | None = control

    @classmethod
    async def start(cls, command: Command) -> "Child":
        """Start it; raises StackError when the program cannot be executed."""
        reading, writing = os.pipe()
        log = _open_log(command.log)
        try:
            guard = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                str(_GUARD),
                command.guard_argument(),
                stdin=reading,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=None if command.env is None else dict(command.env),
                pass_fds=command.pass_fds,
                start_new_session=True,
            )
        except OSError:
            os.close(writing)
            raise
        finally:
            os.close(reading)
            os.close(log)
        try:
            pid = await _reported_pid(command, guard)
        except BaseException:
            os.close(writing)
            raise
        if command.trace is not None:
            traces = {process: start_time(process) for process in (guard.pid, pid)}
            write_private(command.trace, json.dumps(traces) + "\n")
        return cls(command, guard, writing, pid)

    @property
    def exit_code(self) -> int | None:
        """The exit code (128 + n after signal n), or None while it runs."""
        return self._guard.returncode

    async def wait(self) -> int:
        """Wait for its end and return the exit code."""
        code = await self._guard.wait()
        self._close_control()
        return code

    async def stop(self) -> int:
        """Stop it, politely first; return the exit code."""
        self._close_control()
        return await self.wait()

    async def kill(self) -> int:
        """Kill it with SIGKILL, as a crash would; return the exit code."""
        if self._control is not None and self.exit_code is None:
            with contextlib.suppress(BrokenPipeError):  # it ended by itself meanwhile
                os.write(self._control, b"k")
        return await self.wait()

    def _close_control(self) -> None:
        if self._control is not None:
            os.close(self._control)
            self._control = None


async def _reported_pid(command: Command, guard: asyncio.subprocess.Process) -> int:
    assert guard.stdout is not None  # noqa: S101 - asked for a pipe above
    line = await guard.stdout.readline()
    report = json.loads(line) if line else {"error": "its guard process died"}
    if "pid" not in report:
        await guard.wait()
        raise StackError(f"{command.name} cannot be started ({report['error']}); see {command.log}.")
    return int(report["pid"])


def _open_log(path: Path) -> int:
    """Open a log for appending, setting an overlong one aside."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _LOG_LIMIT:
        path.replace(path.with_name(path.name + ".1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
