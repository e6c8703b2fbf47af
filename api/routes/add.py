"""Adding: one document, or up to 500 of which each stands alone."""

from typing import Annotated, Any

from fastapi import APIRouter, Header
from starlette.responses import Response

from api.body import JsonRequest
from api.door import CallerDep, MemoryRoute, grant
from api.openapi import refusals
from api.wire import answer
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.wire import AddRequest, AddResponse, BatchRequest, BatchResponse

router = APIRouter(prefix="/api/tenants/{tenantId}/memory", route_class=MemoryRoute, tags=["memory"])

REPLAYED = "Idempotent-Replayed"
_REPLAYED_HEADER: dict[str, Any] = {
    REPLAYED: {
        "description": "`true` when this answer repeats what an earlier request with the same key did.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[ -~]+$",
        description="Kept for 24 hours: the same key and body give the same ids, whatever was lost on the way.",
    ),
]


@router.post(
    "/add",
    summary="Capture a document",
    description="Durable once answered. What is still to be done (embedding, processing) is named in `degraded`.",
    response_model=AddResponse,
    responses={200: {"headers": _REPLAYED_HEADER}, **refusals(409, 422, body=True)},
    openapi_extra=grant(Verb.ADD),
)
async def add(
    request: JsonRequest, caller: CallerDep, body: AddRequest, idempotency_key: IdempotencyKey = None
) -> Response:
    outcome = await caller.documents.add(caller.visibility, body, request.payload, idempotency_key)
    response = answer(outcome.response)
    if outcome.replayed:
        response.headers[REPLAYED] = "true"
    return response


@router.post(
    "/add/batch",
    summary="Capture up to 500 documents",
    description="Each item is judged and stored alone: an error of one is told beside its index and stops no other.",
    response_model=BatchResponse,
    responses=refusals(409, 422, body=True),
    openapi_extra=grant(Verb.ADD),
)
async def add_batch(
    request: JsonRequest, caller: CallerDep, body: BatchRequest, idempotency_key: IdempotencyKey = None
) -> Response:
    items = request.payload["items"]
    return answer(await caller.documents.add_batch(caller.visibility, items, idempotency_key))
