"""The process stage: each pending (version, processor) is run where the host has it, ids in, ids out.

Attempts are counted and held in Postgres, so a crash, a second workflow and a re-driven request all see the same book.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError, ChildWorkflowError, WorkflowAlreadyStartedError, is_cancelled_exception

from activities.ingest import IngestActivities
from memory_plane.contracts.names import process_id
from memory_plane.contracts.workflows import (
    BeginProcess,
    PendingProcess,
    ProcessInput,
    ProcessorSpec,
    ProcessOutcome,
    ProcessResult,
)
from workflows import policies

_ANYTHING: type[Any] = Any
"""An answer is decoded here and not by the converter, whose refusal would fail the ingest instead of the attempt."""


async def run_processors(tenant_id: str, requests: Sequence[PendingProcess]) -> int:
    """Run an attempt of each request; how many have ended without an outcome and are to be tried again."""
    book = BeginProcess(tenant_id=tenant_id, requests=list(requests))
    ours = (await _begin(book)).requests
    places = asyncio.Semaphore(policies.PROCESSORS_AT_ONCE)
    attempts = [asyncio.create_task(_attempt(tenant_id, request, places)) for request in ours]
    waiting: Sequence[asyncio.Task[bool]] = attempts
    while waiting:
        _, waiting = await workflow.wait(waiting, timeout=policies.PROCESS_RENEW.total_seconds())
        if waiting:
            # Said again, the begin renews the hold on what is still under way.
            await _begin(BeginProcess(tenant_id=tenant_id, requests=ours))
    return len(requests) - sum(attempt.result() for attempt in attempts)


async def _begin(book: BeginProcess) -> BeginProcess:
    return await workflow.execute_activity_method(
        IngestActivities.begin_processes, book, **policies.summarized(policies.DATABASE, "begin attempts")
    )


async def _attempt(tenant_id: str, request: PendingProcess, places: asyncio.Semaphore) -> bool:
    """Whether the request has come to an end: written, skipped or poison."""
    async with places:
        outcome = await outcome_of(tenant_id, request)
    await workflow.execute_activity_method(
        IngestActivities.finish_process,
        outcome,
        **policies.summarized(policies.DATABASE, f"{request.processor}: {outcome.outcome}"),
    )
    return outcome.outcome != "failed"


async def outcome_of(tenant_id: str, request: PendingProcess) -> ProcessOutcome:
    """Run one attempt where the host has the processor; whatever fails is an outcome, with a reason of ours."""
    given = ProcessInput(
        tenant_id=tenant_id,
        version_id=request.version_id,
        processor=request.processor,
        attempt=request.attempts + 1,
    )
    if request.spec is None:
        return _failed(given, "No processor of this name is configured on the worker; see MEMORY_PROCESSORS.")
    try:
        answer = ProcessResult.model_validate(await _run(request.spec, given))
    except ValidationError:
        return _failed(given, "The processor's answer is not {outcome, versionIds}.")
    except WorkflowAlreadyStartedError:
        return _failed(given, "An earlier attempt of the processor's workflow is still running.")
    except (ActivityError, ChildWorkflowError) as error:
        if is_cancelled_exception(error):
            raise
        # The type is the host's own name for the fault; its message may hold content.
        kind = getattr(error.cause, "type", None) or type(error.cause).__name__
        return _failed(given, f"The processor failed ({str(kind)[:100]}).")
    return ProcessOutcome(
        tenant_id=tenant_id,
        version_id=given.version_id,
        processor=given.processor,
        outcome=answer.outcome,
        claims=len(answer.version_ids),
        reason="The processor calls it poison." if answer.outcome == "poison" else None,
    )


async def _run(spec: ProcessorSpec, given: ProcessInput) -> Any:
    summary = f"{given.processor} {given.version_id}"
    if spec.kind == "activity":
        return await workflow.execute_activity(
            spec.type, given, result_type=_ANYTHING, **policies.processor_activity(spec, summary)
        )
    workflow_id = process_id(given.tenant_id, given.version_id, given.processor)
    return await workflow.execute_child_workflow(
        spec.type, given, result_type=_ANYTHING, **policies.processor_child(spec, workflow_id, summary)
    )


def _failed(given: ProcessInput, reason: str) -> ProcessOutcome:
    return ProcessOutcome(
        tenant_id=given.tenant_id,
        version_id=given.version_id,
        processor=given.processor,
        outcome="failed",
        reason=reason,
    )
