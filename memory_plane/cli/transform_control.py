"""What `memory transform …` asks of Temporal: runs and cutovers are started, decided upon and waited for by id."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import (
    Priority,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)
from temporalio.exceptions import ApplicationError, FailureError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from memory_plane.contracts import names
from memory_plane.contracts.errors import Conflict, PlaneError, Unavailable
from memory_plane.contracts.transforms import (
    CUTOVER_DETAILS,
    TRANSFORM_DETAILS,
    CutoverInput,
    CutoverResult,
    Cutting,
    StepResult,
    TransformInput,
    TransformResult,
)
from memory_plane.settings import Settings
from memory_plane.temporal import connect

_TENANT = SearchAttributeKey.for_keyword(names.ATTRIBUTE_TENANT)
_GENERATION = SearchAttributeKey.for_keyword(names.ATTRIBUTE_GENERATION)
Handle = WorkflowHandle[Any, Any]
PASSING = (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED)
"""What a server says that is restarted: it is asked again."""
POLL_SECONDS = 0.5
OUTAGE_PAUSE = 2.0
MAKE_SECONDS = 60.0


async def connected(settings: Settings) -> Client:
    """Raises Unavailable."""
    try:
        return await connect(settings)
    except RuntimeError:
        raise Unavailable(
            f"Temporal at {settings.temporal_address} cannot be reached; check TEMPORAL_ADDRESS. Nothing was started.",
            code="temporal_unavailable",
        ) from None


async def new_run(client: Client, given: TransformInput) -> str:
    """Have a worker make the run of a config, and start its workflow; the run's id.

    The worker makes it, since a recipe that says only what it changes is completed from the engine's settings: those
    of whoever types the command may be others, or none. Raises the refusal, and Unavailable when no worker answers.
    """
    handle = await client.start_workflow(
        names.TRANSFORM,
        given,
        id=names.transform_id(given.tenant_id, f"new-{uuid4().hex}"),
        task_queue=names.QUEUE,
        result_type=TransformResult,
        search_attributes=TypedSearchAttributes([SearchAttributePair(_TENANT, given.tenant_id)]),
        static_summary=f"New transform run of `{given.config_id}` for `{given.tenant_id}`",
        priority=Priority(fairness_key=names.fairness_key(given.tenant_id)),
    )
    try:
        async with asyncio.timeout(MAKE_SECONDS):
            made: TransformResult = await handle.result()
    except WorkflowFailureError as failure:
        raise refusal(failure.cause) from None
    except TimeoutError:
        await handle.terminate("No worker made the run in time.")
        raise Unavailable(
            f"No worker made the run within {MAKE_SECONDS:.0f} s; see that one runs (`memory worker`), then try again.",
            code="temporal_unavailable",
        ) from None
    return made.run_id


async def start_run(client: Client, given: TransformInput) -> Handle:
    """Start the workflow of a run there is, unless it runs."""
    assert given.run_id is not None  # noqa: S101 - created before
    return await client.start_workflow(
        names.TRANSFORM,
        given,
        id=names.transform_id(given.tenant_id, given.run_id),
        task_queue=names.QUEUE,
        result_type=TransformResult,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        search_attributes=_attributes(given.tenant_id, given.run_id),
        static_summary=f"Transform run `{given.run_id}` for `{given.tenant_id}`",
        static_details=TRANSFORM_DETAILS,
        priority=Priority(fairness_key=names.fairness_key(given.tenant_id)),
    )


async def start_cutover(client: Client, kind: Cutting, given: CutoverInput) -> Handle:
    """Start it, or attach to the same one under way. Raises Conflict where the tenant has another one."""
    try:
        return await client.start_workflow(
            names.PROMOTE if kind == "promote" else names.DEMOTE,
            given,
            id=names.cutover_id(given.tenant_id),
            task_queue=names.QUEUE,
            result_type=CutoverResult,
            search_attributes=_attributes(given.tenant_id, given.generation),
            static_summary=f"{kind.capitalize()} `{given.generation}` for `{given.tenant_id}`",
            static_details=CUTOVER_DETAILS,
            priority=Priority(fairness_key=names.fairness_key(given.tenant_id)),
        )
    except WorkflowAlreadyStartedError:
        handle: Handle = client.get_workflow_handle(names.cutover_id(given.tenant_id), result_type=CutoverResult)
    described = await handle.describe()
    name = names.PROMOTE if kind == "promote" else names.DEMOTE
    if (described.workflow_type, described.typed_search_attributes.get(_GENERATION)) == (name, given.generation):
        return handle
    raise Conflict(
        f"Another cutover of the tenant is under way (workflow {handle.id}); wait for its end, or cancel it.",
        code="cutover_in_progress",
    )


async def outcome(handle: Handle, on_progress: Callable[[StepResult], None]) -> Any:
    """The cutover's result, waited for through outages of the connection. Raises the refusal it ended with."""
    showing = asyncio.create_task(_shown(handle, on_progress))
    try:
        while True:
            try:
                return await handle.result()
            except WorkflowFailureError as failure:
                raise refusal(failure.cause) from None
            except RPCError as error:
                if error.status not in PASSING:
                    raise Unavailable(
                        f"Temporal did not answer ({error.status.name}).", code="temporal_unavailable"
                    ) from None
                await asyncio.sleep(OUTAGE_PAUSE)
    finally:
        showing.cancel()


async def _shown(handle: Handle, on_progress: Callable[[StepResult], None]) -> None:
    """Ask how far the catch-up is, again and again; while nobody answers, what was shown stands."""
    while True:
        with suppress(RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError):
            on_progress(await handle.query("status", result_type=StepResult))
        await asyncio.sleep(POLL_SECONDS)


async def decide(handle: Handle, update: str, *arguments: Any) -> str:
    """Send an update of the run's workflow; what it answers. Raises the refusal."""
    try:
        answer: str = await handle.execute_update(update, args=arguments, result_type=str)
    except WorkflowUpdateFailedError as failure:
        raise refusal(failure.cause) from None
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise Conflict(
                "The run's workflow is not running; `memory transform resume` starts it again.", code="not_running"
            ) from None
        raise Unavailable(
            f"Temporal did not take the update ({error.status.name}); see that a worker runs.",
            code="temporal_unavailable",
        ) from None
    return answer


async def look_again(client: Client, tenant_id: str, *run_ids: str) -> None:
    """Tell the workflows of these runs, where there are such, that their rows have changed."""
    for run_id in run_ids:
        try:
            await client.get_workflow_handle(names.transform_id(tenant_id, run_id)).signal("look")
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise Unavailable("Temporal cannot be reached.", code="temporal_unavailable") from None


def refusal(error: BaseException | None) -> PlaneError:
    """The refusal within a workflow's failure, as its sentence and code."""
    while isinstance(error, FailureError) and not isinstance(error, ApplicationError) and error.cause is not None:
        error = error.cause
    if isinstance(error, ApplicationError):
        return Conflict(error.message, code=error.type or "failed")
    return Conflict(f"It ended before it was done ({type(error).__name__}).", code="failed")


def _attributes(tenant_id: str, generation: str) -> TypedSearchAttributes:
    return TypedSearchAttributes(
        [SearchAttributePair(_TENANT, tenant_id), SearchAttributePair(_GENERATION, generation)]
    )
