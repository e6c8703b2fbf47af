"""A keep-alive HTTP/1.1 client in a few lines: a library's own cost would be counted as the server's."""

import asyncio
import json
from types import TracebackType
from typing import Any, Self


class HttpClient:
    """One connection to one server; one request at a time."""

    def __init__(self, host: str, port: int, headers: dict[str, str] | None = None) -> None:
        self._address = host, port
        self.use(headers or {})

    def use(self, headers: dict[str, str]) -> None:
        """These headers from now on."""
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        head = f"POST {path} HTTP/1.1\r\nHost: {self._address[0]}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}{self._headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        status = int((await self._reader.readline()).split()[1])
        length = 0
        while (line := await self._reader.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return status, await self._reader.readexactly(length)

    async def post_json(self, path: str, body: object) -> Any:
        """The JSON of a 200; anything else ends the benchmark."""
        status, answer = await self.post(path, json.dumps(body).encode())
        assert status == 200, f"{path} answered {status}: {answer[:500]!r}"
        return json.loads(answer)
