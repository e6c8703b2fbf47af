"""The corpus of histories that every later version of the workflows must replay.

Tests of workflows end with `await record(handle, "ingest-poisoned")`. That does nothing, unless
MEMORY_RECORD_HISTORIES=1 is set: then a history that is not in the corpus yet is added. One that is there is never
written again: regenerating a history to make a test pass is throwing away what the test is for.
"""

import os
import re
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

HISTORIES = Path(__file__).parent / "histories"


async def record(handle: WorkflowHandle[Any, Any], name: str) -> None:
    """Add the workflow's history to the corpus under this name, when recording."""
    if os.environ.get("MEMORY_RECORD_HISTORIES") != "1":
        return
    file = HISTORIES / f"{name}.json"
    if not file.exists():
        file.write_text(_anonymous((await handle.fetch_history()).to_json()) + "\n")


def _anonymous(history: str) -> str:
    """Without who ran it and where: nothing of that is replayed."""
    without_traces = re.sub(r'"stackTrace": "(?:[^"\\]|\\.)*"', '"stackTrace": ""', history)
    # Process and host stand in identities and in the names of sticky queues.
    return re.sub(r'"\d+@[^"]*"', '"worker"', without_traces)
