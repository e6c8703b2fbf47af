"""Characters: an add never fails for one, and what is stored is found again."""

import json
from typing import Any

import pytest

from memory_plane.contracts.errors import Invalid
from tests.capture.memory import Memory

TEXTS = {
    "nul": "before\x00after",
    "lone surrogate": "before \ud800 after",
    "end of text marker": "a <|endoftext|> b",
    "right to left override": "abc \u202e def",
    "arabic": "مرحبا بالعالم",
    "family emoji": "👨‍👩‍👧‍👦 at home",
    "decomposed": "cafe\u0301",
    "control characters": "a\x01\x02\x7f b",
    "chinese": "我昨天在北京买了一本书。",
}


async def found(memory: Memory, lexeme: str) -> bool:
    rows = await memory.pool.fetch(
        "SELECT 1 FROM memory.chunk WHERE tenant_id = $1 AND text_fts @@ plainto_tsquery('english', $2)",
        memory.tenant,
        lexeme,
    )
    return bool(rows)


@pytest.mark.parametrize("name", TEXTS)
async def test_inv_07_every_text_is_kept_exactly_and_derived_cleanly(memory: Memory, name: str) -> None:
    text = TEXTS[name]
    captured = await memory.add(text=text, title=f"about {text}"[:200], attributes={"said": text, text: 1})

    (raw,) = await memory.rows("raw_capture")
    stored = raw["raw_text"] if raw["raw_text"] is not None else raw["raw_bytes"]
    assert json.loads(stored)["text"] == text
    assert (raw["raw_bytes"] is None) == (name not in ("nul", "lone surrogate"))
    shown = await memory.library.get(await memory.visibility("alice"), captured.document_id)
    assert shown.text is not None
    (chunk,) = await memory.rows("chunk")
    assert chunk["text"] == shown.text[chunk["span_start"] : chunk["span_end"]]
    assert "\x00" not in shown.text


async def test_inv_07_what_is_stored_is_found_by_its_words(memory: Memory) -> None:
    await memory.add(text="revo\x00lution, then qu\ud800arrel", title="Zusammen\x00kunft")
    assert await found(memory, "revolution")
    assert await found(memory, "Zusammenkunft")


async def test_inv_07_a_megabyte_without_a_space_is_stored(memory: Memory) -> None:
    captured = await memory.add(text="x" * 1_000_000)
    chunks = sorted(await memory.rows("chunk"), key=lambda row: row["ordinal"])
    assert [row["ordinal"] for row in chunks] == list(range(len(chunks)))
    assert captured.chunk_count == len(chunks) > 100
    covered = 0
    for row in chunks:
        assert row["span_start"] <= covered
        covered = max(covered, row["span_end"])
    assert covered == 1_000_000


async def test_five_megabytes_of_different_words_are_stored_to_the_last_sentence(memory: Memory) -> None:
    words = " ".join(f"word{n:07d}" for n in range(400_000))
    await memory.add(text=f"{words} and at the very end a quokka.")
    assert await found(memory, "quokka")
    assert await memory.count("feed_event") == 1


@pytest.mark.parametrize("text", ["", "   ", "\n\t\r\n", "\u200b\u200b", "\x00"])
async def test_inv_07_a_text_of_nothing_is_refused_with_a_sentence(memory: Memory, text: str) -> None:
    with pytest.raises(Invalid) as refused:
        await memory.add(text=text)
    assert "blank" in refused.value.detail
    assert await memory.count("document") == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"external_ref": "a\x00b"},
        {"adapter": "a\ud800b"},
        {"access_tags": ["memory.space:a\x00b"]},
        {"share": {"principals": ["a\x00b"]}},
        {"entities": [{"kind": "person", "identifier": "a\x00b"}]},
        {"derived_from": ["a\x00b"]},
        {"process": ["a\x00b"]},
        {"generator_agent_id": "a\x00b"},
        {"title": "\x00"},
        {"kind": "\x00"},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_inv_07_a_name_that_cannot_be_stored_as_sent_is_refused(memory: Memory, fields: dict[str, Any]) -> None:
    """Cleaned, it could be the name of another document, tag or agent."""
    with pytest.raises(Invalid):
        await memory.add(**fields)
    assert await memory.count("document") == 0
