"""The tables of bench.speed and the part of docs/benchmarks.md that is made of them."""

import json
import statistics
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.retrieval_report import replace_part

BEGIN, END = "<!-- speed: made by bench.speed -->", "<!-- /speed -->"
P50_TIMES, P95_TIMES, GROWTH_TIMES, RECALL = 1.5, 2.5, 2.0, 0.98


def table(results: Mapping[str, Any]) -> str:
    lines = ["| chunks | side | callers | p50 ms | p95 ms | p99 ms | searches/s |", "| --- |" + " --- |" * 6]
    for layout, sides in results["speed"].items():
        for side, by_callers in sides.items():
            if side == "times the floor":
                continue
            for callers, row in by_callers.items():
                times = " | ".join(f"{row[part]:.1f}" for part in ("p50", "p95", "p99"))
                lines.append(f"| {layout} | {side} | {callers} | {times} | {row['per second']:.0f} |")
    lines += ["", "| chunks | callers | p50, times the floor | p95, times the floor |", "| --- | --- | --- | --- |"]
    for layout, sides in results["speed"].items():
        for callers, row in sides["times the floor"].items():
            lines.append(f"| {layout} | {callers} | {_spread(row['p50'])} | {_spread(row['p95'])} |")
    lines += ["", "| chunks | searched by | recall@10 | recall@50 | always full |", "| --- | --- | --- | --- | --- |"]
    for layout, row in results["recall"].items():
        full = "yes" if row["full"] else "no"
        lines.append(f"| {layout} | {row['scan']} | {row['recall@10']:.3f} | {row['recall@50']:.3f} | {full} |")
    return "\n".join(lines) + "\n"


def _spread(values: list[float]) -> str:
    return f"**{statistics.median(values):.2f}** ({values[0]:.2f} to {values[-1]:.2f})"


def missed(results: Mapping[str, Any]) -> list[str]:
    problems = []
    speed = results["speed"]
    for layout in ("10k", "100k"):
        if layout in speed:
            ratio = statistics.median(speed[layout]["times the floor"]["1"]["p50"])
            if ratio > P50_TIMES:
                problems.append(f"{layout}: p50 at one caller is {ratio:.2f} times the floor, wanted {P50_TIMES}")
            ratio = statistics.median(speed[layout]["times the floor"]["16"]["p95"])
            if ratio > P95_TIMES:
                problems.append(f"{layout}: p95 at 16 callers is {ratio:.2f} times the floor's, wanted {P95_TIMES}")
    if "1k" in speed and "100k" in speed:
        growth = speed["100k"]["product"]["1"]["p50"] / speed["1k"]["product"]["1"]["p50"]
        if growth > GROWTH_TIMES:
            problems.append(f"p50 at 100k is {growth:.2f} times that at 1k, wanted {GROWTH_TIMES}")
    for layout, row in results["recall"].items():
        if row["recall@10"] < RECALL or not row["full"]:
            problems.append(f"{layout}: recall@10 {row['recall@10']:.3f}, full {row['full']}; wanted {RECALL} and full")
    return problems


def write(results: Mapping[str, Any], root: Path, *, complete: bool) -> None:
    """Everything a run leaves behind. Ends with an error that names each target that was missed."""
    folder = root / "bench" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    text = table(results)
    print(text)
    if complete:
        (folder / "speed.json").write_text(json.dumps(results, indent=2) + "\n")
        made = f"Made {datetime.now(UTC):%d %B %Y}, {results['rounds']} rounds of {results['searches']} searches "
        made += (
            f"a measurement, load of the machine {results['load']:.0f}; medians, in brackets the range of rounds.\n\n"
        )
        replace_part(root / "docs" / "benchmarks.md", BEGIN, END, made + text)
    if problems := missed(results):
        raise SystemExit("\n".join(problems))
