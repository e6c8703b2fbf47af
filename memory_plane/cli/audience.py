"""Who decides about a claim's wider audience: `memory audience list|approve|decline`."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from memory_plane.cli.output import out, print_json, print_table
from memory_plane.cli.running import load_settings, run

if TYPE_CHECKING:
    from memory_plane.plane.widening import OpenRequest, Widening

T = TypeVar("T")

audience = typer.Typer(no_args_is_help=True, help="Requests of claims for a wider audience: list, approve, decline.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Tenant = Annotated[str, typer.Option(help="The tenant.")]
RequestId = Annotated[str, typer.Argument(help="The request's id, kaud_…")]
Owner = Annotated[str, typer.Option("--principal", help="The creator of the source's document, who decides.")]


@audience.command("list")
def list_requests(
    tenant: Tenant,
    principal: Annotated[str | None, typer.Option(help="Those that this principal decides.")] = None,
    as_json: AsJson = False,
) -> None:
    """List open requests: which claim asks which owner for which tags."""
    found = [each for each in _run(lambda w: w.open_requests(tenant)) if principal in (None, each.owner)]
    if as_json:
        print_json({"requests": [_as_json(each) for each in found]})
        return
    print_table(
        ("request", "decides", "claim", "source", "tags"),
        [
            (
                each.request.id,
                each.owner,
                each.request.version_id,
                each.request.source_version_id,
                ", ".join(each.request.tags),
            )
            for each in found
        ],
        empty="No claim asks for a wider audience.",
    )


@audience.command()
def approve(request_id: RequestId, tenant: Tenant, principal: Owner, as_json: AsJson = False) -> None:
    """Approve in the name of the source's creator: the claim gets the tags once every source's owner has approved."""
    _decide(request_id, tenant, principal, True, as_json)


@audience.command()
def decline(request_id: RequestId, tenant: Tenant, principal: Owner, as_json: AsJson = False) -> None:
    """Decline in the name of the source's creator."""
    _decide(request_id, tenant, principal, False, as_json)


def _decide(request_id: str, tenant: str, principal: str, approves: bool, as_json: bool) -> None:
    standing = _run(lambda w: w.decide(tenant, request_id, principal, approve=approves), told=(tenant, request_id))
    if as_json:
        print_json({"id": request_id, "tenantId": tenant, "state": standing.state.value})
    else:
        out.print(f"{request_id} is {standing.state.value}", markup=False)


def _run(work: "Callable[[Widening], Awaitable[T]]", told: tuple[str, str] | None = None) -> T:
    settings = load_settings()

    from memory_plane.plane.access import Access
    from memory_plane.plane.widening import Widening
    from memory_plane.store.database import open_pool
    from memory_plane.store.grants import PostgresGrantStore

    async def within() -> T:
        pool = await open_pool(settings, max_size=1)
        try:
            result = await work(Widening(pool, Access(PostgresGrantStore(pool)), None))
        finally:
            pool.terminate()
        if told is not None:
            await _tell_workflow(settings, *told)
        return result

    return run(within())


async def _tell_workflow(settings: Any, tenant: str, request_id: str) -> None:
    """So that it ends now; without Temporal it finds the decision by itself, some hours later."""
    from datetime import timedelta

    from temporalio.service import RPCError

    from memory_plane.contracts.names import widen_audience_id
    from memory_plane.temporal import connect

    try:
        client = await connect(settings, lazy=True)
        handle = client.get_workflow_handle(widen_audience_id(tenant, request_id))
        await handle.signal("decided", rpc_timeout=timedelta(seconds=2))
    except (RPCError, RuntimeError):
        return


def _as_json(each: "OpenRequest") -> dict[str, Any]:
    asked = each.request
    return {
        "id": asked.id,
        "tenantId": asked.tenant_id,
        "documentId": asked.document_id,
        "versionId": asked.version_id,
        "sourceVersionId": asked.source_version_id,
        "tags": list(asked.tags),
        "requestedBy": asked.requested_by,
        "decides": each.owner,
    }
