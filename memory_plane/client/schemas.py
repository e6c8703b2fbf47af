"""A model's JSON schema in the plain form that every client takes: nothing to look up, nothing to choose from."""

from typing import Any

from pydantic import BaseModel


def plain_schema(model: type[BaseModel]) -> dict[str, Any]:
    """As the model is written on the wire without its nulls: references put in place, `X or null` as `X`."""
    schema = model.model_json_schema(mode="serialization", by_alias=True)
    definitions = schema.pop("$defs", {})
    plain: dict[str, Any] = _plain(schema, definitions)
    return plain


def _plain(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_plain(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _plain(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in node:
        kinds = [kind for kind in node["anyOf"] if kind != {"type": "null"}]
        return _plain(kinds[0], definitions) if len(kinds) == 1 else {}
    kept = {name: value for name, value in node.items() if name not in ("title", "default", "description")}
    if "properties" in kept:
        # Fields with a default are required in a serialization schema's own eyes; here a null is left out.
        nullable = {name for name, field in kept["properties"].items() if {"type": "null"} in field.get("anyOf", ())}
        kept["required"] = [name for name in kept.get("required", ()) if name not in nullable]
        kept["properties"] = {name: _plain(field, definitions) for name, field in kept["properties"].items()}
    return {
        name: value if name in ("properties", "required", "enum") else _plain(value, definitions)
        for name, value in kept.items()
    }
