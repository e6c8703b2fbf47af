"""Pydantic's findings as sentences that name the field and never the value."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from memory_plane.contracts.errors import Invalid
from memory_plane.contracts.validation import MOST_ERRORS, invalid
from memory_plane.contracts.wire import AddItem, AddRequest, BatchRequest, SearchRequest

GOOD = {"title": "T", "text": "x"}


def refused(model: type[BaseModel], body: Any) -> Invalid:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(body)
    return invalid(caught.value, model)


@pytest.mark.parametrize(
    ("model", "body", "field", "sentence"),
    [
        (AddRequest, {"text": "x"}, "title", "is required"),
        (AddRequest, GOOD | {"acess_tags": []}, "acess_tags", "(perhaps access_tags)"),
        (AddRequest, GOOD | {"zzz": 1}, "zzz", "is not a known field"),
        (AddRequest, GOOD | {"tenant_id": "t"}, "tenant_id", "comes from the credential alone"),
        (AddItem, GOOD | {"principalId": "p"}, "principalId", "comes from the credential alone"),
        (AddRequest, GOOD | {"title": 5}, "title", "must be a string"),
        (AddRequest, GOOD | {"share": {"private": True}}, "share.private", "is not a known field"),
        (AddRequest, GOOD | {"share": {"tags": [1]}}, "share.tags.0", "must be a string"),
        (AddRequest, GOOD | {"kind": None}, "kind", "must be a string"),
        (AddRequest, GOOD | {"occurred_at": "yesterday"}, "occurred_at", "ISO 8601"),
        (AddRequest, GOOD | {"occurred_at": "2026-01-01T00:00:00"}, "occurred_at", "offset"),
        (AddRequest, GOOD | {"occurred_at": 1_769_860_800}, "occurred_at", "ISO 8601"),
        (AddRequest, GOOD | {"valid_until": "1769860800"}, "valid_until", "ISO 8601"),
        (SearchRequest, {"as_of": 1_769_860_800_000.0}, "as_of", "ISO 8601"),
        (AddRequest, GOOD | {"provenance": "rumour"}, "provenance", "must be one of 'stated', 'inferred'"),
        (AddRequest, GOOD | {"wait": "done"}, "wait", "must be one of 'captured', 'embedded'"),
        (AddRequest, GOOD | {"wait_ms": 30_001}, "wait_ms", "whole number from 0 to 30000"),
        (AddRequest, GOOD | {"process": ["x"] * 17}, "process", "at most 16 entries"),
        (AddRequest, GOOD | {"entities": [{"kind": "", "identifier": "i"}]}, "entities.0.kind", "must not be empty"),
        (SearchRequest, {"limit": 0}, "limit", "whole number from 1 to 50"),
        (SearchRequest, {"limit": -1}, "limit", "whole number from 1 to 50"),
        (SearchRequest, {"limit": 10**9}, "limit", "whole number from 1 to 50"),
        (SearchRequest, {"limit": "ten"}, "limit", "whole number from 1 to 50"),
        (SearchRequest, {"limit": True}, "limit", "whole number from 1 to 50"),
        (SearchRequest, {"limit": 2.5}, "limit", "whole number from 1 to 50"),
        (SearchRequest, {"include_evidences": True}, "include_evidences", "is not a known field"),
        (BatchRequest, {"items": []}, "items", "must not be empty"),
        (AddItem, 1, "", "must be an object"),
        (BatchRequest, [], "", "must be an object"),
    ],
)
def test_a_sentence_names_the_field(model: type[BaseModel], body: Any, field: str, sentence: str) -> None:
    error = refused(model, body)
    [only] = error.errors
    assert only.field == field
    assert sentence in only.message
    assert sentence in error.detail


def test_no_value_is_repeated() -> None:
    error = refused(AddRequest, {"title": ["secret-value"], "text": {"secret-value": 1}, "wait": "secret-value"})
    assert "secret-value" not in error.detail + "".join(entry.message for entry in error.errors)


def test_many_errors_are_cut_short() -> None:
    error = refused(AddRequest, GOOD | {f"unknown{n}": n for n in range(100)})
    assert len(error.errors) == MOST_ERRORS
    assert "more" in error.detail


@pytest.mark.parametrize("body", [{"includeEvidence": False}, {"include_evidence": False}])
def test_both_spellings_are_accepted(body: dict[str, Any]) -> None:
    assert SearchRequest.model_validate(body).include_evidence is False


def test_an_integer_written_as_text_or_float_counts() -> None:
    assert SearchRequest.model_validate({"limit": "10"}).limit == 10
    assert SearchRequest.model_validate({"limit": 10.0}).limit == 10


def test_the_range_is_in_the_schema() -> None:
    schema = SearchRequest.model_json_schema()["properties"]["limit"]
    assert (schema["minimum"], schema["maximum"], schema["default"]) == (1, 50, 8)
