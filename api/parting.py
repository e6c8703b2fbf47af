"""An answer that is given while its request's body is still arriving."""

import asyncio
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

IDLE_SECONDS = 1.0
TOTAL_SECONDS = 10.0
MOST_BYTES = 50_000_000
"""Bounds of what is thrown away: none of it is kept, and it costs little while it lasts."""


class Parting(Response):
    """Sent whole, and then the connection ends, but not at once.

    Closing on a client that is still sending resets its connection, and the reset overtakes the answer: it would see
    a broken connection and try again. So what still comes is read and thrown away for a while.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            await _throw_away(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _throw_away(receive: Receive) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + TOTAL_SECONDS
    left = MOST_BYTES
    async with asyncio.timeout(IDLE_SECONDS) as patience:
        while left > 0:
            message = await receive()
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return
            left -= len(message.get("body", b""))
            patience.reschedule(min(end, loop.time() + IDLE_SECONDS))
