"""A chat model that answers JSON, over any OpenAI-compatible endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
from pydantic_core import from_json

from memory_plane.models.endpoint import Endpoint, post_json
from memory_plane.models.errors import BadReply, EndpointRejected

CHAT_STYLE = "openai"


@dataclass(frozen=True)
class ChatClient:
    """Asks one model. `temperature` is sent only if given: some models accept none but their own."""

    http: httpx.AsyncClient
    endpoint: Endpoint
    temperature: float | None = None

    async def complete_json(
        self, system: str, user: str, schema: dict[str, Any], *, name: str = "reply"
    ) -> dict[str, Any]:
        """The object that the model answers under the JSON schema.

        The schema is the endpoint's to keep, and not all do: check what comes back. Raises EndpointRejected when
        the model declines, BadReply when it answers no JSON object, or another EndpointFault.
        """
        payload: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": name, "schema": schema, "strict": True},
            },
        }
        if self.temperature is not None:
            payload["temperature"] = self.temperature
        reply = await post_json(self.http, self.endpoint, "/v1/chat/completions", payload)
        return _object(self._content(reply), self.endpoint.name)

    def _content(self, reply: Any) -> str:
        name = self.endpoint.name
        match reply:
            case {"choices": [{"finish_reason": "length"}, *_]}:
                raise BadReply(f"The answer of {name} was cut off at its length limit; raise it, or send less.")
            case {"choices": [{"finish_reason": "content_filter"}, *_]}:
                raise EndpointRejected(f"{name} filtered the answer.")
            case {"choices": [{"message": {"refusal": str(refusal)}}, *_]} if refusal:
                raise EndpointRejected(f"The model at {name} declined to answer.")
            case {"choices": [{"message": {"content": str(content)}}, *_]}:
                return content
            case _:
                raise BadReply(f"The reply of {name} is not a chat completion; check the base URL.")


def _object(content: str, name: str) -> dict[str, Any]:
    # Models that know no response_format wrap JSON into a fenced block.
    text = content.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError:
        raise BadReply(f"The model at {name} answered no JSON.") from None
    if not isinstance(value, dict):
        raise BadReply(f"The model at {name} answered JSON that is not an object.")
    return value
