"""Adding a file, in process: its text is extracted, and is captured like any other.

Files come in process only: over HTTP a caller sends text, so that nothing here parses what strangers send.
"""

import asyncio
from dataclasses import dataclass
from html.parser import HTMLParser
from io import BytesIO
from pathlib import PurePath
from typing import Any, Protocol

from pydantic import ValidationError

from memory_plane.contracts.errors import Invalid, Unsupported
from memory_plane.contracts.validation import invalid
from memory_plane.contracts.wire import AddRequest
from memory_plane.core.text import clean_json, is_blank
from memory_plane.core.visibility import Visibility
from memory_plane.plane.adding import AddOutcome
from memory_plane.plane.document_store import DocumentStore

PLAIN = ("application/json", "application/xml", "application/x-yaml", "application/x-ndjson")
HTML = ("text/html", "application/xhtml+xml")
PDF = "application/pdf"
_HIDDEN = frozenset({"script", "style", "template", "noscript"})
_BLOCKS = frozenset({"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "pre"})


@dataclass(frozen=True, slots=True)
class Extracted:
    """`title` None where the file names none."""

    text: str
    title: str | None = None


class TextExtractor(Protocol):
    async def extract(self, content: bytes, mime: str, filename: str) -> Extracted:
        """Raises Unsupported for a format it does not know, Invalid for a file that is not of its format."""
        ...


class CommonFormats:
    """Plain text, Markdown, JSON and the like, HTML; PDF with the extra `memory-plane[files]`. No OCR."""

    async def extract(self, content: bytes, mime: str, filename: str) -> Extracted:
        kind = mime.split(";")[0].strip().lower()
        if kind == PDF:
            return await asyncio.to_thread(_pdf, content)
        if kind in HTML:
            return await asyncio.to_thread(_html, _decoded(content))
        if kind.startswith("text/") or kind in PLAIN:
            return Extracted(_decoded(content))
        raise Unsupported("No text is extracted from files of this type; extract it yourself, or give an extractor.")


async def add_file(
    documents: DocumentStore,
    visibility: Visibility,
    content: bytes,
    *,
    mime: str,
    filename: str,
    extractor: TextExtractor | None = None,
    idempotency_key: str | None = None,
    **fields: Any,
) -> AddOutcome:
    """Add the text of a file. `fields` are those of an add; the title is the given one, else the file's own, else its
    name. Raises as an add does, and as the extractor (default `CommonFormats`) does."""
    extracted = await (extractor or CommonFormats()).extract(content, mime, filename)
    if is_blank(extracted.text):
        raise Invalid("The file holds no text that could be extracted (a scan?); nothing was added.", code="blank")
    title = extracted.title if extracted.title and not is_blank(extracted.title) else PurePath(filename).name
    payload = {"title": title, "adapter": "file", **fields, "text": extracted.text}
    try:
        request = AddRequest.model_validate(clean_json(payload))
    except ValidationError as error:
        raise invalid(error, AddRequest) from None
    return await documents.add(visibility, request, payload, idempotency_key)


def _decoded(content: bytes) -> str:
    """UTF-8 or, with a byte order mark, UTF-16; else what old systems write, unless it is no text at all."""
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        if b"\x00" in content:
            raise Invalid(
                "The file is no text in UTF-8 or UTF-16; extract its text yourself.", code="not_text"
            ) from None
    return content.decode("latin-1")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._hidden = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        self._in_title = self._in_title or tag == "title"
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in _HIDDEN))
        self._in_title = self._in_title and tag != "title"
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            (self.title if self._in_title else self.parts).append(data)


def _html(text: str) -> Extracted:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).splitlines())
    return Extracted("\n".join(line for line in lines if line), " ".join("".join(reader.title).split()) or None)


def _pdf(content: bytes) -> Extracted:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ModuleNotFoundError:
        raise Unsupported("Text of PDF files needs pip install 'memory-plane[files]'.") from None
    try:
        reader = PdfReader(BytesIO(content))
        text = "\n\n".join(page.extract_text() for page in reader.pages)
        title = reader.metadata.title if reader.metadata is not None else None
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # What a broken or locked PDF makes the library raise; its messages may quote the file.
        raise Invalid("The PDF cannot be read; it is broken or locked.", code="not_readable") from None
    return Extracted(text, title)
