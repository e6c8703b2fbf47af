"""What an operator reads in the Temporal UI: where a run or a cutover stands, and what may be done about it next."""

from memory_plane.contracts.enums import GenerationState
from memory_plane.contracts.transforms import CutoverInput, CutPlan, CutResult, Cutting, Review, Standing, StepResult

_PARTIAL = '`{"allow_partial_dense": true}`'


def run_details(standing: Standing, *, paused: bool, stage: str, note: str, workflow_id: str) -> str:
    """The whole page of a run."""
    parts = [
        f"**{_title(standing, paused, stage)}** · run `{standing.run_id}` of tenant `{standing.tenant_id}`",
        _table(standing),
        _model(standing),
        f"**Why it failed:** {standing.error}" if standing.error else "",
        _review(standing.review) if standing.review else "",
        f"**Last:** {note}" if note else "",
        _next(standing, paused),
        f"Updates go to this workflow, `{workflow_id}`: *Send an Update* in this UI, or `memory transform …`.",
    ]
    return "\n\n".join(part for part in parts if part)


def _title(standing: Standing, paused: bool, stage: str) -> str:
    if standing.state is GenerationState.BUILDING:
        return "paused" if paused else stage
    return stage if stage in ("promoting", "demoting", "retiring") else standing.state.value


def _table(standing: Standing) -> str:
    done = str(standing.versions)
    if standing.state is GenerationState.BUILDING and standing.total:
        # What comes while it is built is derived too: never more than all of it.
        share = min(100, 100 * standing.versions // standing.total)
        done = f"{standing.versions} of {standing.total} ({share} %)"
    return _rows(
        ("versions derived", done),
        ("chunks", standing.chunks),
        ("versions to embed", standing.pending),
        ("versions that would not derive", standing.failed),
        ("feed positions behind live", standing.lag),
    )


def _rows(*rows: tuple[str, object]) -> str:
    """A list: of a table the UI's narrow column cuts off what is wide, and sets no space between its cells."""
    return "\n".join(f"- **{value}** {name}" for name, value in rows)


def _model(standing: Standing) -> str:
    if standing.model is None:
        return "Model: none; searches of this generation match words alone."
    return (
        f"Model `{standing.model}` at `{standing.endpoint}`. An endpoint that is down is waited for: see the pending "
        "activity for what it said last."
    )


def _review(review: Review) -> str:
    overlap = "–" if review.overlap is None else f"{review.overlap:.2f}"
    correlation = "–" if review.rank_correlation is None else f"{review.rank_correlation:.2f}"
    counted = _rows(
        ("versions", review.versions),
        ("chunks", review.chunks),
        ("failures", review.failures),
        ("feed positions behind live", review.lag),
        ("dims", review.dims or "–"),
        ("overlap@10", overlap),
        ("rank correlation", correlation),
    )
    return (
        f"**Review** of {review.at:%Y-%m-%d %H:%M} UTC, against live, over {review.queries} titles of the tenant's own "
        f"documents:\n\n{counted}\n\n"
        "Look for yourself: search with `generation` set to this run (needs `memory:operate`)."
    )


def _next(standing: Standing, paused: bool) -> str:
    lines = {
        GenerationState.BUILDING: [
            "**resume** `{}` goes on" if paused else "**pause** `{}` stops after the batch under way",
            "**cancel** `{}` ends the run as failed; what is derived stays, and a later retry goes on from there",
        ],
        GenerationState.FAILED: [
            "**retry_failures** `{}` tries again what would not derive, and goes on where the run stopped",
            "**discard** `{}` deletes what was derived, and ends this workflow",
        ],
        GenerationState.STAGED: [
            f"**promote** `{{}}` makes it live, caught up with all that came since; {_PARTIAL} if its endpoint is gone",
            "**discard** `{}` deletes it, and ends this workflow",
        ],
        GenerationState.LIVE: [
            f"**demote** `{{}}` brings back `{standing.archived}`, caught up too; {_PARTIAL} if its endpoint is gone, "
            '`{"allow_failed": true}` if some versions will not derive',
            f"**finalize** `{{}}` deletes `{standing.archived}` (there is no way back then), and ends this workflow",
        ],
        GenerationState.ARCHIVED: [
            "**promote** `{}` makes it live again",
            "**discard** `{}` deletes it, and ends this workflow",
        ],
        GenerationState.RETIRED: [],
    }[standing.state]
    return "**What you may do next**\n\n" + "\n".join(f"- {line}" for line in lines) if lines else ""


def cutover_details(
    kind: Cutting, given: CutoverInput, plan: CutPlan | None, step: StepResult | None, cut: CutResult | None, now: str
) -> str:
    """The whole page of a cutover."""
    parts = [f"**{kind}** `{given.generation}` for tenant `{given.tenant_id}` · {now}"]
    if plan is not None:
        parts.append(
            f"`{plan.target}` takes over from `{plan.source}`, "
            + ("embedding what it lacks." if plan.embed else "with words alone: no vectors are made.")
        )
    if step is not None:
        parts.append(
            _rows(
                ("feed positions behind", step.behind),
                ("versions to embed", step.pending),
                ("versions being tried again", step.unsettled + step.retrying),
                ("versions that would not derive", step.total_failed),
            )
        )
    if cut is None:
        parts.append(
            "Nothing has changed yet, and adds go on. **Cancel** this workflow to leave everything as it is; started "
            "again it goes on where it stopped."
        )
    else:
        parts.append(
            f"The pointer has moved; captures were held for {cut.milliseconds:.0f} ms, and {cut.stragglers} versions "
            "were derived meanwhile. Cancelling changes nothing of that."
        )
    return "\n\n".join(parts)
