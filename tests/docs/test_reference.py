"""The generated pages are those that the code would write, and every name that operators meet is on one of them."""

import re

import pytest
from temporalio import workflow

import worker
from memory_plane.contracts.enums import Degraded
from memory_plane.dev.checkout import checkout
from memory_plane.settings import Settings
from scripts import write_api_reference, write_reference
from scripts.settings_meaning import MEANING

DOCS = checkout() / "docs"


@pytest.mark.parametrize("page", list(write_reference.PAGES))
def test_the_page_is_current(page: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == write_reference.PAGES[page](), (
        "run python -m scripts.write_reference"
    )


def test_the_api_reference_is_current() -> None:
    assert (DOCS / "api.md").read_text(encoding="utf-8") == write_api_reference.reference(), (
        "run python -m scripts.write_api_reference"
    )


def test_every_setting_has_a_sentence_and_no_other_has() -> None:
    explained = [name for section in MEANING.values() for name in section]
    assert sorted(explained) == sorted(name.upper() for name in Settings.model_fields)


def test_every_route_is_documented() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    for path, methods in write_api_reference.openapi()["paths"].items():
        for method in methods:
            assert f"`{method.upper()} {path}`" in page


def test_every_workflow_says_what_it_is_and_every_handler_what_it_takes() -> None:
    for each in worker.WORKFLOWS:
        definition = workflow._Definition.must_from_class(each)
        assert each.__doc__, definition.name
        for handlers in (definition.updates, definition.signals, definition.queries):
            for name, handler in handlers.items():
                assert handler.description, f"{definition.name}.{name}"


def test_every_metric_says_what_it_is() -> None:
    for each in write_reference.ours():
        assert each._name.startswith("memory_")
        assert each._documentation.endswith(".")


def test_every_degraded_flag_is_explained() -> None:
    page = (DOCS / "http.md").read_text(encoding="utf-8") + (DOCS / "operations" / "troubleshooting.md").read_text(
        encoding="utf-8"
    )
    assert [flag.value for flag in Degraded if f"`{flag.value}`" not in page] == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for file in [checkout() / "README.md", *DOCS.rglob("*.md")]:
        text = re.sub(r"```.*?```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in target and not (file.parent / target).exists():
                broken.append(f"{file.relative_to(checkout())}: {target}")
    assert broken == []


def test_every_document_can_be_found_from_the_table() -> None:
    table = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = {(DOCS / target).resolve() for target in re.findall(r"\]\(([^)#\s]+)\)", table) if "://" not in target}
    unlinked = [
        str(file.relative_to(DOCS))
        for file in DOCS.rglob("*.md")
        if file.name != "README.md" and file.resolve() not in linked and file.parent.resolve() not in linked
    ]
    assert unlinked == []
