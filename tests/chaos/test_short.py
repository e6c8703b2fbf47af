"""A short run in CI: half a minute of everything at once, with faults; `make chaos` is the long one."""

from pathlib import Path

import pytest

from tests.chaos.report import markdown
from tests.chaos.run import Plan, run


@pytest.mark.timeout(420)
async def test_inv_06_nothing_is_lost_doubled_leaked_or_resurrected_under_faults(tmp_path: Path) -> None:
    outcome = await run(Plan(seed=20261201, seconds=30, longest=3, calm=1.5, transforms=False), tmp_path)
    assert outcome.held, markdown(outcome)
    assert len(outcome.windows) >= 5, "hardly a fault was injected: the run proved nothing"
    assert len(outcome.checker.history.documents) > 100
