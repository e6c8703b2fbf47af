import pytest
from hypothesis import given

from memory_plane.core.graphemes import LOOK_BACK, boundary_after, boundary_before, is_boundary
from tests.core.strategies import any_text

ONE_CHARACTER = [
    "e\u0301",
    "\r\n",
    "👨\u200d👩\u200d👧\u200d👦",
    "👍\U0001f3fd",
    "🇩🇪",
    "☁\ufe0f",
    "1\ufe0f\u20e3",
    "葛\U000e0100",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "\u1112\u1161\u11ab",
    "\u1100\u1100\u1161",
    "क्षि",
    "ក្ក",
    "นี่",
    "นำ",
    "ｶﾞ",
    "\ud83d\ude00",
    " \u0301",
    "a\u200d",
]


@pytest.mark.parametrize("cluster", ONE_CHARACTER)
def test_nothing_within_one_character_is_a_boundary(cluster: str) -> None:
    text = f"x{cluster}y"
    found = [position for position in range(len(text) + 1) if is_boundary(text, position)]
    assert found == [0, 1, 1 + len(cluster), 2 + len(cluster)] or (cluster[0] in "\u0301" and found[0] == 0), found


@pytest.mark.parametrize("cluster", ONE_CHARACTER)
def test_neighbouring_characters_are_apart(cluster: str) -> None:
    text = cluster * 3
    found = [position for position in range(len(text) + 1) if is_boundary(text, position)]
    assert found == [len(cluster) * times for times in range(4)]


def test_flags_pair_up_from_the_floor() -> None:
    flags = "🇩🇪🇫🇷🇯🇵"
    assert [p for p in range(7) if is_boundary(flags, p)] == [0, 2, 4, 6]
    assert [p for p in range(1, 7) if is_boundary(flags, p, floor=1)] == [1, 3, 5, 6]


@given(any_text)
def test_a_boundary_is_found_on_either_side(text: str) -> None:
    for position in range(len(text) + 1):
        before, after = boundary_before(text, position), boundary_after(text, position)
        assert before <= position <= after
        assert before == position or is_boundary(text, before)
        assert after == position or is_boundary(text, after)


def test_a_run_of_marks_longer_than_the_look_back_is_cut_all_the_same() -> None:
    text = "a" + "\u0301" * 1000
    assert boundary_before(text, 500) == 500
    assert boundary_before(text, LOOK_BACK + 1) == LOOK_BACK + 1
    assert boundary_before(text, LOOK_BACK) == 0
    assert boundary_before("x" + text, LOOK_BACK // 2) == 1
