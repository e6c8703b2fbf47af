"""Write docs/{configuration,workflows,metrics}.md from the code: `python -m scripts.write_reference`.

The sentences about settings are in scripts/settings_meaning.py; a setting without one fails tests/docs.
"""

import sys
from collections.abc import Sequence
from enum import EnumType
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from prometheus_client.metrics import MetricWrapperBase
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from temporalio import workflow

import worker
from memory_plane.settings import Settings
from memory_plane.telemetry import metrics
from scripts.settings_meaning import MEANING

DOCS = Path(__file__).resolve().parents[1] / "docs"
GENERATED = "<!-- Written by scripts/write_reference.py; change it there or in the code. -->\n"

_AROUND = """# Configuration

Every process reads its environment, and `.env` in its working directory; the environment wins. All problems are told at
once, before anything starts. `memory config` prints what is in force, secrets masked.

Traces follow the standard variables of OpenTelemetry and are off until `OTEL_EXPORTER_OTLP_ENDPOINT` is set (in the
environment; `.env` is not read for it): `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, `OTEL_EXPORTER_OTLP_HEADERS`.
"""


def configuration() -> str:
    parts = [GENERATED, _AROUND]
    for section, settings in MEANING.items():
        parts.append(f"\n## {section}\n\n| variable | default | what it is |\n| --- | --- | --- |\n")
        for name, sentence in settings.items():
            field = Settings.model_fields[name.lower()]
            values = _values(field)
            parts.append(f"| `{name}` | {_default(field)} | {sentence}{f' {values}.' if values else ''} |\n")
    return "".join(parts)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    value = field.default
    if value is None or value in ([], {}):
        return "—"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _values(field: FieldInfo) -> str:
    """What it may be, beyond what its default shows."""
    kind = _without_none(field.annotation)
    if get_origin(kind) is Literal:
        return _or(get_args(kind))
    if isinstance(kind, EnumType):
        return _or([member.value for member in vars(kind)["_member_map_"].values()])
    if kind is SecretStr:
        return "Secret"
    limits = {
        name: getattr(each, name) for each in field.metadata for name in ("ge", "le", "gt") if hasattr(each, name)
    }
    if "ge" in limits and "le" in limits:
        return f"{limits['ge']:,} to {limits['le']:,}"
    if "ge" in limits:
        return f"At least {limits['ge']:,}"
    return "Above 0" if "gt" in limits else ""


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, UnionType):
        [only] = [each for each in get_args(annotation) if each is not NoneType]
        return only
    return annotation


def _or(values: Sequence[object]) -> str:
    quoted = [f"`{value}`" for value in values]
    return ", ".join(quoted[:-1]) + f" or {quoted[-1]}" if len(quoted) > 1 else quoted[0]


def workflows() -> str:
    parts = [
        GENERATED,
        "# Workflows\n\nWhat the worker runs, and what one may say to it while it runs, from the Temporal UI, the\n"
        "`temporal` command or code. Each tells its state in the UI (*current details*). Names are wire format and\n"
        "never change; `tests/replay` holds them.\n",
    ]
    for each in sorted(worker.WORKFLOWS, key=lambda each: _defined(each).name or ""):
        definition = _defined(each)
        parts.append(f"\n## {definition.name}\n\n{_about(each)}\n")
        rows = [
            f"| {kind} | `{name}` | {description or ''} |\n"
            for kind, handlers in (
                ("update", [(name or "", each.description) for name, each in definition.updates.items()]),
                ("signal", [(name or "", each.description) for name, each in definition.signals.items()]),
                ("query", [(name or "", each.description) for name, each in definition.queries.items()]),
            )
            for name, description in sorted(handlers)
            if name and not name.startswith("__")
        ]
        if rows:
            parts.append("\n| | name | |\n| --- | --- | --- |\n" + "".join(rows))
    return "".join(parts)


def _defined(each: type) -> workflow._Definition:
    return workflow._Definition.must_from_class(each)


def _about(each: type) -> str:
    """What its module says it does, then what its class says of how it is started."""
    module = (sys.modules[each.__module__].__doc__ or "").split("\n\n")[0]
    does = " ".join(module.partition(": ")[2].split())
    return "\n\n".join([does[:1].upper() + does[1:], " ".join((each.__doc__ or "").split())])


def metric_list() -> str:
    parts = [
        GENERATED,
        "# Metrics\n\nAt `/metrics` of the API, and of the worker on `MEMORY_METRICS_PORT` together with the "
        "[Temporal SDK's](https://docs.temporal.io/references/sdk-metrics). Labels have few values that are known "
        "beforehand; tenants, ids and content never are one. See also [alerts](operations/alerts.md).\n\n"
        "| metric | type | labels | |\n| --- | --- | --- | --- |\n",
    ]
    for each in ours():
        name = f"{each._name}_total" if each._type == "counter" else each._name
        labels = ", ".join(f"`{label}`" for label in each._labelnames)
        parts.append(f"| `{name}` | {each._type} | {labels} | {each._documentation} |\n")
    return "".join(parts)


def ours() -> list[MetricWrapperBase]:
    found = [each for each in vars(metrics).values() if isinstance(each, MetricWrapperBase)]
    return sorted(found, key=lambda each: each._name)


PAGES = {"configuration.md": configuration, "workflows.md": workflows, "metrics.md": metric_list}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
