"""Every closed vocabulary is one StrEnum and one CHECK in SQL; the two must be equal."""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from memory_plane.contracts import enums

MIGRATIONS = Path(__file__).parents[2] / "migrations"
TABLE = re.compile(r"CREATE TABLE memory\.(\w+) \((.*?)\n\)", re.DOTALL)
CHECK = re.compile(r"CHECK \((\w+) IN \(([^)]*)\)\)")

COLUMNS: dict[str, type[StrEnum]] = {
    "version.status": enums.VersionStatus,
    "version.temporal_class": enums.TemporalClass,
    "version.retention_class": enums.RetentionClass,
    "version.provenance": enums.Provenance,
    "version.source_class": enums.Lineage,
    "version.created_by_kind": enums.CreatedByKind,
    "edge.rel": enums.EdgeRel,
    "edge.from_type": enums.EndpointType,
    "edge.to_type": enums.EndpointType,
    "generation.state": enums.GenerationState,
    "embed_model.style": enums.EmbedStyle,
    "derivation.embed_state": enums.EmbedState,
    "grant_rule.effect": enums.GrantEffect,
    "grant_rule.origin": enums.GrantOrigin,
    "audience_request.state": enums.WideningState,
    "feed_event.kind": enums.FeedEventKind,
    "process_request.state": enums.ProcessState,
    "transform_run.status": enums.RunStatus,
}


def checks() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for file in sorted(MIGRATIONS.glob("*.sql")):
        for table, body in TABLE.findall(file.read_text()):
            for column, values in CHECK.findall(body):
                found[f"{table}.{column}"] = set(re.findall(r"'([^']*)'", values))
    return found


@pytest.mark.parametrize("column", sorted(COLUMNS))
def test_enum_equals_check(column: str) -> None:
    assert checks()[column] == {member.value for member in COLUMNS[column]}


def test_every_check_of_a_vocabulary_is_compared() -> None:
    assert set(checks()) - set(COLUMNS) <= {"idempotency_key.status"}
