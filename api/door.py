"""What stands before every memory route: who is calling, whose tenant this is, may they do this at all.

The order leaks nothing: no identity 401, another's tenant 404, no capability 403, and only then is the body read
(413, 415, 408) and judged (400). Whoever may not use a verb learns nothing from how its input is refused.
"""

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any, cast, get_args

from fastapi import Depends, FastAPI, Path
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from api import problems
from api.body import BodyLimits, JsonRequest
from api.identity import CallerResolver, MalformedIdentity, seated
from api.request_id import HEADER, request_id
from api.throttle import CallerLimit, Room
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import PlaneError
from memory_plane.contracts.validation import field_errors, refusal
from memory_plane.core.visibility import Visibility
from memory_plane.logs import name_in_logs, where
from memory_plane.plane.document_store import DocumentStore, Mountable
from memory_plane.store.database import StatementFailed

REQUESTS_AT_ONCE = 256
"""Where the configuration does not say otherwise."""
GRANT = "x-memory-grant"
"""Where a route's OpenAPI entry names the capability that it needs."""

_log = logging.getLogger("memory_plane.api")


@dataclass(frozen=True, slots=True)
class Admitted:
    """A caller who may use this verb, and the store to use it on."""

    documents: DocumentStore
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class Door:
    """`engine` is asked at each request: it raises Unavailable while there is none to serve with."""

    engine: Callable[[], Mountable]
    resolve: CallerResolver
    limits: BodyLimits = field(default_factory=BodyLimits)
    caller_limit: CallerLimit | None = None
    room: Room = field(default_factory=lambda: Room(REQUESTS_AT_ONCE))

    async def admit(self, request: Request, verb: Verb) -> Admitted:
        engine = self.engine()
        caller = await seated(self.resolve, request, request.path_params["tenantId"])
        name_in_logs(tenant=caller.tenant_id)
        if self.caller_limit is not None:
            self.caller_limit.take(caller)
        visibility = await engine.access.visibility(caller)
        engine.access.require(visibility, verb)
        return Admitted(engine.documents, visibility)


def grant(verb: Verb) -> dict[str, Any]:
    """The capability a route needs, as its `openapi_extra`: documentation and enforcement are one statement."""
    return {GRANT: f"memory:{verb.value}"}


class MemoryRoute(APIRoute):
    """Admits, then reads the body, then lets FastAPI validate and call; every refusal leaves as a problem document,
    on our own app and on a host's."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        verb = Verb((self.openapi_extra or {})[GRANT].removeprefix("memory:"))
        reads_body = self.body_field is not None

        async def guarded(plain: Request) -> Response:
            request = JsonRequest(plain.scope, plain.receive)
            door = door_of(request)
            try:
                with door.room.place():
                    request.state.admitted = await door.admit(request, verb)
                if reads_body:
                    # Without a place: who sends slowly keeps it from nobody.
                    await request.load(door.limits)
                with door.room.place():
                    response = await handle(request)
            except Exception as error:  # noqa: BLE001 - the boundary: whatever it is, it leaves as a problem document
                response = answer_for(error, request)
            response.headers.setdefault(HEADER, request_id(request.scope))
            return response

        return guarded


def answer_for(error: Exception, request: Request) -> Response:
    """The problem document for an error. What nobody foresaw is logged by type and place, never by its message:
    database errors carry values."""
    if isinstance(error, PlaneError):
        return problems.of_error(error)
    if isinstance(error, problems.HttpRefusal):
        return problems.of_http_refusal(error)
    if isinstance(error, RequestValidationError):
        found = [entry | {"loc": tuple(entry["loc"])[1:]} for entry in error.errors()]
        return problems.of_error(refusal(field_errors(found, _model_of(request))))
    if isinstance(error, HTTPException):
        return problems.of_status(error.status_code, error.headers)
    if isinstance(error, ClientDisconnect):
        return problems.problem(400, "client_gone", "The client went away before its body had arrived.")
    if isinstance(error, MalformedIdentity):
        _log.error("request %s: %s", request_id(request.scope), error)
    else:
        log_unexpected(error, request_id(request.scope))
    return problems.unexpected()


def log_unexpected(error: BaseException, id_: str) -> None:
    what = str(error) if isinstance(error, StatementFailed) else type(error).__name__
    _log.error(
        "unexpected %s in request %s at %s",
        what,
        id_,
        where(error.__traceback__),
    )


def _model_of(request: Request) -> type[BaseModel] | None:
    """The model of the route's body, so that a mistyped key can be told which one was meant."""
    body_field = getattr(request.scope.get("route"), "body_field", None)
    annotation = getattr(getattr(body_field, "field_info", None), "annotation", None)
    models = (each for each in (annotation, *get_args(annotation)) if isinstance(each, type))
    return next((each for each in models if issubclass(each, BaseModel)), None)


def door_of(request: Request) -> Door:
    return cast(Door, request.app.state.memory_door)


def install(app: FastAPI, door: Door) -> None:
    app.state.memory_door = door


async def admitted(
    request: Request,
    tenant_id: Annotated[str, Path(alias="tenantId", description="The caller's own tenant; any other one is 404.")],
) -> Admitted:
    # A coroutine although it awaits nothing: a plain function would cost each request a trip to a thread.
    return cast(Admitted, request.state.admitted)


CallerDep = Annotated[Admitted, Depends(admitted)]
