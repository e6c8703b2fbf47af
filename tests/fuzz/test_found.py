"""Inputs that fuzzing has left, and a few to begin with: each must hold for good."""

from pathlib import Path

import pytest

from tests.fuzz.properties import check

FOUND = sorted(path for path in (Path(__file__).parent / "found").iterdir() if path.suffix != ".md")


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_what_was_found_holds(path: Path) -> None:
    check(path.read_bytes())


def test_a_broken_promise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.properties.chunk", lambda text, caps: [])
    with pytest.raises(AssertionError):
        check(b"\x20\x02some words")
