"""Which error codes the code has: read from it, so that the documents cannot fall behind."""

import ast
from collections.abc import Iterator

from memory_plane.dev.checkout import checkout

_PLACES = ("memory_plane", "api", "activities", "workflows")
_POSITION = {"HttpRefusal": 1, "problem": 1, "_refusal": 0, "refuse": 1}
"""Of the code among the arguments, where it is not named."""


def error_codes() -> dict[str, str]:
    """Each code with a place that has it."""
    found: dict[str, str] = {}
    for folder in _PLACES:
        for file in sorted((checkout() / folder).rglob("*.py")):
            place = str(file.relative_to(checkout()))
            for code in _codes(ast.parse(file.read_text(encoding="utf-8"))):
                found.setdefault(code, place)
    return found


def _codes(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _POSITION and len(node.args) > _POSITION[name]:
                given.append(node.args[_POSITION[name]])
            for value in given:
                yield from _strings(value)
        elif isinstance(node, ast.Assign) and any(getattr(each, "id", "") == "default_code" for each in node.targets):
            yield from _strings(node.value)


def _strings(value: ast.expr) -> Iterator[str]:
    """Of what is written out: `a`, `a if … else b`, `… or a`."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    for part in getattr(value, "values", []) if isinstance(value, ast.BoolOp) else []:
        yield from _strings(part)
    if isinstance(value, ast.IfExp):
        yield from _strings(value.body)
        yield from _strings(value.orelse)
