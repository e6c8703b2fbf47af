"""Comparing recipes: what the configuration says against what serves."""

from memory_plane.contracts.recipe import Recipe


def differences(configured: Recipe, live: Recipe) -> list[str]:
    """The dotted names of knobs whose values differ, in order; empty when a capture today would derive the same."""
    return sorted(_differing("", configured.stored(), live.stored()))


def _differing(prefix: str, left: object, right: object) -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        return [
            name
            for key in left.keys() | right.keys()
            for name in _differing(f"{prefix}.{key}" if prefix else key, left.get(key), right.get(key))
        ]
    return [] if left == right else [prefix]
