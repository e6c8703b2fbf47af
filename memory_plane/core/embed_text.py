"""What of a chunk is given to the embedding model: its text in context, its windows, its neighbourhood."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_plane.contracts.recipe import EmbedRecipe
from memory_plane.core.chunking import ChunkCaps, chunk
from memory_plane.core.tokens import CHARS_PER_TOKEN, estimate_tokens

CHUNK_SLOT = 0
"""The chunk itself, or its head where it exceeds the model's input limit. Slots 1, 2, … are the windows after it."""
NEIGHBOUR_SLOT = -1
"""The chunk between its neighbours of the same version: what surrounds a line of a chat says what it is about."""

SPECIAL_TOKENS = 4
"""What models add around an input."""
_LEAST_ROOM = 16
"""Tokens below which a window or a neighbourhood says nothing."""


@dataclass(frozen=True, slots=True)
class SourceChunk:
    """A stored chunk; `before` and `after` are the texts of its neighbours, where there are any."""

    chunk_id: str
    text: str
    context: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Slot:
    """One text to embed, and where its vector goes."""

    chunk_id: str
    slot: int
    text: str


def text_to_embed(embed: EmbedRecipe, context: str, text: str) -> str:
    """The chunk's text, after its context where the recipe wants it.

    A title that is an identifier says nothing to a model and blurs what the text means (measured on short texts), so
    lines of the context without a single plain word are left out.
    """
    if not embed.context:
        return text
    return "\n".join([*(line for line in context.split("\n") if _says_something(line)), text])


def _says_something(line: str) -> bool:
    return any(len(word) > 1 and word.isalpha() for word in map(_bare, line.split()))


def _bare(word: str) -> str:
    return word.strip(".,;:!?()[]{}<>\"'«»“”‘’…")


def query_text(embed: EmbedRecipe, query: str) -> str:
    """As much of a query as the model takes: its head."""
    limit = _limit(embed)
    return query if limit is None else _head(query, limit)


def is_plain(embed: EmbedRecipe, texts: Sequence[str]) -> bool:
    """Whether each of these `text_to_embed`, all of one version, makes one slot and no more."""
    if embed.neighbours and len(texts) > 1:
        return False
    return embed.max_input_tokens is None or all(
        estimate_tokens(text) + SPECIAL_TOKENS <= embed.max_input_tokens for text in texts
    )


def slots(embed: EmbedRecipe, source: SourceChunk) -> list[Slot]:
    """All slots of one chunk under the recipe, none longer than the model's input limit."""
    made = [Slot(source.chunk_id, number, text) for number, text in enumerate(_windows(embed, source))]
    if embed.neighbours and len(made) == 1 and (around := _neighbourhood(embed, source)):
        made.append(Slot(source.chunk_id, NEIGHBOUR_SLOT, text_to_embed(embed, source.context, around)))
    return made


def _limit(embed: EmbedRecipe) -> int | None:
    return None if embed.max_input_tokens is None else embed.max_input_tokens - SPECIAL_TOKENS


def _windows(embed: EmbedRecipe, source: SourceChunk) -> list[str]:
    whole = text_to_embed(embed, source.context, source.text)
    limit = _limit(embed)
    if limit is None or estimate_tokens(whole) <= limit:
        return [whole]
    # Each window carries the context, unless that would leave it less than half of the room.
    context = source.context if embed.context else ""
    room = limit - estimate_tokens(f"{context}\n") if context else limit
    if room < max(limit // 2, _LEAST_ROOM):
        context, room = "", limit
    pieces = chunk(source.text, ChunkCaps(max_tokens=room, min_tokens=room // 8, overlap_tokens=room // 8))
    return [text_to_embed(embed, context, source.text[piece.start : piece.end]) for piece in pieces]


def _neighbourhood(embed: EmbedRecipe, source: SourceChunk) -> str | None:
    """The chunk with what stands before and after it, cut at the far ends to fit; None where nothing is to be had."""
    before, after = source.before, source.after
    limit = _limit(embed)
    if limit is not None:
        room = (limit - estimate_tokens(text_to_embed(embed, source.context, source.text)) - 1) // 2
        if room < _LEAST_ROOM:
            return None
        before, after = _tail(before, room), _head(after, room)
    if not before and not after:
        return None
    return "\n".join(part for part in (before, source.text, after) if part)


def _tail(text: str, tokens: int) -> str:
    return _head(text[::-1], tokens)[::-1]


def _head(text: str, tokens: int) -> str:
    piece = text[: tokens * CHARS_PER_TOKEN]
    while estimate_tokens(piece) > tokens:
        piece = piece[: len(piece) * tokens // estimate_tokens(piece)]
    return piece
