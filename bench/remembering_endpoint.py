"""An embedding endpoint in front of another that remembers every vector: quality does not depend on how often a text
is embedded, and several systems embed the same texts.

    python -m bench.remembering_endpoint PORT UPSTREAM_URL FILE
"""

import asyncio
import hashlib
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import httpx
import uvicorn


class Remembering:
    """OpenAI style. One row a (model, text); what is not there is asked for in batches of BATCH."""

    BATCH = 16

    def __init__(self, upstream: str, file: Path) -> None:
        self._upstream = upstream
        self._http = httpx.AsyncClient(timeout=600)
        self._known = sqlite3.connect(file)
        self._known.execute("CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, numbers TEXT NOT NULL)")
        self._asking = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        answer = b"{}"
        if scope["path"].endswith("/embeddings") and body:
            answer = await self._embeddings(json.loads(body))
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _embeddings(self, asked: dict[str, Any]) -> bytes:
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        keys = [hashlib.sha256(f"{asked['model']}\0{text}".encode()).digest() for text in texts]
        found = {key: self._look_up(key) for key in keys}
        missing = list({key: text for key, text in zip(keys, texts, strict=True) if found[key] is None}.items())
        async with self._asking:
            for start in range(0, len(missing), self.BATCH):
                await self._ask(asked["model"], missing[start : start + self.BATCH])
        entries = ",".join(
            f'{{"object":"embedding","index":{index},"embedding":{found[key] or self._look_up(key)}}}'
            for index, key in enumerate(keys)
        )
        usage = '"usage":{"prompt_tokens":0,"total_tokens":0}'
        return f'{{"object":"list","model":{json.dumps(asked["model"])},"data":[{entries}],{usage}}}'.encode()

    def _look_up(self, key: bytes) -> str | None:
        row = self._known.execute("SELECT numbers FROM vector WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    async def _ask(self, model: str, items: list[tuple[bytes, str]]) -> None:
        body = {"model": model, "input": [text for _, text in items]}
        answer = (await self._http.post(f"{self._upstream}/v1/embeddings", json=body)).raise_for_status().json()
        numbers = {entry["index"]: json.dumps(entry["embedding"]) for entry in answer["data"]}
        self._known.executemany(
            "INSERT OR REPLACE INTO vector VALUES (?, ?)",
            [(key, numbers[index]) for index, (key, _) in enumerate(items)],
        )
        self._known.commit()


if __name__ == "__main__":
    port, upstream, file = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    uvicorn.run(Remembering(upstream, file), host="127.0.0.1", port=port, log_level="warning", lifespan="off")
