"""Import and export: progress kept over interrupts, refusals told each time, nothing made twice."""

import json
from pathlib import Path
from uuid import uuid4

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
