"""Fixtures on real parts: one PostgreSQL and one Temporal server for the whole session."""

pytest_plugins = [
    "tests.fixtures.database",
    "tests.fixtures.temporal",
    "tests.fixtures.stack",
    "tests.fixtures.invariants",
]
