"""Forgetting, purging and re-classing: three routes, and no flag turns one into another."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from api.door import CallerDep, MemoryRoute, grant
from api.openapi import refusals
from api.wire import answer, require_id
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.wire import (
    ForgetRequest,
    ForgetResponse,
    PurgeResponse,
    RetentionClassRequest,
    RetentionClassResponse,
)

router = APIRouter(prefix="/api/tenants/{tenantId}/memory", route_class=MemoryRoute, tags=["memory"])

DocumentId = Annotated[str, Path(alias="documentId")]
VersionId = Annotated[str, Path(alias="versionId")]


@router.post(
    "/documents/{documentId}/forget",
    summary="Erase a document's content",
    description="Creator only. Content goes everywhere, from what was derived too; ids and times stay. Idempotent.",
    response_model=ForgetResponse,
    responses=refusals(body=True),
    openapi_extra=grant(Verb.FORGET),
)
async def forget(caller: CallerDep, document_id: DocumentId, body: ForgetRequest | None = None) -> Response:
    require_id(document_id)
    reason = body.reason if body is not None else None
    return answer(await caller.documents.forget(caller.visibility, document_id, reason))


@router.post(
    "/documents/{documentId}/purge",
    summary="Delete a document",
    description="Creator only, and for good. Refused (`deleted: false`) while a version of class `durable` stands.",
    response_model=PurgeResponse,
    responses=refusals(),
    openapi_extra=grant(Verb.PURGE),
)
async def purge(caller: CallerDep, document_id: DocumentId) -> Response:
    require_id(document_id)
    return answer(await caller.documents.purge(caller.visibility, document_id))


@router.post(
    "/versions/{versionId}/retention-class",
    summary="Set a version's retention class",
    description="For the version's creator.",
    response_model=RetentionClassResponse,
    responses=refusals(body=True),
    openapi_extra=grant(Verb.FORGET),
)
async def set_retention_class(caller: CallerDep, version_id: VersionId, body: RetentionClassRequest) -> Response:
    require_id(version_id)
    return answer(await caller.documents.set_retention_class(caller.visibility, version_id, body.retention_class))
