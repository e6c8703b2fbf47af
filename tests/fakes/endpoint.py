"""A scriptable model endpoint over real HTTP, for tests.

It serves every wire style we speak (OpenAI, TEI and Ollama embeddings; TEI, Cohere and Voyage rerank; OpenAI
chat) with deterministic answers, counts what it is asked, and fails on purpose:

    async with FakeEndpoint(dims=64) as fake:
        ... EMBED_BASE_URL=fake.url ...
        fake.fail(Status(429, retry_after="30"), times=3)   # the next three requests
        fake.fail(Poison("BAD"), on="embed")                # until fake.heal()
        hold = fake.hold(on="embed"); await hold.reached(1); hold.release()
        assert fake.embedded["some text"] == 1
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tests.fakes import bag_of_words
from tests.fakes.faults import (
    BadNumber,
    Body,
    Delay,
    DuplicateIndex,
    Fault,
    HtmlPage,
    HugeReply,
    MissingIndex,
    Poison,
    Redirect,
    Reset,
    Route,
    ShuffledIndex,
    Status,
    WrongCount,
    WrongDims,
    ZeroVector,
)
from tests.fakes.http_server import HttpServer, Reply, Request, ResetConnection

ChatAnswer = Callable[[dict[str, Any]], Any]

_ROUTES: dict[str, Route] = {
    "/v1/embeddings": "embed",
    "/embed": "embed",
    "/api/embed": "embed",
    "/rerank": "rerank",
    "/v2/rerank": "rerank",
    "/v1/rerank": "rerank",
    "/v1/chat/completions": "chat",
}
_SPECIAL: dict[str, Any] = {
    "nan": float("nan"),
    "inf": float("inf"),
    "null": None,
    "string": "0.5",
    "bool": True,
}


@dataclass(frozen=True)
class Call:
    """One request as it came in."""

    route: Route
    path: str
    body: Mapping[str, Any]
    texts: tuple[str, ...]
    authorization: str | None


@dataclass
class _Rule:
    fault: Fault
    on: Route | None
    left: int | None

    def applies(self, call: Call) -> bool:
        if self.left == 0 or self.on not in (None, call.route):
            return False
        if isinstance(self.fault, Poison):
            marker = self.fault.marker
            return any(marker in text for text in call.texts)
        return True


@dataclass
class Hold:
    """Keeps requests waiting until released. `release` lets go those held and all later ones."""

    on: Route | None
    _open: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _count: int = 0

    @property
    def held(self) -> int:
        """How many requests have reached this hold so far."""
        return self._count

    async def reached(self, count: int = 1) -> None:
        """Return once `count` requests have reached the hold."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._count >= count)

    def release(self) -> None:
        self._open.set()

    async def wait(self) -> None:
        async with self._changed:
            self._count += 1
            self._changed.notify_all()
        await self._open.wait()


class FakeEndpoint:
    """A model endpoint on a free port; see the module's own words.

    `models` maps model names to dims; without it every model name is served with `dims`. With `api_key` a
    request without that bearer key is a 401. Vectors depend on the model's name, so two models of the same
    size disagree as real ones do.
    """

    def __init__(self, dims: int = 64, *, models: Mapping[str, int] | None = None, api_key: str | None = None) -> None:
        self.dims = dims
        self.models = dict(models) if models is not None else None
        self.api_key = api_key
        self.calls: list[Call] = []
        self.embedded: Counter[str] = Counter()
        self.in_flight = 0
        self.max_in_flight = 0
        self.chat_answer: ChatAnswer = _minimal_answer
        self._rules: list[_Rule] = []
        self._holds: list[Hold] = []
        self._server = HttpServer(self._handle)
        self._changed: asyncio.Condition | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Serve, on `port` or on a free one. After `stop`, `start(fake.port)` is the endpoint coming back."""
        await self._server.start(port)

    async def stop(self) -> None:
        """Stop serving: from now on connections are refused."""
        await self._server.close()

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def vector(self, text: str, model: str = "fake") -> list[float]:
        """The vector this endpoint answers for `text`."""
        return bag_of_words.vector(text, self._dims_of(model), model)

    # Scripting

    def fail(self, fault: Fault, *, times: int | None = None, on: Route | None = None) -> None:
        """Fail like this, for the next `times` requests (or until `heal`), on one route or on all.

        The first fault that applies wins; a later one waits for its turn.
        """
        self._rules.append(_Rule(fault, on, times))

    def heal(self) -> None:
        """Forget every fault and let go every hold."""
        self._rules.clear()
        for hold in self._holds:
            hold.release()
        self._holds.clear()

    def hold(self, on: Route | None = None) -> Hold:
        """Keep every request from now on waiting until the hold is released: a hanging endpoint."""
        hold = Hold(on)
        self._holds.append(hold)
        return hold

    def forget_calls(self) -> None:
        """Start counting anew."""
        self.calls.clear()
        self.embedded.clear()
        self.max_in_flight = self.in_flight

    def count(self, route: Route) -> int:
        """How many requests this route has had."""
        return sum(call.route == route for call in self.calls)

    async def called(self, count: int, on: Route | None = None) -> None:
        """Return once `count` requests have come in (on one route or on all)."""
        condition = self._condition()
        async with condition:
            await condition.wait_for(lambda: sum(on in (None, c.route) for c in self.calls) >= count)

    # Serving

    def _condition(self) -> asyncio.Condition:
        if self._changed is None:
            self._changed = asyncio.Condition()
        return self._changed

    def _dims_of(self, model: str) -> int:
        return self.dims if self.models is None else self.models[model]

    async def _handle(self, request: Request) -> Reply:
        route = _ROUTES.get(request.path)
        if route is None or request.method != "POST":
            return _json({"error": {"message": f"no such route: {request.path}"}}, status=404)
        body = json.loads(request.body)
        call = Call(route, request.path, body, _texts(route, body), request.headers.get("authorization"))
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            await self._count(call)
            for hold in [h for h in self._holds if h.on in (None, route)]:
                await hold.wait()
            return await self._answer(call)
        finally:
            self.in_flight -= 1

    async def _count(self, call: Call) -> None:
        condition = self._condition()
        async with condition:
            self.calls.append(call)
            condition.notify_all()

    def _next_fault(self, call: Call) -> Fault | None:
        for rule in self._rules:
            if rule.applies(call):
                if rule.left is not None:
                    rule.left -= 1
                return rule.fault
        return None

    async def _answer(self, call: Call) -> Reply:
        fault = self._next_fault(call)
        if isinstance(fault, Delay):
            await asyncio.sleep(fault.seconds)
            fault = None
        if (refusal := _refusal(fault)) is not None:
            return refusal
        if self.api_key is not None and call.authorization != f"Bearer {self.api_key}":
            return _json({"error": {"message": "invalid api key"}}, status=401)
        model = str(call.body.get("model", "fake"))
        if self.models is not None and call.path != "/embed" and call.route == "embed" and model not in self.models:
            return _json({"error": {"message": f"model {model!r} not found"}}, status=404)
        if call.route == "embed":
            return self._embed(call, model, fault)
        if call.route == "rerank":
            return _rerank(call, fault)
        return self._chat(call, fault)

    def _embed(self, call: Call, model: str, fault: Fault | None) -> Reply:
        if call.path == "/embed" and self.models is not None:
            model = next(iter(self.models))
        self.embedded.update(call.texts)
        vectors: list[Any] = [bag_of_words.vector(text, self._dims_of(model), model) for text in call.texts]
        vectors = _spoil_vectors(vectors, fault)
        if call.path == "/embed":
            return _json(vectors)
        if call.path == "/api/embed":
            return _json({"model": model, "embeddings": vectors})
        data = _spoil_index([{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)], fault)
        return _json({"object": "list", "model": model, "data": data, "usage": {"total_tokens": 0}})

    def _chat(self, call: Call, fault: Fault | None) -> Reply:
        answer = self.chat_answer(dict(call.body))
        content = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        message = {"role": "assistant", "content": content}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        if isinstance(fault, WrongCount):
            choices = []
        return _json({"object": "chat.completion", "model": call.body.get("model"), "choices": choices})


@contextmanager
def fake_endpoint_in_thread(dims: int = 64, *, models: Mapping[str, int] | None = None) -> Iterator[FakeEndpoint]:
    """A fake endpoint with a loop and a thread of its own, for tests that block theirs (`subprocess.run`).

    Use `url`, `fail`, `heal`, `calls` and `embedded`; `hold` and `called` belong to the other loop.
    """
    fake = FakeEndpoint(dims, models=models)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="fake-endpoint", daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(fake.start(), loop).result(10)
    try:
        yield fake
    finally:
        asyncio.run_coroutine_threadsafe(fake.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def _json(value: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode())


def _texts(route: Route, body: Mapping[str, Any]) -> tuple[str, ...]:
    if route == "chat":
        return tuple(str(message.get("content")) for message in body.get("messages", []))
    keys = ("input", "inputs") if route == "embed" else ("texts", "documents")
    value: Any = next((body[key] for key in keys if key in body), [])
    texts = [value] if isinstance(value, str) else list(value)
    if route == "rerank":
        texts.append(body.get("query", ""))
    return tuple(str(text) for text in texts)


def _refusal(fault: Fault | None) -> Reply | None:
    match fault:
        case Status(code, retry_after, body, content_type):
            extra = {} if retry_after is None else {"retry-after": retry_after}
            return Reply(code, body.encode(), content_type, extra)
        case HtmlPage():
            return Reply(200, b"<!doctype html><html><body>Sign in</body></html>", "text/html; charset=utf-8")
        case Body(text, content_type):
            return Reply(200, text.encode(), content_type)
        case HugeReply(size):
            return Reply(200, b'"' + b"x" * size + b'"')
        case Redirect(location):
            return Reply(307, b"", "text/plain", {"location": location})
        case Poison(_, code):
            return _json({"error": {"message": "the input cannot be processed"}}, status=code)
        case Reset():
            raise ResetConnection
        case _:
            return None


def _spoil_vectors(vectors: list[Any], fault: Fault | None) -> list[Any]:
    match fault:
        case WrongCount(delta) if delta < 0:
            return vectors[:delta]
        case WrongCount(delta):
            return vectors + [vectors[-1]] * delta
        case WrongDims(dims, only_last):
            keep = vectors[:-1] if only_last else []
            return keep + [[0.1] * dims for _ in vectors[len(keep) :]]
        case BadNumber(kind):
            vectors[-1][0] = _SPECIAL[kind]
        case ZeroVector():
            vectors[-1] = [0.0] * len(vectors[-1])
        case _:
            pass
    return vectors


def _spoil_index(items: list[dict[str, Any]], fault: Fault | None) -> list[dict[str, Any]]:
    match fault:
        case ShuffledIndex():
            return items[1:] + items[:1] if len(items) > 1 else items
        case DuplicateIndex() if len(items) > 1:
            items[-1]["index"] = items[0]["index"]
        case DuplicateIndex():
            items[0]["index"] = 7
        case MissingIndex():
            for item in items:
                del item["index"]
        case _:
            pass
    return items


def _rerank(call: Call, fault: Fault | None) -> Reply:
    *documents, query = call.texts
    scores: list[Any] = [bag_of_words.overlap(query, document) for document in documents]
    # Real rerankers answer best first, not in the order asked.
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    if isinstance(fault, BadNumber) and scores:
        scores[order[-1]] = _SPECIAL[fault.kind]
    name = "score" if call.path == "/rerank" else "relevance_score"
    items: list[dict[str, Any]] = _spoil_index([{"index": i, name: scores[i]} for i in order], fault)
    if isinstance(fault, WrongCount):
        items = items[: fault.delta] if fault.delta < 0 else items + [items[-1]] * fault.delta
    if call.path == "/rerank":
        return _json(items)
    return _json({"results" if call.path == "/v2/rerank" else "data": items, "model": call.body.get("model")})


def _minimal_answer(body: dict[str, Any]) -> Any:
    response_format = body.get("response_format") or {}
    return _minimal((response_format.get("json_schema") or {}).get("schema") or {})


def _minimal(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "array":
            return []
        case "string":
            return ""
        case "integer" | "number":
            return 0
        case "boolean":
            return False
        case _:
            return {
                name: _minimal(part)
                for name, part in schema.get("properties", {}).items()
                if name in schema.get("required", [])
            }
