"""Two lists of scores that mean different things become one.

`convex` adds normalized scores, `adaptive` weighs them for each query by what the channel's list tells apart, `rrf`
adds reciprocal ranks. The measured choice, and why a list is always normalized over the same depth, are in
docs/decisions (retrieval).
"""

from collections.abc import Mapping

from memory_plane.contracts.recipe import FusionRecipe

LEXICAL_DEPTH = 50
DENSE_DEPTH = 100
"""Documents over which a channel's scores are normalized: min-max depends on the depth, so it is fixed. Similarities
fall off more slowly than sums of rare terms."""
COMPANY = 20
"""Place of the hit that the best one by words is held against, see `decided`."""


def normalized(scores: Mapping[str, float], *, depth: int, floor: float | None = None) -> dict[str, float]:
    """`scores` on [0, 1]: the best is 1, the one at `depth` (and all below it) 0.

    A shorter list ends at `floor`, what any document that is not on it would have scored; without a floor, at its
    worst. All equal → all 1.
    """
    if not scores:
        return {}
    ranked = sorted(scores.values(), reverse=True)
    best = ranked[0]
    worst = ranked[min(depth, len(ranked)) - 1]
    if floor is not None and len(ranked) < depth:
        worst = min(floor, worst)
    span = best - worst
    if span <= 0.0:
        return dict.fromkeys(scores, 1.0)
    return {key: min(1.0, max(0.0, (score - worst) / span)) for key, score in scores.items()}


def decided(scores: Mapping[str, float], *, place: int, perfect: float | None = None) -> float:
    """How much a list tells its best hit from the crowd, in [0, 1].

    A list whose best is hardly better than the one at `place` says little, and normalizing would blow that up. With
    `perfect`, the score of a perfect match, it is the part of the way from the crowd to it, and a list that ends before
    `place` ends at its worst. Without one it is the part of the best's own score, and what is not on a shorter list has
    none.
    """
    ranked = sorted(scores.values(), reverse=True)
    if not ranked:
        return 0.0
    if perfect is None:
        crowd = ranked[place - 1] if len(ranked) >= place else 0.0
        way = ranked[0]
    else:
        crowd = ranked[min(place, len(ranked)) - 1]
        way = perfect - crowd
    return min(1.0, max(0.0, (ranked[0] - crowd) / way)) if way > 0.0 else 0.0


def ranks(scores: Mapping[str, float]) -> dict[str, int]:
    """1 for the best; equal scores share the better rank, so that the order of rows decides nothing."""
    place: dict[str, int] = {}
    previous: float | None = None
    rank = 0
    for position, (key, score) in enumerate(sorted(scores.items(), key=lambda item: -item[1]), start=1):
        if score != previous:
            rank, previous = position, score
        place[key] = rank
    return place


def fuse(
    recipe: FusionRecipe, lexical: Mapping[str, float] | None, dense: Mapping[str, float] | None
) -> dict[str, float]:
    """One score for every key of either channel; None is a channel that did not run.

    `lexical` holds sums of term weights (0 where no term matched), `dense` similarities.
    """
    if recipe.method == "rrf":
        fused: dict[str, float] = {}
        for channel in (lexical, dense):
            for key, rank in ranks(channel or {}).items():
                fused[key] = fused.get(key, 0.0) + 1.0 / (recipe.k + rank)
        return fused
    weight = _lexical_weight(recipe, lexical, dense)
    left = normalized(lexical or {}, depth=LEXICAL_DEPTH, floor=0.0)
    right = normalized(dense or {}, depth=DENSE_DEPTH)
    return {key: weight * left.get(key, 0.0) + (1.0 - weight) * right.get(key, 0.0) for key in {**left, **right}}


def _lexical_weight(
    recipe: FusionRecipe, lexical: Mapping[str, float] | None, dense: Mapping[str, float] | None
) -> float:
    """Alone a channel has the whole weight, so that a score means the same with the other one down."""
    if dense is None:
        return 1.0
    if lexical is None:
        return 0.0
    if recipe.method == "convex":
        return recipe.lexical_weight
    words = recipe.lexical_weight * decided(lexical, place=COMPANY)
    meaning = (1.0 - recipe.lexical_weight) * decided(dense, place=DENSE_DEPTH, perfect=1.0)
    return words / (words + meaning) if words + meaning > 0.0 else recipe.lexical_weight
