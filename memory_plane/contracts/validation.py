"""Pydantic's findings as sentences: which field, and what it must be. Never a value that was sent."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    GetCoreSchemaHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from memory_plane.contracts.errors import FieldError, Invalid

MOST_ERRORS = 20
NAMED_IN_DETAIL = 3
LONGEST_NAME = 100
IDENTITY_FIELDS = frozenset({"tenant_id", "principal_id", "tenantId", "principalId"})

_SENTENCES: dict[str, str] = {
    "missing": "is required",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a whole number of a usual size",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "timezone_aware": "must have an offset, as in 2026-01-31T12:00:00+01:00",
    "string_unicode": "must be text that can be written as UTF-8",
    "string_pattern_mismatch": "must be plain ASCII characters that can be printed",
}
_BOUNDS: dict[str, tuple[str, str]] = {
    "greater_than_equal": ("must be at least {}", "ge"),
    "greater_than": ("must be more than {}", "gt"),
    "less_than_equal": ("must be at most {}", "le"),
    "less_than": ("must be less than {}", "lt"),
    "string_too_long": ("must have at most {} characters", "max_length"),
    "string_too_short": ("must have at least {} characters", "min_length"),
    "too_long": ("must have at most {} entries", "max_length"),
    "too_short": ("must have at least {} entries", "min_length"),
    "enum": ("must be one of {}", "expected"),
    "literal_error": ("must be one of {}", "expected"),
    "whole_number": ("must be a whole number from {}", "range"),
}
_DATE_FIRST = re.compile(r"\d{4}-\d\d-\d\d")
_DATES = "must be an ISO 8601 time with an offset, as in 2026-01-31T12:00:00+01:00"


@dataclass(frozen=True, slots=True)
class Whole:
    """Annotates an integer from `low` to `high`: its refusal names the range, whatever was sent."""

    low: int
    high: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        bounded = core_schema.int_schema(ge=self.low, le=self.high)
        return core_schema.no_info_wrap_validator_function(self._within, bounded)

    def _within(self, value: object, bounded: ValidatorFunctionWrapHandler) -> int:
        if not isinstance(value, bool):
            with suppress(ValidationError):
                number: int = bounded(value)
                return number
        raise PydanticCustomError("whole_number", "out of range", {"range": f"{self.low} to {self.high}"})


def _written_as_a_date(value: object) -> object:
    if isinstance(value, datetime) or (isinstance(value, str) and _DATE_FIRST.match(value)):
        return value
    raise PydanticCustomError("datetime_parsing", "not a date")


IsoTime = Annotated[AwareDatetime, BeforeValidator(_written_as_a_date)]
"""A time with an offset. Never a number: seconds and milliseconds since 1970 cannot be told apart."""


def invalid(error: ValidationError, model: type[BaseModel] | None = None) -> Invalid:
    """The typed refusal for a model that could not be made; `model` lets it suggest the name that was meant."""
    found = error.errors(include_url=False, include_input=False)
    return refusal(field_errors(found, model))


def refusal(errors: Sequence[FieldError]) -> Invalid:
    """One sentence over the field errors, so that who reads only `detail` knows as well."""
    named = "; ".join(f"{error.field or 'the body'} {error.message}" for error in errors[:NAMED_IN_DETAIL])
    more = f" (and {len(errors) - NAMED_IN_DETAIL} more)" if len(errors) > NAMED_IN_DETAIL else ""
    return Invalid(f"The request is not valid: {named}{more}.", errors=errors)


def field_errors(found: Iterable[Mapping[str, Any]], model: type[BaseModel] | None = None) -> list[FieldError]:
    """From `ValidationError.errors()` (or FastAPI's), each with a dotted path and a sentence; at most MOST_ERRORS."""
    errors: dict[FieldError, None] = {}
    for problem in found:
        path = _path(problem["loc"])
        errors.setdefault(FieldError(path, _message(problem, path, model)))
        if len(errors) == MOST_ERRORS:
            break
    return list(errors)


def _path(loc: Sequence[str | int]) -> str:
    return ".".join(str(part)[:LONGEST_NAME] for part in loc if not _is_internal(part))


def _is_internal(part: str | int) -> bool:
    # Branches of a union and function validators appear in the path under names that are no fields.
    return isinstance(part, str) and ("[" in part or part.startswith("function-"))


def _message(problem: Mapping[str, Any], path: str, model: type[BaseModel] | None) -> str:
    kind = str(problem["type"])
    context: Mapping[str, Any] = problem.get("ctx") or {}
    if kind == "extra_forbidden":
        return _unknown(path, model)
    if kind == "value_error":
        return str(context.get("error", "is not valid"))
    if kind in ("string_too_short", "too_short") and context.get("min_length") == 1:
        return "must not be empty"
    if kind in _BOUNDS:
        sentence, key = _BOUNDS[kind]
        return sentence.format(context.get(key, "…"))
    if kind.startswith(("datetime", "date_")):
        return _DATES
    return _SENTENCES.get(kind, "is not valid: " + str(problem.get("msg", kind)))


def _unknown(path: str, model: type[BaseModel] | None) -> str:
    name = path.rsplit(".", 1)[-1]
    if name in IDENTITY_FIELDS:
        return "is not taken from a request: who is calling comes from the credential alone; leave it out"
    meant = get_close_matches(name, _names(model), n=1) if model is not None and "." not in path else []
    return "is not a known field" + (f" (perhaps {meant[0]})" if meant else "")


def _names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
