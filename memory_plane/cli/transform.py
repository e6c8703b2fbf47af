"""Generations, for operators: `memory transform …`. What is asked is decided by the same rows as in the Temporal UI."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from memory_plane.cli.output import fail, out, print_json, usage
from memory_plane.cli.running import on_engine
from memory_plane.cli.transform_config import config
from memory_plane.contracts import names
from memory_plane.contracts.errors import Unavailable

if TYPE_CHECKING:
    from temporalio.client import Client

    from memory_plane.contracts.transforms import Cutting
    from memory_plane.plane.engine import Engine

T = TypeVar("T")

transform = typer.Typer(no_args_is_help=True, help="Other models and chunkings: build, review, promote, go back.")
transform.add_typer(config, name="config")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Tenant = Annotated[str, typer.Option(help="The tenant.")]
Generation = Annotated[str, typer.Option(help="The generation: trun_… of a run, kgen_… of a tenant's first.")]
POLL_SECONDS = 0.5
OUTAGE_PAUSE = 2.0


def on_both(work: "Callable[[Engine, Client], Awaitable[T]]") -> T:
    """Run `work` on the database, the endpoints and Temporal of the configuration."""
    from memory_plane.cli.transform_control import connected

    async def within(engine: "Engine") -> T:
        return await work(engine, await connected(engine.settings))

    return on_engine(within)


# --- runs -----------------------------------------------------------------------------------------------------------


@transform.command("run")
def start(
    tenant: Tenant,
    config_id: Annotated[str, typer.Option("--config", help="The recipe's id, tcfg_….")],
    adapter: Annotated[str | None, typer.Option(help="Only what came through it; cannot be promoted.")] = None,
    since: Annotated[str | None, typer.Option(help="Only what came from this time on (ISO, with offset).")] = None,
    until: Annotated[str | None, typer.Option(help="Only what came before this time (ISO, with offset).")] = None,
    auto_promote: Annotated[
        float | None, typer.Option(help="Promote unasked when the review's overlap@10 is at least this.", min=0, max=1)
    ] = None,
    soak_hours: Annotated[
        float | None, typer.Option(help="Delete what a promote took down after so many hours, unasked.", min=0.001)
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it has completed or failed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build a generation under a recipe, beside the one that serves. Interrupting this does not stop it."""
    from memory_plane.cli.transform_control import new_run
    from memory_plane.contracts.transforms import AutoPromote, Standing, TransformInput, TransformScope

    scope = TransformScope(adapter=adapter, since=_time("--since", since), until=_time("--until", until))
    floors = None if auto_promote is None else AutoPromote(min_overlap=auto_promote)

    async def work(engine: "Engine", client: "Client") -> Standing:
        given = TransformInput(
            tenant_id=tenant, config_id=config_id, scope=scope, auto_promote=floors, soak_hours=soak_hours
        )
        run_id = await new_run(client, given)
        _tell(f"{run_id}: workflow {names.transform_id(tenant, run_id)}")
        return await _watched(engine, tenant, run_id) if wait else await engine.transforms.standing(tenant, run_id)

    _ended(on_both(work), as_json)


@transform.command()
def resume(tenant: Tenant, generation: Generation, as_json: AsJson = False) -> None:
    """Let a paused run go on; one whose workflow was ended is started again, and goes on where it stopped."""
    from memory_plane.cli.transform_control import decide, start_run
    from memory_plane.contracts.enums import GenerationState
    from memory_plane.contracts.transforms import TransformInput

    async def work(engine: "Engine", client: "Client") -> str:
        standing = await engine.transforms.standing(tenant, generation)
        handle = await start_run(client, TransformInput(tenant_id=tenant, run_id=generation))
        if standing.state is GenerationState.BUILDING:
            return await decide(handle, "resume")
        return "waiting for a decision"

    _answered(on_both(work), generation, as_json)


def _decision(name: str, words: str) -> None:
    def command(tenant: Tenant, generation: Generation, as_json: AsJson = False) -> None:
        from memory_plane.cli.transform_control import decide, start_run
        from memory_plane.contracts.transforms import TransformInput

        async def work(engine: "Engine", client: "Client") -> str:
            await engine.transforms.standing(tenant, generation)
            handle = await start_run(client, TransformInput(tenant_id=tenant, run_id=generation))
            return await decide(handle, name)

        _answered(on_both(work), generation, as_json)

    transform.command("retry" if name == "retry_failures" else name, help=words)(command)


_decision("pause", "Stop a run that is being built, after the batch under way.")
_decision("cancel", "End a run that is being built, as failed; what is derived stays, for a retry.")
_decision("retry_failures", "Try again what would not derive, and go on where the run stopped.")
_decision("finalize", "Delete what this live generation took over from; there is no way back then.")


@transform.command()
def status(
    tenant: Tenant,
    generation: Annotated[str | None, typer.Option(help="This one only, with its failures and its review.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="With --generation: stay until it has been built.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a tenant's generations: which serves, which can be promoted, and how far those being built are."""
    from memory_plane.cli.transform_status import details, overview, show

    if generation is None:
        found = on_engine(lambda engine: overview(engine, tenant))
        if as_json:
            print_json({"generations": found})
        else:
            show(found)
        return
    wanted = generation

    async def one(engine: "Engine") -> dict[str, Any]:
        if watch:
            await _watched(engine, tenant, wanted)
        return await details(engine, tenant, wanted)

    print_json(on_engine(one)) if as_json else show([on_engine(one)])


# --- cutovers -------------------------------------------------------------------------------------------------------

PartialDense = Annotated[
    bool, typer.Option("--allow-partial-dense", help="Also when its model cannot be reached: words alone match then.")
]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it has ended.")]


@transform.command()
def promote(
    tenant: Tenant,
    generation: Generation,
    allow_partial_dense: PartialDense = False,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Make a generation the live one, caught up with all that came since. What served before is kept to go back to."""
    _cut_over("promote", tenant, generation, allow_partial_dense, False, wait, as_json)


@transform.command()
def demote(
    tenant: Tenant,
    generation: Annotated[str, typer.Option(help="The live generation, which is to step down.")],
    allow_partial_dense: PartialDense = False,
    allow_failed: Annotated[
        bool, typer.Option("--allow-failed", help="Also when some versions will not derive; they are listed.")
    ] = False,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Bring back what the live generation took over from, caught up with all that came since."""
    _cut_over("demote", tenant, generation, allow_partial_dense, allow_failed, wait, as_json)


def _cut_over(
    kind: "Cutting", tenant: str, generation: str, partial: bool, allow_failed: bool, wait: bool, as_json: bool
) -> None:
    from rich.progress import Progress, SpinnerColumn, TextColumn

    from memory_plane.cli.output import err
    from memory_plane.cli.transform_control import outcome, start_cutover
    from memory_plane.contracts.transforms import CutoverInput, CutoverResult, StepResult

    async def work(engine: "Engine", client: "Client") -> tuple[str, CutoverResult | None]:
        given = CutoverInput(
            tenant_id=tenant, generation=generation, allow_partial_dense=partial, allow_failed=allow_failed
        )
        handle = await start_cutover(client, kind, given)
        if not wait:
            return handle.id, None
        _tell(f"{kind}: workflow {handle.id}")
        columns = (SpinnerColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=err, transient=True) as progress:
            task = progress.add_task("checking", total=None)

            def show(step: StepResult) -> None:
                progress.update(task, description=f"catching up: {step.behind} behind, {step.pending} to embed")

            return handle.id, await outcome(handle, show)

    workflow_id, result = on_both(work)
    if result is None:
        print_json({"workflowId": workflow_id}) if as_json else out.print(f"started: {workflow_id}", markup=False)
        return
    if as_json:
        print_json(
            {
                "live": result.live,
                "down": result.down,
                "stragglers": result.stragglers,
                "stragglersPending": result.stragglers_pending,
                "failed": result.failed,
                "failedVersionIds": result.failed_version_ids,
                "verified": result.verified,
                "problem": result.problem,
                "heldMilliseconds": result.held_milliseconds,
                "workflowId": workflow_id,
            }
        )
    else:
        out.print(
            f"{result.live} is live, {result.down} is down; captures were held for {result.held_milliseconds:.0f} ms.",
            markup=False,
            highlight=False,
        )
        for version_id in result.failed_version_ids:
            out.print(f"would not derive: {version_id}", markup=False, highlight=False)
    if not result.verified:
        fail(f"The pointer has moved, but: {result.problem}")


@transform.command()
def discard(tenant: Tenant, generation: Generation, as_json: AsJson = False) -> None:
    """Delete a generation that is not live, and never will be."""
    _retire(tenant, generation, as_json)


@transform.command()
def retire(tenant: Tenant, generation: Generation, as_json: AsJson = False) -> None:
    """Delete a generation that served before: there is no way back to it then."""
    _retire(tenant, generation, as_json)


def _retire(tenant: str, generation: str, as_json: bool) -> None:
    from rich.progress import Progress, SpinnerColumn, TextColumn

    from memory_plane.cli.output import err
    from memory_plane.cli.transform_control import connected, look_again

    async def work(engine: "Engine") -> int:
        while True:
            try:
                await engine.retiring.retire(tenant, generation)
                break
            except Unavailable as busy:
                if busy.code != "searches_under_way":
                    raise
                await asyncio.sleep(busy.retry_after or 1.0)
        progress = Progress(SpinnerColumn(), TextColumn("{task.completed} chunks deleted"), console=err, transient=True)
        with progress:
            task = progress.add_task("deleting", total=None)
            deleted = await engine.retiring.delete(
                tenant, generation, on_progress=lambda count: progress.update(task, completed=count)
            )
        runs = [run.id for run in await engine.transforms.runs(tenant)]
        try:
            await look_again(await connected(engine.settings), tenant, *runs)
        except Unavailable:
            _tell("Temporal cannot be reached: workflows of runs will notice by themselves.")
        return deleted

    deleted = on_engine(work)
    if as_json:
        print_json({"generation": generation, "state": "retired", "chunksDeleted": deleted})
    else:
        out.print(f"{generation} is retired; {deleted} chunks were deleted.", markup=False, highlight=False)


# --- shared ---------------------------------------------------------------------------------------------------------


async def _watched(engine: "Engine", tenant: str, run_id: str) -> Any:
    """Follow the run's rows until it has completed or failed, whatever goes away meanwhile."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from memory_plane.cli.output import err
    from memory_plane.contracts.enums import RunStatus

    columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err) as progress:
        derived, embedded = progress.add_task("derived", total=None), progress.add_task("embedded", total=None)
        while True:
            try:
                standing = await engine.transforms.standing(tenant, run_id)
            except Unavailable:
                await asyncio.sleep(OUTAGE_PAUSE)
                continue
            total = max(standing.total, standing.versions)
            progress.update(derived, completed=standing.versions, total=total)
            progress.update(embedded, completed=standing.versions - standing.pending, total=total)
            if standing.status is not RunStatus.RUNNING:
                return standing
            await asyncio.sleep(POLL_SECONDS)


def _ended(standing: Any, as_json: bool) -> None:
    from memory_plane.contracts.enums import RunStatus

    if as_json:
        told = {"id": standing.run_id, "generation": standing.run_id, "status": standing.status.value}
        print_json(told | {"model": standing.model})
    else:
        out.print(
            f"{standing.run_id} {standing.status.value}: {standing.versions} versions, {standing.chunks} chunks, "
            f"{standing.failed} failed",
            markup=False,
            highlight=False,
        )
    if standing.status is RunStatus.FAILED:
        fail(standing.error or "The run has failed.")


def _answered(answer: str, generation: str, as_json: bool) -> None:
    if as_json:
        print_json({"generation": generation, "answer": answer})
    else:
        out.print(f"{generation}: {answer}", markup=False, highlight=False)


def _tell(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def _time(option: str, words: str | None) -> datetime | None:
    if words is None:
        return None
    try:
        moment = datetime.fromisoformat(words)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        usage(f"{option} takes a time with an offset, such as 2030-01-31T12:00:00+00:00.")
    return moment
