"""The dashboard, the rules and their runbook speak of what is there."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from memory_plane.telemetry.metrics import REGISTRY

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy" / "observability"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"] for rule in group["rules"]
]
RUNBOOK = (ROOT / "docs" / "operations" / "alerts.md").read_text()
SDK = {
    "temporal_activity_schedule_to_start_latency_bucket",
    "temporal_worker_task_slots_available",
    "temporal_workflow_completed",
    "temporal_workflow_task_execution_failed",
}
"""Of the Temporal SDK; `test_worker_door` looks for them in a scrape."""
ONLY_AFTER_A_FAILURE = {"temporal_workflow_task_execution_failed"}


def expressions() -> list[str]:
    dashboard = json.loads((DEPLOY / "dashboard.json").read_text())
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    return panels + [rule["expr"] for rule in RULES]


def exposed() -> set[str]:
    """The names under which Prometheus stores our metrics."""
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
    return {family.name + suffix for family in REGISTRY.collect() for suffix in suffixes.get(family.type, ("",))}


def test_every_metric_that_is_asked_for_exists() -> None:
    asked = {name for expression in expressions() for name in re.findall(r"\b(?:memory|temporal)_\w+", expression)}
    assert len(asked) > 20
    assert asked - exposed() - SDK == set()


def test_every_metric_of_ours_is_looked_at() -> None:
    asked = " ".join(expressions())
    ours = {family.name for family in REGISTRY.collect() if family.name.startswith("memory_")}
    assert {name for name in ours if name not in asked} == set()


def test_every_alert_has_its_runbook_entry_and_the_other_way_round() -> None:
    entries = set(re.findall(r"^## (Memory\w+)$", RUNBOOK, re.MULTILINE))
    assert entries == {rule["alert"] for rule in RULES}
    for rule in RULES:
        assert rule["annotations"]["runbook"] == f"docs/operations/alerts.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")
