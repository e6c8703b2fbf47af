"""Deterministic vectors in which texts that share words are near each other."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

# A letter of an unspaced script is a word of its own, so that a phrase is near its sentence.
_WORD = re.compile(r"[㐀-鿿぀-ヿ가-힯]|[^\W㐀-鿿぀-ヿ가-힯]+")


def words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


@lru_cache(maxsize=65_536)
def _direction(model: str, word: str, dims: int) -> NDArray[np.float64]:
    seed = int.from_bytes(blake2b(f"{model}|{word}".encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(dims)


def vector(text: str, dims: int, model: str = "") -> list[float]:
    """The unit vector of `text`: the sum of its words' directions, which differ from model to model."""
    total = np.zeros(dims)
    for word in words(text) or ["<empty>"]:
        total += _direction(model, word, dims)
    return [float(x) for x in np.round(total / np.linalg.norm(total), 6)]


def overlap(query: str, text: str) -> float:
    """The share of the query's words that the text has, a rerank score in [0, 1]."""
    wanted = set(words(query))
    return len(wanted & set(words(text))) / len(wanted) if wanted else 0.0
