"""The feed: what is new, or with `events=all` everything a mirror must learn."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from api.door import CallerDep, MemoryRoute, grant
from api.openapi import refusals
from api.wire import answer, answer_with_nulls
from memory_plane.contracts.enums import Verb
from memory_plane.contracts.validation import Whole
from memory_plane.contracts.wire import FeedEventsResponse, FeedResponse

router = APIRouter(prefix="/api/tenants/{tenantId}/memory", route_class=MemoryRoute, tags=["memory"])


class FeedQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    after: Annotated[int, Whole(0, 2**63 - 1)] = 0
    limit: Annotated[int, Whole(1, 100)] = 50
    exclude_generator: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    events: Literal["all"] | None = None


@router.get(
    "/feed",
    summary="What is new",
    description="Ascending positions above `after`; store `nextCursor`. It advances past entries that are not shown, "
    "and at the end repeats `after`. With `events=all` every kind of change is served instead.",
    response_model=FeedResponse | FeedEventsResponse,
    responses=refusals(),
    openapi_extra=grant(Verb.SEARCH),
)
async def feed(caller: CallerDep, query: Annotated[FeedQuery, Query()]) -> Response:
    documents = caller.documents
    if query.events == "all":
        return answer(await documents.events(caller.visibility, query.after, query.limit))
    page = await documents.feed(caller.visibility, query.after, query.limit, query.exclude_generator)
    return answer_with_nulls(page)
