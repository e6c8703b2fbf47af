"""One model endpoint, and the one way we talk to it: POST JSON, get JSON, or a typed fault."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx
from pydantic_core import from_json

from memory_plane.core.base_url import normalize_base_url
from memory_plane.models.errors import (
    BadReply,
    EndpointFault,
    EndpointMisconfigured,
    EndpointRejected,
    EndpointTimeout,
    EndpointUnavailable,
)
from memory_plane.models.transport import LeanTransport
from memory_plane.telemetry import metrics, tracing

MAX_REPLY_BYTES = 64 * 1024 * 1024
MAX_RETRY_AFTER = 3600.0
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Endpoint:
    """Where a model is served. `style` names the wire format, `timeout` is seconds for one whole request.

    Raises BaseUrlRefused (a ValueError) for a base URL that cannot work.
    """

    base_url: str
    model: str
    style: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", normalize_base_url(self.base_url))
        # A StrEnum would tell its Python name in sentences.
        object.__setattr__(self, "style", str(self.style))

    @property
    def name(self) -> str:
        """How sentences call it: its host and port, without path or key."""
        return urlsplit(self.base_url).netloc


def http_client(max_connections: int = 64) -> httpx.AsyncClient:
    """The client that all endpoints of a process share. It follows no redirect and retries nothing by itself."""
    if {"http", "https", "all"} & getproxies().keys():
        limits = httpx.Limits(max_connections=max_connections, max_keepalive_connections=max_connections)
        return httpx.AsyncClient(follow_redirects=False, limits=limits, timeout=None)  # noqa: S113 - see post_json
    return LeanClient(max_connections)


class LeanClient(httpx.AsyncClient):
    """Sends as it is told: no cookies, no credentials of other places, no redirects, no log line for each request."""

    def __init__(self, max_connections: int) -> None:
        self._lean = LeanTransport(max_connections)
        super().__init__(transport=self._lean, follow_redirects=False, timeout=None)

    async def send(self, request: httpx.Request, **_: Any) -> httpx.Response:
        return await self._lean.handle_async_request(request)


async def post_json(
    http: httpx.AsyncClient, endpoint: Endpoint, path: str, payload: Any, *, max_bytes: int = MAX_REPLY_BYTES
) -> Any:
    """POST `payload` and return the parsed reply. Raises an EndpointFault for everything else.

    The timeout bounds the whole exchange: an endpoint that drips bytes cannot stretch it.
    """
    use = _use(path)
    with metrics.endpoint_call(use), tracing.endpoint_span(use, endpoint.name, endpoint.model):
        return await _exchange(http, endpoint, path, payload, max_bytes)


def _use(path: str) -> str:
    return "rerank" if "rerank" in path else "chat" if "chat" in path else "embed"


async def _exchange(http: httpx.AsyncClient, endpoint: Endpoint, path: str, payload: Any, max_bytes: int) -> Any:
    headers = {"content-type": "application/json", "accept": "application/json"}
    if endpoint.api_key is not None:
        headers["authorization"] = f"Bearer {endpoint.api_key}"
    request = httpx.Request("POST", _url(endpoint.base_url + path), content=_encode(payload), headers=headers)
    try:
        async with asyncio.timeout(endpoint.timeout):
            response = await http.send(request, stream=True, follow_redirects=False)
            try:
                body = await _read(response, endpoint, max_bytes)
            finally:
                await response.aclose()
    except TimeoutError:
        raise EndpointTimeout(
            f"The model endpoint at {endpoint.name} did not answer within {endpoint.timeout:g} s.", isolable=True
        ) from None
    except httpx.ConnectError:
        raise EndpointUnavailable(
            f"The model endpoint at {endpoint.name} cannot be reached; check that it runs and its URL is right."
        ) from None
    except httpx.HTTPError as error:
        # A server that breaks off may have choked on one text. The class name is safe to tell, the message is not.
        raise EndpointUnavailable(
            f"The connection to the model endpoint at {endpoint.name} broke ({type(error).__name__}).",
            isolable=True,
        ) from None
    return _parse(body, endpoint)


@lru_cache(maxsize=256)
def _url(url: str) -> httpx.URL:
    """Parsed once: a process speaks to a handful of endpoints."""
    return httpx.URL(url)


def _encode(payload: Any) -> bytes:
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8; U+FFFD is what a stored text has in its place.
        return _LONE_SURROGATE.sub("\ufffd", text).encode()


async def _read(response: httpx.Response, endpoint: Endpoint, max_bytes: int) -> bytes:
    if response.status_code != 200:
        raise refusal(response.status_code, response.headers.get("retry-after"), endpoint)
    if "html" in response.headers.get("content-type", ""):
        raise EndpointUnavailable(
            f"{endpoint.name} answers with a web page instead of JSON; check the base URL and what stands before it."
        )
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > max_bytes:
            raise BadReply(f"The reply of {endpoint.name} is larger than {max_bytes} bytes.", isolable=True)
        chunks.append(chunk)
    return b"".join(chunks)


def refusal(status: int, retry_after: str | None, endpoint: Endpoint) -> EndpointFault:
    """The typed fault for a status that is not 200."""
    who = f"The model endpoint at {endpoint.name}"
    wait = parse_retry_after(retry_after)
    if 300 <= status < 400:
        return EndpointMisconfigured(
            f"{who} redirects ({status}), which is not followed; set the base URL to its final address."
        )
    if status in (401, 403):
        return EndpointMisconfigured(f"{who} refuses the API key ({status}); set the right key.", retry_after=wait)
    if status == 402:
        return EndpointMisconfigured(f"{who} wants to be paid (402); check the account of its API key.")
    if status in (404, 405, 410):
        return EndpointMisconfigured(
            f"{who} knows no model {endpoint.model!r}, or no such route in style {endpoint.style!r} ({status}); "
            "check the model's name, the API style and the base URL."
        )
    if status in (408, 409, 425, 429) or status in (502, 503, 504):
        return EndpointUnavailable(f"{who} asks to come back later ({status}).", retry_after=wait)
    if status >= 500:
        # Several servers answer 500 to one text they cannot handle.
        return EndpointUnavailable(f"{who} fails ({status}).", retry_after=wait, isolable=True)
    return EndpointRejected(f"{who} refuses the input ({status}).", isolable=True)


def parse_retry_after(value: str | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float | None:
    """Seconds to wait, from a Retry-After of seconds or of an HTTP date; at most an hour; None when unreadable."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            return None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        seconds = (when - now()).total_seconds()
    if seconds != seconds:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)


def _parse(body: bytes, endpoint: Endpoint) -> Any:
    try:
        # NaN and Infinity are let through here, so that they are named where the numbers are checked.
        return from_json(body, allow_inf_nan=True)
    except ValueError:
        raise BadReply(f"The reply of {endpoint.name} is not JSON.", isolable=True) from None
