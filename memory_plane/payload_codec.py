"""Encryption of what Temporal keeps for us: AES-256-GCM around whole payloads, by the keys of the configuration.

A host whose workers exchange payloads with ours takes the same `data_converter` with the same keys; in another
language, the `encryption` sample of Temporal's SDK for it. The form is the same: 12 bytes of nonce, then what
AES-GCM made, tag included; metadata `encoding` and `encryption-key-id`.
"""

import dataclasses
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter, PayloadCodec

from memory_plane.contracts.errors import ErrorKind, PlaneError
from memory_plane.core.payload_keys import PayloadKeys

ENCODING = b"binary/encrypted"
KEY_ID = "encryption-key-id"
_NONCE_BYTES = 12


class PayloadUnreadable(PlaneError):
    """A payload was encrypted with a key that we do not have. Retrying helps once the configuration has it."""

    kind = ErrorKind.UNAVAILABLE
    default_code = "payload_key"


class EncryptingCodec(PayloadCodec):
    """What is not encrypted is read as it is: it was written before, or by hand (`temporal workflow update`)."""

    def __init__(self, keys: PayloadKeys) -> None:
        self._writes_with = keys.writes_with
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.keys.items()}

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._encrypted(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Raises PayloadUnreadable."""
        return [self._decrypted(payload) for payload in payloads]

    def _encrypted(self, payload: Payload) -> Payload:
        if self._writes_with is None:
            return payload
        key_id = self._writes_with.encode()
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self._writes_with].encrypt(nonce, payload.SerializeToString(), None)
        return Payload(metadata={"encoding": ENCODING, KEY_ID: key_id}, data=nonce + sealed)

    def _decrypted(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCODING:
            return payload
        key_id = payload.metadata.get(KEY_ID, b"")
        name = key_id.decode("ascii", "replace")[:100]
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise PayloadUnreadable(
                f"A payload in Temporal was encrypted with the key {name!r}, which this process has not; "
                "add it to MEMORY_PAYLOAD_KEYS."
            )
        try:
            opened = cipher.decrypt(payload.data[:_NONCE_BYTES], payload.data[_NONCE_BYTES:], None)
        except (InvalidTag, ValueError):  # ValueError: shorter than a nonce
            raise PayloadUnreadable(
                f"A payload in Temporal cannot be opened with the key {name!r} of this process; it was encrypted with "
                "another one of the same name, or changed since. Put right MEMORY_PAYLOAD_KEYS."
            ) from None
        return Payload.FromString(opened)


def data_converter(keys: PayloadKeys | None) -> DataConverter:
    """The converter of every client, worker, replayer and test environment; with keys, payloads are encrypted."""
    if keys is None:
        return pydantic_data_converter
    return dataclasses.replace(pydantic_data_converter, payload_codec=EncryptingCodec(keys))
