"""What a principal's rules say about (resource, action): globs, the most specific match wins, only `allow` allows."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any, overload

from memory_plane.contracts.enums import GrantEffect, GrantOrigin
from memory_plane.contracts.ids import IdKind
from memory_plane.core.caller import Caller
from memory_plane.core.conditions import ConditionContext, ConditionProblem, ConditionRegistry

EXACT_BONUS = 1000
_SEVERITY = {GrantEffect.ALLOW: 0, GrantEffect.ASK: 1, GrantEffect.DENY: 2}

ProblemSink = Callable[[str, str], None]
"""Told the id of a rule that cannot be judged, and why; the rule does not apply."""


@dataclass(slots=True)
class GrantRule:
    """One rule, held by a principal or by a role. `resource` and `action` are globs. Treat it as immutable."""

    id: str
    principal_id: str | None
    role_id: str | None
    resource: str
    action: str
    effect: GrantEffect
    origin: GrantOrigin
    conditions: Mapping[str, Any] | None = None
    expires_at: datetime | None = None


def share_rule_id(tenant_id: str, document_id: str, principal_id: str) -> str:
    """The id of the rule that shares a document with a peer: the same each time, so that sharing again is no second
    rule, and a store that cannot be searched can still be told which one to revoke."""
    name = "\x00".join((tenant_id, document_id, principal_id))
    return f"{IdKind.GRANT_RULE.value}_{sha256(name.encode(errors='surrogatepass')).hexdigest()[:32]}"


def matches(pattern: str, value: str) -> bool:
    """Whether the glob covers the whole value. `*` is any run of characters, also none; the rest is literal."""
    if "*" not in pattern:
        return pattern == value
    first, *inner, last = pattern.split("*")
    if len(value) < len(first) + len(last) or not value.startswith(first) or not value.endswith(last):
        return False
    position, end = len(first), len(value) - len(last)
    for piece in inner:
        found = value.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def specificity(pattern: str) -> int:
    """Literal characters, and a bonus that puts any exact pattern above every glob of usual length."""
    wildcards = pattern.count("*")
    return len(pattern) - wildcards + (0 if wildcards else EXACT_BONUS)


class IndexedRules(Sequence[GrantRule]):
    """Rules, indexed by resource. Nothing in here depends on who asks or when, so a store may keep it as it is."""

    def __init__(self, rules: Iterable[GrantRule]) -> None:
        self._rules = tuple(rules)
        self.exact: dict[str, list[GrantRule]] = {}
        self.by_prefix: defaultdict[str, list[GrantRule]] = defaultdict(list)
        self.by_suffix: defaultdict[str, list[GrantRule]] = defaultdict(list)
        for rule in self._rules:
            self._index(rule)
        self._prefix_lengths = sorted({len(prefix) for prefix in self.by_prefix})
        self._suffix_lengths = sorted({len(suffix) for suffix in self.by_suffix})
        self._alone: dict[str, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._rules)

    @overload
    def __getitem__(self, index: int) -> GrantRule: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[GrantRule]: ...
    def __getitem__(self, index: int | slice) -> GrantRule | Sequence[GrantRule]:
        return self._rules[index]

    def _index(self, rule: GrantRule) -> None:
        resource = rule.resource
        if "*" not in resource:
            self.exact.setdefault(resource, []).append(rule)
        elif resource[0] != "*":
            self.by_prefix[resource[: resource.index("*")]].append(rule)
        else:
            self.by_suffix[resource[resource.rindex("*") + 1 :]].append(rule)

    def covering(self, resource: str) -> Iterator[GrantRule]:
        """The rules whose resource pattern covers this one."""
        yield from self.exact.get(resource, ())
        for length in self._prefix_lengths:
            if length > len(resource):
                break
            for rule in self.by_prefix.get(resource[:length], ()):
                if matches(rule.resource, resource):
                    yield rule
        for length in self._suffix_lengths:
            if length > len(resource):
                break
            for rule in self.by_suffix.get(resource[len(resource) - length :], ()):
                if matches(rule.resource, resource):
                    yield rule

    def allowed_alone(self, action: str) -> tuple[str, ...]:
        """Resources without a wildcard that one rule alone names, and allows if it applies at all; in order."""
        if action not in self._alone:
            self._alone[action] = tuple(
                sorted(
                    resource
                    for resource, [first, *others] in self.exact.items()
                    if not others and first.effect is GrantEffect.ALLOW and matches(first.action, action)
                )
            )
        return self._alone[action]

    @cached_property
    def contested(self) -> tuple[str, ...]:
        """Resources without a wildcard that several rules name."""
        return tuple(resource for resource, rules in self.exact.items() if len(rules) > 1)

    def globs(self) -> Iterator[GrantRule]:
        for index in (self.by_prefix, self.by_suffix):
            for rules in index.values():
                yield from rules


class GrantEvaluator:
    """The rules of one principal at one moment. Thousands of them cost a look-up a question."""

    def __init__(
        self,
        caller: Caller,
        rules: Sequence[GrantRule],
        now: datetime,
        registry: ConditionRegistry | None,
        on_problem: ProblemSink | None = None,
    ) -> None:
        self._rules = rules if isinstance(rules, IndexedRules) else IndexedRules(rules)
        self._now = now
        self._context = ConditionContext(tenant_id=caller.tenant_id, principal_id=caller.principal_id, now=now)
        self._registry = registry
        self._on_problem = on_problem
        self._effects: dict[tuple[str, str], GrantEffect | None] = {}
        self._conditions: dict[int, bool] = {}

    def effect(self, resource: str, action: str) -> GrantEffect | None:
        """The effect of the most specific rule that applies, `deny` over `ask` over `allow`; None where none does."""
        question = (resource, action)
        if question not in self._effects:
            self._effects[question] = self._resolve(resource, action)
        return self._effects[question]

    def _resolve(self, resource: str, action: str) -> GrantEffect | None:
        best: GrantEffect | None = None
        best_rank = (-1, -1)
        for rule in self._rules.covering(resource):
            if not matches(rule.action, action):
                continue
            rank = (specificity(rule.resource) + specificity(rule.action), _SEVERITY[rule.effect])
            if rank > best_rank and self._applies(rule):
                best, best_rank = rule.effect, rank
        return best

    def exact_resources(self, action: str) -> list[str]:
        """Resources named without a wildcard: all that resolve to `allow`, and perhaps some that do not, for where one
        rule alone allows it is not asked whether it applies. In order."""
        contested = [each for each in self._rules.contested if self.effect(each, action) is GrantEffect.ALLOW]
        return sorted([*self._rules.allowed_alone(action), *contested])

    def allowed_globs(self, action: str) -> Iterator[str]:
        """Resource globs of the `allow` rules that apply; what denies cut out of them is not taken away."""
        for rule in self._rules.globs():
            if rule.effect is GrantEffect.ALLOW and matches(rule.action, action) and self._applies(rule):
                yield rule.resource

    def _applies(self, rule: GrantRule) -> bool:
        if rule.expires_at is not None and rule.expires_at <= self._now:
            return False
        if not rule.conditions:
            return True
        known = self._conditions.get(id(rule))
        if known is None:
            known = self._conditions[id(rule)] = self._judge(rule, rule.conditions)
        return known

    def _judge(self, rule: GrantRule, conditions: Mapping[str, Any]) -> bool:
        if self._registry is None:
            return False
        try:
            return self._registry.holds(conditions, self._context)
        except ConditionProblem as problem:
            if self._on_problem is not None:
                self._on_problem(rule.id, str(problem))
            return False
