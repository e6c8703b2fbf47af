"""The id of a request: taken from X-Request-Id or made, sent back, and known to whatever is logged meanwhile."""

import re
from typing import Any
from uuid import uuid4

from starlette.datastructures import Headers

from memory_plane.logs import name_in_logs

HEADER = "X-Request-Id"

_ACCEPTED = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_KEY = "memory.request_id"


def request_id(scope: Any) -> str:
    """The same id each time for one ASGI scope; what a client sends counts if it is short and plain."""
    known = scope.get(_KEY)
    if isinstance(known, str):
        return known
    sent = Headers(scope=scope).get(HEADER)
    chosen = sent if sent is not None and _ACCEPTED.fullmatch(sent) else uuid4().hex
    scope[_KEY] = chosen
    name_in_logs(request_id=chosen)
    return chosen
