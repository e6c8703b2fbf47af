"""A peer behind one small protocol: JSON lines in, JSON lines out. Runs in a virtual environment of its own.

    python bench/peers/peer.py mem0|langgraph|bm25 DSN ENDPOINT MODEL DIMS

{"load": collection, "documents": [[key, text], …]} → {"loaded": n}
{"search": collection, "query": text, "limit": n} → {"keys": […], "seconds": s}
{"race": collection, "queries": […], "limit": n, "callers": n} → {"seconds": [s, …], "total": s}

Each is used as its own documentation has it, with the defaults that it ships, on the same PostgreSQL and the same
endpoint as the product.
"""

import json
import os
import sys
import threading
import time
import urllib.request
from typing import Any, Protocol

os.environ["MEM0_TELEMETRY"] = "False"


class Peer(Protocol):
    def load(self, collection: str, documents: list[list[str]]) -> None: ...

    def search(self, collection: str, query: str, limit: int) -> list[str]: ...


class Mem0:
    """`Memory` with pgvector and `infer=False`: what it is given is what it keeps."""

    def __init__(self, dsn: str, endpoint: str, model: str, dims: int) -> None:
        from mem0 import Memory

        self._memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "pgvector",
                    "config": {
                        "connection_string": dsn,
                        "collection_name": "mem0",
                        "embedding_model_dims": dims,
                        "maxconn": 20,
                    },
                },
                "embedder": {
                    "provider": "openai",
                    "config": {"model": model, "openai_base_url": f"{endpoint}/v1", "api_key": "none"},
                },
                "llm": {"provider": "openai", "config": {"api_key": "none", "openai_base_url": f"{endpoint}/v1"}},
            }
        )

    def load(self, collection: str, documents: list[list[str]]) -> None:
        for key, text in documents:
            message = [{"role": "user", "content": text}]
            self._memory.add(message, user_id=collection, metadata={"key": key}, infer=False)

    def search(self, collection: str, query: str, limit: int) -> list[str]:
        found = self._memory.search(query, filters={"user_id": collection}, top_k=limit)
        return [each["metadata"]["key"] for each in found["results"]]


class LangGraph:
    """`PostgresStore` with its vector index over the field `text`."""

    BATCH = 64

    def __init__(self, dsn: str, endpoint: str, model: str, dims: int) -> None:
        from langgraph.store.postgres import PostgresStore

        self._opened = PostgresStore.from_conn_string(
            dsn,
            pool_config={"min_size": 1, "max_size": 20},
            index={"dims": dims, "embed": lambda texts: embed(endpoint, model, texts), "fields": ["text"]},
        )
        self._store = self._opened.__enter__()
        self._store.setup()

    def load(self, collection: str, documents: list[list[str]]) -> None:
        from langgraph.store.base import PutOp

        for start in range(0, len(documents), self.BATCH):
            batch = documents[start : start + self.BATCH]
            self._store.batch([PutOp((collection,), key, {"text": text}) for key, text in batch])

    def search(self, collection: str, query: str, limit: int) -> list[str]:
        return [each.key for each in self._store.search((collection,), query=query, limit=limit)]


class Bm25:
    """bm25s with English stop words and stemming: the lexical baseline, in memory."""

    def __init__(self, *_: object) -> None:
        import bm25s
        import Stemmer

        self._library, self._stemmer = bm25s, Stemmer.Stemmer("english")
        self._indexes: dict[str, Any] = {}

    def load(self, collection: str, documents: list[list[str]]) -> None:
        index = self._library.BM25()
        index.index(self._tokens([text for _, text in documents]), show_progress=False)
        self._indexes[collection] = index, [key for key, _ in documents]

    def search(self, collection: str, query: str, limit: int) -> list[str]:
        index, keys = self._indexes[collection]
        wanted = min(limit, len(keys))
        places, scores = index.retrieve(self._tokens([query]), k=wanted, show_progress=False)
        return [keys[place] for place, score in zip(places[0], scores[0], strict=True) if score > 0]

    def _tokens(self, texts: list[str]) -> Any:
        return self._library.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


def embed(endpoint: str, model: str, texts: list[str]) -> list[list[float]]:
    body = json.dumps({"model": model, "input": list(texts)}).encode()
    request = urllib.request.Request(f"{endpoint}/v1/embeddings", body, {"content-type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=600) as answer:  # noqa: S310 - the benchmark's own endpoint
        rows = json.load(answer)["data"]
    return [row["embedding"] for row in sorted(rows, key=lambda row: row["index"])]


def race(peer: Peer, asked: dict[str, Any]) -> dict[str, Any]:
    queue, taken = iter(asked["queries"]), threading.Lock()
    seconds: list[float] = []

    def call() -> None:
        while True:
            with taken:
                query = next(queue, None)
            if query is None:
                return
            began = time.perf_counter()
            peer.search(asked["race"], query, asked["limit"])
            seconds.append(time.perf_counter() - began)

    threads = [threading.Thread(target=call) for _ in range(asked["callers"])]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"seconds": seconds, "total": time.perf_counter() - began}


def main() -> None:
    name, dsn, endpoint, model, dims = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is not an answer
    peer: Peer = {"mem0": Mem0, "langgraph": LangGraph, "bm25": Bm25}[name](dsn, endpoint, model, int(dims))
    for line in sys.stdin:
        asked = json.loads(line)
        if "load" in asked:
            peer.load(asked["load"], asked["documents"])
            answer: dict[str, Any] = {"loaded": len(asked["documents"])}
        elif "race" in asked:
            answer = race(peer, asked)
        else:
            began = time.perf_counter()
            keys = peer.search(asked["search"], asked["query"], asked["limit"])
            answer = {"keys": keys, "seconds": time.perf_counter() - began}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
