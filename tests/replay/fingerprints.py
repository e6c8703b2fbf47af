"""What each workflow file makes the server do, in order: a change of it in review is a change that old runs may refuse.

    python -m tests.replay.fingerprints        # write both files anew; commit them with the change, and say why

Adding, removing, renaming or reordering a command, or changing how many run at once, breaks runs under way unless it
is gated by `workflow.patched` or pinned by Worker Versioning. Arguments, timeouts, retries and durations do not.
"""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from temporalio import activity, workflow

import worker
from workflows import policies

WORKFLOWS = Path(worker.__file__).parent / "workflows"
FINGERPRINTS = Path(__file__).parent / "fingerprints.json"
REGISTERED = Path(__file__).parent / "registered.json"

# Whose first argument says what is commanded; the rest of the arguments may change freely.
_TARGETED = frozenset(
    "execute_activity execute_activity_method start_activity start_activity_method execute_local_activity "
    "execute_local_activity_method start_local_activity execute_child_workflow start_child_workflow "
    "get_external_workflow_handle execute_operation start_operation patched deprecate_patch Semaphore".split()
)
_PLAIN = frozenset(
    "sleep wait wait_for timeout as_completed gather create_task continue_as_new "
    "upsert_search_attributes upsert_memo signal cancel TaskGroup".split()
)
_MODULES = frozenset({"workflow", "asyncio"})


def fingerprints(directory: Path = WORKFLOWS) -> dict[str, list[str]]:
    """By `file.Class.method` or `file.function`: its commands, and its calls of those that command, in source order."""
    functions = {name: node for file in sorted(directory.glob("*.py")) for name, node in _functions(file)}
    found: dict[str, list[str]] = {}
    while True:
        # A call matters once what it calls commands something; said again until nothing new is found.
        again = {name: steps for name, node in functions.items() if (steps := _steps(node, _known_in(name, found)))}
        if again == found:
            return found
        found = again


def _known_in(function: str, found: Mapping[str, object]) -> set[str]:
    """How this function calls those that command: its own file's by name, others' if they are public, any by `self`."""
    file = function.partition(".")[0]
    known = set()
    for each in found:
        where, _, name = each.partition(".")
        method, _, last = name.rpartition(".")
        if method:
            known.add(f"self.{last}")
        elif where == file or not last.startswith("_"):
            known.add(last)
    return known


def _functions(file: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    def inside(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from inside(node.body, f"{prefix}.{node.name}")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{prefix}.{node.name}", node

    return inside(ast.parse(file.read_text(encoding="utf-8")).body, file.stem)


def _steps(function: ast.FunctionDef | ast.AsyncFunctionDef, commanding: set[str]) -> list[str]:
    calls = [node for stmt in function.body for node in ast.walk(stmt) if isinstance(node, ast.Call)]
    # Arguments are made before the call: the end of a call is where it happens.
    calls.sort(key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))
    return [step for call in calls if (step := _step(call, commanding))]


def _step(call: ast.Call, commanding: set[str]) -> str | None:
    owner, name = _callee(call.func)
    if owner in _MODULES and name in _TARGETED:
        target = _target(call.args[0]) if call.args else ""
        return f"{name}({target})"
    if name == "wait_condition" and owner == "workflow":
        return "wait_condition with a timer" if any(each.arg == "timeout" for each in call.keywords) else name
    if name in _PLAIN and (owner in _MODULES or name in ("signal", "cancel")):
        return name
    if name in ("execute_operation", "start_operation"):
        return f"{name}({_target(call.args[0]) if call.args else ''})"
    return f"→ {name}" if (name if owner is None else f"{owner}.{name}") in commanding else None


def _callee(function: ast.expr) -> tuple[str | None, str]:
    if isinstance(function, ast.Attribute):
        return ast.unparse(function.value), function.attr
    return None, ast.unparse(function)


def _target(argument: ast.expr) -> str:
    text = ast.unparse(argument)
    value = getattr(policies, text.removeprefix("policies."), None) if text.startswith("policies.") else None
    return f"{text} = {value}" if isinstance(value, int) else text


def registered() -> list[str]:
    """What the worker answers to: workflows with their handlers, and activities by queue. Running workflows, schedules
    and hosts say these names, so one that has been released never goes away."""
    names: list[str] = []
    for each in worker.WORKFLOWS:
        definition = workflow._Definition.must_from_class(each)
        names.append(f"workflow {definition.name}")
        for kind, handlers in _handlers(definition).items():
            names += [f"{kind} {definition.name}.{name}" for name in handlers if name and not name.startswith("__")]
    activities = [
        f"activity {_activity_name(each)} on {built['task_queue']}"
        for built in _built()
        for each in built["activities"]
    ]
    return sorted(names + activities)


def _handlers(definition: workflow._Definition) -> Mapping[str, Sequence[str | None]]:
    return {"signal": list(definition.signals), "query": list(definition.queries), "update": list(definition.updates)}


def _activity_name(function: Any) -> str | None:
    return activity._Definition.must_from_callable(function).name


def _built() -> list[dict[str, Any]]:
    """The workers' arguments, without a server to connect to."""
    built: list[dict[str, Any]] = []
    settings = SimpleNamespace(memory_build_id=None, memory_embeds_per_second=None)

    class Unconnected:
        def __init__(self, _client: object, **arguments: Any) -> None:
            built.append(arguments)

    with patch.object(worker, "Worker", Unconnected):
        worker.build(cast("Any", None), cast("Any", _Engine(settings)))
    return built


class _Engine:
    """Activities take their services from it when they run; here none ever does."""

    def __init__(self, settings: SimpleNamespace) -> None:
        self.settings = settings

    def __getattr__(self, name: str) -> None:
        return None


def _write(file: Path, value: object) -> None:
    file.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _write(FINGERPRINTS, fingerprints())
    _write(REGISTERED, registered())
