"""The codec by itself: keys, their rotation, and what cannot be opened."""

import pytest
from temporalio.api.common.v1 import Payload

from memory_plane.core.payload_keys import PayloadKeys
from memory_plane.payload_codec import EncryptingCodec, PayloadUnreadable, data_converter
from memory_plane.settings import PayloadSettings, SettingsInvalid
from memory_plane.temporal import DATA_CONVERTER
from tests.encryption.conftest import key

PLAIN = Payload(metadata={"encoding": b"json/plain"}, data=b'"the kettle"')


def codec(text: str) -> EncryptingCodec:
    return EncryptingCodec(PayloadKeys.parse(text))


async def test_what_was_encrypted_is_opened_again_and_two_of_the_same_differ() -> None:
    one = codec(f"2026:{key('a')}")
    first, second = await one.encode([PLAIN, PLAIN])
    assert first.metadata["encoding"] == b"binary/encrypted"
    assert first.metadata["encryption-key-id"] == b"2026"
    assert b"kettle" not in first.SerializeToString()
    assert first.data != second.data
    assert await one.decode([first, second]) == [PLAIN, PLAIN]


async def test_old_keys_open_and_the_first_one_writes() -> None:
    old = codec(f"2025:{key('a')}")
    both = codec(f"2026:{key('b')}, 2025:{key('a')}")
    [before], [after] = await old.encode([PLAIN]), await both.encode([PLAIN])
    assert after.metadata["encryption-key-id"] == b"2026"
    assert await both.decode([before, after]) == [PLAIN, PLAIN]


async def test_the_first_and_the_last_step_write_plain_and_open_what_is_not() -> None:
    [sealed] = await codec(f"2026:{key('a')}").encode([PLAIN])
    reading = codec(f"plain,2026:{key('a')}")
    assert await reading.encode([PLAIN]) == [PLAIN]
    assert await reading.decode([sealed, PLAIN]) == [PLAIN, PLAIN]


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (f"2025:{key('a')}", "the key '2026', which this process has not; add it to MEMORY_PAYLOAD_KEYS"),
        (f"2026:{key('b')}", "cannot be opened with the key '2026' of this process"),
    ],
)
async def test_another_key_is_told_in_a_sentence(keys: str, says: str) -> None:
    [sealed] = await codec(f"2026:{key('a')}").encode([PLAIN])
    with pytest.raises(PayloadUnreadable, match=says):
        await codec(keys).decode([sealed])


@pytest.mark.parametrize("data", [b"", b"short", b"twelve bytes", b"x" * 100])
async def test_nonsense_is_no_crash(data: bytes) -> None:
    nonsense = Payload(metadata={"encoding": b"binary/encrypted", "encryption-key-id": b"2026"}, data=data)
    with pytest.raises(PayloadUnreadable):
        await codec(f"2026:{key('a')}").decode([nonsense])


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("plain", "must have a key"),
        ("2026", "no key in place 1"),
        (f"2026:{key('a')},2025:c2hvcnQ=", "no key in place 2"),
        (f"2026:{key('a')},plain", "no key in place 2"),
        (f"2026:{key('a')},2026:{key('b')}", "two keys with the id 2026"),
        (f"a key:{key('a')}", "no key in place 1"),
    ],
)
def test_keys_that_are_none_are_refused_at_the_start_without_a_word_of_them(keys: str, says: str) -> None:
    with pytest.raises(SettingsInvalid, match=f"MEMORY_PAYLOAD_KEYS .*{says}") as refused:
        PayloadSettings.load(memory_payload_keys=keys)
    assert key("a") not in str(refused.value)


def test_no_key_is_shown_by_what_holds_them() -> None:
    settings = PayloadSettings.load(memory_payload_keys=f"2026:{key('a')}")
    assert key("a") not in repr(settings) + repr(settings.payload_keys)
    assert "aaaa" not in repr(settings.payload_keys)


def test_without_keys_nothing_is_changed() -> None:
    assert data_converter(None) is DATA_CONVERTER
    assert DATA_CONVERTER.payload_codec is None
