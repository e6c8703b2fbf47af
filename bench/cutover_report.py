"""The tables of bench.cutover and the part of docs/benchmarks.md that is made of them."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.retrieval_report import replace_part

BEGIN, END = "<!-- cutover: made by bench.cutover -->", "<!-- /cutover -->"
HELD_MS = 250.0
"""The most that a cut may keep writers waiting."""
GROWTH = 2.0
"""Times that a cutover may take longer at ten times the versions; of the fastest, which has least to catch up with."""


def write(results: Mapping[str, Any], root: Path) -> None:
    """Everything a run leaves behind. Ends with an error that names each target that was missed."""
    file = root / "bench" / "results" / "cutover.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=2) + "\n")
    text = tables(results)
    print(text)
    replace_part(root / "docs" / "benchmarks.md", BEGIN, END, f"{_how(results)}\n\n{text}")
    if problems := list(missed(results)):
        raise SystemExit("\n".join(problems))


def tables(results: Mapping[str, Any]) -> str:
    lines = [
        "| versions | cutover | behind at its start | seconds | captures held, ms | derived in the cut "
        "| longest capture, ms |",
        "| --- |" + " --- |" * 6,
    ]
    for tenant in results["tenants"]:
        floor, quiet = tenant["floor"], tenant["quiet"]
        lines.append(
            f"| {tenant['versions']:,} | *floor: bare statements* | | | {floor['p50']} (longest {floor['longest']}) "
            f"| | {quiet['longest']} |"
        )
        lines += [
            f"| {tenant['versions']:,} | {each['kind']} | {each['behind']} | {each['seconds']} | **{each['held']}** "
            f"| {each['stragglers']} | {each['captures']['longest']} |"
            for each in tenant["cutovers"]
        ]
    lines += [
        "",
        "| versions | model | versions/s | chunks/s | the endpoint alone, texts/s | share | whole run, s |",
        "| --- |" + " --- |" * 6,
    ]
    (real_name,) = [name for name in results["ceilings"] if name != "instant"]
    runs = [(tenant["versions"], "instant", tenant["built"]) for tenant in results["tenants"]]
    for versions, model, built in [*runs, (2_000, real_name, results["real"])]:
        ceiling = results["ceilings"][model]
        lines.append(
            f"| {versions:,} | {model} | {built['versions a second']:,} | {built['chunks a second']:,} | {ceiling:,} "
            f"| {built['chunks a second'] / ceiling:.0%} | {built['seconds']} |"
        )
    return "\n".join(lines) + "\n"


def missed(results: Mapping[str, Any]) -> Iterator[str]:
    small, large = results["tenants"]
    for tenant in (small, large):
        for each in tenant["cutovers"]:
            if each["held"] >= HELD_MS or not each["verified"]:
                told = f"held captures for {each['held']} ms, verified {each['verified']}"
                yield f"{tenant['versions']}: {each['kind']} {told}"
    fastest = [min(each["seconds"] for each in tenant["cutovers"]) for tenant in (small, large)]
    if fastest[1] > GROWTH * fastest[0]:
        yield f"the fastest cutover takes {fastest[1]} s at {large['versions']}, {fastest[0]} s at {small['versions']}"


def _how(results: Mapping[str, Any]) -> str:
    return (
        f"Made {datetime.now(UTC):%d %B %Y}, load of the machine {results['load']:.1f} at the start. Wanted: captures "
        f"held for less than {HELD_MS:.0f} ms, and the fastest cutover of ten times the versions within {GROWTH:.0f} "
        "times the time."
    )
