"""Who is calling: the authenticated tenant and principal, nothing more."""

from dataclasses import dataclass

from memory_plane.core.text import clean_text

MAX_IDENTITY_CHARS = 200
"""So that `memory.owner:<principal>` is a tag within its limit, and workflow ids stay within Temporal's."""


@dataclass(frozen=True, slots=True)
class Caller:
    tenant_id: str
    principal_id: str


def identity_problem(name: str, value: object) -> str | None:
    """What is wrong with a tenant or principal id, in words without the value; None where it can be seated.

    `*` would be a glob in a grant, and what the database stores otherwise than given would be somebody else.
    """
    if not isinstance(value, str):
        return f"the {name} is not a string"
    if not value.strip():
        return f"the {name} is blank"
    if len(value) > MAX_IDENTITY_CHARS:
        return f"the {name} is longer than {MAX_IDENTITY_CHARS} characters"
    if value != value.strip():
        return f"the {name} begins or ends with white space"
    if "*" in value or not value.isprintable():
        return f"the {name} has a character that names must not have (*, or one that cannot be printed)"
    if clean_text(value) != value:
        return f"the {name} is not in the Unicode form NFC"
    return None
