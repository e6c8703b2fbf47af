"""`python -m tests.chaos --minutes 30 --seed 7 --report bench/results/chaos.md`: 0 if nothing was violated."""

import argparse
import random
import sys
import tempfile
from pathlib import Path

import uvloop

from tests.chaos.report import markdown
from tests.chaos.run import Plan, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--report", type=Path, default=None)
    parser.add_argument("--only", action="append", default=[], help="the name of a fault; again for more")
    given = parser.parse_args()
    seed = random.randrange(1_000_000) if given.seed is None else given.seed
    say(f"seed {seed}")
    plan = Plan(seed, given.minutes * 60, only=tuple(given.only))
    with tempfile.TemporaryDirectory(prefix="memory-chaos-") as folder:
        outcome = uvloop.run(run(plan, Path(folder), say))
    text = markdown(outcome)
    if given.report is not None:
        given.report.parent.mkdir(parents=True, exist_ok=True)
        given.report.write_text(text)
    say(text)
    return 0 if outcome.held else 1


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a program


if __name__ == "__main__":
    sys.exit(main())
