"""The data directory of one embedded stack: its lock, what it remembers, and the processes it has started."""

import fcntl
import json
import os
import shutil
from pathlib import Path
from typing import Any

from memory_plane.dev.errors import StackError
from memory_plane.dev.private_files import write_private
from memory_plane.dev.processes import Traces, end_all

_FORMAT = 1
_NEEDED_BYTES = 512 * 1024 * 1024


def default_data_dir() -> Path:
    """`$XDG_DATA_HOME/memory-plane/dev`, by default below `~/.local/share`."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "memory-plane" / "dev"


class DataDir:
    """Open it with :meth:`acquire`; one stack at a time holds it, until :meth:`release` or the end of its process."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._state: dict[str, Any] = {"format": _FORMAT, "ports": {}}
        self._lock: int | None = None

    def acquire(self) -> None:
        """Make and lock the directory, and read what it remembers. Raises StackError with the way out."""
        try:
            self._open()
        except StackError:
            self.release()
            raise

    def _open(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._take_lock()
            self._read_state()
        except OSError as problem:
            raise StackError(
                f"The data directory {self.path} cannot be used ({problem.strerror}); choose another --data-dir."
            ) from problem
        if (free := shutil.disk_usage(self.path).free) < _NEEDED_BYTES:
            raise StackError(
                f"There are {free // 1024**2} MB free on the disk of {self.path} and the stack needs "
                f"{_NEEDED_BYTES // 1024**2} MB to start; make room, or choose a --data-dir on another disk."
            )

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def logs(self) -> Path:
        return self.path / "logs"

    def port(self, name: str) -> int | None:
        """The port that a part had the last time."""
        port = self._state["ports"].get(name)
        return int(port) if port else None

    def remember_port(self, name: str, port: int) -> None:
        self._state["ports"][name] = port
        write_private(self.path / "state.json", json.dumps(self._state) + "\n")

    def read_secret(self, name: str) -> str | None:
        try:
            return (self.path / name).read_text().strip() or None
        except FileNotFoundError:
            return None

    def write_secret(self, name: str, value: str) -> None:
        write_private(self.path / name, value + "\n")

    def trace(self, name: str) -> Path:
        """Where a part's processes are noted, so that the next start can end them should all else have failed to."""
        return self.path / "run" / f"{name}.json"

    async def clear_orphans(self) -> list[str]:
        """End what an earlier stack on this directory has left running; the names of those parts.

        A process is ours if it started at the very time that was noted: process ids repeat.
        """
        cleared = []
        for file in sorted((self.path / "run").glob("*.json")):
            try:
                traces: Traces = {int(pid): started for pid, started in json.loads(file.read_text()).items()}
            except ValueError:  # torn by a crash of the machine, and its processes with it
                traces = {}
            if await end_all(traces):
                cleared.append(file.stem)
            file.unlink()
        return cleared

    def _take_lock(self) -> None:
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise StackError(
                f"The data directory {self.path} is in use by another stack (process {holder}); "
                "stop that one, or choose another --data-dir."
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._lock = descriptor

    def _read_state(self) -> None:
        try:
            state = json.loads((self.path / "state.json").read_text())
            found = state["format"]
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError):
            raise StackError(
                f"{self.path / 'state.json'} is damaged; remove it (recipes may then name an embedding endpoint "
                "that has moved), or choose another --data-dir."
            ) from None
        if found != _FORMAT:
            raise StackError(
                f"The data directory {self.path} has format {found} and this version knows {_FORMAT}; "
                "use the version that made it, or choose another --data-dir."
            )
        self._state = state
