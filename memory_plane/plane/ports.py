"""What a host may inject. Each port has a default of ours and a fake that passes the same tests."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from memory_plane.core.caller import Caller
from memory_plane.core.grants import GrantRule
from memory_plane.core.live_sources import LiveHit


class GrantStore(Protocol):
    """Where the principal's rules come from; asked once per request."""

    async def collect_grants(self, principal_id: str, tenant_id: str) -> Sequence[GrantRule]:
        """The rules of the principal and of its roles in this tenant, expired ones included or not."""
        ...


@runtime_checkable
class WritableGrantStore(GrantStore, Protocol):
    async def put_grant(self, tenant_id: str, rule: GrantRule) -> None: ...

    async def revoke(self, tenant_id: str, rule_id: str) -> bool:
        """False when there was no such rule."""
        ...


class WorkflowStarter(Protocol):
    """How the add path hands over what remains to be done."""

    async def start_ingest(self, tenant_id: str, version_ids: Sequence[str]) -> None:
        """Start or nudge the ingest of these versions. Raises `Unavailable` when Temporal cannot be reached."""
        ...

    async def wait_ingest(self, tenant_id: str, version_ids: Sequence[str], within: float) -> bool:
        """Wait for the ingest's end, at most `within` seconds; False when it is still going on."""
        ...


@runtime_checkable
class WideningStarter(Protocol):
    """A starter that also has audience requests waited for."""

    async def start_widening(self, tenant_id: str, request_id: str) -> None:
        """Start the workflow of an open request, unless it runs. Raises `Unavailable`."""
        ...


@runtime_checkable
class HealthChecked(Protocol):
    """A starter that can tell whether its server is there."""

    async def check_health(self) -> None:
        """Raises OSError or TimeoutError when it cannot be reached."""
        ...


class SourceProvider(Protocol):
    """A live source that a search asks beside the memory. It fails soft: late or broken, it is left out and named."""

    @property
    def id(self) -> str:
        """What `sources` of a request selects it by; not `local`."""
        ...

    async def search_live(self, caller: Caller, query: str, limit: int) -> Sequence[LiveHit]:
        """Best first, only what this caller may see."""
        ...
