"""Around every request: its id, a metric, one log line, and the last boundary for what nobody foresaw."""

import logging
import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api import problems
from api.door import log_unexpected
from api.request_id import HEADER, request_id

_access_log = logging.getLogger("memory_plane.access")
_FIXED_PATHS = frozenset({"/mcp", "/openapi.json"})
_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class HttpMetrics:
    """Counted by route template and status: no tenant, id or content ever becomes a label."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "memory_http_requests", "Answered requests.", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "memory_http_request_seconds", "Time to the answer.", ["route"], buckets=_BUCKETS, registry=registry
        )
        self.under_way = Gauge("memory_http_requests_under_way", "Requests being answered.", registry=registry)


class Observe:
    """Pure ASGI, so that it costs next to nothing and passes streams through."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics) -> None:
        self._app = app
        self._metrics = metrics

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

        self._metrics.under_way.inc()
        try:
            await self._app(scope, receive, tell)
        except Exception as error:  # noqa: BLE001 - the boundary: the server would log the message, which may hold values
            log_unexpected(error, id_)
            if status == 0:
                await problems.unexpected()(scope, receive, tell)
        finally:
            self._metrics.under_way.dec()
            self._note(scope, status, time.perf_counter() - begun)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = template(scope)
        self._metrics.requests.labels(_method(scope), route, str(status or 499)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
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
