"""The report of a run, in Markdown."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.chaos.caller import NO_ANSWER, Call
from tests.chaos.checker import RULES, Checker
from tests.chaos.faults import Window

MOST_VIOLATIONS = 40


@dataclass
class Outcome:
    """Everything that a run found. Seconds throughout."""

    seed: int
    seconds: float
    made: str
    """When and on what."""
    checker: Checker
    calls: Sequence[Call]
    windows: Sequence[Window]
    rest_seconds: float
    no_disk: str
    counts: dict[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    unexpected: Sequence[str] = ()
    """Lines of the logs."""
    health: Sequence[float] = ()
    """How long /healthz took while the API was there."""

    @property
    def held(self) -> bool:
        return not self.checker.violations


def markdown(outcome: Outcome) -> str:
    documents = list(outcome.checker.history)
    lines = [
        "# Chaos",
        "",
        f"{outcome.made}. Seed {outcome.seed}, {outcome.seconds / 60:.1f} minutes of load with faults; then everything "
        f"was mended and came to rest within {outcome.rest_seconds:.0f} s.",
        "",
        f"**{len(outcome.checker.violations)} violations.**"
        + ("" if outcome.held else f" {_by_rule(outcome.checker)}."),
        "",
        "## Load",
        "",
        f"{len(documents)} documents of {sum(len(each.writes) for each in documents)} writes "
        f"({sum(each.in_doubt for each in documents)} left in doubt on purpose, their answer never fetched). "
        + ", ".join(f"{number} {name}" for name, number in outcome.counts.items())
        + ".",
        "",
        *_calls(outcome.calls),
        "",
        "## Faults",
        "",
        f"{len(outcome.windows)} faults. Answered calls that overlap a fault's time, and the time from its end to the "
        "next add that was answered well.",
        "",
        *_faults(outcome),
        "",
    ]
    if outcome.no_disk:
        lines += [f"No full disk: {outcome.no_disk}.", ""]
    if outcome.health:
        lines += [
            f"`/healthz` while the API ran: {_times(outcome.health).replace(' | ', ', ')} ms (p50, p95, p99, longest).",
            "",
        ]
    lines += ["## What was checked", "", "| rule | violations |", "| --- | --- |"]
    found = Counter(each.rule for each in outcome.checker.violations)
    lines += [f"| {name}: {meaning} | {found[name]} |" for name, meaning in RULES.items()]
    lines += ["", ", ".join(f"{number} {name}" for name, number in outcome.checker.checked.items()) + ".", ""]
    for violation in outcome.checker.violations[:MOST_VIOLATIONS]:
        lines += [f"### {violation.rule}", "", violation.what, ""]
        if violation.about:
            lines += ["```", violation.about, "```", ""]
    if not outcome.held:
        lines += ["### What may explain it", "", "```"]
        lines += [f"{each.begun:.2f}–{each.mended:.2f}: {each.name}" for each in outcome.windows]
        lines += [*outcome.notes, *outcome.unexpected[:MOST_VIOLATIONS], "```"]
    return "\n".join(lines).rstrip() + "\n"


def _by_rule(checker: Checker) -> str:
    return ", ".join(f"{n} {rule}" for rule, n in Counter(each.rule for each in checker.violations).items())


def _calls(calls: Iterable[Call]) -> list[str]:
    by_verb: dict[str, list[Call]] = {}
    for call in calls:
        by_verb.setdefault(call.verb, []).append(call)
    lines = [
        "| call | sent | answered | 503, 429, 409 | no answer | p50 | p95 | p99 | longest, ms |",
        "|" + " --- |" * 9,
    ]
    for verb, found in sorted(by_verb.items()):
        well = [call.ended - call.begun for call in found if call.status == 200]
        refused = sum(call.status in (409, 429, 503) for call in found)
        silent = sum(call.status == NO_ANSWER for call in found)
        lines.append(f"| {verb} | {len(found)} | {len(well)} | {refused} | {silent} | {_times(well)} |")
    return lines


def _faults(outcome: Outcome) -> list[str]:
    by_name: dict[str, list[Window]] = {}
    for window in outcome.windows:
        by_name.setdefault(window.name, []).append(window)
    calls = sorted(outcome.calls, key=lambda call: call.begun)
    lines = [
        "| fault | times | calls | refused | no answer | p50 | p95 | p99 | longest, ms | back after, s |",
        "|" + " --- |" * 10,
    ]
    for name, windows in sorted(by_name.items()):
        during = [call for call in calls if any(_overlaps(call, window) for window in windows)]
        well = [call.ended - call.begun for call in during if call.status == 200]
        refused = sum(call.status in (409, 429, 503) for call in during)
        silent = sum(call.status == NO_ANSWER for call in during)
        back = [_back(calls, window) for window in windows]
        known = [each for each in back if each is not None]
        longest = f"{max(known):.1f}" if known else ""
        lines.append(f"| {name} | {len(windows)} | {len(during)} | {refused} | {silent} | {_times(well)} | {longest} |")
    return lines


def _overlaps(call: Call, window: Window) -> bool:
    return call.begun < window.mended and call.ended > window.begun


def _back(calls: Sequence[Call], window: Window) -> float | None:
    ended = [call.ended for call in calls if call.verb == "add" and call.status == 200 and call.ended >= window.mended]
    return min(ended) - window.mended if ended else None


def _times(seconds: Iterable[float]) -> str:
    """p50 | p95 | p99 | longest, in milliseconds."""
    ordered = sorted(seconds)
    if not ordered:
        return " |  |  | "
    picked = [ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.95, 0.99)]
    return " | ".join(f"{1000 * each:.0f}" for each in [*picked, ordered[-1]])
