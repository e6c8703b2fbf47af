"""Retrieval quality on the judged sets, through the HTTP API, beside baselines and peers on the same machine.

    python -m bench.retrieval [--sets "LoCoMo turns" …] [--collections turns-conv-26 …] [--folder FOLDER]
                              [--without-peers]

Every collection is a tenant of its own and is asked its own questions. The default recipe is the same for all. With a
folder vectors and finished collections are kept there, so that the whole may be run in parts. Within a run a text is
embedded once, whoever asks.
`make bench-retrieval` writes bench/results/retrieval.json, a table and a plot, and the part of docs/benchmarks.md
between its marks.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.add import ROOT
from bench.http_client import HttpClient
from bench.judged import SETS, Collection, Question, Score, judge, read_context
from bench.peer_process import BASELINE, PEERS, PeerProcess, peer
from bench.retrieval_report import OURS, table, write
from bench.service import DATA, Service, embedded, peers_installed, service
from memory_plane.contracts.ids import IdKind, new_id
from memory_plane.contracts.recipe import Recipe

LIMIT = 50
BATCH = 200
ORIGIN = "origin's design"
NO_SURROUNDINGS: dict[str, Any] = {"surroundingsWeight": 0.0, "neighbourWeight": 0.0}
ORIGIN_RECIPE: dict[str, Any] = {
    "chunk": {"maxTokens": 700, "minTokens": 40, "overlapTokens": 60},
    "embed": {"context": False, "maxInputTokens": None},
    "fusion": {"method": "rrf", "k": 60, "lexical": "and", **NO_SURROUNDINGS},
}
"""AND matching, reciprocal rank fusion with k = 60, bare texts that the model cuts where it pleases."""
SEARCHED_AS: dict[str, dict[str, Any]] = {
    "dense off": {"embed": None},
    "dense alone": {"fusion": {"lexicalWeight": 0.0, **NO_SURROUNDINGS}},
    "without surroundings": {"fusion": NO_SURROUNDINGS},
    "RRF 60 of both": {"fusion": {"method": "rrf", "k": 60, **NO_SURROUNDINGS}},
}
"""The product's own derivation, searched otherwise: what each part brings."""


class System:
    """A recipe of ours: a tenant for every collection, loaded and asked over HTTP."""

    def __init__(self, opened: Service, name: str, recipe: dict[str, Any] | None = None) -> None:
        self._service = opened
        self._name = name
        self._recipe = recipe
        self._tokens: dict[str, str] = {}
        self._keys: dict[str, dict[str, str]] = {}

    def tenant(self, collection: Collection) -> str:
        return f"{self._name}.{collection.name}".replace(" ", "-").replace("'", "")

    async def load(self, collection: Collection) -> None:
        tenant = self.tenant(collection)
        token = self._tokens[tenant] = await self._service.token(tenant)
        if self._recipe is not None:
            await self._set_first_recipe(tenant, self._recipe)
        keys = self._keys[tenant] = {}
        async with self._service.client(token) as client:
            for start in range(0, len(collection.documents), BATCH):
                batch = collection.documents[start : start + BATCH]
                items = [{"title": each.title, "text": each.text, "external_ref": each.key} for each in batch]
                answer = await client.post_json(f"/api/tenants/{tenant}/memory/add/batch", {"items": items})
                for item in answer["items"]:
                    keys[item["documentId"]] = batch[item["index"]].key
        await embedded(self._service, tenant)

    async def ask(self, collection: Collection, searched_as: dict[str, Any] | None = None) -> list[Score]:
        tenant = self.tenant(collection)
        kept = await self._generation(tenant)
        if searched_as is not None:
            await self._search_as(tenant, kept, searched_as)
        try:
            async with self._service.client(self._tokens[tenant]) as client:
                return [await self._score(client, tenant, question) for question in collection.questions]
        finally:
            if searched_as is not None:
                await self._search_as(tenant, kept, {})

    async def _score(self, client: HttpClient, tenant: str, question: Question) -> Score:
        body: dict[str, Any] = {"query": question.text, "limit": LIMIT if question.lines else 10}
        if question.lines:
            body["passages"] = 5
        answer = await client.post_json(f"/api/tenants/{tenant}/memory/search", body)
        assert set(answer.get("degraded", [])) <= {"dense_unavailable", "lexical_only"}, answer["degraded"]
        found = [self._keys[tenant][item["documentId"]] for item in answer["items"]]
        context = None
        if question.lines:
            passages = [(each["score"], each["text"]) for item in answer["items"] for each in item["passages"]]
            context = read_context(passages, question.lines)
        return judge(found, question, context)

    async def _generation(self, tenant: str) -> dict[str, Any]:
        statement = "SELECT recipe FROM memory.generation WHERE tenant_id = $1 AND state = 'live'"
        recipe: dict[str, Any] = await self._service.pool.fetchval(statement, tenant)
        return recipe

    async def _search_as(self, tenant: str, recipe: dict[str, Any], change: dict[str, Any]) -> None:
        """A search reads the live generation's recipe anew: only here is one changed in place."""
        changed = {key: {**recipe[key], **value} if isinstance(value, dict) else value for key, value in change.items()}
        statement = "UPDATE memory.generation SET recipe = $2 WHERE tenant_id = $1 AND state = 'live'"
        await self._service.pool.execute(statement, tenant, {**recipe, **changed})

    async def _set_first_recipe(self, tenant: str, partial: dict[str, Any]) -> None:
        recipe = Recipe.merged_over(partial, self._service.settings.default_recipe())
        await self._service.pool.execute(
            "INSERT INTO memory.generation (id, tenant_id, state, recipe) VALUES ($1, $2, 'live', $3)",
            new_id(IdKind.GENERATION),
            tenant,
            recipe.stored(),
        )


async def ask_peer(asked: PeerProcess, collection: Collection) -> list[Score]:
    """What a peer keeps is the whole document, so that is what an agent reads of it."""
    texts = {document.key: document.text for document in collection.documents}
    await asked.load(collection.name, [(each.key, _whole(each.title, each.text)) for each in collection.documents])
    scores = []
    for question in collection.questions:
        found = await asked.search(collection.name, question.text, 10)
        context = None
        if question.lines:
            context = read_context([(-place, texts[key]) for place, key in enumerate(found)], question.lines)
        scores.append(judge(found, question, context))
    return scores


def _whole(title: str, text: str) -> str:
    says_something = any(len(word) > 2 and word.isalpha() for word in title.split())
    return f"{title}\n{text}" if says_something and title.lower() not in text.lower() else text


def mean(scores: Sequence[Score]) -> dict[str, float]:
    rows = [asdict(score) for score in scores]
    return {name: fmean(row[name] for row in rows) for name in rows[0] if rows[0][name] is not None}


class Kept:
    """Scores of every question by set, collection and system; in a file, where there is one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._scores: dict[tuple[str, str], dict[str, list[Score]]] = {}
        if file is not None and file.exists():
            for row in map(json.loads, file.read_text().splitlines()):
                self._scores[row["set"], row["collection"]] = {
                    system: [Score(**score) for score in scores] for system, scores in row["scores"].items()
                }

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._scores

    def add(self, name: str, collection: str, scores: dict[str, list[Score]]) -> None:
        self._scores[name, collection] = scores
        if self._file is not None:
            plain = {system: [asdict(score) for score in found] for system, found in scores.items()}
            with self._file.open("a") as file:
                file.write(json.dumps({"set": name, "collection": collection, "scores": plain}) + "\n")

    def results(self) -> dict[str, dict[str, dict[str, float]]]:
        """Set → system → measure, over all questions of the set."""
        together: dict[str, dict[str, list[Score]]] = {name: {} for name in SETS}
        for (name, _), scores in self._scores.items():
            for system, found in scores.items():
                together[name].setdefault(system, []).extend(found)
        return {name: {each: mean(found) for each, found in systems.items()} for name, systems in together.items()}


@dataclass(frozen=True)
class Wanted:
    """What to run. `collections` empty: all of the sets."""

    sets: Sequence[str]
    collections: Sequence[str]
    peers: bool

    def missing(self, kept: Kept) -> Iterator[tuple[str, Collection]]:
        for name in self.sets:
            for collection in SETS[name](DATA):
                chosen = not self.collections or collection.name in self.collections
                if chosen and (name, collection.name) not in kept:
                    yield name, collection


async def run(wanted: Wanted, kept: Kept, remember: Path | None) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memory-bench-retrieval-")))
        opened = await stack.enter_async_context(service(folder, remember=remember or folder / "vectors.db"))
        peers: dict[str, PeerProcess] = {}
        if wanted.peers and peers_installed():
            for name, kind in {**BASELINE, **PEERS}.items():
                peers[name] = await stack.enter_async_context(peer(kind, opened, folder))
        ours, origin = System(opened, OURS), System(opened, ORIGIN, ORIGIN_RECIPE)
        for name, collection in wanted.missing(kept):
            began = time.monotonic()
            await ours.load(collection)
            scores = {OURS: await ours.ask(collection)}
            for variant, change in SEARCHED_AS.items():
                scores[variant] = await ours.ask(collection, change)
            await origin.load(collection)
            scores[ORIGIN] = await origin.ask(collection)
            for system, asked in peers.items():
                scores[system] = await ask_peer(asked, collection)
            kept.add(name, collection.name, scores)
            print(f"{collection.name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--collections", nargs="*", default=[], help="only these of the sets")
    parser.add_argument("--folder", type=Path, help="keeps vectors and finished collections for another run")
    parser.add_argument("--without-peers", action="store_true")
    given = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"The judged sets are not at {DATA}; set DATA to their folder.")
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
    found = Kept(given.folder and given.folder / "scores.jsonl")
    wanted = Wanted(given.sets, given.collections, not given.without_peers)
    if any(wanted.missing(found)):
        asyncio.run(run(wanted, found, given.folder and given.folder / "vectors.db"))
    everything = Wanted(list(SETS), (), peers=True)
    if any(everything.missing(found)):
        print(table(found.results()))
    else:
        write(found.results(), ROOT, load=os.getloadavg()[0])
