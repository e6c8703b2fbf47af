"""Write docs/api.md from the OpenAPI document: `python -m scripts.write_api_reference`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from api.app import create_app
from memory_plane.settings import Settings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"

_HEAD = """<!-- Written by scripts/write_api_reference.py from the OpenAPI document, which is at /openapi.json. -->
# API reference

What a schema cannot say is in [http](http.md); every refusal's `code` is in [errors](errors.md). Optional fields may be
left out; fields that are not listed are refused.

"""
Schema = Mapping[str, Any]


def reference() -> str:
    document = openapi()
    routes = [(method, path, each) for path, methods in document["paths"].items() for method, each in methods.items()]
    schemas: Schema = document["components"]["schemas"]
    parts = [_HEAD, *(f"* [`{method.upper()} {path}`](#{_anchor(each)})\n" for method, path, each in routes)]
    for method, path, each in routes:
        parts.extend(_route(method, path, each))
    parts.append("\n# Schemas\n")
    for name in sorted(schemas):
        parts.extend(_schema(name, schemas[name]))
    return "".join(parts)


def openapi() -> dict[str, Any]:
    """As a service with a token door would serve it; nothing is connected to."""
    settings = Settings.model_validate({"database_url": "postgresql://nowhere/memory", "memory_auth": "token"})
    return create_app(settings).openapi()


def _anchor(route: Schema) -> str:
    kept = "".join(letter for letter in route["summary"].lower() if letter.isalnum() or letter in " -")
    return kept.replace(" ", "-")


def _route(method: str, path: str, route: Schema) -> Iterator[str]:
    yield f"\n## {route['summary']}\n\n`{method.upper()} {path}`\n"
    if route.get("description"):
        yield f"\n{route['description']}\n"
    if parameters := route.get("parameters"):
        yield "\n| parameter | in | type | |\n| --- | --- | --- | --- |\n"
        for each in parameters:
            yield f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} | {each.get('description', '')} |\n"
    if body := route.get("requestBody"):
        yield f"\nBody: {_type(_json(body))}.\n"
    answer = route["responses"]["200"]
    yield f"\nAnswers: {_type(_json(answer))}. Refusals: {_statuses(route['responses'])}.\n"


def _json(message: Schema) -> Schema:
    [content] = message["content"].values()
    schema: Schema = content["schema"]
    return schema


def _statuses(responses: Mapping[str, Any]) -> str:
    refusals = [status for status in responses if status != "200"]
    return ", ".join(refusals) if refusals else "none"


def _schema(name: str, schema: Schema) -> Iterator[str]:
    yield f"\n## {name}\n"
    if schema.get("description"):
        yield f"\n{schema['description']}\n"
    if "enum" in schema:
        yield f"\n{_type(schema)}\n"
    if fields := schema.get("properties"):
        required = schema.get("required", [])
        yield "\n| field | type | default | |\n| --- | --- | --- | --- |\n"
        for field, each in fields.items():
            told = "**required**" if field in required else _default(each)
            yield f"| `{field}` | {_type(each)} | {told} | {_sentence(each)} |\n"


def _default(field: Schema) -> str:
    value = field.get("default")
    if value is None:
        return "—"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _sentence(field: Schema) -> str:
    return " ".join(str(field.get("description", "")).split()).replace("|", "\\|")


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if either := schema.get("anyOf") or schema.get("oneOf"):
        return _either(either)
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}{_bounds(schema, 'minItems', 'maxItems')}"
    if isinstance(inside := schema.get("additionalProperties"), Mapping) and inside:
        return f"object of {_type(inside)}"
    return str(schema.get("format") or schema.get("type") or "anything") + _bounds(
        schema, "minimum", "maximum", "minLength", "maxLength"
    )


def _either(kinds: Sequence[Schema]) -> str:
    return " or ".join(_type(each) for each in kinds if each.get("type") != "null")


def _bounds(schema: Schema, *names: str) -> str:
    words = {"minItems": "≥", "maxItems": "≤", "minimum": "≥", "maximum": "≤", "minLength": "≥", "maxLength": "≤"}
    told = [f"{words[name]} {schema[name]:g}" for name in names if name in schema]
    return f" ({', '.join(told)})" if told else ""


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    print("docs/api.md")
