from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_plane.contracts.enums import (
    CreatedByKind,
    EdgeRel,
    EndpointType,
    Lineage,
    Provenance,
    RetentionClass,
    SourceChannel,
    TemporalClass,
)
from memory_plane.contracts.errors import Invalid
from memory_plane.contracts.recipe import ChunkRecipe, Recipe
from memory_plane.core.chunking import SuppliedChunk
from memory_plane.core.planning import EdgeHint, chunk_context, plan
from memory_plane.core.source_document import EntityHint, SourceDocument
from memory_plane.core.text import is_blank, is_storable
from tests.core.strategies import any_text

RECIPE = Recipe()
SMALL = Recipe(chunk=ChunkRecipe(max_tokens=16, min_tokens=4, overlap_tokens=4))
NOTE = SourceDocument(adapter="http", external_ref="ref", title="Title", kind="note", text="Some text.")
MOMENT = datetime(2024, 5, 8, 9, 30, tzinfo=UTC)


def content_hash(**changes: Any) -> str:
    return plan(replace(NOTE, **changes), RECIPE).content_hash


def test_defaults_of_a_note_by_a_person() -> None:
    planned = plan(NOTE, RECIPE)
    assert (planned.title, planned.kind, planned.source_text) == ("Title", "note", "Some text.")
    assert planned.occurred_at is None
    assert planned.provenance == Provenance.STATED
    assert planned.temporal_class == TemporalClass.EVENT
    assert planned.lineage == Lineage.NATIVE
    assert planned.retention_class == RetentionClass.STANDARD
    assert planned.created_by_kind == CreatedByKind.HUMAN
    assert planned.authority == pytest.approx(0.42)
    assert (planned.edges, planned.entities, planned.attributes) == ((), (), {})


def test_defaults_of_what_an_agent_made() -> None:
    planned = plan(replace(NOTE, generator_agent_id="agent-1"), RECIPE)
    assert planned.provenance == Provenance.INFERRED
    assert planned.temporal_class == TemporalClass.STATE
    assert planned.created_by_kind == CreatedByKind.AGENT
    assert planned.authority == pytest.approx(0.30)


def test_what_was_given_stands() -> None:
    planned = plan(
        replace(
            NOTE,
            generator_agent_id="agent-1",
            provenance=Provenance.UNKNOWN,
            temporal_class=TemporalClass.LESSON,
            lineage=Lineage.IMPORTED,
            created_by_kind=CreatedByKind.SYSTEM,
            retention_class=RetentionClass.DURABLE,
            occurred_at=MOMENT.astimezone(timezone(timedelta(hours=9))),
            actor_count=8,
            has_social_signal=True,
            channel=SourceChannel.CHANNEL,
        ),
        RECIPE,
    )
    assert planned.provenance == Provenance.UNKNOWN
    assert planned.temporal_class == TemporalClass.LESSON
    assert planned.lineage == Lineage.IMPORTED
    assert planned.created_by_kind == CreatedByKind.SYSTEM
    assert planned.retention_class == RetentionClass.DURABLE
    assert planned.occurred_at == MOMENT
    assert planned.occurred_at.tzinfo is UTC
    assert planned.authority == pytest.approx(0.82)
    assert (planned.actor_count, planned.has_social_signal) == (8, True)


def test_unknown_provenance_is_an_event_and_inferred_a_state() -> None:
    assert plan(replace(NOTE, provenance=Provenance.UNKNOWN), RECIPE).temporal_class == TemporalClass.EVENT
    assert plan(replace(NOTE, provenance=Provenance.INFERRED), RECIPE).temporal_class == TemporalClass.STATE


@pytest.mark.parametrize("sent", [None, *Lineage])
def test_derived_means_that_sources_are_named(sent: Lineage | None) -> None:
    assert plan(replace(NOTE, lineage=sent, derived_from=("kver_1",)), RECIPE).lineage == Lineage.DERIVED
    assert plan(replace(NOTE, lineage=sent), RECIPE).lineage != Lineage.DERIVED


def test_edges_start_at_the_version_and_end_at_what_the_id_names() -> None:
    planned = plan(
        replace(
            NOTE,
            derived_from=("kver_1", "kver_2", "kver_1"),
            supports=("kver_3", "kdoc_1"),
            contradicts=("kchk_1", "kent_1"),
        ),
        RECIPE,
    )
    assert planned.edges == (
        EdgeHint(EdgeRel.DERIVED_FROM, EndpointType.VERSION, "kver_1"),
        EdgeHint(EdgeRel.DERIVED_FROM, EndpointType.VERSION, "kver_2"),
        EdgeHint(EdgeRel.SUPPORTS, EndpointType.VERSION, "kver_3"),
        EdgeHint(EdgeRel.SUPPORTS, EndpointType.DOCUMENT, "kdoc_1"),
        EdgeHint(EdgeRel.CONTRADICTS, EndpointType.CHUNK, "kchk_1"),
        EdgeHint(EdgeRel.CONTRADICTS, EndpointType.ENTITY, "kent_1"),
    )


def test_entities_are_named_once_and_native_means_a_principal() -> None:
    hints = (
        EntityHint("person", "p1", "e\u0301"),
        EntityHint("person", "p1", "Other"),
        EntityHint("native", "u1", " "),
    )
    assert plan(replace(NOTE, entities=hints), RECIPE).entities == (
        EntityHint("person", "p1", "é"),
        EntityHint("principal", "u1", None),
    )


@pytest.mark.parametrize("field", ["title", "kind", "text"])
@pytest.mark.parametrize("blank", ["", " \n", "\u200b", "\x00"])
def test_inv_07_what_is_blank_is_refused_by_name(field: str, blank: str) -> None:
    changes: dict[str, Any] = {field: blank}
    with pytest.raises(Invalid) as caught:
        plan(replace(NOTE, **changes), RECIPE)
    assert [error.field for error in caught.value.errors] == [field]


def test_the_text_is_cut_by_the_recipe_and_every_chunk_is_a_slice() -> None:
    planned = plan(replace(NOTE, text="One sentence of words. " * 20), SMALL)
    assert len(planned.chunks) > 5
    for ordinal, piece in enumerate(planned.chunks):
        assert piece.ordinal == ordinal
        assert piece.text == planned.source_text[piece.start : piece.end]
        assert piece.token_count <= 16
        assert piece.context == "Title"
        assert piece.role is None


def test_ready_made_chunks_keep_cuts_and_roles() -> None:
    parts = (SuppliedChunk("What is it\x00?", "question"), SuppliedChunk(" \n"), SuppliedChunk("A cat.", "answer"))
    planned = plan(replace(NOTE, text="", chunks=parts), RECIPE)
    assert planned.source_text == "What is it?\n\nA cat."
    assert [(piece.text, piece.role) for piece in planned.chunks] == [("What is it?", "question"), ("A cat.", "answer")]
    for piece in planned.chunks:
        assert planned.source_text[piece.start : piece.end] == piece.text


def test_grams_hold_the_context_too() -> None:
    (piece,) = plan(replace(NOTE, title="北京", text="大学"), RECIPE).chunks
    assert {"ƻ北京", "ƻ大学"} <= set(piece.grams.split())


@pytest.mark.parametrize(
    ("changes", "context"),
    [
        ({}, "Title"),
        ({"title": " Tit\x00le "}, "Title"),
        ({"occurred_at": MOMENT}, "Title\n8 May 2024"),
        ({"speaker": "Caroline"}, "Title\nCaroline"),
        ({"speaker": "Caroline", "occurred_at": MOMENT}, "Title\nCaroline (8 May 2024)"),
        ({"attributes": {"speaker": "Mel"}}, "Title\nMel"),
        ({"attributes": {"speaker": 7}}, "Title"),
        ({"title": "Caroline: hello", "speaker": "caroline"}, "Caroline: hello"),
        ({"occurred_at": datetime(2024, 5, 9, 2, tzinfo=timezone(timedelta(hours=9)))}, "Title\n9 May 2024"),
    ],
)
def test_context(changes: dict[str, Any], context: str) -> None:
    assert chunk_context(replace(NOTE, **changes)) == context


CHANGES: list[dict[str, Any]] = [
    {"title": "Other"},
    {"kind": "fact"},
    {"external_ref": "other"},
    {"text": "Other text."},
    {"attributes": {"a": 1}},
    {"attributes": {"a": "1"}},
    {"occurred_at": MOMENT},
    {"valid_from": MOMENT},
    {"valid_until": MOMENT},
    {"temporal_class": TemporalClass.EVENT},
    {"provenance": Provenance.STATED},
    {"lineage": Lineage.NATIVE},
    {"generator_agent_id": "agent-1"},
    {"speaker": "Caroline"},
    {"derived_from": ("kver_1",)},
    {"supports": ("kver_1",)},
    {"contradicts": ("kver_1",)},
    {"entities": (EntityHint("person", "p1"),)},
    {"chunks": (SuppliedChunk("Some text.", "answer"),)},
]


def test_every_change_of_content_changes_the_hash() -> None:
    hashes = [content_hash(), *(content_hash(**changes) for changes in CHANGES)]
    assert len(set(hashes)) == len(hashes)


def test_what_is_no_content_leaves_the_hash_alone() -> None:
    same = content_hash()
    assert content_hash(retention_class=RetentionClass.DURABLE) == same
    assert content_hash(actor_count=5, has_social_signal=True, channel=SourceChannel.CALL) == same
    assert content_hash(title=" Title ", text="Some text.\x00") == same
    assert content_hash(chunks=(SuppliedChunk("Some text."),)) == same
    assert plan(NOTE, SMALL).content_hash == same


def test_the_same_said_otherwise_has_the_same_hash() -> None:
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=-7)))
    assert content_hash(occurred_at=elsewhere) == content_hash(occurred_at=MOMENT)
    assert content_hash(supports=("a", "b", "a")) == content_hash(supports=("b", "a"))
    assert content_hash(attributes={"a": 1, "b": 2.0}) == content_hash(attributes={"b": 2, "a": 1})
    assert content_hash(text="cafe\u0301") == content_hash(text="café")


def test_the_content_hash_is_pinned() -> None:
    # Stored versions depend on it: were it to change, every re-capture would make a new version.
    pinned = "114947dd4421a1cc714318cbd88cc1cca8402a78fb84269a23ce09975de5f012"
    assert content_hash(occurred_at=MOMENT, attributes={"n": 1}, supports=("kver_1",)) == pinned


@given(any_text, any_text, any_text, st.dictionaries(any_text, any_text, max_size=3))
def test_inv_07_any_characters_are_planned_or_refused(
    title: str, kind: str, text: str, attributes: dict[str, str]
) -> None:
    document = replace(NOTE, title=title, kind=kind, text=text, attributes=attributes)
    try:
        planned = plan(document, SMALL)
    except Invalid as refused:
        assert refused.errors
        assert any(is_blank(value.replace("\x00", "")) for value in (title, kind, text))
        return
    strings = [planned.title, planned.kind, planned.source_text, *planned.attributes, *planned.attributes.values()]
    for piece in planned.chunks:
        strings += [piece.text, piece.context, piece.grams]
    assert all(is_storable(value) for value in strings)
    assert planned.chunks
