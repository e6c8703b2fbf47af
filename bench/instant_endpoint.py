"""An embedding endpoint that answers at once: what is measured beside it is everything but the model.

python -m bench.instant_endpoint PORT DIMS
"""

import asyncio
import json
import random
import sys

import uvloop

VECTORS = 2048


class Endpoint(asyncio.Protocol):
    """OpenAI style, keep-alive; the vectors are made, and written as JSON, before the first request."""

    def __init__(self, vectors: list[str]) -> None:
        self._vectors = vectors
        self._buffer = b""
        self._answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (request := self._next()) is not None:
            texts = json.loads(request or b"{}").get("input", [])
            entries = ",".join(
                f'{{"index":{number},"embedding":{self._vectors[(self._answered + number) % VECTORS]}}}'
                for number in range(len(texts))
            )
            self._answered += len(texts)
            body = f'{{"data":[{entries}]}}'.encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self._transport.write(head.encode() + body)  # type: ignore[attr-defined]

    def _next(self) -> bytes | None:
        """The body of the first whole request in the buffer."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        length = 0
        for line in self._buffer[:end].split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if len(self._buffer) < end + 4 + length:
            return None
        body, self._buffer = self._buffer[end + 4 : end + 4 + length], self._buffer[end + 4 + length :]
        return body


async def serve(port: int, dims: int) -> None:
    generator = random.Random(7)
    vectors = [json.dumps([round(generator.gauss(0, 1), 6) for _ in range(dims)]) for _ in range(VECTORS)]
    server = await asyncio.get_running_loop().create_server(lambda: Endpoint(vectors), "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
