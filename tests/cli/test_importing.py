"""Import and export: progress kept over interrupts, refusals told each time, nothing made twice."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from rich.progress import Progress

from memory_plane.cli import importing
from memory_plane.contracts.errors import Unavailable
from memory_plane.contracts.wire import BatchItem, BatchResponse, ItemError
from tests.cli.conftest import Memory


def lines(count: int, mark: str) -> str:
    return "".join(
        json.dumps({"title": f"Line {n} {mark}", "text": f"Text {n} of {mark}."}) + "\n" for n in range(count)
    )


async def test_imported_once_however_often_it_is_run(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / f"{uuid4().hex}.jsonl"
    file.write_text(lines(7, file.stem))
    first = (await memory("import", str(file), "--batch", "3", "--json")).json
    assert first == {"captured": 7, "unchanged": 0, "refused": [], "embedded": 7, "notEmbedded": 0}
    resumed = (await memory("import", str(file), "--json")).json
    assert (resumed["captured"], resumed["unchanged"], resumed["embedded"]) == (0, 0, 7)
    anew = (await memory("import", str(file), "--restart", "--json")).json
    assert (anew["captured"], anew["unchanged"]) == (0, 7)


async def test_files_of_one_name_replace_nothing_of_each_other(memory: Memory, tmp_path: Path) -> None:
    mark = uuid4().hex
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "notes.jsonl").write_text(lines(2, f"{folder} {mark}"))
        await memory("import", str(tmp_path / folder / "notes.jsonl"), "--json")
    (tmp_path / "moved.jsonl").write_text(lines(2, f"one {mark}") + lines(2, f"two {mark}"))
    again = (await memory("import", str(tmp_path / "moved.jsonl"), "--json")).json
    assert (again["captured"], again["unchanged"]) == (0, 4), "every line is still the newest of its document"


async def test_bad_lines_are_refused_alone_and_told_again(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / f"{uuid4().hex}.jsonl"
    file.write_text(
        lines(1, file.stem) + "no json\n" + '{"title": " ", "text": "x"}\n' + lines(1, "end " + file.stem) + "[]\n"
    )
    for _ in range(2):
        ended = await memory("import", str(file), "--json")
        assert ended.code == 1
        assert [refusal["line"] for refusal in ended.json["refused"]] == [2, 3, 5]
    assert (await memory("import", str(file), "--restart", "--json")).json["unchanged"] == 2


async def test_an_export_is_what_import_reads(memory: Memory, tmp_path: Path) -> None:
    name = uuid4().hex
    await memory("add", f"Exported {name}", "As it was.", "--ref", name, "--attribute", "team=blue")
    file = tmp_path / "export.jsonl"
    assert (await memory("export", str(file))).code == 0
    exported = [json.loads(line) for line in file.read_text().splitlines()]
    mine = next(line for line in exported if line["external_ref"] == name)
    assert (mine["text"], mine["attributes"]) == ("As it was.", {"team": "blue"})
    assert (await memory("export", str(file))).code == 2, "an existing file is not written over"


class Halting:
    """A service whose database goes away in the middle of the first `outages` batches."""

    def __init__(self, outages: int) -> None:
        self.outages = outages

    def add_batch(self, items: list[dict[str, Any]]) -> BatchResponse:
        self.outages -= 1
        down = ItemError(code="database_unavailable", detail="The database cannot be reached.")
        return BatchResponse(
            items=[
                BatchItem(index=n, error=down)
                if n and self.outages >= 0
                else BatchItem(index=n, document_id=item["external_ref"], version_id="v", status="captured")
                for n, item in enumerate(items)
            ]
        )


@pytest.mark.parametrize(("outages", "lasts"), [(1, False), (1_000, True)])
def test_a_line_that_met_an_outage_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outages: int, lasts: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(importing, "RETRY_SECONDS", 0.0)
    file = tmp_path / "f.jsonl"
    file.write_text(lines(3, "m"))
    checkpoint, outcome = importing.Checkpoint(file, "import"), importing.Outcome()

    def send() -> list[str]:
        return importing._send(Halting(outages), file, "import", 10, checkpoint, Progress(disable=True), outcome)  # type: ignore[arg-type]

    if lasts:
        with pytest.raises(Unavailable, match="goes on after line 0"):
            send()
        assert importing.Checkpoint(file, "import").lines == 0
    else:
        assert len(send()) == 3
    assert outcome.refused == {}


async def test_an_interrupt_says_where_it_goes_on(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / f"{uuid4().hex}.jsonl"
    file.write_text(lines(2_000, file.stem))

    async def begun() -> bool:
        return any((tmp_path / "cache").rglob("*.json"))

    ended = await memory("import", str(file), "--batch", "1", interrupt_when=begun)
    assert ended.code == 130
    assert "The same command goes on after line " in ended.err
