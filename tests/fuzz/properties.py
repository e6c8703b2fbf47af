"""What must hold for any bytes at all, for the fuzzer and for the inputs it has left us."""

from itertools import pairwise

from memory_plane.core.chunking import ChunkCaps, chunk
from memory_plane.core.text import clean_text, is_blank, is_storable, normalized
from memory_plane.core.tokens import estimate_tokens


def text_of(data: bytes) -> str:
    """Any characters, lone surrogates and NUL among them."""
    return data.decode("utf-8", "surrogatepass" if _decodes(data) else "replace")


def _decodes(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def check(data: bytes) -> None:
    """Raises AssertionError where text hygiene or the chunker breaks a promise. The first bytes choose the caps."""
    largest, overlap = 1 + data[0] % 120 if data else 40, data[1] % 8 if len(data) > 1 else 0
    text = clean_text(text_of(data[2:]))
    assert is_storable(text)
    assert clean_text(text) == text
    assert normalized("NFC", text) == text
    text.encode("utf-8")
    if is_blank(text):
        return
    caps = ChunkCaps(largest, min(overlap, largest // 2), largest // 4)
    covered = 0
    chunks = chunk(text, caps)
    for piece in chunks:
        assert estimate_tokens(text[piece.start : piece.end]) == piece.token_count <= caps.max_tokens
        assert not text[covered : max(covered, piece.start)].strip()
        covered = piece.end
    assert not text[covered:].strip()
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
