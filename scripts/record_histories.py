"""Record the histories that later code must replay, from the real server: `python scripts/record_histories.py`.

The tests of the workflows are the scenarios; each ends in `record(handle, "name")`. A history that is in
tests/replay/histories already is left as it is: to write one anew is to throw away what it is kept for.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HISTORIES = ROOT / "tests" / "replay" / "histories"


def main() -> int:
    before = {file.name for file in HISTORIES.glob("*.json")}
    tests = sys.argv[1:] or ["tests/workflows"]
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *tests],
        cwd=ROOT,
        env={**os.environ, "MEMORY_RECORD_HISTORIES": "1"},
        check=False,
    )
    for name in sorted({file.name for file in HISTORIES.glob("*.json")} - before):
        print(f"recorded {name}")
    return finished.returncode


if __name__ == "__main__":
    sys.exit(main())
