"""Real text that is on every machine: this repository's documents, and Python's own documentation strings."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = """
    argparse asyncio base64 bisect calendar codecs collections concurrent.futures configparser contextlib copy csv
    dataclasses datetime decimal difflib email.message enum fileinput fnmatch fractions functools glob gzip
    hashlib heapq hmac html http.client http.cookies inspect io ipaddress itertools json locale logging mailbox
    math mimetypes operator os os.path pathlib pickle platform pprint queue random re sched secrets selectors
    shelve shlex shutil signal smtplib socket sqlite3 ssl statistics string struct subprocess tarfile tempfile
    textwrap threading time tokenize traceback types typing unicodedata unittest urllib.parse urllib.request uuid
    warnings weakref xml.sax zipfile zlib zoneinfo
""".split()
SHORTEST = 60
"""Characters: shorter documentation strings say nothing that could be searched for."""


def repository_documents(root: Path) -> Iterator[dict[str, Any]]:
    """One document a heading of README.md and docs/, named by file and heading."""
    for file in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        name = str(file.relative_to(root))
        parts = re.split(r"^(#{1,3} .+)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for heading, body in zip(parts[1::2], parts[2::2], strict=True):
            title = heading.lstrip("# ").strip()
            if body.strip():
                yield {
                    "title": f"{title} ({name})",
                    "text": body.strip(),
                    "kind": "page",
                    "adapter": "docs",
                    "external_ref": f"{name}#{title}"[:300],
                }


def python_documents() -> Iterator[dict[str, Any]]:
    """One document a public function or class of the standard library that says what it does."""
    seen: set[str] = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for path, text in _documented(module, name):
            if text not in seen:
                seen.add(text)
                yield {"title": path, "text": text, "kind": "reference", "adapter": "python", "external_ref": path}


def _documented(module: ModuleType, name: str) -> Iterator[tuple[str, str]]:
    for attribute in sorted(vars(module)):
        thing = getattr(module, attribute)
        if attribute.startswith("_") or not callable(thing):
            continue
        text = inspect.getdoc(thing)
        if text and len(text) >= SHORTEST:
            yield f"{name}.{attribute}", text
