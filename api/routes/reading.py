"""Finding and reading: search, list, one document."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from api.door import CallerDep, MemoryRoute, grant
from api.openapi import refusals
from api.wire import answer, require_id
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.validation import Whole
from memory_plane.contracts.wire import DocumentResponse, ListResponse, SearchRequest, SearchResponse

router = APIRouter(prefix="/api/tenants/{tenantId}/memory", route_class=MemoryRoute, tags=["memory"])


class ListQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Whole(1, 100)] = 20
    cursor: str | None = None


class DocumentQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: Annotated[int, Whole(1, 2**31 - 1)] | None = None


@router.post(
    "/search",
    summary="Find documents",
    description="Lexical and dense channels, fused; stages that could not run are named in `degraded`.",
    response_model=SearchResponse,
    responses=refusals(body=True),
    openapi_extra=grant(Verb.SEARCH),
)
async def search(caller: CallerDep, body: SearchRequest) -> Response:
    return answer(await caller.documents.search(caller.visibility, body))


@router.get(
    "/list",
    summary="Recent documents",
    description="Ordered by when they were last seen, newest first; `nextCursor` leads on.",
    response_model=ListResponse,
    responses=refusals(),
    openapi_extra=grant(Verb.SEARCH),
)
async def list_documents(caller: CallerDep, query: Annotated[ListQuery, Query()]) -> Response:
    return answer(await caller.documents.list(caller.visibility, query.limit, query.cursor))


@router.get(
    "/documents/{documentId}",
    summary="One document",
    description="With the text of its active version, or of the version given by number.",
    response_model=DocumentResponse,
    responses=refusals(),
    openapi_extra=grant(Verb.SEARCH),
)
async def get_document(
    caller: CallerDep, document_id: Annotated[str, Path(alias="documentId")], query: Annotated[DocumentQuery, Query()]
) -> Response:
    require_id(document_id)
    document = await caller.documents.get(caller.visibility, document_id, query.version)
    return answer(document, always={"text"})
