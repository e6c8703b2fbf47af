"""The closed vocabularies. Each is one StrEnum here and one CHECK in SQL; a test holds the two equal."""

from enum import StrEnum


class Provenance(StrEnum):
    """How content was obtained."""

    STATED = "stated"
    INFERRED = "inferred"
    UNKNOWN = "unknown"


class Lineage(StrEnum):
    """Where a version's data comes from; stored in `version.source_class`."""

    NATIVE = "native"
    IMPORTED = "imported"
    DERIVED = "derived"


class TemporalClass(StrEnum):
    EVENT = "event"
    DEADLINE = "deadline"
    STATE = "state"
    LESSON = "lesson"


class RetentionClass(StrEnum):
    DURABLE = "durable"
    STANDARD = "standard"
    EPHEMERAL = "ephemeral"
    SOURCE_ONLY = "source_only"


class VersionStatus(StrEnum):
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DEPRECATED = "deprecated"
    ARCHIVED = "archived"
    TOMBSTONED = "tombstoned"


class CreatedByKind(StrEnum):
    HUMAN = "human"
    AGENT = "agent"
    SYSTEM = "system"
    ADAPTER = "adapter"


class SourceChannel(StrEnum):
    """The ranking prior of an input (never stored): how public the place was where it was said."""

    CHANNEL = "channel"
    THREAD = "thread"
    CALL = "call"
    NATIVE = "native"
    RECORD = "record"


class GenerationState(StrEnum):
    BUILDING = "building"
    STAGED = "staged"
    LIVE = "live"
    ARCHIVED = "archived"
    FAILED = "failed"
    RETIRED = "retired"


class EmbedState(StrEnum):
    PENDING = "pending"
    EMBEDDED = "embedded"
    NOT_CONFIGURED = "not_configured"
    FAILED = "failed"


class EdgeRel(StrEnum):
    MENTIONS = "mentions"
    ABOUT = "about"
    AUTHORED_BY = "authored_by"
    INVOLVES = "involves"
    PART_OF = "part_of"
    DERIVED_FROM = "derived_from"
    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"


class EndpointType(StrEnum):
    """What an edge may start or end at."""

    DOCUMENT = "document"
    VERSION = "version"
    CHUNK = "chunk"
    ENTITY = "entity"


class FeedEventKind(StrEnum):
    CAPTURED = "captured"
    RETAGGED = "retagged"
    SHARED = "shared"
    RECLASSED = "reclassed"
    DEPRECATED = "deprecated"
    FORGOTTEN = "forgotten"
    PURGED = "purged"


class RunStatus(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class ProcessState(StrEnum):
    PENDING = "pending"
    DONE = "done"
    SKIPPED = "skipped"
    QUARANTINED = "quarantined"


class GrantEffect(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


class GrantOrigin(StrEnum):
    SYSTEM = "system"
    ROLE = "role"
    CREATOR = "creator"
    INVOKER = "invoker"


class WideningState(StrEnum):
    """The life of an audience request."""

    OPEN = "open"
    APPROVED = "approved"
    DECLINED = "declined"


class Verb(StrEnum):
    """The actions of the capability resource `memory`."""

    ADD = "add"
    SEARCH = "search"
    FORGET = "forget"
    PURGE = "purge"
    OPERATE = "operate"


class Evidence(StrEnum):
    STRONG = "strong"
    WEAK = "weak"
    NONE = "none"


class Degraded(StrEnum):
    """Reasons a result is less than it could be. Always a list, never a boolean."""

    EMBED_PENDING = "embed_pending"
    EMBED_UNAVAILABLE = "embed_unavailable"
    LEXICAL_ONLY = "lexical_only"
    INGEST_DELAYED = "ingest_delayed"
    DENSE_UNAVAILABLE = "dense_unavailable"
    LEXICAL_UNAVAILABLE = "lexical_unavailable"
    RERANK_UNAVAILABLE = "rerank_unavailable"
    RERANK_QUERY_TOO_LONG = "rerank_query_too_long"
    PAGE_INCOMPLETE = "page_incomplete"
    HISTORY_PARTIAL = "history_partial"
    LIVE_TIMEOUT = "live_timeout"
    LIVE_ERROR = "live_error"


class EmbedStyle(StrEnum):
    OPENAI = "openai"
    TEI = "tei"
    OLLAMA = "ollama"


class RerankStyle(StrEnum):
    TEI = "tei"
    COHERE = "cohere"
    VOYAGE = "voyage"
