"""What crosses Temporal: bounded, tolerant of what it does not know, and old shapes keep decoding."""

import inspect
import types
import typing

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from memory_plane.contracts import workflows
from memory_plane.contracts.workflows import IngestInput, Payload

MODELS = [
    model
    for _, model in inspect.getmembers(workflows, inspect.isclass)
    if issubclass(model, Payload) and model is not Payload
]


def bounded(field: FieldInfo) -> bool:
    """Lists and strings carry a max_length, on the field or on its annotated type."""
    annotation = field.annotation
    if annotation is None or not (_mentions(annotation, str) or _mentions(annotation, list)):
        return True
    return "max_length" in repr(field) or "MaxLen" in repr(field)


def _mentions(annotation: object, kind: type) -> bool:
    if annotation is kind or typing.get_origin(annotation) is kind:
        return True
    if typing.get_origin(annotation) in (types.UnionType, typing.Union, typing.Annotated):
        return any(_mentions(arg, kind) for arg in typing.get_args(annotation))
    return False


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_unbounded_field(model: type[BaseModel]) -> None:
    assert [name for name, field in model.model_fields.items() if not bounded(field)] == []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_unknown_fields_of_a_newer_peer_are_ignored(model: type[BaseModel]) -> None:
    assert model.model_config.get("extra") in (None, "ignore")


def test_shape_of_the_first_release_decodes() -> None:
    old = '{"tenant_id":"acme","version_ids":["kver_1"],"from_the_future":1}'
    assert IngestInput.model_validate_json(old).version_ids == ["kver_1"]
