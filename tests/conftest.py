"""Fixtures on real parts: one PostgreSQL and one Temporal server for the whole session."""

import signal

pytest_plugins = [
    "tests.fixtures.database",
    "tests.fixtures.temporal",
    "tests.fixtures.stack",
    "tests.fixtures.invariants",
]

# Started in the background of a script, a run ignores Ctrl-C, and so would the programs that its tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
