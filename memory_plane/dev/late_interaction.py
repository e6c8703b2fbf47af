"""Reranking by late interaction: each word of the query looks for its best match among a document's words.

No cross-encoder ships inside a wheel. The token states of the embedding model do most of what one does: the score
is two parts MaxSim (the mean over the query's tokens of the best cosine with a token of the document) and one part
the cosine of the pooled vectors. MaxSim alone ranks chats best and short encyclopedia entries badly; this blend is
near the best on both.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from memory_plane.dev.minilm import Floats, MiniLm, micro_batches, unit

# What lies beyond is not looked at: fifty passages at this length cost about a second on two cores.
DOC_TOKENS = 128
CACHE_BYTES = 64 * 1024 * 1024

# On judged pools unrelated texts score about .1 to .45 and relevant ones about .6 to .7, so .5 is the border. The
# logistic makes a relevance of it, in which .6 means "rather relevant than not".
_MIDPOINT = 0.5
_STEEPNESS = 12.0


@dataclass(frozen=True)
class TokenStates:
    """One text: unit states of its own tokens, without [CLS] and [SEP], and its pooled unit vector."""

    tokens: Floats
    pooled: Floats


class LateInteraction:
    """Scores documents; remembers the states of the latest, as the same memories are reranked again and again."""

    def __init__(self, model: MiniLm) -> None:
        self._model = model
        self._known: OrderedDict[bytes, TokenStates] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def remembered_bytes(self) -> int:
        return self._bytes

    def pieces(self, texts: Sequence[str]) -> list[Callable[[], list[tuple[int, TokenStates]]]]:
        """Short pieces of work that together give the states of every text, each with its index."""
        known: list[tuple[int, TokenStates]] = []
        fresh: list[tuple[int, bytes, list[int]]] = []
        for index, text in enumerate(texts):
            key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            states = self._recall(key)
            if states is not None:
                known.append((index, states))
            else:
                fresh.append((index, key, self._model.tokenize(text)[:DOC_TOKENS]))
        groups = micro_batches([len(tokens) for _, _, tokens in fresh])
        work = [self._piece([fresh[place] for place in group]) for group in groups]
        return [lambda: known, *work] if known else work

    def _piece(self, group: list[tuple[int, bytes, list[int]]]) -> Callable[[], list[tuple[int, TokenStates]]]:
        def piece() -> list[tuple[int, TokenStates]]:
            arrays = self._model.token_states([tokens for _, _, tokens in group])
            states = [TokenStates(unit(array[1:-1]), unit(array.mean(axis=0))) for array in arrays]
            for (_, key, _), each in zip(group, states, strict=True):
                self._remember(key, each)
            return [(index, each) for (index, _, _), each in zip(group, states, strict=True)]

        return piece

    def _recall(self, key: bytes) -> TokenStates | None:
        with self._lock:
            states = self._known.get(key)
            if states is not None:
                self._known.move_to_end(key)
            return states

    def _remember(self, key: bytes, states: TokenStates) -> None:
        with self._lock:
            if key in self._known:
                return
            self._known[key] = states
            self._bytes += states.tokens.nbytes
            while self._bytes > CACHE_BYTES:
                self._bytes -= self._known.popitem(last=False)[1].tokens.nbytes


def raw_score(query: TokenStates, document: TokenStates) -> float:
    """The blend as it is, about 0 for unrelated texts and 1 for the same one."""
    cosine = float(query.pooled @ document.pooled)
    if not len(query.tokens) or not len(document.tokens):
        return cosine
    max_sim = float((query.tokens @ document.tokens.T).max(axis=1).mean())
    return (2 * max_sim + cosine) / 3


def relevance(raw: float) -> float:
    """`raw` on the scale of a cross-encoder's sigmoid."""
    return float(1.0 / (1.0 + np.exp(-_STEEPNESS * (raw - _MIDPOINT))))
