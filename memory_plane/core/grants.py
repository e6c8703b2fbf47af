"""What a principal's rules say about (resource, action): globs, the most specific match wins, only `allow` allows."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

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


class GrantEvaluator:
    """The rules of one principal at one moment, indexed so that thousands of them cost one look-up a question."""

    def __init__(
        self,
        caller: Caller,
        rules: Sequence[GrantRule],
        now: datetime,
        registry: ConditionRegistry | None,
        on_problem: ProblemSink | None = None,
    ) -> None:
        self._context = ConditionContext(tenant_id=caller.tenant_id, principal_id=caller.principal_id, now=now)
        self._registry = registry
        self._on_problem = on_problem
        self._effects: dict[tuple[str, str], GrantEffect | None] = {}
        self._conditions: dict[int, bool] = {}
        self._exact: dict[str, list[GrantRule]] = {}
        self._by_prefix: defaultdict[str, list[GrantRule]] = defaultdict(list)
        self._by_suffix: defaultdict[str, list[GrantRule]] = defaultdict(list)
        for rule in rules:
            if rule.expires_at is None or rule.expires_at > now:
                self._index(rule)
        self._prefix_lengths = sorted({len(prefix) for prefix in self._by_prefix})
        self._suffix_lengths = sorted({len(suffix) for suffix in self._by_suffix})

    def _index(self, rule: GrantRule) -> None:
        resource = rule.resource
        if "*" not in resource:
            self._exact.setdefault(resource, []).append(rule)
        elif resource[0] != "*":
            self._by_prefix[resource[: resource.index("*")]].append(rule)
        else:
            self._by_suffix[resource[resource.rindex("*") + 1 :]].append(rule)

    def effect(self, resource: str, action: str) -> GrantEffect | None:
        """The effect of the most specific rule that applies, `deny` over `ask` over `allow`; None where none does."""
        question = (resource, action)
        if question not in self._effects:
            self._effects[question] = self._resolve(resource, action)
        return self._effects[question]

    def _resolve(self, resource: str, action: str) -> GrantEffect | None:
        best: GrantEffect | None = None
        best_rank = (-1, -1)
        for rule in self._candidates(resource):
            if not matches(rule.action, action):
                continue
            rank = (specificity(rule.resource) + specificity(rule.action), _SEVERITY[rule.effect])
            if rank > best_rank and self._applies(rule):
                best, best_rank = rule.effect, rank
        return best

    def _candidates(self, resource: str) -> Iterator[GrantRule]:
        yield from self._exact.get(resource, ())
        for length in self._prefix_lengths:
            if length > len(resource):
                break
            for rule in self._by_prefix.get(resource[:length], ()):
                if matches(rule.resource, resource):
                    yield rule
        for length in self._suffix_lengths:
            if length > len(resource):
                break
            for rule in self._by_suffix.get(resource[len(resource) - length :], ()):
                if matches(rule.resource, resource):
                    yield rule

    def exact_resources(self, action: str) -> Iterator[str]:
        """Resources named without a wildcard that may resolve to `allow`; all that do are among them."""
        for resource, rules in self._exact.items():
            if len(rules) == 1:
                rule = rules[0]
                if rule.effect is GrantEffect.ALLOW and matches(rule.action, action) and self._applies(rule):
                    yield resource
            elif self.effect(resource, action) is GrantEffect.ALLOW:
                yield resource

    def allowed_globs(self, action: str) -> Iterator[str]:
        """Resource globs of the `allow` rules that apply; what denies cut out of them is not taken away."""
        for index in (self._by_prefix, self._by_suffix):
            for rules in index.values():
                for rule in rules:
                    if rule.effect is GrantEffect.ALLOW and matches(rule.action, action) and self._applies(rule):
                        yield rule.resource

    def _applies(self, rule: GrantRule) -> bool:
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
