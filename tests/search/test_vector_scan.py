"""Exact where small, along the graph where large."""

from hypothesis import given
from hypothesis import strategies as st

from memory_plane.core.vector_scan import EXACT_AT_MOST, MOST_WIDTH, SEARCH_WIDTH, VectorScan, choose, width


@given(st.integers(0, EXACT_AT_MOST), st.integers(0, 10**9), st.integers(1, 500))
def test_a_small_generation_is_read_whole(rows: int, table: int, wanted: int) -> None:
    assert choose(rows, table, wanted) is VectorScan.EXACT


def test_a_large_generation_that_is_most_of_its_table_goes_along_the_graph() -> None:
    assert choose(100_000, 100_000, 100) is VectorScan.GRAPH
    assert choose(100_000, 130_000, 100) is VectorScan.GRAPH


def test_a_small_share_of_a_huge_table_is_read_whole() -> None:
    assert choose(5_000, 10_000_000, 100) is VectorScan.EXACT


@given(st.integers(0, 10**7), st.integers(0, 10**9), st.integers(1, 500))
def test_more_of_others_never_turns_an_exact_scan_into_a_graph(rows: int, table: int, wanted: int) -> None:
    if choose(rows, table, wanted) is VectorScan.EXACT:
        assert choose(rows, table + 1_000_000, wanted) is VectorScan.EXACT


def test_statistics_that_say_less_than_the_generation_holds_do_no_harm() -> None:
    assert choose(100_000, 0, 100) is VectorScan.GRAPH


@given(st.integers(0, 10**7), st.integers(0, 10**9), st.integers(1, 500))
def test_the_graph_looks_as_far_as_the_others_in_the_table_demand(rows: int, table: int, wanted: int) -> None:
    seen = width(rows, table, wanted)
    assert SEARCH_WIDTH <= seen <= MOST_WIDTH
    assert seen <= width(rows, table + 1_000_000, wanted)
    if choose(rows, table, wanted) is VectorScan.GRAPH and seen < MOST_WIDTH:
        assert seen * rows / max(table, rows) >= wanted
