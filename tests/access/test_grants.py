"""The evaluator against a brute-force reference, and the rules of matching and conditions one by one."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_plane.contracts.enums import GrantEffect, GrantOrigin, Verb
from memory_plane.core.caller import Caller
from memory_plane.core.conditions import (
    SHIPPED_CONDITIONS,
    ConditionContext,
    ConditionProblem,
    ConditionRegistry,
    time_window,
)
from memory_plane.core.grants import GrantEvaluator, GrantRule, matches, specificity
from memory_plane.core.visibility import Visibility

NOW = datetime(2030, 6, 1, 12, 0, tzinfo=UTC)
BOB = Caller("t", "bob")


def rule(
    resource: str,
    action: str = "search",
    effect: GrantEffect = GrantEffect.ALLOW,
    *,
    conditions: Mapping[str, Any] | None = None,
    expires_at: datetime | None = None,
) -> GrantRule:
    return GrantRule("mgrt_1", "bob", None, resource, action, effect, GrantOrigin.SYSTEM, conditions, expires_at)


def reference(rules: Sequence[GrantRule], resource: str, action: str) -> GrantEffect | None:
    """The spec read aloud, without any index."""

    def covers(pattern: str, value: str) -> bool:
        expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))
        return re.fullmatch(expression, value, re.DOTALL) is not None

    def score(pattern: str) -> int:
        return sum(character != "*" for character in pattern) + (1000 if "*" not in pattern else 0)

    applying = [
        candidate
        for candidate in rules
        if not (candidate.expires_at is not None and candidate.expires_at <= NOW)
        and covers(candidate.resource, resource)
        and covers(candidate.action, action)
        and set(candidate.conditions or {}) <= {"memoryShare"}
    ]
    if not applying:
        return None
    top = max(score(candidate.resource) + score(candidate.action) for candidate in applying)
    effects = {c.effect for c in applying if score(c.resource) + score(c.action) == top}
    return next(effect for effect in (GrantEffect.DENY, GrantEffect.ASK, GrantEffect.ALLOW) if effect in effects)


letters = st.text(alphabet="ab:*", min_size=1, max_size=6)
rules_strategy = st.lists(
    st.builds(
        rule,
        letters,
        st.sampled_from(["search", "*", "s*", "add", "*h", "se*rch"]),
        st.sampled_from(GrantEffect),
        conditions=st.sampled_from([None, None, {}, {"memoryShare": {}}, {"unheard": 1}]),
        expires_at=st.sampled_from([None, None, NOW, NOW - timedelta(days=1), NOW + timedelta(seconds=1)]),
    ),
    max_size=12,
)


@settings(max_examples=600, deadline=None)
@given(
    rules_strategy,
    st.lists(st.text(alphabet="ab:*", max_size=7), min_size=1, max_size=5),
    st.sampled_from(["search", "add", "x"]),
)
def test_inv_26_evaluator_equals_brute_force(rules: list[GrantRule], resources: list[str], action: str) -> None:
    evaluator = GrantEvaluator(BOB, rules, NOW, SHIPPED_CONDITIONS)
    for resource in resources:
        assert evaluator.effect(resource, action) == reference(rules, resource, action)


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet="ab*", max_size=7), st.text(alphabet="ab", max_size=9))
def test_glob_equals_regular_expression(pattern: str, value: str) -> None:
    expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))
    assert matches(pattern, value) == (re.fullmatch(expression, value) is not None)


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("ab*ba", "aba", False),
        ("ab*ba", "abba", True),
        ("memory.space:*", "memory.space:eng", True),
        ("memory.space:*", "xmemory.space:eng", False),
        ("memory.space:*", "memory.space:", True),
        ("*", "", True),
        ("*", "line\nline", True),
        ("", "", True),
        ("memory", "memory.space:eng", False),
        ("a.c", "abc", False),
    ],
)
def test_globs_are_anchored(pattern: str, value: str, expected: bool) -> None:
    assert matches(pattern, value) is expected


def test_many_wildcards_cost_no_backtracking() -> None:
    assert not matches("*a" * 200 + "b", "a" * 20_000)


def test_specificity() -> None:
    assert specificity("*") == 0
    assert specificity("memory.*") == 7
    assert specificity("memory") == 1006


def test_the_most_specific_wins_and_deny_beats_ask_beats_allow() -> None:
    def effect(*rules: GrantRule) -> GrantEffect | None:
        return GrantEvaluator(BOB, rules, NOW, None).effect("memory.space:eng", "search")

    assert effect(rule("memory.*", effect=GrantEffect.DENY), rule("memory.space:eng")) is GrantEffect.ALLOW
    assert effect(rule("memory.space:*"), rule("memory.space:*", effect=GrantEffect.ASK)) is GrantEffect.ASK
    assert effect(rule("*", "*", GrantEffect.ASK), rule("*", "*", GrantEffect.DENY)) is GrantEffect.DENY
    assert effect(rule("memory.space:ops")) is None


def test_ask_withholds() -> None:
    asking = Visibility(BOB, [rule("memory", "add", GrantEffect.ASK)], NOW)
    assert not asking.can(Verb.ADD)
    assert not asking.can(Verb.SEARCH)


def test_conditions_fail_closed() -> None:
    conditioned = [rule("memory", conditions={"memoryShare": {}})]
    assert GrantEvaluator(BOB, conditioned, NOW, None).effect("memory", "search") is None
    assert GrantEvaluator(BOB, conditioned, NOW, SHIPPED_CONDITIONS).effect("memory", "search") is GrantEffect.ALLOW

    told: list[tuple[str, str]] = []
    unknown = GrantEvaluator(
        BOB,
        [rule("memory", conditions={"memoryShare": {}, "moonPhase": "full"})],
        NOW,
        SHIPPED_CONDITIONS,
        lambda rule_id, problem: told.append((rule_id, problem)),
    )
    assert unknown.effect("memory", "search") is None
    assert told[0][0] == "mgrt_1"
    assert "moonPhase" in told[0][1]


def test_a_host_evaluator_that_raises_or_answers_loosely_does_not_hold() -> None:
    def raises(value: Any, context: ConditionContext) -> bool:
        raise RuntimeError("secret detail")

    registry = SHIPPED_CONDITIONS.with_evaluator("broken", raises).with_evaluator("loose", lambda value, context: value)
    assert not Visibility(BOB, [rule("memory", conditions={"broken": 1})], NOW, registry).can(Verb.SEARCH)
    assert not Visibility(BOB, [rule("memory", conditions={"loose": "yes"})], NOW, registry).can(Verb.SEARCH)
    with pytest.raises(ConditionProblem, match="RuntimeError") as caught:
        registry.holds({"broken": 1}, ConditionContext("t", "bob", NOW))
    assert "secret" not in str(caught.value)


def at(hour: int, minute: int = 0) -> ConditionContext:
    return ConditionContext("t", "bob", datetime(2030, 6, 1, hour, minute, tzinfo=UTC))


@pytest.mark.parametrize(
    ("window", "context", "holds"),
    [
        ({"after": "09:00", "before": "17:00"}, at(9), True),
        ({"after": "09:00", "before": "17:00"}, at(17), False),
        ({"after": "22:00", "before": "06:00"}, at(23), True),
        ({"after": "22:00", "before": "06:00"}, at(5, 59), True),
        ({"after": "22:00", "before": "06:00"}, at(6), False),
        ({"after": "22:00", "before": "06:00"}, at(12), False),
        ({"after": "09:00", "before": "17:00", "timezone": "Asia/Tokyo"}, at(0), True),
        ({"after": "09:00", "before": "17:00", "timezone": "Asia/Tokyo"}, at(9), False),
        ({"after": "13:00:30", "before": "15:00", "timezone": "Europe/Berlin"}, at(11), False),
    ],
)
def test_time_window(window: dict[str, str], context: ConditionContext, holds: bool) -> None:
    assert time_window(window, context) is holds


@pytest.mark.parametrize(
    "window",
    [
        {"after": "09:00", "before": "09:00"},
        {"after": "09:00"},
        {"after": "nine", "before": "10:00"},
        {"after": 9, "before": "10:00"},
        {"after": "09:00+02:00", "before": "10:00"},
        {"after": "09:00", "before": "10:00", "timezone": "Moon/Tycho"},
        {"after": "09:00", "before": "10:00", "timezone": "../../etc/passwd"},
        {"after": "09:00", "before": "10:00", "timezone": None},
        {"after": "09:00", "before": "10:00", "until": "x"},
        "09:00-10:00",
    ],
)
def test_time_window_that_makes_no_sense_is_refused(window: Any) -> None:
    with pytest.raises(ConditionProblem):
        time_window(window, at(9, 30))
    assert not Visibility(BOB, [rule("memory", conditions={"time_window": window})], NOW, SHIPPED_CONDITIONS).can(
        Verb.SEARCH
    )


def test_expired_rules_are_dropped_at_the_moment_itself() -> None:
    assert not Visibility(BOB, [rule("memory", expires_at=NOW)], NOW).can(Verb.SEARCH)
    assert Visibility(BOB, [rule("memory", expires_at=NOW + timedelta(microseconds=1))], NOW).can(Verb.SEARCH)


def test_own_owner_tag_is_held_unless_a_rule_decides_otherwise() -> None:
    assert Visibility(BOB, [], NOW).sees("alice", ["memory.owner:bob"])
    assert not Visibility(BOB, [], NOW).sees("alice", ["memory.owner:alice"])
    assert not Visibility(BOB, [], NOW).allows("memory.owner:bob", "add")
    denied = Visibility(BOB, [rule("memory.owner:bob", effect=GrantEffect.DENY)], NOW)
    assert not denied.sees("alice", ["memory.owner:bob"])
    assert not denied.scope.exact_tags
    broadly_denied = Visibility(BOB, [rule("memory.*", "*", GrantEffect.DENY)], NOW)
    assert not broadly_denied.sees("alice", ["memory.owner:bob"])


def test_a_creator_sees_his_own_whatever_the_rules_say() -> None:
    denied = Visibility(BOB, [rule("*", "*", GrantEffect.DENY)], NOW)
    assert denied.sees("bob", ["memory.owner:bob"])


def test_without_a_grant_store_only_the_creator_sees() -> None:
    alone = Visibility(BOB, None, NOW)
    assert alone.can(Verb.PURGE)
    assert alone.sees("bob", [])
    assert not alone.sees("alice", ["memory.owner:bob", "memory.tenant:t"])
    assert alone.scope.exact_tags == () and not alone.scope.everything


def test_scope_names_exact_tags_and_globs() -> None:
    scope = Visibility(
        BOB,
        [
            rule("memory.space:eng"),
            rule("memory.space:ops"),
            rule("memory.space:ops", effect=GrantEffect.DENY),
            rule("memory.team_a:*"),
            rule("memory.team_a:x*"),
            rule("nul\x00tag"),
        ],
        NOW,
    ).scope
    assert set(scope.exact_tags) == {"memory.owner:bob", "memory.space:eng"}
    assert scope.like_patterns == ("memory.team\\_a:%",)
    assert not scope.everything


def test_very_many_globs_widen_to_their_namespaces() -> None:
    scope = Visibility(BOB, [rule(f"memory.space:{n}-*") for n in range(5000)], NOW).scope
    assert scope.like_patterns == ("memory.space:%",)
    mixed = Visibility(BOB, [rule(f"*-{n}") for n in range(5000)], NOW).scope
    assert mixed.everything


def test_registry_without_evaluators_refuses_every_key() -> None:
    with pytest.raises(ConditionProblem):
        ConditionRegistry({}).holds({"memoryShare": {}}, ConditionContext("t", "bob", NOW))
