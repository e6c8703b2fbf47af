"""A codec server: opens encrypted payloads for the Temporal UI and command line, which have no keys.

`POST /decode` and `POST /encode` as Temporal's remote codecs are asked: payloads in, payloads out, as JSON. Whoever
reaches it reads the histories, so it stands on the loopback interface of an operator's machine, or takes a token.
"""

import hmac
import sys
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

import uvicorn
from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from temporalio.api.common.v1 import Payload, Payloads

from api.body import BodyLimits, read_body
from api.problems import HttpRefusal, problem
from memory_plane.contracts.errors import TooLarge
from memory_plane.core.payload_keys import PayloadKeys
from memory_plane.payload_codec import EncryptingCodec, PayloadUnreadable
from memory_plane.settings import PayloadSettings, SettingsInvalid

LIMITS = BodyLimits(max_bytes=16_000_000)
"""A page of events of the UI: gRPC's 4 MB several times over, in base64."""

Convert = Callable[[Sequence[Payload]], Awaitable[list[Payload]]]


class CodecServerRefused(Exception):
    """It must not be served so; the message says what to do."""


def codec_app(keys: PayloadKeys, *, origins: Sequence[str], token: str | None, host: str = "127.0.0.1") -> Starlette:
    """For browsers that show one of these origins. Raises CodecServerRefused for a `host` that others reach, without a
    token."""
    if token is None and not _loopback(host):
        raise CodecServerRefused(
            f"On {host} others than you could read the histories; set MEMORY_CODEC_TOKEN, which callers then send as a "
            "bearer token, or listen on 127.0.0.1."
        )
    codec = EncryptingCodec(keys)

    def route(path: str, convert: Convert) -> Route:
        async def answer(request: Request) -> Response:
            return await _converted(request, convert, token)

        return Route(path, answer, methods=["POST"])

    return Starlette(
        routes=[route("/decode", codec.decode), route("/encode", codec.encode), Route("/healthz", _alive)],
        middleware=[
            Middleware(
                CORSMiddleware,
                allow_origins=list(origins),
                allow_methods=["POST"],
                allow_headers=["content-type", "x-namespace", "authorization"],
                allow_credentials=True,
                allow_private_network=True,
                max_age=600,
            )
        ],
    )


async def _converted(request: Request, convert: Convert, token: str | None) -> Response:
    if token is None and not _loopback(urlsplit(f"//{request.headers.get('host', '')}").hostname or ""):
        # A page of another name that was made to lead here (DNS rebinding) is no page of the operator's.
        return problem(403, "codec_host", "Without a token it answers to 127.0.0.1 and localhost alone.")
    if token is not None and not _bears(request, token):
        return problem(401, "unauthenticated", "Send Authorization: Bearer with the MEMORY_CODEC_TOKEN of this server.")
    try:
        payloads = json_format.Parse(await read_body(request, LIMITS), Payloads(), ignore_unknown_fields=True)
        converted = await convert(payloads.payloads)
    except (json_format.ParseError, UnicodeDecodeError):
        return problem(400, "invalid", 'Send {"payloads": […]} as Temporal writes it: metadata and data in base64.')
    except (HttpRefusal, TooLarge) as refusal:
        return problem(getattr(refusal, "status", 413), refusal.code, refusal.detail)
    except PayloadUnreadable as unreadable:
        # 4xx, so that the UI shows the sentence instead of trying again.
        return problem(400, unreadable.code, unreadable.detail)
    return Response(json_format.MessageToJson(Payloads(payloads=converted), indent=None), media_type="application/json")


async def _alive(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _bears(request: Request, token: str) -> bool:
    given = request.headers.get("authorization", "")
    return hmac.compare_digest(given.encode(), f"Bearer {token}".encode())


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(host: str, port: int, origins: Sequence[str]) -> None:
    """Until a signal. Raises SettingsInvalid and CodecServerRefused."""
    settings = PayloadSettings.load()
    if settings.payload_keys is None:
        raise CodecServerRefused(
            "MEMORY_PAYLOAD_KEYS is not set, so nothing is encrypted and there is nothing to open."
        )
    token = settings.memory_codec_token
    bearer = None if token is None else token.get_secret_value()
    app = codec_app(settings.payload_keys, origins=origins, token=bearer, host=host)
    uvicorn.run(app, host=host, port=port, access_log=False, server_header=False)


if __name__ == "__main__":
    try:
        serve(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
    except (SettingsInvalid, CodecServerRefused) as refusal:
        sys.exit(f"The codec server cannot start:\n{refusal}")
