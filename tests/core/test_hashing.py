import json
import math
from typing import Any

import pytest
from hypothesis import given

from memory_plane.contracts.errors import Invalid
from memory_plane.core.hashing import canonical_json, digest, keyed_hash, source_hash
from tests.core.strategies import json_values


@given(json_values)
def test_canonical_json_says_the_same_in_one_spelling(value: Any) -> None:
    text = canonical_json(value)
    assert json.loads(text) == json.loads(json.dumps(value))
    assert canonical_json(json.loads(text)) == text
    assert len(digest(value)) == 64


def test_canonical_json() -> None:
    assert canonical_json({"b": [1, 2.0, -0.0, 1.5], "a": {"é": None, "d": True}}) == (
        '{"a":{"d":true,"é":null},"b":[1,2,0,1.5]}'
    )


def test_canonical_json_tells_what_differs_apart() -> None:
    values: list[Any] = [1, "1", True, None, "null", [], {}, [1], 1e300, "", [[]], {"a": 1}, {"a": "1"}]
    assert len({canonical_json(value) for value in values}) == len(values)


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": object()}, [b"bytes"]])
def test_what_is_no_json_is_refused_without_its_content(value: Any) -> None:
    with pytest.raises(Invalid) as caught:
        canonical_json(value)
    assert caught.value.code == "not_json"
    assert "object at" not in caught.value.detail


def test_source_hash_is_pinned() -> None:
    # Stored rows depend on it: this digest must never change.
    pinned = "1fd4df8fa2f66d553e186b25d037181495876ed6dccd00cab6ab97b1496885c0"
    assert source_hash("http", "ref-1", {"title": "T", "text": "x"}) == pinned


def test_source_hash_depends_on_each_part() -> None:
    base = source_hash("http", "ref", {"text": "a"})
    assert base != source_hash("mail", "ref", {"text": "a"})
    assert base != source_hash("http", "ref2", {"text": "a"})
    assert base != source_hash("http", "ref", {"text": "b"})
    assert base == source_hash("http", "ref", {"text": "a"})


def test_lone_surrogates_hash() -> None:
    assert digest("\ud800") != digest("\ufffd")


def test_keyed_hash_depends_on_key_and_value() -> None:
    assert keyed_hash(b"k", {"a": 1}) == keyed_hash(b"k", {"a": 1.0})
    assert keyed_hash(b"k", {"a": 1}) != keyed_hash(b"l", {"a": 1})
    assert keyed_hash(b"k", {"a": 1}) != keyed_hash(b"k", {"a": 2})
