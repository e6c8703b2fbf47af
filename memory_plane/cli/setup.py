"""`memory setup`: what the service needs of its neighbours, made or brought up to date; and what a distiller needs."""

import sys
from typing import Annotated, Any

import typer

from memory_plane.cli.access import on_database
from memory_plane.cli.operate import checkout
from memory_plane.cli.output import fail, out, print_json
from memory_plane.cli.running import load_settings, run

setup = typer.Typer(
    invoke_without_command=True,
    help="Register search attributes, schedules and the Nexus endpoint with Temporal. Idempotent; an operator's pause "
    "is kept.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")]


@setup.callback()
def everything(context: typer.Context, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is not None:
        return
    settings = load_settings()
    sys.path.insert(0, str(checkout()))

    import schedules
    from memory_plane.nexus_endpoint import ensure_endpoint

    async def apply(client: Any) -> str:
        await schedules.register_search_attributes(client)
        await schedules.apply(client, settings)
        return str(await ensure_endpoint(client))

    endpoint = _with_temporal(settings, apply)
    if as_json:
        print_json({"searchAttributes": True, "schedules": True, "nexusEndpoint": endpoint})
        return
    out.print("Search attributes and schedules are in place.")
    out.print(_ENDPOINT[endpoint])


_ENDPOINT = {
    "ready": "The Nexus endpoint `memory` leads here.",
    "elsewhere": "A Nexus endpoint `memory` leads to another namespace or queue and is left alone; hosts of this one "
    "need an endpoint of another name.",
    "refused": "This Temporal server does not let us make a Nexus endpoint; where hosts use Nexus, let an operator "
    "make one to this namespace and the task queue `memory`.",
}


@setup.command()
def distiller(
    tenant: Annotated[str, typer.Option(help="The tenant to distil.")],
    tag: Annotated[
        list[str] | None,
        typer.Option(help="A tag, or a pattern such as memory.space:*, that it may also read; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let the distiller's principal read and write in one tenant, and schedule it there.

    It sees what is shared with the tenant, and what carries a --tag. DISTILL_PRINCIPAL and DISTILL_AGENT name it.
    """
    settings = load_settings()
    sys.path.insert(0, str(checkout()))

    import schedules
    from memory_plane.store.distiller_grants import allow_distiller

    principal = settings.distill_principal
    granted = on_database(lambda conn: allow_distiller(conn, tenant, principal, tag or ()))
    if settings.distills:
        _with_temporal(settings, lambda client: schedules.apply_one(client, schedules.distiller(settings, tenant)))
    if as_json:
        print_json({"tenantId": tenant, "principal": principal, "granted": granted, "scheduled": settings.distills})
        return
    out.print(f"{principal} may now also: {', '.join(granted)}" if granted else f"{principal} had its grants already.")
    if settings.distills:
        out.print(f"The distiller of {tenant} runs every {settings.distill_every_seconds} seconds.", markup=False)
    else:
        out.print("It is not scheduled yet: set DISTILL_BASE_URL and DISTILL_MODEL (or DISTILL_PROCESSOR), then again.")


def _with_temporal(settings: Any, work: Any) -> Any:
    from temporalio.service import RPCError

    from memory_plane.temporal import connect, trouble

    async def within() -> Any:
        return await work(await connect(settings))

    try:
        return run(within())
    except (RPCError, RuntimeError) as problem:
        fail(trouble(settings, problem))
