"""The table of bench.retrieval, its plot, and the part of docs/benchmarks.md that is made of it."""

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from bench.peer_process import PEERS
from bench.service import PEER_PYTHON

Results = Mapping[str, Mapping[str, Mapping[str, float]]]

OURS = "Memory Plane"
TARGETS = {
    ("LoCoMo turns", OURS, "recall_10"): 0.72,
    ("LoCoMo turns", OURS, "ndcg_10"): 0.56,
    ("LoCoMo sessions", OURS, "recall_10"): 0.93,
    ("LoCoMo sessions", OURS, "context"): 0.86,
    ("LoCoMo sessions", "dense off", "recall_10"): 0.90,
    ("Cranfield", OURS, "ndcg_10"): 0.41,
    ("MS MARCO 5k", OURS, "ndcg_10"): 0.79,
}
_NAMES = {
    "recall_5": "R@5",
    "recall_10": "R@10",
    "ndcg_10": "nDCG@10",
    "mrr_10": "MRR@10",
    "context": "in 2,000 tokens",
}
BEGIN, END = "<!-- retrieval: made by bench.retrieval -->", "<!-- /retrieval -->"


def table(results: Results) -> str:
    parts = []
    for name, systems in results.items():
        if not systems:
            continue
        measures = list(dict.fromkeys(measure for found in systems.values() for measure in found))
        parts.append(f"\n**{name}**\n")
        parts.append(f"| | {' | '.join(_NAMES[measure] for measure in measures)} |")
        parts.append(f"| --- |{' --- |' * len(measures)}")
        for system, found in systems.items():
            cells = [_cell(found.get(measure), TARGETS.get((name, system, measure))) for measure in measures]
            parts.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(parts) + "\n"


def _cell(value: float | None, target: float | None) -> str:
    if value is None:
        return "–"
    shown = f"{value:.3f}"
    return shown if target is None else f"**{shown}** ({'≥' if value >= target else 'below'} {target})"


def missed(results: Results) -> list[str]:
    below = [
        f"{name}, {system}: {_NAMES[measure]} {results[name][system][measure]:.4f}, wanted {target}"
        for (name, system, measure), target in TARGETS.items()
        if name in results and results[name][system][measure] < target
    ]
    behind = [
        f"{name}: nDCG@10 {found[OURS]['ndcg_10']:.4f}, behind {peer} with {found[peer]['ndcg_10']:.4f}"
        for name, found in results.items()
        for peer in PEERS
        if peer in found and found[OURS]["ndcg_10"] <= found[peer]["ndcg_10"]
    ]
    return below + behind


def write(results: Results, root: Path, *, load: float) -> None:
    """Everything a run leaves behind. Ends with an error that names each target that was missed."""
    folder = root / "bench" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "retrieval.json").write_text(json.dumps(results, indent=2) + "\n")
    if PEER_PYTHON.exists():
        plot = root / "bench" / "peers" / "plot_retrieval.py"
        subprocess.run([PEER_PYTHON, plot, folder / "retrieval.json", folder / "retrieval.svg"], check=True)
    text = table(results)
    (folder / "retrieval.md").write_text(text)
    made = f"Made {datetime.now(UTC):%d %B %Y}, load of the machine {load:.0f}.\n"
    replace_part(root / "docs" / "benchmarks.md", BEGIN, END, made + text)
    if problems := missed(results):
        raise SystemExit("\n".join(problems))


def replace_part(page: Path, begin: str, end: str, text: str) -> None:
    """Put `text` between the two marks of the page."""
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{text}{end}{after}")
