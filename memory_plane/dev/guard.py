"""A watcher process between the stack and one child, so that no child outlives its stack.

Run as a script on a bare interpreter, it imports nothing of ours. Its standard input is a pipe
whose only writer is the stack: end of file means that the stack asked for a stop or died, however
it died. (The kernel's parent-death signal alone will not do: it follows the thread that forked,
and a change of user clears it.) If the guard itself is killed, the parent-death signal ends the
child on Linux.

Protocol: one JSON line on standard output, ``{"pid": n}`` or ``{"error": text}``; byte ``k`` on
standard input sends SIGKILL; end of file sends the stop signals one after the other, each with
its time to work, and SIGKILL at last.
The exit code is the child's, 128 + n for signal n, 127 when it could not be started.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

CANNOT_START = 127
_PR_SET_PDEATHSIG = 1


def _die_with_guard(signum: int) -> Callable[[], None] | None:
    if not sys.platform.startswith("linux"):
        return None
    set_death_signal = ctypes.CDLL(None, use_errno=True).prctl
    guard = os.getpid()

    def before_exec() -> None:
        # A shell that starts us in the background ignores these, which outlives exec: nothing could stop the child.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        # Runs after the change of user, which would have cleared the setting.
        set_death_signal(_PR_SET_PDEATHSIG, signum, 0, 0, 0)
        if os.getppid() != guard:
            os._exit(CANNOT_START)

    return before_exec


def _spawn(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    account = spec["account"]
    identity: dict[str, Any] = {}
    if account is not None:
        identity = {"user": account[0], "group": account[1], "extra_groups": []}
    return subprocess.Popen(
        spec["argv"],
        stdin=subprocess.DEVNULL,
        stdout=2,
        stderr=2,
        cwd=spec["cwd"],
        start_new_session=True,
        pass_fds=spec["pass_fds"],
        preexec_fn=_die_with_guard(spec["death_signal"]),
        **identity,
    )


def _signal_group(child: "subprocess.Popen[bytes]", signum: int) -> None:
    try:
        os.killpg(child.pid, signum)
    except (ProcessLookupError, PermissionError):
        return


def _watch(child: "subprocess.Popen[bytes]", wake: int, steps: list[tuple[int, float]]) -> None:
    """Return once the child has ended. `steps` are stop signals with the seconds that each is given."""
    control_open = True
    deadline: float | None = None
    while child.poll() is None:
        sources = [wake, 0] if control_open else [wake]
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select(sources, [], [], left)
        asked_to_stop = False
        if wake in ready:
            received = os.read(wake, 64)
            asked_to_stop = any(n in received for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
        if control_open and 0 in ready:
            command = os.read(0, 1)
            if command == b"k":
                child.kill()
            elif command == b"":
                control_open, asked_to_stop = False, True
        due = deadline is not None and time.monotonic() >= deadline
        if due and not steps:
            _signal_group(child, signal.SIGKILL)
            child.wait()
        elif due or (asked_to_stop and deadline is None):
            signum, seconds = steps.pop(0)
            child.send_signal(signum)
            deadline = time.monotonic() + seconds


def main() -> int:
    spec = json.loads(sys.argv[1])
    wake, wake_end = os.pipe()
    os.set_blocking(wake_end, False)
    signal.set_wakeup_fd(wake_end)
    for signum in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, lambda *_: None)
    try:
        child = _spawn(spec)
    except (OSError, subprocess.SubprocessError) as failure:
        print(json.dumps({"error": str(failure)}), flush=True)  # noqa: T201 - the protocol
        return CANNOT_START
    with contextlib.suppress(BrokenPipeError):  # the stack is gone already; standard input says so too
        print(json.dumps({"pid": child.pid}), flush=True)  # noqa: T201 - the protocol
    _watch(child, wake, spec["stop"])
    _signal_group(child, signal.SIGKILL)  # what it left behind in its own group
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    sys.exit(main())
