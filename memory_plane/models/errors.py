"""The ways a model endpoint fails, typed by who can do something about it.

No error quotes a reply: endpoints echo the text they were given.
"""

from memory_plane.contracts.errors import Invalid, Unavailable


class EndpointFault(Unavailable):
    """Base of all faults of a model endpoint.

    `isolable` says that one text of the batch may be to blame, so that trying the texts apart can help.
    """

    default_code = "endpoint_fault"

    def __init__(self, detail: str, *, retry_after: float | None = None, isolable: bool = False) -> None:
        super().__init__(detail, retry_after=retry_after)
        self.isolable = isolable


class EndpointUnavailable(EndpointFault):
    """The endpoint cannot be reached, is overloaded or broken. Retrying later is right, for as long as it takes."""

    default_code = "endpoint_unavailable"


class EndpointTimeout(EndpointUnavailable):
    """The endpoint did not answer in time."""

    default_code = "endpoint_timeout"


class CircuitOpen(EndpointUnavailable):
    """The endpoint failed lately and was not asked again; `retry_after` says when it will be."""

    default_code = "endpoint_circuit_open"


class EndpointMisconfigured(EndpointUnavailable):
    """A key, a model name or a URL is wrong. Retrying is right once the operator has changed it."""

    default_code = "endpoint_misconfigured"


class EndpointRejected(EndpointFault):
    """The endpoint refuses this input (4xx) and would again."""

    default_code = "endpoint_rejected"


class BadReply(EndpointFault):
    """The endpoint answered, and the answer cannot be trusted: a wrong count, wrong dims, NaN, no JSON."""

    default_code = "endpoint_bad_reply"


class ModelUnusable(Invalid):
    """The model cannot serve a memory at all, whatever is retried."""

    default_code = "model_unusable"


class RerankQueryTooLong(Invalid):
    """The query leaves too little room for a document within the reranker's token limit."""

    default_code = "rerank_query_too_long"
