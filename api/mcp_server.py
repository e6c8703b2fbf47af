"""The MCP tools at `/mcp` (streamable HTTP): same identity, same routes, same refusals as the facade itself.

A tool call becomes a call of the facade's own route inside the process, with the caller's credential: what a tool may
do and see cannot differ from what HTTP lets the caller do and see. Nothing is kept between requests, so that any
replica can answer the next one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI
from mcp.server import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from api.body import read_body
from api.door import answer_for, door_of
from api.identity import seated
from memory_plane.client import AsyncMemoryClient
from memory_plane.client.mcp_server import build_server, readable

PATH = "/mcp"
_CALLER = "memory.mcp_caller"
_NOT_FORWARDED = frozenset(
    {
        *("host", "content-length", "content-type", "accept", "accept-encoding"),
        *("connection", "transfer-encoding", "expect"),
        # A host sets its headers once for all its calls: they would all be one add.
        "idempotency-key",
    }
)


@asynccontextmanager
async def mcp_mounted(app: FastAPI, *, allow_forget: bool) -> AsyncIterator[None]:
    """Serve `/mcp` on this app for the duration. To be entered in the app's lifespan, before it takes requests."""

    def client_of(context: ServerRequestContext[Any, Request]) -> AsyncMemoryClient:
        request = context.request
        if request is None:
            raise RuntimeError("the transport gave no HTTP request")
        caller = request.scope[_CALLER]
        return AsyncMemoryClient(
            "http://facade",
            caller.tenant_id,
            "of-the-request",
            attempts=1,
            transport=_Inside(app, request),
        )

    manager = StreamableHTTPSessionManager(
        build_server(client_of, allow_forget=allow_forget),
        stateless=True,
        json_response=True,
        max_request_body_size=2**31,
    )
    async with manager.run():
        app.state.memory_mcp = manager
        try:
            yield
        finally:
            app.state.memory_mcp = None


class McpEndpoint:
    """Identity first, then a body within the facade's bounds, then the SDK."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        door = door_of(request)
        try:
            scope[_CALLER] = await seated(door.resolve, request)
            body = readable((await read_body(request, door.limits)).decode("utf-8", "replace")).encode()
        except Exception as error:  # noqa: BLE001 - the boundary: whatever it is, it leaves as a problem document
            await answer_for(error, request)(scope, receive, send)
            return
        manager: StreamableHTTPSessionManager = request.app.state.memory_mcp
        await manager.handle_request(scope, _replayed(body, receive), send)


def route() -> Route:
    # POST alone: without sessions there is no stream to open with GET and nothing to end with DELETE.
    return Route(PATH, McpEndpoint(), methods=["POST"], include_in_schema=False)


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class _Inside(httpx.ASGITransport):
    """Calls this very app with the identity headers of the MCP request instead of a credential of the client's own."""

    def __init__(self, app: FastAPI, request: Request) -> None:
        super().__init__(app=app, raise_app_exceptions=False, client=request.client or ("127.0.0.1", 0))
        self._headers = [(name, value) for name, value in request.headers.items() if name not in _NOT_FORWARDED]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        del request.headers["authorization"]
        for name, value in self._headers:
            request.headers[name] = value
        return await super().handle_async_request(request)
