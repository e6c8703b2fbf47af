"""The local model endpoint: real models out of wheels, over HTTP, in a process of its own, offline.

    python -m memory_plane.dev.endpoint --port 8091 [--host 127.0.0.1] [--rerank]

Routes: POST /v1/embeddings (OpenAI's form; models `all-MiniLM-L6-v2` and `wordllama`), with --rerank also
POST /rerank (TEI's form), GET /v1/models, GET /health. For development and tests: it has no authentication.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from dataclasses import dataclass
from typing import Any

import uvicorn
from pydantic_core import from_json, to_json

from memory_plane.dev.errors import StackError
from memory_plane.dev.late_interaction import relevance
from memory_plane.dev.local_models import MODELS, LocalModels

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY = 32 * 1024 * 1024
MAX_TEXTS = 2048


class Refused(Exception):
    """A request that cannot be served; the message says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ClientGone(Exception):
    """The client has closed the connection; nobody waits for an answer."""


@dataclass(frozen=True)
class EndpointApp:
    """The ASGI application over loaded models."""

    models: LocalModels
    with_rerank: bool = False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            body = await _body(receive)
            answer = await _while_connected(self._answer(scope["method"], scope["path"], body), receive)
        except ClientGone:
            return
        except Refused as refused:
            error = {"message": str(refused), "type": "invalid_request_error"}
            await _reply(send, refused.status, {"error": error})
        else:
            await _reply(send, 200, answer)

    async def _answer(self, method: str, path: str, body: bytes) -> Any:
        match method, path:
            case "GET", "/health":
                return {"status": "ok"}
            case "GET", "/v1/models":
                return {"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]}
            case "POST", "/v1/embeddings":
                return await self._embeddings(_object(body))
            case "POST", "/rerank" if self.with_rerank:
                return await self._rerank(_object(body))
            case _:
                raise Refused(404, f"no such route: {method} {path}")

    async def _embeddings(self, body: dict[str, Any]) -> Any:
        model = str(body.get("model", "")).rsplit("/", 1)[-1]
        if model not in MODELS:
            raise Refused(404, f"no such model; there are {', '.join(MODELS)}")
        given = body.get("input")
        texts = _texts([given] if isinstance(given, str) else given, "input")
        try:
            vectors = await self.models.embed(model, texts)
        except StackError as error:
            raise Refused(503, str(error)) from None
        data = [
            # Eight decimals are all that float32 holds of a number below one, in half the bytes.
            {"object": "embedding", "index": index, "embedding": vector.astype(float).round(8).tolist()}
            for index, vector in enumerate(vectors)
        ]
        return {"object": "list", "model": model, "data": data, "usage": {"prompt_tokens": 0, "total_tokens": 0}}

    async def _rerank(self, body: dict[str, Any]) -> Any:
        query = body.get("query")
        if not isinstance(query, str):
            raise Refused(422, "query must be a string")
        scores = await self.models.rerank(query, _texts(body.get("texts"), "texts"))
        if not body.get("raw_scores"):
            scores = [relevance(score) for score in scores]
        ranked = sorted(enumerate(scores), key=lambda pair: (-pair[1], pair[0]))
        return [{"index": index, "score": score} for index, score in ranked]


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            raise Refused(413, f"the body is larger than {MAX_BODY} bytes")
        more = message.get("more_body", False)
    return b"".join(parts)


async def _while_connected(work: Coroutine[Any, Any, Any], receive: Receive) -> Any:
    """The result of `work`, which is cancelled when the client leaves: a search that gave up must not cost more."""
    answer = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientGone
        return answer.result()
    finally:
        answer.cancel()
        gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _reply(send: Send, status: int, answer: Any) -> None:
    body = to_json(answer)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = from_json(body)
    except ValueError:
        raise Refused(400, "the body is not JSON") from None
    if not isinstance(value, dict):
        raise Refused(400, "the body must be a JSON object")
    return value


def _texts(value: Any, name: str) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise Refused(422, f"{name} must be a string or a list of strings, and not empty")
    if len(value) > MAX_TEXTS:
        raise Refused(422, f"{name} has {len(value)} texts; at most {MAX_TEXTS} go into one request")
    return value


def _arguments(argv: list[str]) -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parser = argparse.ArgumentParser(prog="python -m memory_plane.dev.endpoint", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--rerank", action="store_true", help="serve POST /rerank as well")
    parser.add_argument("--threads", type=int, default=min(4, cores), help="texts worked on at once (default: cores)")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM. The port opens once the model is loaded. Returns the exit code."""
    arguments = _arguments(sys.argv[1:] if argv is None else argv)
    try:
        models = LocalModels(max(1, arguments.threads))
    except StackError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    app: Any = EndpointApp(models, with_rerank=arguments.rerank)
    try:
        uvicorn.run(
            app,
            host=arguments.host,
            port=arguments.port,
            lifespan="off",
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=2,
        )
    finally:
        models.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
