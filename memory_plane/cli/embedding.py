"""Embedding, for operators: `memory reembed`, `memory endpoint move`."""

import sys
from datetime import timedelta
from typing import Annotated

import typer

from memory_plane.cli.output import fail, out, print_json
from memory_plane.cli.running import load_settings, run

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

endpoint = typer.Typer(help="Where embedding models are served.", no_args_is_help=True)


def reembed(
    tenant: Annotated[str, typer.Option(help="The tenant.")],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it has ended.")] = True,
    as_json: AsJson = False,
) -> None:
    """Give vectors to what has none under the live generation: failed embeds, and documents from before there was an
    endpoint. Interrupt it whenever you like: the workflow goes on, and started again it embeds nothing twice."""
    settings = load_settings()

    from temporalio.client import WorkflowFailureError
    from temporalio.common import WorkflowIDConflictPolicy
    from temporalio.service import RPCError

    from memory_plane.contracts import names
    from memory_plane.contracts.workflows import ReembedInput, ReembedResult
    from memory_plane.temporal import connect, trouble

    async def started() -> ReembedResult | None:
        client = await connect(settings)
        handle = await client.start_workflow(
            names.REEMBED,
            ReembedInput(tenant_id=tenant),
            id=names.reembed_id(tenant),
            task_queue=names.QUEUE,
            result_type=ReembedResult,
            execution_timeout=timedelta(days=7),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary=f"Embed what has no vectors, for `{tenant}`",
        )
        if not wait:
            return None
        sys.stderr.write(f"{handle.id} is running; the Temporal UI shows how far it is.\n")
        result: ReembedResult = await handle.result()
        return result

    try:
        result = run(started())
    except WorkflowFailureError as failure:
        reason = failure.cause.__cause__ or failure.cause
        fail(getattr(reason, "message", None) or str(reason))
    except (RPCError, RuntimeError) as problem:
        fail(trouble(settings, problem))
    if as_json:
        print_json({"workflowId": names.reembed_id(tenant), **(result.model_dump() if result else {})})
    elif result is None:
        out.print(f"started: {names.reembed_id(tenant)}")
    else:
        out.print(f"{result.embedded} versions embedded, {result.failed} would not.")


@endpoint.command("move")
def move(
    old: Annotated[str, typer.Argument(help="The base URL that models are registered at.")],
    new: Annotated[str, typer.Argument(help="The base URL at which they answer now.")],
    as_json: AsJson = False,
) -> None:
    """Write down that an embedding endpoint has moved, once stored vectors agree with what the new URL answers."""
    settings = load_settings()

    from memory_plane.core.base_url import BaseUrlRefused
    from memory_plane.models.pool import ModelPool
    from memory_plane.plane.endpoint_move import EndpointMove, Moved
    from memory_plane.store.database import open_pool

    async def moved() -> Moved:
        pool = await open_pool(settings, max_size=2)
        try:
            async with ModelPool() as models:
                return await EndpointMove(pool, settings, models).move(old, new)
        finally:
            pool.terminate()

    try:
        done = run(moved())
    except BaseUrlRefused as refusal:
        fail(f"The URL {refusal}.")
    if as_json:
        print_json({"models": done.models, "compared": done.compared, "rows": done.rows})
    else:
        out.print(
            f"{done.models} models moved ({done.compared} stored vectors compared). "
            "Set EMBED_BASE_URL to the new URL and restart API and worker."
        )
