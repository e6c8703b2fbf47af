"""Conditions on grant rules: each key has an evaluator and must hold; what cannot be judged does not hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any
from zoneinfo import ZoneInfo

TIME_WINDOW = "time_window"
MEMORY_SHARE = "memoryShare"


class ConditionProblem(Exception):
    """A condition that cannot be judged: a fault of configuration. The message names keys, never values."""


@dataclass(frozen=True, slots=True)
class ConditionContext:
    tenant_id: str
    principal_id: str
    now: datetime


ConditionEvaluator = Callable[[Any, ConditionContext], bool]


class ConditionRegistry:
    """Evaluators by condition key. A host adds its own with `SHIPPED_CONDITIONS.with_evaluator`."""

    def __init__(self, evaluators: Mapping[str, ConditionEvaluator]) -> None:
        self._evaluators = dict(evaluators)

    def with_evaluator(self, key: str, evaluator: ConditionEvaluator) -> "ConditionRegistry":
        return ConditionRegistry({**self._evaluators, key: evaluator})

    def holds(self, conditions: Mapping[str, Any], context: ConditionContext) -> bool:
        """Whether all hold. Raises ConditionProblem for an unknown key or a value that makes no sense."""
        if not isinstance(conditions, Mapping):
            raise ConditionProblem("conditions are not an object of keys")
        for key, value in conditions.items():
            evaluator = self._evaluators.get(key)
            if evaluator is None:
                raise ConditionProblem(f"no evaluator is registered for the condition {key!r}")
            try:
                held = evaluator(value, context)
            except ConditionProblem:
                raise
            except Exception as error:  # a host's evaluator: whatever it raises, the rule must not apply
                raise ConditionProblem(f"the evaluator of {key!r} failed with {type(error).__name__}") from error
            if held is not True:
                return False
        return True


def time_window(value: Any, context: ConditionContext) -> bool:
    """`{after, before, timezone}`: from `after` up to, not including, `before` on the clock of that zone (UTC where
    absent). A window may cross midnight; equal ends are refused, since they may mean all day or never."""
    if not isinstance(value, Mapping) or not {"after", "before"} <= value.keys() <= {"after", "before", "timezone"}:
        raise ConditionProblem("time_window needs after and before, may have timezone, and nothing else")
    after, before = _clock(value["after"]), _clock(value["before"])
    if after == before:
        raise ConditionProblem("time_window has equal ends; give two different times")
    local = context.now.astimezone(_zone(value.get("timezone", "UTC"))).time()
    if after < before:
        return after <= local < before
    return local >= after or local < before


def _clock(value: Any) -> time:
    try:
        parsed = time.fromisoformat(value)
    except (TypeError, ValueError):
        parsed = None
    if parsed is None or parsed.tzinfo is not None:
        raise ConditionProblem("time_window needs times such as 09:00 or 17:30:00, without an offset")
    return parsed


def _zone(value: Any) -> ZoneInfo:
    try:
        return ZoneInfo(value)
    except (TypeError, ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise ConditionProblem("time_window needs a known timezone such as Europe/Berlin") from None


def memory_share(value: Any, context: ConditionContext) -> bool:
    """Always holds: the value is the audit record of a share."""
    return True


SHIPPED_CONDITIONS = ConditionRegistry({TIME_WINDOW: time_window, MEMORY_SHARE: memory_share})
