"""The worker: settings → engine → three Temporal workers, one a queue. `python worker.py`, or `memory worker`."""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio.client import Client
from temporalio.common import VersioningBehavior
from temporalio.service import RPCError
from temporalio.worker import Interceptor, Worker, WorkerDeploymentConfig, WorkerDeploymentVersion
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import SandboxImportNotificationPolicy as Policy

from activities.cutover import CutoverActivities
from activities.distill import DistillActivities
from activities.failures import ContentFreeFailures
from activities.host import HostActivities
from activities.ingest import IngestActivities
from activities.reconcile import ReconcileActivities
from activities.reembed import ReembedActivities
from activities.sweep import SweepActivities
from activities.transform import TransformActivities
from activities.widen import WidenActivities
from api.nexus import MemoryServiceHandler
from api.starter import TemporalStarter
from memory_plane import logs
from memory_plane.contracts.errors import PlaneError
from memory_plane.contracts.names import QUEUE, QUEUE_BULK, QUEUE_EMBED
from memory_plane.plane import backlog
from memory_plane.plane.engine import Engine
from memory_plane.plane.starting import (
    broken_indexes_rebuilt,
    database_fits,
    engine_model_registered,
    recipe_drift_told,
)
from memory_plane.settings import Settings, SettingsInvalid
from memory_plane.store.fts_language import FtsLanguageMismatch
from memory_plane.telemetry import door, tracing
from memory_plane.temporal import connect, telemetry_runtime, trouble
from schedules import register_search_attributes
from workflows.demote import DemoteWorkflow
from workflows.distiller import DistillerWorkflow
from workflows.ingest import IngestWorkflow
from workflows.promote import PromoteWorkflow
from workflows.reconcile import ReconcileWorkflow
from workflows.reembed import ReembedWorkflow
from workflows.sweep import SweepWorkflow
from workflows.transform import TransformWorkflow
from workflows.widen_audience import WidenAudienceWorkflow

_log = logging.getLogger("memory_plane.worker")

WORKFLOWS: Sequence[type] = (
    IngestWorkflow,
    ReconcileWorkflow,
    ReembedWorkflow,
    SweepWorkflow,
    WidenAudienceWorkflow,
    DistillerWorkflow,
    TransformWorkflow,
    PromoteWorkflow,
    DemoteWorkflow,
)

SANDBOX = SandboxedWorkflowRunner(
    SandboxRestrictions.default.with_passthrough_modules(
        "memory_plane.contracts",
        "memory_plane.core",
        "activities",
        "workflows.policies",
        "workflows.process",
        "workflows.cutover",
        "workflows.details",
    ).with_import_notification_policy(Policy.WARN_ON_DYNAMIC_IMPORT | Policy.RAISE_ON_UNINTENTIONAL_PASSTHROUGH)
)
"""A workflow that imports anything else (asyncpg would crash the process) stops the worker at its start."""

FAILS_WORKFLOWS: Sequence[type[Exception]] = (ValidationError, PlaneError)
"""Exceptions that end a workflow. Any other one is a bug of ours: its workflow waits, running, for the next deploy."""

GRACE = timedelta(seconds=30)
"""How long activities under way may go on after SIGTERM; below the orchestrator's grace."""
DRAIN_SECONDS = 0.1
"""The native runtime needs a moment of the loop before the process ends (temporalio/sdk-python#300)."""
RETRY_SECONDS = 2.0

DEPLOYMENT = "memory-plane"


def build(
    client: Client, engine: Engine, *, max_cached_workflows: int = 1000, interceptors: Sequence[Interceptor] = ()
) -> list[Worker]:
    """One worker for orchestration, one for model endpoints, one for back-fills: none waits behind another's work."""
    ingest, reconcile, reembed = IngestActivities(engine), ReconcileActivities(engine), ReembedActivities(engine)
    sweep, widen, distill = SweepActivities(engine), WidenActivities(engine), DistillActivities(engine)
    host = HostActivities(engine)
    transform, cutover = TransformActivities(engine), CutoverActivities(engine)
    common: dict[str, Any] = {
        "interceptors": [ContentFreeFailures(), *interceptors],
        "graceful_shutdown_timeout": GRACE,
        "deployment_config": _deployment(engine.settings.memory_build_id),
    }
    return [
        Worker(
            client,
            task_queue=QUEUE,
            workflows=WORKFLOWS,
            activities=[
                ingest.capture,
                ingest.remaining,
                ingest.begin_processes,
                ingest.finish_process,
                reconcile.start_stalled,
                reconcile.expire_keys,
                reconcile.retire_due,
                reconcile.start_widenings,
                sweep.page,
                widen.standing,
                widen.decide,
                reembed.prepare,
                distill.next,
                distill.settle,
                host.search,
                host.add,
                host.list,
                host.feed,
                transform.create,
                transform.prepare,
                transform.standing,
                transform.finish,
                transform.cancel,
                transform.reopen,
                transform.check,
                transform.cutover_running,
                cutover.check,
                cutover.require_derived,
                cutover.cut,
                cutover.embed_stragglers,
                cutover.verify,
            ],
            nexus_service_handlers=[MemoryServiceHandler(engine)],
            workflow_runner=SANDBOX,
            workflow_failure_exception_types=FAILS_WORKFLOWS,
            max_cached_workflows=max_cached_workflows,
            max_concurrent_activities=16,
            **common,
        ),
        Worker(
            client,
            task_queue=QUEUE_EMBED,
            activities=[ingest.embed],
            max_concurrent_activities=16,
            max_task_queue_activities_per_second=engine.settings.memory_embeds_per_second,
            **common,
        ),
        Worker(
            client,
            task_queue=QUEUE_BULK,
            activities=[
                reembed.page,
                distill.distil,
                transform.step,
                transform.build_index,
                transform.review,
                transform.retire,
            ],
            max_concurrent_activities=8,
            # Cancellation comes with a heartbeat: whoever pauses a transform does not wait for it long.
            max_heartbeat_throttle_interval=timedelta(seconds=2),
            **common,
        ),
    ]


def _deployment(build_id: str | None) -> WorkerDeploymentConfig | None:
    if build_id is None:
        return None
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(deployment_name=DEPLOYMENT, build_id=build_id),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Work until `stop` is set. Raises what ends a worker for good, and FtsLanguageMismatch.

    A database or a Temporal server that is down at the start is waited for.
    """
    async with AsyncExitStack() as stack:
        working: list[TemporalStarter] = []
        sdk_port = _open_door(settings.memory_metrics_port, working, stack)
        client = await _connected(settings, stop, sdk_port)
        if client is None:
            return
        starter = TemporalStarter(client)
        engine = await stack.enter_async_context(Engine.open(settings, starter=starter))
        if not await _until(stop, lambda: database_fits(engine)):
            return
        await _register_attributes(client, settings)
        for chore in (engine_model_registered(engine), broken_indexes_rebuilt(engine), recipe_drift_told(engine)):
            stack.callback(asyncio.create_task(chore).cancel)
        stack.callback(asyncio.create_task(backlog.watch(engine.pool)).cancel)
        working.append(starter)
        await _work(build(client, engine), stop)


def _open_door(port: int | None, working: Sequence[TemporalStarter], stack: AsyncExitStack) -> int | None:
    """Metrics and probes on the configured port, from before the first wait; where the SDK is to show its metrics."""
    if port is None:
        return None

    async def ready() -> bool:
        try:
            for starter in working:
                await starter.check_health()
        except OSError:
            return False
        return bool(working)

    sdk_port = door.free_port()
    stack.enter_context(door.opened(port, ready, sdk_port))
    return sdk_port


async def _work(workers: Sequence[Worker], stop: asyncio.Event) -> None:
    running = [asyncio.create_task(worker.run()) for worker in workers]
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([*running, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    await asyncio.gather(*(worker.shutdown() for worker, task in zip(workers, running, strict=True) if not task.done()))
    await asyncio.gather(*running)


async def _connected(settings: Settings, stop: asyncio.Event, sdk_port: int | None) -> Client | None:
    runtime = telemetry_runtime(sdk_port)
    clients: list[Client] = []

    async def attempt() -> bool:
        try:
            clients.append(await connect(settings, runtime=runtime))
        except RuntimeError:
            _log.warning("Temporal at %s cannot be reached; trying again", settings.temporal_address)
            return False
        return True

    return clients[0] if await _until(stop, attempt) else None


async def _until(stop: asyncio.Event, attempt: Callable[[], Any]) -> bool:
    """Try until it works or the process is to stop; whether it worked."""
    while not stop.is_set():
        if await attempt():
            return True
        try:
            await asyncio.wait_for(stop.wait(), RETRY_SECONDS)
        except TimeoutError:
            continue
    return False


async def _register_attributes(client: Client, settings: Settings) -> None:
    try:
        await register_search_attributes(client)
    except RPCError as problem:
        _log.warning("search attributes could not be registered: %s", trouble(settings, problem))


async def main() -> int:
    try:
        settings = Settings.load()
    except SettingsInvalid as problems:
        sys.stderr.write(f"The worker cannot start:\n{problems}\n")
        return 1
    logs.configure(settings.memory_log_level)
    tracing.configure("memory-worker")
    async with _signals() as stop:
        try:
            await serve(settings, stop)
        except FtsLanguageMismatch as mismatch:
            sys.stderr.write(f"The worker cannot start:\n{mismatch}\n")
            return 1
        except Exception as error:  # noqa: BLE001 - the end of the process: nothing may keep it half alive
            _log.critical("the worker ends with %s", type(error).__name__, exc_info=error)
            return 1
        finally:
            await asyncio.sleep(DRAIN_SECONDS)
    return 0


@asynccontextmanager
async def _signals() -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop.set)
    try:
        yield stop
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
