"""What one caller may do and see, decided from its rules: built once a request, the authority over every document."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from memory_plane.contracts.enums import GrantEffect, Verb
from memory_plane.contracts.names import CAPABILITY_RESOURCE
from memory_plane.core.caller import Caller
from memory_plane.core.conditions import ConditionRegistry
from memory_plane.core.grants import GrantEvaluator, GrantRule, ProblemSink, matches
from memory_plane.core.text import is_storable

SEARCH = Verb.SEARCH.value
MAX_LIKE_PATTERNS = 64
"""Patterns a statement compares with each document; more are widened to their namespaces."""


@dataclass(frozen=True, slots=True)
class VisibilityScope:
    """A superset of what the caller sees, in terms a database can search: never fewer documents than the authority."""

    everything: bool
    principal_id: str
    exact_tags: tuple[str, ...] = ()
    like_patterns: tuple[str, ...] = ()


class Visibility:
    """The caller with its rules at one moment. `rules` None: no grant store is mounted, so nothing limits the verbs
    and only the creator sees a document."""

    def __init__(
        self,
        caller: Caller,
        rules: Sequence[GrantRule] | None,
        now: datetime,
        registry: ConditionRegistry | None = None,
        on_problem: ProblemSink | None = None,
    ) -> None:
        self.caller = caller
        self._own_tag = f"memory.owner:{caller.principal_id}"
        self._grants = None if rules is None else GrantEvaluator(caller, rules, now, registry, on_problem)

    def can(self, verb: Verb) -> bool:
        """Whether the caller may use this verb at all."""
        return self._grants is None or self.allows(CAPABILITY_RESOURCE, verb.value)

    def allows(self, resource: str, action: str) -> bool:
        if self._grants is None:
            return False
        effect = self._grants.effect(resource, action)
        if effect is None and resource == self._own_tag and action == SEARCH:
            return True
        return effect is GrantEffect.ALLOW

    def sees(self, creator: str, access_tags: Iterable[str]) -> bool:
        """Whether the caller sees a document of this creator under these tags (a claim also needs its sources)."""
        return creator == self.caller.principal_id or any(self.allows(tag, SEARCH) for tag in access_tags)

    @cached_property
    def scope(self) -> VisibilityScope:
        principal = self.caller.principal_id
        if self._grants is None:
            return VisibilityScope(everything=False, principal_id=principal)
        globs = set(self._grants.allowed_globs(SEARCH))
        if any(not glob.strip("*") for glob in globs):
            return VisibilityScope(everything=True, principal_id=principal)
        exact = self._grants.exact_resources(SEARCH)
        if self.allows(self._own_tag, SEARCH):
            exact.append(self._own_tag)
        bounded = _bounded(globs)
        if "*" in bounded:
            return VisibilityScope(everything=True, principal_id=principal)
        return VisibilityScope(
            everything=False,
            principal_id=principal,
            exact_tags=tuple(filter(is_storable, exact)),
            like_patterns=tuple(sorted(_like(glob) for glob in bounded if is_storable(glob))),
        )


def _bounded(globs: set[str]) -> set[str]:
    """At most MAX_LIKE_PATTERNS globs that cover all of these: first as they are, else their namespaces, else all."""
    if len(globs) <= MAX_LIKE_PATTERNS:
        return {glob for glob in globs if not any(other != glob and matches(other, glob) for other in globs)}
    namespaces = {_namespace(glob) for glob in globs}
    return namespaces if len(namespaces) <= MAX_LIKE_PATTERNS and "*" not in namespaces else {"*"}


def _namespace(glob: str) -> str:
    literal = glob[: glob.index("*")]
    return literal[: literal.index(":") + 1] + "*" if ":" in literal else "*"


def _like(glob: str) -> str:
    escaped = glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%")
