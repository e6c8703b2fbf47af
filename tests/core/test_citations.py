import pytest

from memory_plane.core.citations import citation, open_target


@pytest.mark.parametrize(
    ("adapter", "external_ref", "opens"),
    [
        ("artifact", "artifact:a1", ("artifact", "a1")),
        ("task", "task:7", ("task", "7")),
        ("workflow_run", "workflow_run:w:1", ("workflow_run", "w:1")),
        ("mail", "mail:<id@host>", ("mail", "<id@host>")),
        ("mail", "task:7", ("memory", "kdoc_1")),
        ("mail", "mail:", ("memory", "kdoc_1")),
        ("mail", "mail: ", ("memory", "kdoc_1")),
        ("mail", "mail", ("memory", "kdoc_1")),
        ("mail", "7", ("memory", "kdoc_1")),
        ("http", "http:7", ("memory", "kdoc_1")),
        ("claim", "memory:acme:1", ("memory", "kdoc_1")),
    ],
)
def test_where_a_hit_opens(adapter: str, external_ref: str, opens: tuple[str, str]) -> None:
    target = open_target(adapter, external_ref, "kdoc_1")
    assert (target.type, target.id) == opens


def test_a_citation_names_its_source_as_captured() -> None:
    assert citation("task", "task:7", "kdoc_1").model_dump() == {
        "adapter": "task",
        "external_ref": "task:7",
        "open": {"type": "task", "id": "7"},
    }
