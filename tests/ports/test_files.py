"""Files become memories by their text."""

import json

import pytest

from memory_plane.contracts.enums import Verb
from memory_plane.contracts.errors import Invalid, Unsupported
from memory_plane.contracts.wire import SearchRequest
from memory_plane.core.caller import Caller
from memory_plane.core.visibility import Visibility
from memory_plane.plane.access import Access
from memory_plane.plane.files import CommonFormats, Extracted, add_file
from memory_plane.plane.in_memory_store import InMemoryStore
from memory_plane.store.grants import InMemoryGrantStore
from tests.access.seed import allow

HTML = """<!doctype html><html><head><title>The kettle &amp; I</title><style>p { color: blue }</style></head>
<body><h1>Kettle</h1><p>It is <b>blue</b>.</p><script>alert("no")</script><ul><li>May</li></ul></body></html>"""


def pdf(text: str) -> bytes:
    """A smallest PDF of one page."""
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(out)
    out += b"xref\n0 5\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return out + b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % start


@pytest.fixture
async def alice() -> Visibility:
    grants = InMemoryGrantStore()
    for verb in Verb:
        await grants.put_grant("acme", allow("alice", "memory", verb.value))
    return await Access(grants).visibility(Caller("acme", "alice"))


@pytest.mark.parametrize(
    ("content", "mime", "expected"),
    [
        (HTML.encode(), "text/html; charset=utf-8", Extracted("Kettle\nIt is blue.\nMay", "The kettle & I")),
        ("Grüße".encode(), "text/plain", Extracted("Grüße")),
        ("Grüße".encode("utf-16"), "text/markdown", Extracted("Grüße")),
        ("Grüße".encode("latin-1"), "text/plain", Extracted("Grüße")),
        (json.dumps({"a": 1}).encode(), "application/json", Extracted('{"a": 1}')),
        (pdf("The kettle is blue."), "application/pdf", Extracted("The kettle is blue.")),
    ],
)
async def test_the_text_of_common_formats(content: bytes, mime: str, expected: Extracted) -> None:
    assert await CommonFormats().extract(content, mime, "a file") == expected


@pytest.mark.parametrize(
    ("content", "mime", "refusal"),
    [
        (b"%PDF-1.4 and then nothing", "application/pdf", Invalid),
        (b"\x00\x01\x02\xff", "text/plain", Invalid),
        (b"PK\x03\x04", "application/zip", Unsupported),
    ],
)
async def test_what_cannot_be_read_is_refused(content: bytes, mime: str, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        await CommonFormats().extract(content, mime, "a file")


async def test_a_file_is_added_by_its_text_and_found(alice: Visibility) -> None:
    store = InMemoryStore()
    added = await add_file(store, alice, pdf("The kettle is blue."), mime="application/pdf", filename="in/kettle.pdf")
    got = await store.get(alice, added.response.document_id)
    assert (got.document.title, got.document.adapter, got.text) == ("kettle.pdf", "file", "The kettle is blue.")
    assert (await store.search(alice, SearchRequest(query="kettle"))).items


async def test_a_host_brings_an_extractor_of_its_own(alice: Visibility) -> None:
    class Shouting:
        async def extract(self, content: bytes, mime: str, filename: str) -> Extracted:
            return Extracted(content.decode().upper(), "LOUD")

    store = InMemoryStore()
    added = await add_file(store, alice, b"hello", mime="x/y", filename="f", extractor=Shouting(), kind="shout")
    got = await store.get(alice, added.response.document_id)
    assert (got.document.title, got.document.kind, got.text) == ("LOUD", "shout", "HELLO")


async def test_a_scan_without_text_and_a_mistyped_field_are_refused(alice: Visibility) -> None:
    with pytest.raises(Invalid, match="no text"):
        await add_file(InMemoryStore(), alice, pdf(""), mime="application/pdf", filename="scan.pdf")
    with pytest.raises(Invalid, match="acess_tags"):
        await add_file(InMemoryStore(), alice, b"text", mime="text/plain", filename="f", acess_tags=["memory.x:y"])
