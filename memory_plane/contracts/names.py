"""Names that are wire format: workflows, queues, search attributes, workflow ids. Constants are never renamed."""

import hashlib

SERVICE = "memory"

QUEUE = "memory"
"""Orchestration, capture, swaps, host-facing activities."""
QUEUE_EMBED = "memory-embed"
"""Calls to model endpoints, with a rate limit of its own."""
QUEUE_BULK = "memory-bulk"
"""Transforms and backfills, so that they cannot starve an add."""

INGEST = "IngestWorkflow"
TRANSFORM = "TransformWorkflow"
PROMOTE = "PromoteWorkflow"
DEMOTE = "DemoteWorkflow"
REEMBED = "ReembedWorkflow"
DISTILLER = "DistillerWorkflow"
SWEEP = "SweepWorkflow"
RECONCILE = "ReconcileWorkflow"
WIDEN_AUDIENCE = "WidenAudienceWorkflow"

ATTRIBUTE_TENANT = "MemoryTenant"
ATTRIBUTE_GENERATION = "MemoryGeneration"
ATTRIBUTE_STAGE = "MemoryStage"

SCHEDULE_RECONCILE = "memory-reconcile"
SCHEDULE_SWEEP = "memory-sweep"
SCHEDULE_DISTILLER = "memory-distiller"

DEFAULT_ADAPTER = "http"
CLAIM_ADAPTER = "claim"
CAPABILITY_RESOURCE = "memory"


def ingest_id(tenant_id: str, version_id: str) -> str:
    return f"memory-ingest/{tenant_id}/{version_id}"


def ingest_batch_id(tenant_id: str, first_version_id: str) -> str:
    return f"memory-ingest/{tenant_id}/batch/{first_version_id}"


def transform_id(tenant_id: str, run_id: str) -> str:
    return f"memory-transform/{tenant_id}/{run_id}"


def cutover_id(tenant_id: str) -> str:
    return f"memory-cutover/{tenant_id}"


def reembed_id(tenant_id: str) -> str:
    return f"memory-reembed/{tenant_id}"


def distiller_id(tenant_id: str, agent_id: str) -> str:
    return f"memory-distiller/{tenant_id}/{agent_id}"


def sweep_id(tenant_id: str) -> str:
    return f"memory-sweep/{tenant_id}"


def widen_audience_id(tenant_id: str, request_id: str) -> str:
    return f"memory-widen/{tenant_id}/{request_id}"


def process_id(tenant_id: str, version_id: str, processor: str) -> str:
    """Of a host's workflow that processes one version: one attempt runs at a time."""
    return f"memory-process/{tenant_id}/{version_id}/{processor}"


def fairness_key(tenant_id: str) -> str:
    """What keeps one tenant's work from starving another's; Temporal takes at most 64 bytes."""
    return tenant_id if len(tenant_id.encode()) <= 64 else hashlib.sha256(tenant_id.encode()).hexdigest()


RECONCILE_ID = "memory-reconcile"

NEXUS_ENDPOINT = "memory"
"""Under which hosts of other namespaces find the Nexus service."""
