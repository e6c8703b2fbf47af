"""Around every request: its id, a metric, one log line, and the last boundary for what nobody foresaw."""

import logging
import time
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api import problems
from api.door import log_unexpected
from api.request_id import HEADER, request_id
from memory_plane.telemetry import metrics

_access_log = logging.getLogger("memory_plane.access")
_FIXED_PATHS = frozenset({"/mcp", "/openapi.json"})


class Observe:
    """Pure ASGI, so that it costs next to nothing and passes streams through."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        id_ = request_id(scope)
        begun = time.perf_counter()
        status = 0

        async def tell(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.setdefault(HEADER, id_)
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        metrics.HTTP_UNDER_WAY.inc()
        try:
            await self._app(scope, receive, tell)
        except Exception as error:  # noqa: BLE001 - the boundary: the server would log the message, which may hold values
            log_unexpected(error, id_)
            if status == 0:
                await problems.unexpected()(scope, receive, tell)
        finally:
            metrics.HTTP_UNDER_WAY.dec()
            self._note(scope, status, time.perf_counter() - begun)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = template(scope)
        metrics.HTTP_REQUESTS.labels(_method(scope), route, str(status or 499)).inc()
        metrics.HTTP_SECONDS.labels(route).observe(seconds)
        _access_log.info(
            "%s %s %s",
            scope["method"],
            route,
            status,
            extra={"status": status, "route": route, "ms": round(seconds * 1000, 1)},
        )


def template(scope: Any) -> str:
    """The route's pattern, never the path: paths carry ids."""
    pattern = getattr(scope.get("route"), "path", None)
    if pattern is None and scope["path"] in _FIXED_PATHS:
        pattern = scope["path"]
    return str(pattern or "unmatched")


def _method(scope: Scope) -> str:
    method: str = scope["method"]
    return method if method in ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH") else "OTHER"
