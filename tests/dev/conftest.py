"""Small programs that stand in for the parts of a stack."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_plane.dev.child import Command

IGNORES_TERM = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
)
WAITS = "import signal; print('ready', flush=True); signal.pause()"

CommandFactory = Callable[..., Command]


@pytest.fixture
def python(tmp_path: Path) -> Iterator[CommandFactory]:
    """Builds the command that runs a piece of Python, with its output in a log."""

    def build(code: str, **options: object) -> Command:
        return Command(
            name="A program",
            argv=(sys.executable, "-I", "-S", "-c", code),
            log=tmp_path / "program.log",
            **options,  # type: ignore[arg-type]
        )

    yield build
