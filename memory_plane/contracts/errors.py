"""Typed refusals. Each says what happened and what to do, and carries no content and no secret.

A door maps `kind` to its own terms (HTTP status, Temporal error type, exit code); `code` is stable and documented.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class ErrorKind(StrEnum):
    """What went wrong, in the terms of a door; the HTTP status stands beside each in api/problems.py."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    KEY_REUSED = "key_reused"
    TOO_LARGE = "too_large"
    UNSUPPORTED = "unsupported"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One refused input: `field` is a dotted path of names (never values), `message` a sentence."""

    field: str
    message: str


class PlaneError(Exception):
    """Base of all typed refusals."""

    kind: ErrorKind = ErrorKind.INVALID
    default_code = "invalid"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        errors: Sequence[FieldError] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.default_code
        self.errors = tuple(errors)
        self.retry_after = retry_after
        """Seconds after which the same call may work, where that is known."""
        self.request_id: str | None = None
        """Set by the client, from the answer: what to look for in the server's logs."""


class Invalid(PlaneError):
    kind = ErrorKind.INVALID
    default_code = "invalid"


class Unauthenticated(PlaneError):
    kind = ErrorKind.UNAUTHENTICATED
    default_code = "unauthenticated"


class Forbidden(PlaneError):
    kind = ErrorKind.FORBIDDEN
    default_code = "capability_missing"


class NotFound(PlaneError):
    kind = ErrorKind.NOT_FOUND
    default_code = "not_found"


class Conflict(PlaneError):
    kind = ErrorKind.CONFLICT
    default_code = "conflict"


class KeyReused(PlaneError):
    kind = ErrorKind.KEY_REUSED
    default_code = "idempotency_key_reused"


class TooLarge(PlaneError):
    kind = ErrorKind.TOO_LARGE
    default_code = "too_large"


class Unsupported(PlaneError):
    """An optional verb that the mounted store does not offer."""

    kind = ErrorKind.UNSUPPORTED
    default_code = "unsupported"


class Throttled(PlaneError):
    kind = ErrorKind.THROTTLED
    default_code = "throttled"


class Unavailable(PlaneError):
    """A part we need is down; nothing was promised. Retrying later is right."""

    kind = ErrorKind.UNAVAILABLE
    default_code = "unavailable"
