"""The parts of the OpenAPI document that are said once: refusals with examples, the security scheme."""

import json
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

from api.examples import ANSWERS, REQUESTS
from api.problems import MEDIA_TYPE, Problem, ProblemField
from api.request_id import HEADER

BEARER = "bearer"

_EXAMPLES: dict[int, tuple[str, str, str, str]] = {
    400: ("The request is not valid.", "Bad Request", "invalid", "The request is not valid: title is required."),
    401: (
        "No valid identity came with the request.",
        "Unauthorized",
        "unauthenticated",
        "Send a valid credential, as in `Authorization: Bearer <token>`.",
    ),
    403: (
        "The caller lacks the capability, or the document is another's (`not_document_owner`, `not_document_writer`).",
        "Forbidden",
        "capability_missing",
        "The grant memory:add is missing.",
    ),
    404: (
        "Not there, or not visible to the caller: the two look the same.",
        "Not Found",
        "not_found",
        "There is no such document.",
    ),
    408: ("The body came too slowly.", "Request Timeout", "body_too_slow", "The body did not arrive in time."),
    409: (
        "The same Idempotency-Key is still being worked on.",
        "Conflict",
        "idempotency_key_in_use",
        "Another request with this Idempotency-Key is still running; ask again for its answer.",
    ),
    413: ("The body is larger than 10 MB.", "Content Too Large", "body_too_large", "The body is larger than 10 MB."),
    415: (
        "The body is not sent as JSON.",
        "Unsupported Media Type",
        "unsupported_media_type",
        "The body must be sent as Content-Type: application/json.",
    ),
    422: (
        "The Idempotency-Key was used for another body.",
        "Unprocessable Content",
        "idempotency_key_reused",
        "This Idempotency-Key was used for another body.",
    ),
    429: (
        "The caller asked more often than the service allows (off by default).",
        "Too Many Requests",
        "throttled",
        "You may ask 10 times a second, 20 times at once; come back later.",
    ),
    500: ("Something failed inside.", "Internal Server Error", "internal_error", "Something failed inside."),
    503: (
        "A part that is needed is down; nothing was promised.",
        "Service Unavailable",
        "database_unavailable",
        "The database cannot be reached; nothing was promised. Try again.",
    ),
}
_RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}}
_ALWAYS = (400, 401, 403, 404, 429, 500, 503)
_WITH_BODY = (408, 413, 415)


def refusals(*more: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a memory route: what each of them may answer, what those with a body may, and `more`."""
    statuses = sorted({*_ALWAYS, *(_WITH_BODY if body else ()), *more})
    return {status: refused(status) for status in statuses}


def refused(status: int) -> dict[str, Any]:
    description, title, code, detail = _EXAMPLES[status]
    example: dict[str, Any] = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if status == 400:
        example["errors"] = [{"field": "title", "message": "is required"}]
    response: dict[str, Any] = {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}},
    }
    if status in (409, 429, 503):
        response["headers"] = dict(_RETRY_AFTER)
    return response


def complete(app: FastAPI) -> None:
    """Let the app's OpenAPI document say what FastAPI cannot know: our refusals instead of its 422, who may call."""
    generate: Callable[[], dict[str, Any]] = app.openapi

    def completed() -> dict[str, Any]:
        document = generate()
        if BEARER not in document.setdefault("components", {}).setdefault("securitySchemes", {}):
            _complete(document)
        return document

    app.openapi = completed  # type: ignore[method-assign]


def _complete(document: dict[str, Any]) -> None:
    components = document["components"]
    components["securitySchemes"][BEARER] = {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of `memory token issue`, or a JWT, as MEMORY_AUTH says; behind a gateway its headers.",
    }
    schemas = components.setdefault("schemas", {})
    for model in (Problem, ProblemField):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schema.pop("$defs", None)
        schemas.setdefault(model.__name__, schema)
    components.setdefault("headers", {})[HEADER] = {
        "description": "Names the request in our logs: the one that was sent, or a new one.",
        "schema": {"type": "string"},
    }
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if "x-memory-grant" in operation:
                _complete_operation(path.partition("/memory")[2], operation)
    if "HTTPValidationError" not in json.dumps(document["paths"]):
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)


def _complete_operation(path: str, operation: dict[str, Any]) -> None:
    operation["security"] = [{BEARER: []}]
    _drop_default_422(operation["responses"])
    for response in operation["responses"].values():
        response.setdefault("headers", {})[HEADER] = {"$ref": f"#/components/headers/{HEADER}"}
    operation["responses"]["200"]["content"]["application/json"]["example"] = ANSWERS[path]
    if path in REQUESTS:
        operation["requestBody"]["content"]["application/json"]["example"] = REQUESTS[path]


def _drop_default_422(responses: dict[str, Any]) -> None:
    if "application/json" in responses.get("422", {}).get("content", {}):
        del responses["422"]
