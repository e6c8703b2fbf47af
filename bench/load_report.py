"""The load's table, its verdict, and its part of docs/benchmarks.md."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.load import Step

BEGIN, END = "<!-- load: made by bench.load -->", "<!-- /load -->"
KEPT_UP = 0.95
"""The share of a rate that must be answered well for the service to keep up with it."""
KEPT_UNDER = 1.0
"""Seconds, for 95 of 100."""
LEFT_IN_A_FLOOD = 0.6
"""Of the best rate, what must still be answered at any rate beyond it."""
HEALTH_WITHIN = 2.0
"""Seconds, for 99 probes of 100."""


def write(steps: Sequence[Step], mix: Mapping[str, int], out: Path, page: Path) -> bool:
    """Both files, and whether all that is asked of saturation held."""
    problems = verdict(steps)
    text = report(steps, mix, problems)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f"# Load\n\n{text}")
    before = page.read_text()
    if BEGIN not in before:
        before = f"{before.rstrip()}\n\n## Load\n\n{BEGIN}\n{END}\n"
    head, _, rest = before.partition(BEGIN)
    page.write_text(f"{head}{BEGIN}\n{text}{END}{rest.partition(END)[2]}")
    print(text)
    return not problems


def knee(steps: Sequence[Step]) -> Step | None:
    """The highest rate that was kept up with; the last step repeats the first and does not count."""
    kept = [s for s in steps[:-1] if len(s.latencies) >= KEPT_UP * s.offered and s.percentile(0.95) <= KEPT_UNDER]
    return max(kept, key=lambda step: step.rate, default=None)


def verdict(steps: Sequence[Step]) -> list[str]:
    """What did not hold."""
    problems = []
    best = max(step.answered for step in steps[:-1])
    reached = knee(steps)
    if reached is None:
        problems.append("not even the lowest rate was kept up with")
    elif reached is steps[-2]:
        problems.append("the highest rate was kept up with: nothing was saturated, so nothing was shown")
    for step in steps:
        other = {s: n for s, n in step.statuses.items() if not s.startswith(("200", "429", "503", "not asked"))}
        if other:
            problems.append(f"at {step.rate:g}/s: {other}")
        if step.without_retry_after:
            problems.append(f"at {step.rate:g}/s {step.without_retry_after} refusals came without Retry-After")
        if step.health_failures or step.health_percentile(0.99) > HEALTH_WITHIN:
            problems.append(
                f"at {step.rate:g}/s health took {step.health_percentile(0.99):.1f} s "
                f"and failed {step.health_failures} times"
            )
        if reached is not None and step.rate > reached.rate and step.answered < LEFT_IN_A_FLOOD * best:
            problems.append(f"at {step.rate:g}/s only {step.answered:.0f}/s were answered, of {best:.0f}/s at best")
    first, last = steps[0], steps[-1]
    if len(last.latencies) < KEPT_UP * last.offered or last.percentile(0.5) > 3 * first.percentile(0.5):
        problems.append("after the flood the service was not what it had been")
    return problems


def report(steps: Sequence[Step], mix: Mapping[str, int], problems: Sequence[str]) -> str:
    reached = knee(steps)
    lines = [
        f"Made {datetime.now(UTC):%d %B %Y} on {os.cpu_count()} cores, which callers, API, worker, Temporal and "
        f"PostgreSQL share; load of the machine {os.getloadavg()[0]:.1f}. One API process, "
        + ", ".join(f"{share} % {kind}" for kind, share in mix.items())
        + "; adds of 200 words, durable and embedded by an endpoint that answers at once. Open loop: requests begin at "
        "their time, answered or not.",
        "",
        "| asked/s | answered/s | p50 ms | p95 ms | p99 ms | refused, with `Retry-After` | no answer | health p99 ms |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for step in steps:
        refused = {s: n for s, n in step.statuses.items() if s.startswith(("429", "503"))}
        silent = sum(n for s, n in step.statuses.items() if s.startswith("no answer"))
        told = ", ".join(f"{n} {s}" for s, n in sorted(refused.items())) or "0"
        times = " | ".join(f"{1000 * step.percentile(share):.0f}" for share in (0.5, 0.95, 0.99))
        mark = "**" if step is reached else ""
        lines.append(
            f"| {mark}{step.rate:g}{mark} | {step.answered:.0f} | {times} | {told} | {silent} "
            f"| {1000 * step.health_percentile(0.99):.0f} |"
        )
    lines += [
        "",
        f"The knee is at **{reached.rate:g} requests a second**" if reached else "There was no knee",
    ]
    lines[-1] += (
        f": the highest rate of which {KEPT_UP:.0%} were answered well, 95 of 100 within {KEPT_UNDER:g} s. The last "
        "row is the first rate again, after the flood."
    )
    lines += ["", "What did not hold:", ""] if problems else []
    lines += [f"- {problem}" for problem in problems]
    return "\n".join(lines) + "\n"
