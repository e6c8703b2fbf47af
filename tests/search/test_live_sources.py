"""Live sources merged with the memory."""

from datetime import UTC, datetime, timedelta

from memory_plane.core.live_sources import LOCAL, Ranked, merged

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def rounded(result: list[tuple[str, str, float]]) -> list[tuple[str, str, float]]:
    return [(channel, key, round(score, 6)) for channel, key, score in result]


def hit(key: str, ref: str, score: float, days: float | None = 0.0, adapter: str = "mail") -> Ranked:
    return Ranked(key, adapter, ref, score, None if days is None else NOW - timedelta(days=days))


def test_scores_are_relative_to_each_channels_best() -> None:
    result = merged(
        [(LOCAL, [hit("a", "1", 0.5, None)]), ("mail", [hit("b", "2", 90.0, None), hit("c", "3", 45.0, None)])], NOW
    )
    assert rounded(result) == [
        (LOCAL, "a", 0.85),
        ("mail", "b", 0.85),
        ("mail", "c", 0.425),
    ]


def test_recency_counts_a_little_and_halves_in_thirty_days() -> None:
    result = merged([("mail", [hit("new", "1", 1.0, 0.0), hit("old", "2", 1.0, 30.0)])], NOW)
    assert rounded(result) == [("mail", "new", 1.0), ("mail", "old", 0.925)]


def test_the_memorys_own_copy_is_kept_even_where_it_scores_less() -> None:
    result = merged([("mail", [hit("live", "1", 1.0)]), (LOCAL, [hit("top", "9", 1.0), hit("own", "1", 0.1)])], NOW)
    assert [(channel, key) for channel, key, _ in result] == [(LOCAL, "top"), (LOCAL, "own")]


def test_of_two_live_copies_the_better_is_kept() -> None:
    result = merged([("a", [hit("x", "1", 1.0)]), ("b", [hit("y", "2", 1.0), hit("z", "1", 0.5)])], NOW)
    assert [key for _, key, _ in result] == ["x", "y"]


def test_empty_and_zero_channels() -> None:
    assert merged([(LOCAL, []), ("mail", [])], NOW) == []
    assert rounded(merged([("mail", [hit("a", "1", 0.0, None)])], NOW)) == [("mail", "a", 0.85)]
