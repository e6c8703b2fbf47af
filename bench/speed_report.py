"""The tables of bench.speed and the part of docs/benchmarks.md that is made of them."""

import json
import statistics
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.retrieval_report import replace_part

BEGIN, END = "<!-- speed: made by bench.speed -->", "<!-- /speed -->"
GROWTH_TIMES, RECALL = 2.0, 0.98
TARGETS = (
    (("10k", "100k"), "product / floor", "1", "p50", 1.5),
    (("10k", "100k"), "product / floor", "16", "p95", 2.5),
    (("1 in 10,000 visible",), "restricted / product", "1", "p50", 3.0),
)
"""Layouts, ratio, callers, percentile and the most that the median of the rounds may be."""


def table(results: Mapping[str, Any]) -> str:
    lines = ["| layout | side | callers | p50 ms | p95 ms | p99 ms | searches/s |", "| --- |" + " --- |" * 6]
    for layout, found in results["speed"].items():
        for side, by_callers in found["sides"].items():
            for callers, row in by_callers.items():
                times = " | ".join(f"{row[part]:.1f}" for part in ("p50", "p95", "p99"))
                lines.append(f"| {layout} | {side} | {callers} | {times} | {row['per second']:.0f} |")
    lines += ["", "| layout | ratio | callers | of the p50 | of the p95 |", "| --- |" + " --- |" * 4]
    for layout, found in results["speed"].items():
        for ratio, by_callers in found["times"].items():
            for callers, row in by_callers.items():
                cells = [_ratio(layout, ratio, callers, part, row[part]) for part in ("p50", "p95")]
                lines.append(f"| {layout} | {ratio} | {callers} | {' | '.join(cells)} |")
    lines += ["", "| layout | searched by | recall@10 | recall@50 | always full |", "| --- |" + " --- |" * 4]
    for layout, row in results["recall"].items():
        full = "yes" if row["full"] else "no"
        lines.append(f"| {layout} | {row['scan']} | {row['recall@10']:.3f} | {row['recall@50']:.3f} | {full} |")
    for peer, share in results["peers"].items():
        lines.append(f"| {peer}, of its own vectors | as it comes | {share:.3f} | | |")
    return "\n".join(lines) + "\n"


def _ratio(layout: str, ratio: str, callers: str, part: str, values: list[float]) -> str:
    wanted = [f", wanted ≤ {most}" for *key, most in TARGETS if layout in key[0] and key[1:] == [ratio, callers, part]]
    return f"**{statistics.median(values):.2f}** ({values[0]:.2f} to {values[-1]:.2f}{''.join(wanted)})"


def growth(results: Mapping[str, Any]) -> float | None:
    """How many times the p50 at 1k that at 100k is, one caller; None where one of them is missing."""
    small, large = (results["speed"].get(layout) for layout in ("1k", "100k"))
    if small is None or large is None:
        return None
    return float(large["sides"]["product"]["1"]["p50"] / small["sides"]["product"]["1"]["p50"])


def missed(results: Mapping[str, Any]) -> Iterator[str]:
    speed = results["speed"]
    for layouts, ratio, callers, part, most in TARGETS:
        for layout in layouts:
            if layout in speed and (times := statistics.median(speed[layout]["times"][ratio][callers][part])) > most:
                yield f"{layout}: {part} of {ratio} at {callers} callers is {times:.2f}, wanted {most}"
    if (grown := growth(results)) is not None and grown > GROWTH_TIMES:
        yield f"p50 at 100k is {grown:.2f} times that at 1k, wanted {GROWTH_TIMES}"
    for layout, found in speed.items():
        for ratio, by_callers in found["times"].items():
            if ratio.endswith("/ product") and not ratio.startswith("restricted"):
                for callers, row in by_callers.items():
                    if (times := statistics.median(row["p50"])) < 1.0:
                        yield f"{layout}: p50 of {ratio} at {callers} callers is {times:.2f}, wanted more than 1"
    for layout, row in results["recall"].items():
        if row["recall@10"] < RECALL or not row["full"]:
            yield f"{layout}: recall@10 {row['recall@10']:.3f}, full {row['full']}; wanted {RECALL} and full"


def write(measured: Mapping[str, Any], root: Path) -> None:
    """Everything a run leaves behind, beside what earlier runs measured of other layouts. Ends with an error that
    names each target that was missed."""
    if not measured["speed"]:
        return
    file = root / "bench" / "results" / "speed.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(file.read_text()) if file.exists() else {part: {} for part in measured}
    for part, by_layout in measured.items():
        results[part] |= by_layout
    file.write_text(json.dumps(results, indent=2) + "\n")
    text = table(results)
    print(text)
    replace_part(root / "docs" / "benchmarks.md", BEGIN, END, f"{_how(results)}\n\n{text}")
    if problems := list(missed(measured)):
        raise SystemExit("\n".join(problems))


def _how(results: Mapping[str, Any]) -> str:
    every = results["speed"].values()
    loads = sorted(each["load"] for each in every)
    rounds = sorted({f"{each['rounds']} rounds of {each['searches']} searches" for each in every})
    said = f"Made {datetime.now(UTC):%d %B %Y}, {', '.join(rounds)} a measurement (twice as many at several callers), "
    said += f"load of the machine {loads[0]:.1f} to {loads[-1]:.1f}; medians, in brackets the range of rounds."
    if (grown := growth(results)) is not None:
        said += f" The p50 at 100k is **{grown:.2f}** times that at 1k (wanted ≤ {GROWTH_TIMES})."
    return said
