"""One spelling for the base URL of a model endpoint, so that one endpoint never counts as two."""

import re
from urllib.parse import SplitResult, urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_ROUTES = (
    "/v1/embeddings",
    "/embeddings",
    "/embed",
    "/api/embed",
    "/rerank",
    "/v1/rerank",
    "/v2/rerank",
    "/v1/chat/completions",
    "/chat/completions",
)


class BaseUrlRefused(ValueError):
    """A base URL that cannot work; the message names the fault and the fix, and quotes nothing of the URL."""


def normalize_base_url(url: str) -> str:
    """The one spelling of `url`: lower-case scheme and host, no default port, no trailing slash or `/v1`.

    A path before `/v1` is kept (gateways mount APIs below one). Raises BaseUrlRefused for what is not the root
    of an endpoint: another scheme, credentials, a query, a fragment, or the path of one route.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise BaseUrlRefused("is not a URL; write it like http://localhost:8080") from None
    _refuse(url, parts)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    origin = host if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"
    path = re.sub(r"/{2,}", "/", parts.path).rstrip("/")
    if path.endswith(_ROUTES):
        raise BaseUrlRefused("must be the root of the endpoint: leave out the route at its end, it is added")
    return f"{parts.scheme}://{origin}{path.removesuffix('/v1').rstrip('/')}"


def _refuse(url: str, parts: SplitResult) -> None:
    if parts.scheme not in _DEFAULT_PORTS:
        raise BaseUrlRefused("must begin with http:// or https://")
    if not parts.hostname or any(c.isspace() or not c.isprintable() for c in url.strip()):
        raise BaseUrlRefused("names no host; write it like http://localhost:8080")
    if parts.username is not None or parts.password is not None:
        raise BaseUrlRefused("must not hold credentials; give the key in its own variable")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise BaseUrlRefused("must not hold a query or a fragment; give the root of the endpoint")
