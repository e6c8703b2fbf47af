"""Canonical JSON and the hashes that captures are known by. Stable for ever: stored rows depend on them."""

import hashlib
import hmac
import json
import math
from typing import Any

from memory_plane.contracts.errors import Invalid

_EXACT_FLOAT = 2.0**53


def canonical_json(value: Any) -> str:
    """`value` as JSON in one spelling: keys sorted, no white space, 1.0 written as 1.

    Invalid for what JSON cannot hold: NaN, infinities, values that are no JSON type.
    """
    try:
        return json.dumps(
            _one_spelling(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(
            "A value is not JSON: use strings, finite numbers, booleans, null, lists and objects.",
            code="not_json",
        ) from error


def digest(value: Any) -> str:
    """sha256 of the canonical JSON, in hex."""
    return hashlib.sha256(_bytes(value)).hexdigest()


def keyed_hash(key: bytes, value: Any) -> str:
    """HMAC-SHA256 of the canonical JSON, in hex: tells equal bodies apart from others, reveals nothing of them."""
    return hmac.new(key, _bytes(value), hashlib.sha256).hexdigest()


def source_hash(adapter: str, external_ref: str, payload: Any) -> str:
    """Identity of a raw capture: `external_ref` is the resolved one, so that a row belongs to one document."""
    return digest({"adapter": adapter, "external_ref": external_ref, "payload": payload})


def _bytes(value: Any) -> bytes:
    return canonical_json(value).encode("utf-8", "surrogatepass")


def _one_spelling(value: Any) -> Any:
    if isinstance(value, float):
        if value.is_integer() and abs(value) < _EXACT_FLOAT:
            return int(value)
        if not math.isfinite(value):
            raise ValueError("not finite")
        return value
    if isinstance(value, dict):
        return {key: _one_spelling(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_one_spelling(item) for item in value]
    return value
