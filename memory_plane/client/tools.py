"""The memory as tools for a model: what each takes, does over the client, and says. Knows nothing of MCP itself.

Schemas are what strict clients take: plain types, no `$ref`, no unions, `items` on every array. Models send integers,
lists and booleans as strings often enough; these are understood.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from memory_plane.client.asynchronous import AsyncMemoryClient
from memory_plane.client.rendering import render
from memory_plane.client.schemas import plain_schema
from memory_plane.contracts.enums import RetentionClass
from memory_plane.contracts.errors import FieldError
from memory_plane.contracts.validation import refusal
from memory_plane.contracts.wire import (
    AddResponse,
    DocumentResponse,
    FeedResponse,
    ForgetResponse,
    ListResponse,
    SearchResponse,
)

Arguments = dict[str, Any]
Run = Callable[[AsyncMemoryClient, Arguments], Awaitable[BaseModel]]


@dataclass(frozen=True, slots=True)
class Tool:
    """`reads`: changes nothing. `destroys`: not offered unless the operator allows it. `repeatable`: as good twice."""

    name: str
    title: str
    description: str
    properties: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...]
    answer: type[BaseModel]
    run: Run
    reads: bool = True
    destroys: bool = False
    repeatable: bool = True

    @property
    def input_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {name: dict(schema) for name, schema in self.properties.items()},
            "required": list(self.required),
            "additionalProperties": False,
        }

    @property
    def output_schema(self) -> dict[str, Any]:
        return plain_schema(self.answer)

    async def __call__(self, memory: AsyncMemoryClient, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """The structured answer and its text. Raises PlaneError."""
        answer = await self.run(memory, self._understood(arguments))
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True), render(answer)

    def _understood(self, arguments: Mapping[str, Any]) -> Arguments:
        understood: Arguments = {}
        errors = []
        for name, value in arguments.items():
            schema = self.properties.get(name)
            if schema is None:
                errors.append(FieldError(name[:100], f"is not an argument; there are {', '.join(self.properties)}"))
            elif value is not None:
                try:
                    understood[name] = _read(value, str(schema["type"]))
                except ValueError as problem:
                    errors.append(FieldError(name, str(problem)))
        errors += [FieldError(name, "is required") for name in self.required if name not in understood]
        if errors:
            raise refusal(errors)
        return understood


def _read(value: Any, kind: str) -> Any:
    """The value as this JSON type, where it is one or plainly means one."""
    match kind:
        case "integer":
            if isinstance(value, float) and value.is_integer():
                return int(value)
            if isinstance(value, str) and value.strip().lstrip("-").isdigit():
                return int(value)
            expected, right = "a whole number", isinstance(value, int) and not isinstance(value, bool)
        case "boolean":
            if isinstance(value, str) and value.strip().lower() in ("true", "false"):
                return value.strip().lower() == "true"
            expected, right = "true or false", isinstance(value, bool)
        case "array":
            if isinstance(value, str):
                value = _parsed(value) if value.lstrip().startswith("[") else [value]
            expected, right = "a list", isinstance(value, list)
        case "object":
            if isinstance(value, str):
                value = _parsed(value)
            expected, right = "an object", isinstance(value, dict)
        case _:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return str(value)
            expected, right = "a string", isinstance(value, str)
    if not right:
        raise ValueError(f"must be {expected}")
    return value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _string(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _strings(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _integer(description: str, low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high, "description": description}


def _flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}


async def _add(memory: AsyncMemoryClient, arguments: Arguments) -> AddResponse:
    share = {
        "tenant": arguments.pop("share_with_tenant", False),
        "principals": arguments.pop("share_with", []),
    }
    if share["tenant"] or share["principals"]:
        arguments["share"] = share
    return await memory.add(**arguments)


async def _search(memory: AsyncMemoryClient, arguments: Arguments) -> SearchResponse:
    return await memory.search(**arguments)


async def _list(memory: AsyncMemoryClient, arguments: Arguments) -> ListResponse:
    return await memory.list(**arguments)


async def _feed(memory: AsyncMemoryClient, arguments: Arguments) -> FeedResponse:
    return await memory.feed(**arguments)


async def _get(memory: AsyncMemoryClient, arguments: Arguments) -> DocumentResponse:
    return await memory.get(**arguments)


async def _forget(memory: AsyncMemoryClient, arguments: Arguments) -> ForgetResponse:
    return await memory.forget(**arguments)


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="memory_add",
        title="Remember",
        description="Store a note in long-term memory: a fact, decision, preference, event or result that will matter "
        "after this conversation. Write it so that it can be understood on its own, one subject a note. Private to "
        "you unless shared. Give external_ref when you may write the same note again: the newer text then replaces "
        "the older one instead of standing beside it.",
        properties={
            "title": _string("A short name for the note, at most 500 characters"),
            "text": _string("What to remember, in full sentences"),
            "kind": _string("What sort of note it is, such as note, decision, preference or task; default note"),
            "external_ref": _string("Your own stable name for this note; adding under it again makes a new version"),
            "occurred_at": _string("When it happened, ISO 8601 with an offset, if not now"),
            "valid_until": _string("When it stops being true, ISO 8601 with an offset"),
            "access_tags": _strings("Who else may see it, as tags such as memory.space:eng"),
            "share_with_tenant": _flag("Let everyone in the tenant see it who may search"),
            "share_with": _strings("Principals who may see it"),
            "derived_from": _strings("Version ids of the notes that this one is concluded from"),
            "generator_agent_id": _string(
                "Your agent's name, when this is your own conclusion; leave it out for what a person said"
            ),
            "retention_class": _string("How long to keep it", enum=[kind.value for kind in RetentionClass]),
            "attributes": {
                "type": "object",
                "description": "Flat facts to filter by later, such as project or status",
                "properties": {},
                "additionalProperties": True,
            },
        },
        required=("title", "text"),
        answer=AddResponse,
        run=_add,
        reads=False,
        repeatable=False,
    ),
    Tool(
        name="memory_search",
        title="Recall",
        description="Search long-term memory before you answer from assumption: what was decided, said, done or "
        "learned earlier. Ask in plain words. Each hit has a snippet, its document id for memory_get, and who stated "
        "it; `evidence` says how far to trust the best one (strong, weak, none).",
        properties={
            "query": _string("What you want to know, in plain words"),
            "limit": _integer("How many hits, default 8", 1, 50),
            "kinds": _strings("Only these kinds of note"),
            "adapters": _strings("Only notes that came in through these adapters"),
            "entity_ids": _strings("Only notes about these entities"),
            "as_of": _string("Answer as things were known at this time, ISO 8601 with an offset"),
            "include_deprecated": _flag("Also search notes that were withdrawn"),
        },
        required=("query",),
        answer=SearchResponse,
        run=_search,
    ),
    Tool(
        name="memory_list",
        title="Recent notes",
        description="The most recently seen notes, newest first. Use it to get an overview; to find something, use "
        "memory_search.",
        properties={
            "limit": _integer("How many, default 20", 1, 100),
            "cursor": _string("nextCursor of the page before"),
        },
        required=(),
        answer=ListResponse,
        run=_list,
    ),
    Tool(
        name="memory_feed",
        title="What is new",
        description="Every new note since a position, oldest first, to follow the memory without missing any. Keep "
        "nextCursor and pass it as `after` next time.",
        properties={
            "after": _integer("The position you have read up to, default 0", 0, 2**53 - 1),
            "limit": _integer("How many, default 50", 1, 100),
            "exclude_generator": _string("Leave out what this agent wrote, usually yourself"),
        },
        required=(),
        answer=FeedResponse,
        run=_feed,
    ),
    Tool(
        name="memory_get",
        title="Read a note",
        description="The full text of one note with its versions. Use it when a snippet is not enough.",
        properties={
            "document_id": _string("documentId of a hit or list entry"),
            "version": _integer("A version's number, if not the current one", 1, 2**31 - 1),
        },
        required=("document_id",),
        answer=DocumentResponse,
        run=_get,
    ),
    Tool(
        name="memory_forget",
        title="Forget a note",
        description="Erase the content of a note of your own for good, with all that was concluded from it. Only when "
        "a person asks for exactly that; it cannot be undone.",
        properties={
            "document_id": _string("documentId of the note"),
            "reason": _string("Why, kept for audit; repeat nothing of the content"),
        },
        required=("document_id",),
        answer=ForgetResponse,
        run=_forget,
        reads=False,
        destroys=True,
    ),
)
