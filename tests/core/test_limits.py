from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from memory_plane.contracts.errors import Invalid
from memory_plane.core import limits
from memory_plane.core.chunking import SuppliedChunk
from memory_plane.core.source_document import EntityHint, SourceDocument

FINE = SourceDocument(adapter="http", external_ref="ref", title="T", kind="note", text="x")
NAIVE = datetime(2024, 5, 8)  # noqa: DTZ001 - the case under test
DAY = datetime(2024, 5, 8, tzinfo=UTC)
BEFORE_ALL_TIME = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))


def fields(**changes: Any) -> list[str]:
    return [error.field for error in limits.check_limits(replace(FINE, **changes))]


def test_a_usual_document_breaks_no_bound() -> None:
    attributes = {"a": "x", "b": 1, "c": 1.5, "d": True, "e": None}
    assert (
        fields(attributes=attributes, occurred_at=datetime(2024, 5, 8, tzinfo=UTC), entities=(EntityHint("p", "x"),))
        == []
    )
    limits.refuse_over_limits(FINE)


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"title": "x" * 500, "kind": "k" * 200}, []),
        ({"title": "x" * 501}, ["title"]),
        ({"title": "  " + "x" * 500 + "\x00 "}, []),
        ({"title": " \u200b"}, ["title"]),
        ({"kind": ""}, ["kind"]),
        ({"kind": "k" * 201}, ["kind"]),
        ({"adapter": " "}, ["adapter"]),
        ({"adapter": "é" * 101}, ["adapter"]),
        ({"external_ref": "r" * 1000}, []),
        ({"external_ref": "京" * 334}, ["external_ref"]),
        ({"external_ref": "a\x00b"}, ["external_ref"]),
        ({"external_ref": "a\ud800"}, ["external_ref"]),
        ({"generator_agent_id": ""}, ["generator_agent_id"]),
        ({"speaker": "s" * 201}, ["speaker"]),
        ({"chunks": (SuppliedChunk("x" * 100_000),) * 2000}, []),
        ({"chunks": (SuppliedChunk("x"),) * 2001}, ["chunks"]),
        ({"chunks": (SuppliedChunk("x"), SuppliedChunk("x" * 100_001))}, ["chunks.1"]),
        ({"chunks": (SuppliedChunk("x", "r\x00"),)}, ["chunks.0.role"]),
        ({"actor_count": 0}, ["actor_count"]),
        ({"attributes": {f"k{n}": n for n in range(64)}}, []),
        ({"attributes": {f"k{n}": n for n in range(65)}}, ["attributes"]),
        ({"attributes": {"a": {"nested": 1}, "b": [1], "c": 1}}, ["attributes.a", "attributes.b"]),
        ({"attributes": {"a": float("nan"), "b": float("-inf")}}, ["attributes.a", "attributes.b"]),
        ({"attributes": {"a": 10**38 - 1, "b": -(10**38)}}, ["attributes.b"]),
        ({"attributes": {"": 1, "k" * 201: 1, " ": 1}}, ["attributes.0", "attributes.1", "attributes.2"]),
        ({"attributes": {"a": "x" * 70_000}}, ["attributes"]),
        ({"attributes": {"a\ud800": "\ud800"}}, []),
        ({"occurred_at": NAIVE}, ["occurred_at"]),
        ({"valid_from": NAIVE, "valid_until": NAIVE}, ["valid_from", "valid_until"]),
        ({"occurred_at": BEFORE_ALL_TIME}, ["occurred_at"]),
        ({"valid_from": DAY + timedelta(seconds=1), "valid_until": DAY}, ["valid_until"]),
        ({"valid_from": DAY, "valid_until": DAY}, []),
        ({"derived_from": ("kver_1",) * 101}, ["derived_from"]),
        ({"supports": ("", "x" * 201)}, ["supports.0", "supports.1"]),
        ({"entities": (EntityHint("p", "x"),) * 201}, ["entities"]),
        ({"entities": (EntityHint("", "x" * 1001),)}, ["entities.0.kind", "entities.0.identifier"]),
        ({"entities": (EntityHint("p", "x", "l" * 501),)}, ["entities.0.label"]),
    ],
)
def test_bounds(changes: dict[str, Any], broken: list[str]) -> None:
    assert fields(**changes) == broken


def test_all_violations_are_told_at_once_and_no_value_is() -> None:
    document = replace(FINE, title="secret" * 100, kind="", external_ref="secret" * 300, occurred_at=NAIVE)
    with pytest.raises(Invalid) as caught:
        limits.refuse_over_limits(document)
    assert [error.field for error in caught.value.errors] == ["title", "kind", "external_ref", "occurred_at"]
    assert "secret" not in caught.value.detail + str(caught.value.errors)
