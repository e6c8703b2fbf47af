"""The distiller by hand: `memory distill run`, `memory distill quarantine list|retry`."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from memory_plane.cli.output import fail, out, print_json, print_table
from memory_plane.cli.running import load_settings, run

if TYPE_CHECKING:
    from memory_plane.plane.engine import Engine
    from memory_plane.store.quarantine import Quarantined

T = TypeVar("T")

distill = typer.Typer(no_args_is_help=True, help="The distiller: run it by hand, look into its quarantine.")
quarantine = typer.Typer(no_args_is_help=True, help="Entries that could not be distilled: list, retry.")
distill.add_typer(quarantine, name="quarantine")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Tenant = Annotated[str, typer.Option(help="The tenant.")]


@distill.command("run")
def run_distiller(
    tenant: Tenant,
    resident: Annotated[bool, typer.Option(help="Stay, and distil what comes.")] = False,
    wait: Annotated[bool, typer.Option(help="Wait until it has drained the feed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start the distiller of a tenant now, beside its schedule."""
    settings = load_settings()

    from temporalio.common import WorkflowIDConflictPolicy
    from temporalio.service import RPCError

    from memory_plane.contracts import names
    from memory_plane.contracts.distilling import DistillerInput, DistillerResult
    from memory_plane.temporal import connect, trouble

    workflow_id = names.distiller_id(tenant, settings.distill_agent)

    async def start() -> DistillerResult | None:
        client = await connect(settings)
        handle = await client.start_workflow(
            names.DISTILLER,
            DistillerInput(tenant_id=tenant, agent_id=settings.distill_agent, mode="resident" if resident else "tick"),
            id=workflow_id,
            task_queue=names.QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal="nudge",
            static_summary=f"Distil what is new in `{tenant}` into claims",
            result_type=DistillerResult,
        )
        return await handle.result() if wait and not resident else None

    try:
        result = run(start())
    except (RPCError, RuntimeError) as problem:
        fail(trouble(settings, problem))
    counts = {} if result is None else result.model_dump()
    if as_json:
        print_json({"workflowId": workflow_id, **counts})
        return
    out.print(f"started {workflow_id}", markup=False)
    if counts:
        out.print(", ".join(f"{name}: {value}" for name, value in counts.items()))


@quarantine.command("list")
def list_quarantine(tenant: Tenant, as_json: AsJson = False) -> None:
    """List what could not be distilled, and why."""
    found = _on_engine(lambda engine: engine.distilling.quarantined(tenant))
    if as_json:
        print_json({"entries": [_as_json(each) for each in found]})
        return
    print_table(
        ("version id", "agent", "attempts", "since", "again", "reason"),
        [
            (
                each.version_id,
                each.agent_id,
                each.attempts,
                each.created_at,
                "waiting" if each.retry_requested_at else "",
                each.reason,
            )
            for each in found
        ],
        empty="Nothing is in quarantine.",
    )


@quarantine.command("retry")
def retry_quarantine(
    tenant: Tenant,
    version_ids: Annotated[list[str] | None, typer.Argument(help="Version ids; none: all that there are.")] = None,
    agent: Annotated[str | None, typer.Option(help="Of this agent; without it, the configured one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Have the next run of the distiller try them again."""

    async def work(engine: "Engine") -> int:
        chosen = agent or engine.settings.distill_agent
        count = await engine.distilling.retry(tenant, chosen, version_ids or None)
        await _nudge(engine.settings, tenant, chosen)
        return count

    count = _on_engine(work)
    if as_json:
        print_json({"requested": count})
    else:
        out.print(f"{count} to be tried again by the next run.")


def _on_engine(work: "Callable[[Engine], Awaitable[T]]") -> T:
    settings = load_settings()

    from memory_plane.plane.engine import Engine

    async def within() -> T:
        async with Engine.open(settings) as engine:
            return await work(engine)

    return run(within())


async def _nudge(settings: Any, tenant: str, agent: str) -> None:
    """So that a resident one looks now; the next tick finds it by itself."""
    from datetime import timedelta

    from temporalio.service import RPCError

    from memory_plane.contracts.names import distiller_id
    from memory_plane.temporal import connect

    try:
        client = await connect(settings, lazy=True)
        await client.get_workflow_handle(distiller_id(tenant, agent)).signal("nudge", rpc_timeout=timedelta(seconds=2))
    except (RPCError, RuntimeError):
        return


def _as_json(each: "Quarantined") -> dict[str, Any]:
    return {
        "versionId": each.version_id,
        "documentId": each.document_id,
        "agentId": each.agent_id,
        "reason": each.reason,
        "attempts": each.attempts,
        "createdAt": each.created_at.isoformat(),
        "retryRequestedAt": each.retry_requested_at.isoformat() if each.retry_requested_at else None,
    }
