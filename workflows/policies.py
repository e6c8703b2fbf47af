"""Every timeout, retry and queue, by name. Workflows use these profiles and set nothing of the kind themselves.

Errors say for themselves whether a retry can cure them (`activities.failures`); what is listed here are the SDK's own.
"""

from datetime import timedelta
from typing import Any

from temporalio.common import (
    RetryPolicy,
    SearchAttributeKey,
    SearchAttributePair,
    SearchAttributeUpdate,
    TypedSearchAttributes,
    WorkflowIDReusePolicy,
)
from temporalio.workflow import ActivityCancellationType, ActivityConfig, ChildWorkflowConfig, ParentClosePolicy

from memory_plane.contracts.names import (
    ATTRIBUTE_GENERATION,
    ATTRIBUTE_TENANT,
    QUEUE,
    QUEUE_BULK,
    QUEUE_EMBED,
    cutover_id,
    transform_id,
)
from memory_plane.contracts.transforms import CUTOVER_DETAILS, TRANSFORM_DETAILS
from memory_plane.contracts.workflows import ProcessorSpec

NEVER_CURED = ("PayloadsTooLarge", "ValidationError")
"""A result that no retry makes smaller; a payload that no retry makes valid."""

INGEST_EXECUTION_TIMEOUT = timedelta(hours=24)
"""An ingest that has not ended by then (an endpoint down for a day) is started anew by the reconciler."""
RECONCILE_EXECUTION_TIMEOUT = timedelta(minutes=5)
REEMBED_EXECUTION_TIMEOUT = timedelta(days=7)
SWEEP_EXECUTION_TIMEOUT = timedelta(hours=24)
DISTILL_EXECUTION_TIMEOUT = timedelta(hours=24)
"""Of a tick: one that hangs longer would keep its schedule from starting another."""

_PATIENT = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    maximum_interval=timedelta(seconds=30),
    non_retryable_error_types=NEVER_CURED,
)
"""For as long as it takes."""

_ENDPOINT = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    maximum_interval=timedelta(minutes=2),
    non_retryable_error_types=NEVER_CURED,
)
"""For as long as it takes, and seldom in the end: ten thousand ingests may wait for the same endpoint. The pauses stay
below `store.derivations.HOLD`, so that the reconciler leaves alone what is waiting here."""

DATABASE = ActivityConfig(
    task_queue=QUEUE,
    start_to_close_timeout=timedelta(seconds=30),
    schedule_to_close_timeout=timedelta(hours=24),
    retry_policy=_PATIENT,
)
"""One short transaction."""

EMBED = ActivityConfig(
    task_queue=QUEUE_EMBED,
    start_to_close_timeout=timedelta(hours=1),
    schedule_to_close_timeout=timedelta(hours=24),
    heartbeat_timeout=timedelta(seconds=15),
    retry_policy=_ENDPOINT,
)
"""Batches to a model endpoint: an outage of it is waited out, a lost worker is noticed by its heartbeat."""

DISTILL_ATTEMPTS = 5
"""That fail, before an entry of the feed is put into quarantine."""
DISTILL_WAITS = 3
"""How often a tick waits for an endpoint that is away, before it leaves the rest to the next one."""

DISTILL = ActivityConfig(
    task_queue=QUEUE_BULK,
    start_to_close_timeout=timedelta(minutes=30),
    schedule_to_close_timeout=DISTILL_EXECUTION_TIMEOUT,
    heartbeat_timeout=timedelta(seconds=15),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(milliseconds=500),
        maximum_interval=timedelta(seconds=4),
        maximum_attempts=DISTILL_ATTEMPTS,
        non_retryable_error_types=NEVER_CURED,
    ),
)
"""One entry, asked about at a chat endpoint, which is slow: not where adds wait to be embedded. The pauses are short,
since all behind it wait."""

BULK = ActivityConfig(
    task_queue=QUEUE_BULK,
    start_to_close_timeout=timedelta(hours=2),
    schedule_to_close_timeout=timedelta(days=7),
    heartbeat_timeout=timedelta(seconds=15),
    retry_policy=_ENDPOINT,
)
"""A page of a back-fill, on a queue of its own so that no add waits behind it."""

CHORE = ActivityConfig(
    task_queue=QUEUE,
    start_to_close_timeout=timedelta(minutes=1),
    schedule_to_close_timeout=timedelta(minutes=2),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(seconds=1), maximum_attempts=3, non_retryable_error_types=NEVER_CURED
    ),
)
"""A step of something that a schedule runs again in a minute anyway."""


def summarized(profile: ActivityConfig, summary: str) -> ActivityConfig:
    """The profile with the words that the Temporal UI shows beside the activity: ids and counts, never content."""
    return {**profile, "summary": summary}


PROCESSORS_AT_ONCE = 8
PROCESS_RENEW = timedelta(minutes=5)
"""How often the hold on attempts under way is renewed; well below `plane.ingesting.PROCESS_HOLD`."""
_ONCE = RetryPolicy(maximum_attempts=1)


def processor_activity(spec: ProcessorSpec, summary: str) -> ActivityConfig:
    """One attempt of a host's activity: attempts are counted in Postgres. Waiting for the host's worker is no attempt's
    fault, so it is bounded by the ingest alone."""
    timeout = timedelta(seconds=spec.timeout_seconds)
    return ActivityConfig(
        task_queue=spec.task_queue,
        start_to_close_timeout=timeout,
        schedule_to_close_timeout=timeout + INGEST_EXECUTION_TIMEOUT,
        retry_policy=_ONCE,
        summary=summary,
    )


def processor_child(spec: ProcessorSpec, workflow_id: str, summary: str) -> ChildWorkflowConfig:
    """One attempt of a host's workflow."""
    return ChildWorkflowConfig(
        id=workflow_id,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        static_summary=summary,
        task_queue=spec.task_queue,
        execution_timeout=timedelta(seconds=spec.timeout_seconds),
        retry_policy=_ONCE,
        parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
    )


def pause_after(rounds: int) -> timedelta:
    """How long an ingest waits before round `rounds` + 1 when a round has left something undone: 2 s to 32 s."""
    return timedelta(seconds=2 ** min(rounds, 5))


TRANSFORM_PAUSE = timedelta(hours=6)
"""How long a decision made elsewhere may go unnoticed by a run's workflow when nobody signals it."""
CUTOVER_LOOK = timedelta(seconds=15)
"""How often it looks whether a cutover that it did not start is still under way."""
CUTOVER_EXECUTION_TIMEOUT = timedelta(days=7)
CUT_WHEN_BEHIND = 12
"""Feed positions; below `plane.cutover.MOST_IN_CUT`."""
CUT_WHEN_PENDING = 32
"""Versions without vectors that may be embedded after the flip."""

STEP: ActivityConfig = {**BULK, "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED}
"""A page of a transform or a catch-up. Who cancels one waits until it has stopped, so that nothing is written after."""

INDEX_BUILD = ActivityConfig(
    task_queue=QUEUE_BULK,
    start_to_close_timeout=timedelta(hours=24),
    schedule_to_close_timeout=timedelta(days=7),
    heartbeat_timeout=timedelta(seconds=30),
    retry_policy=_PATIENT,
)
"""Millions of vectors take hours; a build that is broken off is begun anew."""

REVIEW = ActivityConfig(
    task_queue=QUEUE_BULK,
    start_to_close_timeout=timedelta(minutes=15),
    schedule_to_close_timeout=timedelta(hours=24),
    heartbeat_timeout=timedelta(seconds=30),
    retry_policy=_PATIENT,
)

CUT = ActivityConfig(
    task_queue=QUEUE,
    start_to_close_timeout=timedelta(minutes=1),
    schedule_to_close_timeout=timedelta(hours=24),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(milliseconds=200),
        maximum_interval=timedelta(seconds=10),
        non_retryable_error_types=NEVER_CURED,
    ),
)
"""Many brief tries for the tenant's exclusive lock, then one short transaction."""

AFTER_CUT = ActivityConfig(
    task_queue=QUEUE,
    start_to_close_timeout=timedelta(minutes=2),
    schedule_to_close_timeout=timedelta(minutes=3),
    heartbeat_timeout=timedelta(seconds=15),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(seconds=1), maximum_attempts=4, non_retryable_error_types=NEVER_CURED
    ),
)
"""What is worth trying right after a flip and is done by others where it fails: nobody's cutover waits for it long."""


RETIRE: ActivityConfig = {**BULK, "start_to_close_timeout": timedelta(hours=24)}
"""All that a generation holds, in batches."""

CHECK = ActivityConfig(
    task_queue=QUEUE,
    start_to_close_timeout=timedelta(seconds=45),
    schedule_to_close_timeout=timedelta(minutes=5),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(seconds=1), maximum_attempts=5, non_retryable_error_types=NEVER_CURED
    ),
)
"""What somebody waits for who has sent an update: it asks a model endpoint, and answers soon or fails."""


def transform_child(tenant_id: str, run_id: str) -> ChildWorkflowConfig:
    """The workflow of a run, resident, beside the one that started it."""
    return ChildWorkflowConfig(
        id=transform_id(tenant_id, run_id),
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        task_queue=QUEUE,
        parent_close_policy=ParentClosePolicy.ABANDON,
        static_summary=f"Transform run `{run_id}` for `{tenant_id}`",
        static_details=TRANSFORM_DETAILS,
        search_attributes=generation_attributes(tenant_id, run_id),
    )


def cutover_child(kind: str, tenant_id: str, generation: str) -> ChildWorkflowConfig:
    """The cutover outlives whoever started it."""
    return ChildWorkflowConfig(
        id=cutover_id(tenant_id),
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        task_queue=QUEUE,
        execution_timeout=CUTOVER_EXECUTION_TIMEOUT,
        parent_close_policy=ParentClosePolicy.ABANDON,
        static_summary=f"{kind.capitalize()} `{generation}` for `{tenant_id}`",
        static_details=CUTOVER_DETAILS,
        search_attributes=generation_attributes(tenant_id, generation),
    )


def generation_attributes(tenant_id: str, generation: str) -> TypedSearchAttributes:
    return TypedSearchAttributes(
        [
            SearchAttributePair(SearchAttributeKey.for_keyword(ATTRIBUTE_TENANT), tenant_id),
            SearchAttributePair(SearchAttributeKey.for_keyword(ATTRIBUTE_GENERATION), generation),
        ]
    )


def generation_updates(tenant_id: str, generation: str) -> list[SearchAttributeUpdate[Any]]:
    """The same, for a workflow that sets them itself."""
    return [
        SearchAttributeKey.for_keyword(ATTRIBUTE_TENANT).value_set(tenant_id),
        SearchAttributeKey.for_keyword(ATTRIBUTE_GENERATION).value_set(generation),
    ]
