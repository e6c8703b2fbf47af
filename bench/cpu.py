"""CPU time of processes and their children, from /proc: on a busy machine it says more than a clock."""

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM = 1, 11, 12
"""Fields of /proc/<pid>/stat after the command's name."""


def _fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def tree(root: int) -> list[int]:
    """The process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _fields(int(entry.name))):
            children.setdefault(int(fields[_PARENT]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def seconds(pids: list[int]) -> float:
    """User and system time so far, of those that still run (a process's own, without its children)."""
    return sum(int(fields[_USER]) + int(fields[_SYSTEM]) for pid in pids if (fields := _fields(pid))) / _TICK
