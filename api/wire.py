"""Answers as JSON, straight from the model: FastAPI would validate once more what a service has just made."""

from collections.abc import Collection

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.responses import Response

from memory_plane.contracts.errors import NotFound

LONGEST_ID = 200


def answer(model: BaseModel, *, always: Collection[str] = ()) -> Response:
    """200 with the model's camelCase keys; what is None is left out, except at the top where `always` names it."""
    if not always:
        return _json(model.model_dump_json(by_alias=True, exclude_none=True).encode())
    body = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return _json(to_json(dict.fromkeys(always) | body))


def answer_with_nulls(model: BaseModel) -> Response:
    """As `answer`, but entries keep their nulls: the origin's feed has them."""
    body = model.model_dump(mode="json", by_alias=True)
    return _json(to_json({name: value for name, value in body.items() if value is not None}))


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")


def require_id(id_: str) -> None:
    """An id that no row can have is answered like any unknown one, before the database sees it."""
    if len(id_) > LONGEST_ID or not id_.isascii() or not id_.isprintable():
        raise NotFound("There is nothing under this id, or it is not yours to see.")
