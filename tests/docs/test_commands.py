"""Every `memory …` command that a document shows has its words and its options."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from memory_plane.cli.main import app
from memory_plane.dev.checkout import checkout

ROOT = typer.main.get_command(app)
PAGES = [checkout() / "README.md", checkout() / "compose.yml", *(checkout() / "docs").rglob("*.md")]


def shown() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^```(?:sh|bash)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
        inline = [" ".join(each.split()) for each in re.findall(r"`(memory [a-z][^`]*)`", text)]
        for line in [*lines, *inline]:
            for part in re.split(r"&&|\|\||[|;]", re.sub(r"\s#.*", "", line)):
                found = re.search(r"(?:^|\s)(memory [a-z].*)", part)
                if found and "=" not in part[: found.start()].split(" ")[-1]:
                    yield page.name, found[1].strip().rstrip("&").strip()


def complaint(line: str) -> str | None:
    command: Any = ROOT
    words = line.replace("'", "").replace('"', "").split()[1:]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    if getattr(command, "commands", None) and words and re.match(r"[a-z]", words[0]):
        return f"no command {words[0]}"
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
    unknown = [word for word in words if word.startswith("--") and word.split("=")[0] not in options]
    return f"no option {unknown}" if unknown else None


def test_every_command_that_is_shown_exists() -> None:
    lines = sorted(set(shown()))
    assert len(lines) > 40
    assert {line: told for line in lines if (told := complaint(line[1])) is not None} == {}


@pytest.mark.parametrize("line", ["memory fly", "memory token fly", "memory add x y --fast"])
def test_one_that_does_not_exist_is_seen(line: str) -> None:
    assert complaint(line) is not None
