"""docs/errors.md has every code that the code has, and no other."""

import re
from collections import Counter

from api import problems
from memory_plane.contracts.errors import ErrorKind
from memory_plane.dev.checkout import checkout
from tests.docs.error_codes import error_codes

TEXT = (checkout() / "docs" / "errors.md").read_text(encoding="utf-8")
ROUTER = {"no_such_route", "method_not_allowed"}
"""Of paths and methods, in a table of `problems.of_status`."""


def test_every_code_is_documented_once_and_no_other_is() -> None:
    _, _, rest = TEXT.partition("## Requests")
    documented = Counter(re.findall(r"^\| `(\w+)` \|", rest, re.MULTILINE))
    codes = error_codes()
    undocumented = {code: place for code, place in codes.items() if code not in documented}
    assert not undocumented, f"write a row in docs/errors.md for each of {undocumented}"
    assert set(documented) - set(codes) - ROUTER == set()
    assert [code for code, times in documented.items() if times > 1] == []


def test_every_kind_stands_with_its_status() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", TEXT, re.MULTILINE))
    assert rows == {kind.value: str(problems.STATUS[kind]) for kind in ErrorKind}


def test_what_the_router_says_is_among_them() -> None:
    told = b"".join(bytes(problems.of_status(status).body) for status in (404, 405)).decode()
    assert all(f'"code": "{code}"' in told for code in ROUTER)
