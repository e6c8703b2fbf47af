"""What the system says about a process: enough to never mistake a recycled process id for one of ours."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

Traces = Mapping[int, str | None]
"""Process ids with their start times, as `start_time` gives them."""

_LINUX = sys.platform.startswith("linux")
_POLL_SECONDS = 0.02
# Longer than any child's own grace, since a guard that is alive is already at it.
_PATIENCE_SECONDS = 20.0


def start_time(pid: int) -> str | None:
    """When the process started, in the system's own terms; None when there is no such process, or a zombie."""
    if _LINUX:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        if fields[0] in "ZX":
            return None
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}:{fields[19]}"
    return _answer("/bin/ps", "-o", "lstart=", "-p", str(pid)) or None


def working_directory(pid: int) -> Path | None:
    """The directory the process is in; None when there is no such process or it is not ours to see."""
    if _LINUX:
        try:
            return Path(f"/proc/{pid}/cwd").readlink()
        except OSError:
            return None
    lines = _answer("/usr/sbin/lsof", "-a", "-p", str(pid), "-d", "cwd", "-Fn").splitlines()
    names = [line[1:] for line in lines if line.startswith("n")]
    return Path(names[0]) if names else None


def alive(traces: Traces) -> list[int]:
    """Those of the processes that still run."""
    return [pid for pid, started in traces.items() if started is not None and start_time(pid) == started]


async def end_all(traces: Traces) -> bool:
    """End the processes, politely first; False when none of them was running."""
    if not alive(traces):
        return False
    # SIGINT: PostgreSQL waits for its clients on SIGTERM, and all others take either.
    for signum, seconds in ((signal.SIGINT, _PATIENCE_SECONDS), (signal.SIGKILL, _PATIENCE_SECONDS)):
        for pid in alive(traces):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)
        deadline = asyncio.get_running_loop().time() + seconds
        while alive(traces) and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - not our children
            await asyncio.sleep(_POLL_SECONDS)
    return True


def _answer(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
