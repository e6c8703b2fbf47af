"""The order of commands and the registered names, compared with what is committed."""

import difflib
import json
from pathlib import Path

from tests.replay.fingerprints import FINGERPRINTS, REGISTERED, fingerprints, registered

HOW = """
If runs of the old code may still be under way, gate the change (workflow.patched) or rely on Worker Versioning, and
record a history of the new way (scripts/record_histories.py). Then: python -m tests.replay.fingerprints"""


def test_inv_31_the_order_of_commands_is_the_committed_one() -> None:
    committed, current = FINGERPRINTS.read_text(encoding="utf-8"), fingerprints()
    written = json.dumps(current, indent=2, ensure_ascii=False) + "\n"
    change = "\n".join(difflib.unified_diff(committed.splitlines(), written.splitlines(), "committed", "code", n=1))
    assert json.loads(committed) == current, f"Commands of a workflow have changed:\n{change}\n{HOW}"


def test_inv_31_no_released_name_goes_away() -> None:
    committed, current = set(json.loads(REGISTERED.read_text(encoding="utf-8"))), set(registered())
    gone = sorted(committed - current)
    assert not gone, f"Running workflows, schedules and hosts say these names, and no worker answers any more: {gone}"
    new = sorted(current - committed)
    assert not new, (
        f"New names, which are kept for good from now on: {new}\nCommit: python -m tests.replay.fingerprints"
    )


def test_what_commands_is_seen_and_what_does_not_is_free_to_change(tmp_path: Path) -> None:
    plain = """
class W:
    async def run(self, given):
        note = f"{given}"
        await workflow.execute_activity_method(A.first, given, start_to_close_timeout=timedelta(seconds=1))
        return await self._second(given)

    async def _second(self, given):
        await asyncio.sleep(1)
"""
    (tmp_path / "w.py").write_text(plain)
    before = fingerprints(tmp_path)
    assert before == {
        "w.W.run": ["execute_activity_method(A.first)", "→ _second"],
        "w.W._second": ["sleep"],
    }
    (tmp_path / "w.py").write_text(plain.replace("seconds=1", "seconds=9").replace('f"{given}"', '"other"'))
    assert fingerprints(tmp_path) == before
    (tmp_path / "w.py").write_text(plain.replace("A.first", "A.other"))
    assert fingerprints(tmp_path) != before


def test_how_many_run_at_once_is_part_of_it() -> None:
    steps = json.loads(FINGERPRINTS.read_text(encoding="utf-8"))["process.run_processors"]
    assert "Semaphore(policies.PROCESSORS_AT_ONCE = 8)" in steps
