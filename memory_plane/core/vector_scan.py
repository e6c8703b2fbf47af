"""Which way the vectors of one generation are searched: every one of them, or along the graph of the shared table.

The graph knows no tenants: it yields neighbours of everyone, and the smaller a generation's share of the table, the
more of them are another's. An exact scan reads the generation and nothing else. So each is cheap where the other is
dear, and the estimate needs only two counts.
"""

import math
from enum import StrEnum

EXACT_AT_MOST = 1_500
"""Vectors below which nothing beats reading them all."""
GRAPH_ROWS = 20.0
"""What one row out of the graph costs, in rows of an exact scan. Measured at 384 dimensions: an exact scan takes 1 µs a
row; the graph 4 to 6 ms for the 210 rows that bring 100 of a tenant with half of the table, 35 ms for the 2,100 that
bring 100 of one with a twentieth: 17 to 28 µs a row."""
SEARCH_WIDTH = 120
"""`hnsw.ef_search`: how many neighbours the graph search keeps in view. Measured on 100,000 of 211,000 vectors: recall
against exact is 1.000 at ten and 0.990 at fifty (bench.speed reports it for each layout)."""
MOST_WIDTH = 1_000
"""The greatest that pgvector takes."""
HEADROOM = 1.25
"""Neighbours kept in view, relative to those needed were each tenant's rows spread evenly over the table."""
GRAPH_STARTS = 20_000
"""Rows a graph scan visits at most before it runs dry (pgvector's own bound)."""


class VectorScan(StrEnum):
    EXACT = "exact"
    GRAPH = "graph"


def choose(generation_rows: int, table_rows: int, wanted: int) -> VectorScan:
    """By estimated cost. `wanted` counts rows that are to come out."""
    if generation_rows <= EXACT_AT_MOST:
        return VectorScan.EXACT
    visited = max(SEARCH_WIDTH, wanted / _share(generation_rows, table_rows))
    if visited > GRAPH_STARTS or visited * GRAPH_ROWS > generation_rows:
        return VectorScan.EXACT
    return VectorScan.GRAPH


def width(generation_rows: int, table_rows: int, wanted: int) -> int:
    """How many neighbours a graph scan keeps in view, so that those of the generation among them are enough: going on
    after too few costs more, and finds less, than looking further at once."""
    needed = math.ceil(HEADROOM * wanted / _share(generation_rows, table_rows))
    return min(MOST_WIDTH, max(SEARCH_WIDTH, needed))


def _share(generation_rows: int, table_rows: int) -> float:
    """Of the table that the generation is."""
    return min(1.0, max(1, generation_rows) / max(table_rows, generation_rows, 1))
