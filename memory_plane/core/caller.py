"""Who is calling: the authenticated tenant and principal, nothing more."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    tenant_id: str
    principal_id: str
