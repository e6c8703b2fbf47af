"""The parser that indexes grams takes each for one word, whatever letters it is made of, and finds phrases by them."""

import re
import unicodedata

import asyncpg
import pytest

from memory_plane.core.grams import MARKER, grams, query_grams
from memory_plane.core.scripts import UNSPACED_LETTERS

LETTER = re.compile(f"[{UNSPACED_LETTERS}]")
LETTERS = [
    char for char in map(chr, range(0x0E00, 0x33480)) if LETTER.match(char) and unicodedata.category(char) != "Cn"
]


async def test_every_letter_stays_within_its_gram(empty_database: str) -> None:
    assert len(LETTERS) > 100_000
    connection = await asyncpg.connect(empty_database)
    try:
        torn = await connection.fetch(
            """
            SELECT letter FROM unnest($1::text[]) AS letter
            WHERE (SELECT array_agg(token) FROM ts_parse('default', $2 || letter || '人 ' || $2 || letter)
                   WHERE tokid <> 12)
                  IS DISTINCT FROM ARRAY[$2 || letter || '人', $2 || letter]
            """,
            LETTERS,
            MARKER,
        )
    finally:
        await connection.close()
    assert torn == []


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("我们昨天去了北京大学参观。", "北京大学", True),
        ("我们昨天去了北京大学参观。", "南京", False),
        ("昨日うちの猫が魚を食べた", "猫", True),
        ("이 책을 읽었다", "책", True),
        ("ฉันชอบกินข้าวผัด", "ข้าวผัด", True),
        ("word京 only", "word", False),
    ],
)
async def test_inv_07_a_phrase_in_a_sentence_is_found(empty_database: str, text: str, query: str, found: bool) -> None:
    wanted = query_grams(query)
    connection = await asyncpg.connect(empty_database)
    try:
        lexemes = await connection.fetchval("SELECT tsvector_to_array(to_tsvector('simple', $1))", grams(text))
    finally:
        await connection.close()
    assert (bool(wanted) and set(wanted) <= set(lexemes)) is found
