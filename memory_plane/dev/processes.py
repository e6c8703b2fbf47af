"""What the system says about a process: enough to never mistake a recycled process id for one of ours."""

import subprocess
import sys
from pathlib import Path

_LINUX = sys.platform.startswith("linux")


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
    return _ps(pid, "lstart=")


def working_directory(pid: int) -> Path | None:
    """The directory the process is in; None when there is no such process or it is not ours to see."""
    if _LINUX:
        try:
            return Path(f"/proc/{pid}/cwd").readlink()
        except OSError:
            return None
    answer = subprocess.run(
        ["/usr/sbin/lsof", "-a", "-p", str(pid), "-d", "cwd", "-Fn"], capture_output=True, text=True, check=False
    )
    names = [line[1:] for line in answer.stdout.splitlines() if line.startswith("n")]
    return Path(names[0]) if names else None


def _ps(pid: int, field: str) -> str | None:
    answer = subprocess.run(["/bin/ps", "-o", field, "-p", str(pid)], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None
