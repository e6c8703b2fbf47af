"""The ways in which a fake model endpoint fails on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Route = Literal["embed", "rerank", "chat"]


@dataclass(frozen=True)
class Status:
    """Answer with this HTTP status; `retry_after` is sent as it stands (seconds or an HTTP date)."""

    code: int
    retry_after: str | None = None
    body: str = '{"error": {"message": "failed on purpose"}}'
    content_type: str = "application/json"


@dataclass(frozen=True)
class HtmlPage:
    """Answer 200 with a page of HTML, as captive portals and misrouted proxies do."""


@dataclass(frozen=True)
class Body:
    """Answer 200 with exactly this body."""

    text: str
    content_type: str = "application/json"


@dataclass(frozen=True)
class HugeReply:
    """Answer 200 with a JSON string of this many bytes."""

    size: int


@dataclass(frozen=True)
class Redirect:
    """Answer 307 to `location`."""

    location: str = "http://127.0.0.1:9/elsewhere"


@dataclass(frozen=True)
class Reset:
    """Reset the connection instead of answering."""


@dataclass(frozen=True)
class Delay:
    """Answer well, `seconds` late. For load; to order events in a test use `FakeEndpoint.hold`."""

    seconds: float


@dataclass(frozen=True)
class WrongCount:
    """Answer with `delta` more (or, negative, fewer) vectors, scores or choices than asked for."""

    delta: int = -1


@dataclass(frozen=True)
class WrongDims:
    """Answer with vectors of this length; `only_last` spoils just the last one of the batch."""

    dims: int
    only_last: bool = False


@dataclass(frozen=True)
class BadNumber:
    """Replace one number of the last vector or score: NaN, Infinity, null, a string, a boolean."""

    kind: Literal["nan", "inf", "null", "string", "bool"] = "nan"


@dataclass(frozen=True)
class ZeroVector:
    """Answer with a last vector of zeros, which has no direction and so no cosine."""


@dataclass(frozen=True)
class ShuffledIndex:
    """Answer rightly, in another order than asked (`index` tells which is which)."""


@dataclass(frozen=True)
class DuplicateIndex:
    """Answer with one index twice and another one missing."""


@dataclass(frozen=True)
class MissingIndex:
    """Answer without any `index`."""


@dataclass(frozen=True)
class Poison:
    """Refuse with `code` every request in which a text contains `marker`; answer the others well."""

    marker: str = "POISON"
    code: int = 400


Fault = (
    Status
    | HtmlPage
    | Body
    | HugeReply
    | Redirect
    | Reset
    | Delay
    | WrongCount
    | WrongDims
    | BadNumber
    | ZeroVector
    | ShuffledIndex
    | DuplicateIndex
    | MissingIndex
    | Poison
)
