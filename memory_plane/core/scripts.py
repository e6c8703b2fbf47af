"""Which characters belong to scripts that are written without spaces between words.

Sets as bodies of regular-expression classes: everything in such scripts that costs a model about one token a
character (`DENSE`); what words are made of there and PostgreSQL's parser keeps together (`UNSPACED_LETTERS`); of
these the marks that sit on another, and the letters that are often a word alone.
"""

import re
from unicodedata import category


def _class(ranges: str) -> str:
    """'0E00-0E7F 3005' → the body of a character class."""
    parts = []
    for item in ranges.split():
        first, _, last = item.partition("-")
        parts.append(re.escape(chr(int(first, 16))))
        if last:
            parts.append("-" + re.escape(chr(int(last, 16))))
    return "".join(parts)


DENSE = _class(
    "0E00-0EFF 0F00-0FFF 1000-109F 1100-11FF "  # Thai, Lao, Tibetan, Myanmar, Hangul jamo
    "1780-17FF 1950-19FF 1A20-1AAF 1B00-1B7F "  # Khmer, Tai scripts, Balinese
    "2600-27BF 2B50-2B55 "  # pictographs
    "2E80-312F 3130-9FFF A000-A4CF "  # Han, kana, bopomofo, compatibility, Yi
    "A960-A97F A980-A9FF AA00-AADF "  # jamo, Javanese, Myanmar, Cham, Tai Viet
    "AC00-D7FF F900-FAFF FE30-FE4F FF00-FFEF "  # Hangul, compatibility and full-width forms
    "12000-1467F 16FE0-18DFF 1AFF0-1B2FF "  # cuneiform, hieroglyphs, Tangut, kana supplements, Nushu
    "1F000-1FBFF 20000-3FFFF"  # emoji, Han extensions
)

UNSPACED_LETTERS = _class(
    "0E01-0E3A 0E40-0E4E 0E81-0EBD 0EC0-0ECE 0EDC-0EDF 0F40-0F84 0F86-0FBC "
    "1000-103F 1050-108F 109A-109D 1100-11FF 1780-17D3 17D7 17DC-17DD "
    "1950-1974 1980-19C9 1A20-1A5E 1A60-1A7C 1AA7 1B00-1B4C "
    "3005-3007 3021-3029 3031-3035 3038-303C 3041-3096 3099-309A 309D-309F 30A1-30FA 30FC-30FF "
    "3105-312F 3131-318E 31A0-31BF 31F0-31FF 3400-4DBF 4E00-9FFF A000-A48C "
    "A960-A97C A980-A9BF A9CF A9E0-A9EF A9FA-A9FE AA00-AA4D AA60-AA76 AA7A-AAC2 AADB-AADD "
    "AC00-D7A3 D7B0-D7C6 D7CB-D7FB F900-FAD9 "
    "16FE0-16FE1 16FE3-16FE4 17000-18CFF 18D00-18D08 1AFF0-1B16F 1B170-1B2FB 20000-323AF"
)

LONE_WORDS = _class("3005-3007 3400-4DBF 4E00-9FFF AC00-D7A3 F900-FAD9 20000-323AF")
"""Han and Hangul: 猫, 책."""

MARKS = "".join(
    chr(code)
    for first, last in ((0x0E00, 0x1B4C), (0x3099, 0x309A), (0xA980, 0xAADD))
    for code in range(first, last + 1)
    if category(chr(code)).startswith("M") and re.match(f"[{UNSPACED_LETTERS}]", chr(code))
)
