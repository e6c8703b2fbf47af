"""The caller's visibility as SQL: it narrows what a channel reads and never hides what the authority shows."""

from memory_plane.core.visibility import VisibilityScope


def predicate(scope: VisibilityScope, params: list[object], document: str = "d") -> str:
    """A boolean over the alias of `memory.document`; its values are appended to `params` ($n is then len(params)).

    Exact tags go by array overlap, which the GIN index on `access_tags` serves. The tenant is the caller's to filter.
    """
    if scope.everything:
        return "true"
    params.append(scope.principal_id)
    either = [f"{document}.created_by_principal_id = ${len(params)}"]
    if scope.exact_tags:
        params.append(list(scope.exact_tags))
        either.append(f"{document}.access_tags && ${len(params)}::text[]")
    if scope.like_patterns:
        params.append(list(scope.like_patterns))
        either.append(
            f"EXISTS (SELECT FROM unnest({document}.access_tags) AS tag WHERE tag LIKE ANY (${len(params)}::text[]))"
        )
    return f"({' OR '.join(either)})"
