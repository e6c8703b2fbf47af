"""How alike two rankings of documents are."""

from collections.abc import Sequence


def overlap(reference: Sequence[str], other: Sequence[str]) -> float:
    """The share of `reference`, which is not empty, that `other` has too: 0 to 1."""
    return len(set(reference) & set(other)) / len(set(reference))


def rank_correlation(reference: Sequence[str], other: Sequence[str]) -> float | None:
    """Spearman's, over what both have, -1 to 1; None where they share fewer than two."""
    wanted = set(other)
    common = [each for each in reference if each in wanted]
    if len(common) < 2:
        return None
    known = set(common)
    place = {each: rank for rank, each in enumerate(each for each in other if each in known)}
    squares = sum((rank - place[each]) ** 2 for rank, each in enumerate(common))
    count = len(common)
    return 1.0 - 6.0 * squares / (count * (count * count - 1))
