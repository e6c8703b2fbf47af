"""Dying at a chosen statement: what a kill -9 leaves behind is what was committed before it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest


class Killed(BaseException):
    """The process is gone. No handler of the code under test catches it."""


@contextmanager
def killed_after(statement: int) -> Iterator[None]:
    """Dies once the database has run the statement of this number, BEGIN and COMMIT counted. For all that is kept,
    that is also dying before the next one."""
    count = [0]

    def dying(run: Any, counted: Any) -> Any:
        async def instead(self: Any, query: str, *args: Any, **kwargs: Any) -> Any:
            if not counted(args):
                return await run(self, query, *args, **kwargs)
            number, count[0] = count[0], count[0] + 1
            result = await run(self, query, *args, **kwargs)
            if number == statement:
                raise Killed
            return result

        return instead

    connection = asyncpg.Connection
    with pytest.MonkeyPatch.context() as patch:
        # fetch, fetchrow, fetchval and execute with parameters go through _execute; BEGIN and COMMIT through execute.
        patch.setattr(connection, "_execute", dying(connection._execute, lambda args: True))  # type: ignore[attr-defined]
        patch.setattr(connection, "_executemany", dying(connection._executemany, lambda args: True))  # type: ignore[attr-defined]
        patch.setattr(connection, "execute", dying(connection.execute, lambda args: not args))
        yield
