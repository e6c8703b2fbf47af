"""Maximal marginal relevance: reorders so that near-duplicates do not crowd the top; drops nothing."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


def diversified(
    ranked: Sequence[str], relevance: Mapping[str, float], vectors: Mapping[str, Vector], strength: float
) -> list[str]:
    """`ranked` (best first) reordered by λ·relevance − (1−λ)·greatest similarity to those picked, λ = `strength`.

    Items without a vector keep their places. 1 leaves the order alone; ties keep it.
    """
    if strength >= 1.0 or len(ranked) < 2:
        return list(ranked)
    movable = [key for key in ranked if key in vectors]
    if len(movable) < 2:
        return list(ranked)
    matrix = np.stack([vectors[key] for key in movable]).astype(np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.where(lengths > 0.0, lengths, 1.0)
    similarity = matrix @ matrix.T
    worth = np.array([relevance[key] for key in movable])
    closest = np.full(len(movable), -np.inf)
    left = np.ones(len(movable), dtype=bool)
    picked: list[str] = []
    for _ in movable:
        penalty = np.where(np.isfinite(closest), closest, 0.0)
        value = np.where(left, strength * worth - (1.0 - strength) * penalty, -np.inf)
        best = int(np.argmax(value))
        left[best] = False
        picked.append(movable[best])
        closest = np.maximum(closest, similarity[best])
    order = iter(picked)
    return [next(order) if key in vectors else key for key in ranked]
