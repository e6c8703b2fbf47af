"""Every refusal as RFC 9457 `application/problem+json`: the one place that knows which status a refusal has.

Written here rather than taken from a library: the ones there are answer 500 with the exception's message and 422 with
the values that were sent, and both are what we must never do.
"""

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from api.parting import Parting
from memory_plane.contracts.errors import ErrorKind, FieldError, PlaneError

MEDIA_TYPE = "application/problem+json"
DEFAULT_RETRY_AFTER = 2
"""Seconds, where a refusal that a retry can mend does not know better."""

STATUS: dict[ErrorKind, int] = {
    ErrorKind.INVALID: 400,
    ErrorKind.UNAUTHENTICATED: 401,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.KEY_REUSED: 422,
    ErrorKind.THROTTLED: 429,
    ErrorKind.UNSUPPORTED: 501,
    ErrorKind.UNAVAILABLE: 503,
}


class HttpRefusal(Exception):
    """A refusal of HTTP itself (408, 415, …), which no other door knows. `close`: the rest of the body is unread."""

    def __init__(self, status: int, code: str, detail: str, *, close: bool = False) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.close = close


class ProblemField(BaseModel):
    """One refused input."""

    model_config = ConfigDict(extra="forbid")

    field: Annotated[str, Field(description="Dotted path of names, as in `share.tags.0`")]
    message: str


class Problem(BaseModel):
    """RFC 9457 problem details. `code` is stable; `detail` says what happened and what to do."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    errors: list[ProblemField] | None = None


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: tuple[FieldError, ...] = (),
    headers: Mapping[str, str] | None = None,
    extension: Mapping[str, Any] | None = None,
    parting: bool = False,
) -> Response:
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if errors:
        body["errors"] = [{"field": error.field, "message": error.message} for error in errors]
    if extension:
        body |= extension
    # In ASCII: the name of a refused field may be no Unicode text at all.
    content = json.dumps(body).encode("ascii")
    kind = Parting if parting else Response
    return kind(content, status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def of_error(error: PlaneError) -> Response:
    status = STATUS[error.kind]
    headers: dict[str, str] = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    elif error.kind in (ErrorKind.UNAVAILABLE, ErrorKind.THROTTLED):
        headers["Retry-After"] = str(DEFAULT_RETRY_AFTER)
    if error.kind is ErrorKind.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = 'Bearer realm="memory"'
    unread = error.kind is ErrorKind.TOO_LARGE
    if unread:
        headers["Connection"] = "close"
    return problem(status, error.code, error.detail, errors=error.errors, headers=headers, parting=unread)


def of_http_refusal(error: HttpRefusal) -> Response:
    headers = {"Connection": "close"} if error.close else {}
    return problem(error.status, error.code, error.detail, headers=headers)


def of_status(status: int, headers: Mapping[str, str] | None = None) -> Response:
    """For what the router itself answers: 404 for a path, 405 for a method."""
    details = {
        404: ("no_such_route", "There is nothing at this path; /openapi.json lists what there is."),
        405: ("method_not_allowed", "This path does not take this method; the Allow header names those it takes."),
    }
    code, detail = details.get(status, (f"http_{status}", HTTPStatus(status).phrase + "."))
    return problem(status, code, detail, headers=headers)


def unexpected() -> Response:
    return problem(
        500,
        "internal_error",
        "Something failed inside; nothing more can be told here. The log has it under the X-Request-Id.",
    )
