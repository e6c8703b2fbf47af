"""Reading a JSON body: bounded in bytes and in time, strict about form, tolerant of any character.

An add never fails for a character: lone surrogates and NULs pass, the model gets them cleaned and capture gets the
payload exactly as it was sent.
"""

import asyncio
import json
import math
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect, Request

from api.problems import HttpRefusal
from memory_plane.contracts.errors import FieldError, Invalid, TooLarge
from memory_plane.contracts.validation import LONGEST_NAME
from memory_plane.core.text import clean_json

MAX_DEPTH = 32
"""Nesting of a body. The deepest that means anything here has five levels."""
_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """What one body may take: `max_bytes`, seconds between two pieces of it, and seconds for all of it."""

    max_bytes: int = 10_000_000
    idle_seconds: float = 10.0
    total_seconds: float = 60.0


class JsonRequest(Request):
    """A request whose JSON was read by `load`: `payload` as sent, `json()` cleaned for the models."""

    payload: Any = None
    _raw: bytes = b""
    _cleaned: Any = None

    async def load(self, limits: BodyLimits) -> None:
        """Raises TooLarge, Invalid, or HttpRefusal for a slow body or another content type."""
        self._raw = await read_body(self, limits)
        if not self._raw.strip():
            self._raw = b""
            return
        _require_json(self.headers.get("content-type"))
        self.payload = parse_json(self._raw)
        self._cleaned = clean_json(self.payload) if _may_need_cleaning(self._raw) else self.payload

    async def body(self) -> bytes:
        return self._raw

    async def json(self) -> Any:
        return self._cleaned


def parse_json(raw: bytes) -> Any:
    """Raises Invalid with a sentence for anything that is not one JSON value of reasonable form."""
    try:
        # Surrogates written as bytes are no UTF-8, but they are characters, and no add fails for one.
        value = _DECODER.decode(raw.decode("utf-8", "surrogatepass").removeprefix("\ufeff"))
    except UnicodeDecodeError:
        raise Invalid("The body must be JSON in UTF-8.", code="invalid_json") from None
    except json.JSONDecodeError as error:
        raise Invalid(
            f"The body is not valid JSON: {error.msg.lower()} at line {error.lineno} column {error.colno}.",
            code="invalid_json",
        ) from None
    except RecursionError:
        raise _too_deep() from None
    if not _within_depth(value):
        raise _too_deep()
    return value


async def read_body(request: Request, limits: BodyLimits) -> bytes:
    """Raises TooLarge as soon as that is known, and HttpRefusal when the body keeps us waiting."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limits.max_bytes:
        raise _too_large(limits)
    pieces: list[bytes] = []
    size = 0
    loop = asyncio.get_running_loop()
    end = loop.time() + limits.total_seconds
    try:
        async with asyncio.timeout(limits.idle_seconds) as patience:
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                piece = message.get("body", b"")
                size += len(piece)
                if size > limits.max_bytes:
                    raise _too_large(limits)
                pieces.append(piece)
                if not message.get("more_body", False):
                    break
                patience.reschedule(min(end, loop.time() + limits.idle_seconds))
    except TimeoutError:
        raise HttpRefusal(
            408, "body_too_slow", "The body did not arrive in time; send it again without pauses.", close=True
        ) from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _require_json(content_type: str | None) -> None:
    media, *parameters = [part.strip().lower() for part in (content_type or "").split(";")]
    charsets = [part.removeprefix("charset=").strip('"') for part in parameters if part.startswith("charset=")]
    is_json = media == "application/json" or (media.startswith("application/") and media.endswith("+json"))
    if not is_json or any(charset not in ("utf-8", "utf8") for charset in charsets):
        raise HttpRefusal(415, "unsupported_media_type", "The body must be sent as Content-Type: application/json.")


def _may_need_cleaning(raw: bytes) -> bool:
    # NULs and surrogates come as escapes, or as bytes that pure ASCII text does not have; so does what is not NFC.
    return not raw.isascii() or b"\\u" in raw or b"\x00" in raw


def _within_depth(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return True
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        name = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Invalid(
            "The body gives the same key twice in one object; which of the two counts is anybody's guess.",
            code="invalid_json",
            errors=[FieldError(name[:LONGEST_NAME], "is given twice")],
        )
    return result


def _integer(digits: str) -> int:
    if len(digits) <= 20 and -_INT64 <= (number := int(digits)) < _INT64:
        return number
    raise Invalid("The body has a whole number beyond 64 bits; send it as a string.", code="invalid_json")


def _real(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Invalid("The body has a number beyond what a double can hold.", code="invalid_json")
    return number


def _constant(name: str) -> float:
    raise Invalid(f"The body has {name}, which is no JSON; send null or leave the field out.", code="invalid_json")


def _too_deep() -> Invalid:
    return Invalid(f"The body is nested more than {MAX_DEPTH} levels deep.", code="invalid_json")


def _too_large(limits: BodyLimits) -> TooLarge:
    return TooLarge(
        f"The body is larger than {limits.max_bytes:,} bytes; split the text or the batch.", code="body_too_large"
    )


# strict=False: control characters may stand in strings as they are.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant, strict=False
)
