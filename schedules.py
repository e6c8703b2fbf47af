"""The declared schedules and search attributes. Applying them twice changes nothing; an operator's pause is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import Priority, SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from memory_plane.contracts import names
from memory_plane.contracts.distilling import DistillerInput
from memory_plane.contracts.workflows import ReconcileInput, SweepInput
from memory_plane.settings import Settings
from workflows import policies

SEARCH_ATTRIBUTES = (names.ATTRIBUTE_TENANT, names.ATTRIBUTE_GENERATION, names.ATTRIBUTE_STAGE)


@dataclass(frozen=True, slots=True)
class Declared:
    id: str
    schedule: Schedule


def declared(settings: Settings) -> Sequence[Declared]:
    """What is to run, and when. Policies are read by activities, so a schedule carries none."""
    return [
        Declared(
            names.SCHEDULE_RECONCILE,
            Schedule(
                action=ScheduleActionStartWorkflow(
                    names.RECONCILE,
                    ReconcileInput(),
                    id=names.RECONCILE_ID,
                    task_queue=names.QUEUE,
                    execution_timeout=policies.RECONCILE_EXECUTION_TIMEOUT,
                    static_summary="Start what was intended and is not under way",
                ),
                spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(minutes=1))]),
                # One run catches up with everything: after an outage the missed ones need not be made up for.
                policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=timedelta(minutes=1)),
            ),
        ),
        Declared(
            names.SCHEDULE_SWEEP,
            Schedule(
                action=ScheduleActionStartWorkflow(
                    names.SWEEP,
                    SweepInput(),
                    id=names.SCHEDULE_SWEEP,
                    task_queue=names.QUEUE,
                    execution_timeout=policies.SWEEP_EXECUTION_TIMEOUT,
                    static_summary="Deprecate ephemeral versions that are past their time",
                ),
                spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(hours=1))]),
                policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=timedelta(minutes=1)),
            ),
        ),
        *(distiller(settings, tenant_id) for tenant_id in settings.distill_tenants if settings.distills),
    ]


def distiller(settings: Settings, tenant_id: str) -> Declared:
    """The schedule of one tenant's distiller."""
    agent = settings.distill_agent
    every = timedelta(seconds=settings.distill_every_seconds)
    tenant = SearchAttributePair(SearchAttributeKey.for_keyword(names.ATTRIBUTE_TENANT), tenant_id)
    return Declared(
        names.distiller_id(tenant_id, agent),
        Schedule(
            action=ScheduleActionStartWorkflow(
                names.DISTILLER,
                DistillerInput(tenant_id=tenant_id, agent_id=agent),
                id=names.distiller_id(tenant_id, agent),
                task_queue=names.QUEUE,
                execution_timeout=policies.DISTILL_EXECUTION_TIMEOUT,
                typed_search_attributes=TypedSearchAttributes([tenant]),
                static_summary=f"Distil what is new in `{tenant_id}` into claims",
                priority=Priority(fairness_key=names.fairness_key(tenant_id)),
            ),
            spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=every)]),
            policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=timedelta(minutes=1)),
        ),
    )


async def apply(client: Client, settings: Settings) -> None:
    """Make every declared schedule be as declared. Raises RuntimeError when Temporal refuses."""
    for each in declared(settings):
        await apply_one(client, each)


async def apply_one(client: Client, wanted: Declared) -> None:
    try:
        await client.create_schedule(wanted.id, wanted.schedule)
    except ScheduleAlreadyRunningError:

        def update(current: ScheduleUpdateInput) -> ScheduleUpdate:
            schedule = wanted.schedule
            # The state is the operator's: paused or not, and his note.
            return ScheduleUpdate(
                Schedule(
                    action=schedule.action,
                    spec=schedule.spec,
                    policy=schedule.policy,
                    state=current.description.schedule.state,
                )
            )

        await client.get_schedule_handle(wanted.id).update(update)


async def register_search_attributes(client: Client) -> None:
    """Register what workflows are found by, unless they are.

    Raises RPCError where the server does not let us: then an operator does it with the server's own tools.
    """
    known = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    missing = [name for name in SEARCH_ATTRIBUTES if name not in known.custom_attributes]
    if not missing:
        return
    try:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace=client.namespace,
                search_attributes=dict.fromkeys(missing, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD),
            )
        )
    except RPCError as error:
        if error.status != RPCStatusCode.ALREADY_EXISTS:  # another process was faster
            raise
