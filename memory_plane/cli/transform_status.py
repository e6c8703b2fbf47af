"""A tenant's generations as `memory transform status` shows them."""

from collections.abc import Sequence
from typing import Any

from memory_plane.cli.output import out, print_table
from memory_plane.contracts.enums import GenerationState
from memory_plane.contracts.errors import NotFound
from memory_plane.plane.engine import Engine

NAMED_FAILURES = 5


async def overview(engine: Engine, tenant: str) -> list[dict[str, Any]]:
    """Every generation, the newest first."""
    return await engine.transforms.overview(tenant)


async def details(engine: Engine, tenant: str, generation: str) -> dict[str, Any]:
    """One of them, with what would not derive. Raises NotFound."""
    for each in await engine.transforms.overview(tenant):
        if each["generation"] == generation:
            failures = await engine.transforms.failures(tenant, generation)
            return each | {
                "failures": {
                    "count": failures.count,
                    "versionIds": failures.version_ids,
                    "firstError": failures.first_error,
                }
            }
    raise NotFound("The tenant has no generation of this id.", code="generation_not_found")


def show(generations: Sequence[dict[str, Any]]) -> None:
    print_table(
        ("generation", "state", "run", "model", "versions", "chunks", "to embed", "failed", "behind"),
        [
            (
                each["generation"],
                each["state"],
                each["status"],
                each["model"],
                _of(each["versions"], each["total"], each["state"]),
                each["chunks"],
                each["pending"],
                each["failed"],
                each["lag"],
            )
            for each in generations
        ],
        empty="Nothing was captured for this tenant yet.",
    )
    for each in generations:
        if each["error"]:
            out.print(f"{each['generation']}: {each['error']}", markup=False, highlight=False, soft_wrap=True)
        review = each["review"]
        if review and len(generations) == 1:
            out.print(
                f"review: overlap@10 {review['overlap']}, rank correlation {review['rank_correlation']} over "
                f"{review['queries']} queries",
                markup=False,
                highlight=False,
            )
        for version_id in each.get("failures", {}).get("versionIds", [])[:NAMED_FAILURES]:
            out.print(f"would not derive: {version_id}", markup=False, highlight=False)


def _of(versions: int, total: int | None, state: str) -> str:
    return f"{versions} of {total}" if state == GenerationState.BUILDING else str(versions)
