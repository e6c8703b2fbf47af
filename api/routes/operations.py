"""For those who run it: alive, ready, metrics. Open to whoever can reach the port; nothing of a tenant is in them."""

from typing import Any, Literal, cast

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from starlette.responses import Response

from api import problems
from api.openapi import refused
from api.wire import answer
from memory_plane.plane.health import Health, State
from memory_plane.telemetry.metrics import REGISTRY

router = APIRouter(tags=["operations"])


class Alive(BaseModel):
    status: Literal["alive"] = "alive"


class PartState(BaseModel):
    state: State
    required: bool
    detail: str | None = None


class Ready(BaseModel):
    status: Literal["ready"] = "ready"
    checks: dict[str, PartState]


_METRICS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Prometheus text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", summary="Is the process alive?", response_model=Alive)
async def healthz() -> Response:
    return answer(Alive())


@router.head("/readyz", include_in_schema=False)
@router.get(
    "/readyz",
    summary="Can it serve?",
    description="Each part with its state; 503 only when one that no request can do without is down. A Temporal or a "
    "model endpoint that is down shows here and in `degraded`, and stops nothing.",
    response_model=Ready,
    responses={503: refused(503)},
)
async def readyz(request: Request) -> Response:
    health = cast(Health, request.app.state.memory_health)
    parts = await health.check()
    checks = {
        name: PartState(state=part.state, required=part.required, detail=part.detail) for name, part in parts.items()
    }
    down = [name for name, part in parts.items() if part.stops_service]
    if not down:
        return answer(Ready(checks=checks))
    return problems.problem(
        503,
        "not_ready",
        f"It cannot serve: {', '.join(down)}; each part's state is under `checks`.",
        headers={"Retry-After": str(problems.DEFAULT_RETRY_AFTER)},
        extension={"checks": {name: check.model_dump(exclude_none=True) for name, check in checks.items()}},
    )


@router.get("/metrics", summary="Prometheus metrics", response_class=Response, responses=_METRICS)
async def metrics() -> Response:
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)
