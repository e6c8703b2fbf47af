"""Where the doors and the migrations are: a checkout or the image has them, the wheel does not."""

from pathlib import Path

from memory_plane.dev.errors import StackError

_LANDMARKS = ("worker.py", "api", "migrations")


def checkout() -> Path:
    """The directory with `worker.py`, `api/` and `migrations/`; raises StackError where only the wheel is installed."""
    root = Path(__file__).resolve().parents[2]
    if not all((root / name).exists() for name in _LANDMARKS):
        raise StackError(
            "This installation has the library only; run memory dev from a checkout of the repository, "
            "or use the container image."
        )
    return root
