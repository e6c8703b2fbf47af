"""The verbs that hosts use without HTTP, for an identity that the host has authenticated."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import Invalid
from memory_plane.contracts.hosting import HostAdd, HostFeed, HostList, HostSearch
from memory_plane.contracts.validation import invalid
from memory_plane.contracts.wire import AddResponse, FeedResponse, ListResponse, SearchResponse
from memory_plane.contracts.workflows import Identity
from memory_plane.core.caller import Caller, identity_problem
from memory_plane.core.text import clean_json
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import Access
from memory_plane.plane.adding import Adding
from memory_plane.plane.feed import Feed
from memory_plane.plane.library import Library
from memory_plane.plane.search import Search

M = TypeVar("M", bound=BaseModel)
Given = Mapping[str, Any] | BaseModel
"""As it came in. It is judged here, so that a refusal is one of ours: no retry would cure it."""


class Hosting:
    def __init__(self, access: Access, adding: Adding, search: Search, library: Library, feed: Feed) -> None:
        self._access = access
        self._adding = adding
        self._search = search
        self._library = library
        self._feed = feed

    async def search(self, given: Given) -> SearchResponse:
        wanted = _checked(HostSearch, given)
        return await self._search.search(await self._visibility(wanted.identity, Verb.SEARCH), wanted.request)

    async def add(self, given: Given, own_key: str) -> AddResponse:
        """`own_key` is of the call, the same for each of its attempts; it counts where none is given."""
        raw = _raw(given)
        wanted = _checked(HostAdd, raw)
        visibility = await self._visibility(wanted.identity, Verb.ADD)
        # A model that a host's SDK has written out names every field; what is kept is what was meant.
        payload = {name: value for name, value in raw["document"].items() if value is not None}
        key = wanted.idempotency_key or own_key
        return (await self._adding.add(visibility, wanted.document, payload, key)).response

    async def list(self, given: Given) -> ListResponse:
        wanted = _checked(HostList, given)
        visibility = await self._visibility(wanted.identity, Verb.SEARCH)
        return await self._library.list(visibility, wanted.limit, wanted.cursor)

    async def feed(self, given: Given) -> FeedResponse:
        wanted = _checked(HostFeed, given)
        visibility = await self._visibility(wanted.identity, Verb.SEARCH)
        return await self._feed.entries(visibility, wanted.after, wanted.limit, wanted.exclude_generator)

    async def _visibility(self, identity: Identity, verb: Verb) -> Visibility:
        for name, value in (("tenant", identity.tenant_id), ("principal", identity.principal_id)):
            if (problem := identity_problem(name, value)) is not None:
                raise Invalid(f"The identity cannot be seated: {problem}.", code="identity")
        visibility = await self._access.visibility(Caller(identity.tenant_id, identity.principal_id))
        self._access.require(visibility, verb)
        return visibility


def _raw(given: Given) -> dict[str, Any]:
    return given.model_dump(mode="json", by_alias=True) if isinstance(given, BaseModel) else dict(given)


def _checked(model: type[M], given: Given) -> M:
    try:
        return given if isinstance(given, model) else model.model_validate(clean_json(_raw(given)))
    except ValidationError as error:
        raise invalid(error, model) from None
