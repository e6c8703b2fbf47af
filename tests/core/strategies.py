"""Texts as hostile as the world: every script, marks, joiners, flags, odd white space."""

from hypothesis import strategies as st

ODD_PIECES = [
    "\n\n",
    "\r\n",
    "\n",
    " ",
    "\u3000",
    "\u2029",
    "\t",
    ". ",
    "。",
    "! ",
    "、",
    "e\u0301",
    "a\u0316\u0301",
    " \u0301",
    "👨\u200d👩\u200d👧",
    "👍\U0001f3fd",
    "🇩🇪",
    "🇫🇷🇯🇵",
    "☁\ufe0f",
    "葛\U000e0100",
    "क्षि",
    "ที่นี่",
    "\u1112\u1161\u11ab",
    "북경",
    "北京大学",
    "ひらがな",
    "\u200b",
    "\u202e",
    "word",
    "Sentence one. And two! ",
    "longword" * 8,
    "\u0301" * 5,
]

any_text = st.text(st.characters(), max_size=200)
"""Any code points, lone surrogates and NUL included."""

storable_text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=200)

document_text = st.lists(
    st.sampled_from(ODD_PIECES) | st.text(st.characters(codec="utf-8"), max_size=8), max_size=120
).map("".join)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)
