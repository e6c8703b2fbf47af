"""Which keys encrypt and decrypt what we hand to Temporal, from one line of configuration."""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

PLAIN = "plain"
"""In the first place instead of a key: write nothing encrypted, and read what is."""
KEY_BYTES = 32
_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class PayloadKeys:
    """`writes_with` names the key of new payloads, or None for plain ones; every key reads."""

    writes_with: str | None
    keys: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `id:base64[,id:base64…]`, the first of which writes. Raises ValueError, without a word of a key."""
        entries = [entry.strip() for entry in text.split(",") if entry.strip()]
        keys: dict[str, bytes] = {}
        for number, entry in enumerate(entries, 1):
            if entry == PLAIN and number == 1:
                continue
            key_id, _, encoded = entry.partition(":")
            if not _ID.fullmatch(key_id) or key_id == PLAIN:
                raise ValueError(_form(number))
            if key_id in keys:
                raise ValueError(f"has two keys with the id {key_id}; give the new one an id of its own")
            try:
                keys[key_id] = base64.b64decode(encoded, validate=True)
            except binascii.Error:
                raise ValueError(_form(number)) from None
            if len(keys[key_id]) != KEY_BYTES:
                raise ValueError(_form(number))
        if not keys:
            raise ValueError(
                "must have a key, as in 2026-01:… with the output of `openssl rand -base64 32` after the colon"
            )
        return cls(None if entries[0] == PLAIN else next(iter(keys)), keys)


def _form(number: int) -> str:
    return (
        f"has no key in place {number}: each is an id (letters, digits, dots, dashes, underscores), a colon, and the "
        "output of `openssl rand -base64 32`; between them stand commas"
    )
