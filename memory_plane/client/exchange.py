"""From a response to a model or a typed error, and the policy of repeating a request."""

import json
import os
from collections.abc import Mapping
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError
from tenacity import RetryCallState, wait_random_exponential

from memory_plane.client.calls import Call
from memory_plane.contracts.errors import (
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    KeyReused,
    NotFound,
    PlaneError,
    Throttled,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unsupported,
)

R = TypeVar("R", bound=BaseModel)

DEFAULT_TIMEOUT = 45.0
"""Seconds for one answer; an add may ask the server to wait for up to 30."""
LONGEST_WAIT = 60.0
"""A server that asks for a longer pause than this is not waited for; the error says how long it asked for."""

_BY_STATUS: dict[int, type[PlaneError]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    408: Unavailable,
    409: Conflict,
    413: TooLarge,
    415: Invalid,
    422: KeyReused,
    429: Throttled,
    501: Unsupported,
}
_BEFORE_SENDING = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Unanswered(Unavailable):
    """No usable answer came back. `sent` tells whether the server may have acted on the request."""

    default_code = "no_answer"

    def __init__(self, detail: str, *, sent: bool) -> None:
        super().__init__(detail)
        self.sent = sent


def unanswered(error: httpx.TransportError) -> Unanswered:
    return Unanswered(
        f"The memory service did not answer ({type(error).__name__}); check MEMORY_API and that it runs.",
        sent=not isinstance(error, _BEFORE_SENDING),
    )


def decode(call: Call[R], response: httpx.Response) -> R:
    """The answer as a model; raises the typed error that a problem document stands for."""
    if response.status_code != 200:
        raise problem(response)
    try:
        return call.response.model_validate_json(response.content)
    except ValidationError:
        raise Unanswered(
            "What answered is not a memory service of this version; check MEMORY_API.", sent=True
        ) from None


def problem(response: httpx.Response) -> PlaneError:
    body = _object(response)
    status = response.status_code
    kind = _BY_STATUS.get(status, Unavailable)
    detail = body.get("detail")
    error = kind(
        detail if isinstance(detail, str) else f"The server answered {status} {response.reason_phrase}.",
        code=str(body.get("code") or f"http_{status}"),
        errors=[
            FieldError(str(item.get("field", "")), str(item.get("message", "")))
            for item in body.get("errors") or ()
            if isinstance(item, Mapping)
        ],
        retry_after=_seconds(response.headers.get("Retry-After")),
    )
    error.request_id = response.headers.get("X-Request-Id")
    return error


def may_repeat(call: Call[Any], error: BaseException) -> bool:
    """A request is repeated when the server asked for that, or when nothing can have come of the first one."""
    if isinstance(error, Unanswered):
        return call.repeatable or not error.sent
    if not isinstance(error, Throttled | Unavailable | Conflict):
        return False
    if error.retry_after is not None:
        return error.retry_after <= LONGEST_WAIT
    return call.repeatable and error.code in ("http_502", "http_503", "http_504", "http_429")


_backoff = wait_random_exponential(multiplier=0.25, max=8)


def pause(state: RetryCallState) -> float:
    """Seconds before the next attempt: what the server asked for, else an exponential backoff with jitter."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, PlaneError) and error.retry_after is not None:
        return error.retry_after
    return _backoff(state)


def environment() -> tuple[str, str, str]:
    """MEMORY_API, MEMORY_TENANT and MEMORY_TOKEN; raises Invalid naming those that are missing."""
    names = ("MEMORY_API", "MEMORY_TENANT", "MEMORY_TOKEN")
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise Invalid(
            f"Set {', '.join(missing)}: the service's address, your tenant and a token of yours "
            "(memory dev prints all three).",
            code="client_configuration",
        )
    api, tenant, token = (os.environ[name] for name in names)
    return api, tenant, token


def base_url(api: str) -> str:
    if not api.startswith(("http://", "https://")):
        raise Invalid(
            "The service's address must begin with http:// or https://, as in http://127.0.0.1:8080.",
            code="client_configuration",
        )
    return api.rstrip("/")


def headers(token: str) -> dict[str, str]:
    if not token or not token.isascii() or not token.isprintable():
        raise Invalid("The token must be printable ASCII and not empty.", code="client_configuration")
    return {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": "memory-plane-client",
    }


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = json.loads(response.content)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _seconds(value: str | None) -> float | None:
    # The other form of Retry-After, a date, is not what this service sends; a proxy's is met with the backoff.
    return float(value) if value is not None and value.isascii() and value.isdigit() else None
