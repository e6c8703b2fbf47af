"""An identity provider for tests: keys, a JWKS, tokens signed by it, and a small server that serves the set."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

ISSUER, AUDIENCE = "https://issuer.example", "memory"
ES, RS = jwt.algorithms.ECAlgorithm, jwt.algorithms.RSAAlgorithm


class Provider:
    """Signs with an elliptic-curve key, and has an RSA one for a change of keys."""

    def __init__(self) -> None:
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def jwks(self, *kids: str) -> dict[str, Any]:
        known = {
            "ec": {**ES.to_jwk(self.ec.public_key(), as_dict=True), "kid": "ec", "use": "sig", "alg": "ES256"},
            "rsa": {**RS.to_jwk(self.rsa.public_key(), as_dict=True), "kid": "rsa", "use": "sig"},
            "oct": {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA", "kid": "oct", "alg": "HS256"},
        }
        return {"keys": [known[kid] for kid in kids]}

    def token(self, *, kid: str | None = "ec", algorithm: str = "ES256", key: Any = None, **changes: Any) -> str:
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "bob", "tenant_id": "t", "exp": now + 300, "iat": now}
        claims = {name: value for name, value in (claims | changes).items() if value is not None}
        headers = {} if kid is None else {"kid": kid}
        if key is None:
            key = self.rsa if algorithm.startswith(("RS", "PS")) else self.ec
        return jwt.encode(claims, key, algorithm=algorithm, headers=headers)


class KeyServer(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.body: bytes = b""
        self.status = 200
        self.fetches = 0
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/jwks"

    def serve(self, jwks: dict[str, Any]) -> None:
        self.body = json.dumps(jwks).encode()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, KeyServer)
        self.server.fetches += 1
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def key_server() -> Iterator[KeyServer]:
    server = KeyServer()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
