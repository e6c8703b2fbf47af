"""Which way the vectors of one generation are searched: every one of them, or along the graph of the shared table.

The graph knows no tenants: it yields neighbours of everyone, and the smaller a generation's share of the table, the
more of them are another's. An exact scan reads the generation and nothing else. So each is cheap where the other is
dear, and the estimate needs only two counts.
"""

from enum import StrEnum

EXACT_AT_MOST = 1_500
"""Vectors below which nothing beats reading them all."""
GRAPH_ROWS = 12.0
"""What one row out of the graph costs, in rows of an exact scan. Measured, see docs/decisions (retrieval)."""
SEARCH_WIDTH = 120
"""`hnsw.ef_search`: how many neighbours the graph search keeps in view, for recall >= 0.98 against exact."""
GRAPH_STARTS = 20_000
"""Rows a graph scan visits at most before it runs dry (pgvector's own bound)."""


class VectorScan(StrEnum):
    EXACT = "exact"
    GRAPH = "graph"


def choose(generation_rows: int, table_rows: int, wanted: int) -> VectorScan:
    """By estimated cost. `wanted` counts rows that are to come out."""
    if generation_rows <= EXACT_AT_MOST:
        return VectorScan.EXACT
    share = min(1.0, generation_rows / max(table_rows, generation_rows, 1))
    visited = max(SEARCH_WIDTH, wanted) / share
    if visited > GRAPH_STARTS or visited * GRAPH_ROWS > generation_rows:
        return VectorScan.EXACT
    return VectorScan.GRAPH
