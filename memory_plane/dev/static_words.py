"""wordllama's static word vectors, 256 dimensions: the other model, for trying a switch of models offline.

Its files are read directly: importing the package itself configures logging for the whole process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memory_plane.dev.minilm import Floats, missing_wheel, unit, wheel_file

NAME = "wordllama"
DIMS = 256
_MAX_CHARS = 100_000


class StaticWords:
    """Embeds a text as the mean of its words' vectors."""

    def __init__(self) -> None:
        """Load it. Raises StackError when the wheel is missing."""
        weights = wheel_file("wordllama", "weights/l2_supercat_256.safetensors")
        vocabulary = wheel_file("wordllama", "tokenizers/l2_supercat_tokenizer_config.json")
        try:
            import tokenizers
            from safetensors.numpy import load_file
        except ImportError as error:
            raise missing_wheel(error.name or "safetensors") from None
        (table,) = load_file(weights).values()
        self._table = np.ascontiguousarray(table, dtype=np.float32)
        self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(vocabulary))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def embed(self, text: str) -> Floats:
        """The unit vector of `text`; a text without a known word gets that of the unknown word, never zeros."""
        ids = self._tokenizer.encode(text[:_MAX_CHARS], add_special_tokens=False).ids or [0]
        return unit(self._table[np.minimum(ids, len(self._table) - 1)].mean(axis=0))
