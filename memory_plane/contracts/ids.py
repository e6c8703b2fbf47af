"""Prefixed, time-ordered ids (UUIDv7 layout), so that B-trees stay dense and a reader knows what an id names."""

import os
import threading
import time
from enum import StrEnum


class IdKind(StrEnum):
    DOCUMENT = "kdoc"
    VERSION = "kver"
    RAW_CAPTURE = "kraw"
    CHUNK = "kchk"
    ENTITY = "kent"
    EDGE = "kedg"
    GENERATION = "kgen"
    TRANSFORM_CONFIG = "tcfg"
    TRANSFORM_RUN = "trun"
    GRANT_RULE = "mgrt"
    TOKEN = "mtok"  # noqa: S105 - a prefix
    AUDIENCE_REQUEST = "kaud"


_lock = threading.Lock()
_last = 0


def new_id(kind: IdKind) -> str:
    """A new id such as `kdoc_0193…`: 48 bits of milliseconds, then a counter that keeps ids of one process
    ascending, then 62 random bits."""
    global _last
    with _lock:
        # Milliseconds and 12 further bits: the clock's own sub-milliseconds, pushed ahead when ids come faster.
        now = time.time_ns() * 4096 // 1_000_000
        _last = now if now > _last else _last + 1
        tick = _last
    random = int.from_bytes(os.urandom(8), "big") >> 2
    value = ((tick >> 12) << 80) | (0x7 << 76) | ((tick & 0xFFF) << 64) | (0b10 << 62) | random
    return f"{kind.value}_{value:032x}"
