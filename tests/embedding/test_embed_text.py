"""What is given to the model: chunks in context, windows within its limit, neighbourhoods."""

from hypothesis import given
from hypothesis import strategies as st

from memory_plane.contracts.recipe import EmbedRecipe
from memory_plane.core.embed_text import (
    CHUNK_SLOT,
    NEIGHBOUR_SLOT,
    SPECIAL_TOKENS,
    SourceChunk,
    is_plain,
    query_text,
    slots,
    text_to_embed,
)
from memory_plane.core.tokens import estimate_tokens

PLAIN = EmbedRecipe(base_url="http://x", model="m")
CAPPED = PLAIN.model_copy(update={"max_input_tokens": 64})
NEIGHBOURLY = PLAIN.model_copy(update={"neighbours": True})


def test_context_comes_before_the_text_where_the_recipe_wants_it() -> None:
    assert text_to_embed(PLAIN, "Caroline (7 May)", "I went.") == "Caroline (7 May)\nI went."
    assert text_to_embed(PLAIN, "", "I went.") == "I went."
    assert text_to_embed(PLAIN.model_copy(update={"context": False}), "Caroline", "I went.") == "I went."


def test_one_slot_without_a_limit() -> None:
    (slot,) = slots(PLAIN, SourceChunk("c", "word " * 10_000, "title"))
    assert slot.slot == CHUNK_SLOT
    assert slot.text.startswith("title\nword")


def test_windows_cover_the_chunk_and_each_carries_the_context() -> None:
    words = [f"w{number}" for number in range(200)]
    made = slots(CAPPED, SourceChunk("c", " ".join(words), "a title"))

    assert [slot.slot for slot in made] == list(range(len(made)))
    assert len(made) > 2
    assert all(slot.text.startswith("a title\n") for slot in made)
    assert {word for slot in made for word in slot.text.split()} >= set(words)


def test_a_context_that_leaves_no_room_is_left_out() -> None:
    made = slots(CAPPED, SourceChunk("c", "word " * 100, "context " * 40))
    assert all("context" not in slot.text for slot in made)


def test_neighbours_make_a_vector_of_their_own() -> None:
    source = SourceChunk("c", "yes, I went", "Caroline", "did you go to the group?", "how was it?")
    chunk, around = slots(NEIGHBOURLY, source)
    assert chunk.text == "Caroline\nyes, I went"
    assert around.slot == NEIGHBOUR_SLOT
    assert around.text == "Caroline\ndid you go to the group?\nyes, I went\nhow was it?"


def test_a_chunk_without_neighbours_has_no_neighbourhood() -> None:
    assert [slot.slot for slot in slots(NEIGHBOURLY, SourceChunk("c", "alone"))] == [CHUNK_SLOT]


def test_what_is_nearest_stays_when_a_neighbourhood_is_cut() -> None:
    recipe = CAPPED.model_copy(update={"neighbours": True})
    made = slots(recipe, SourceChunk("c", "the middle", "", "far " * 100 + "near", "next " + "far " * 100))
    around = next(slot for slot in made if slot.slot == NEIGHBOUR_SLOT)
    assert "near\nthe middle\nnext" in around.text
    assert estimate_tokens(around.text) + SPECIAL_TOKENS <= 64


@given(
    text=st.text(min_size=1, max_size=3000),
    context=st.text(max_size=400),
    before=st.text(max_size=1000),
    after=st.text(max_size=1000),
    limit=st.integers(32, 300),
    neighbours=st.booleans(),
)
def test_no_slot_exceeds_the_models_limit(
    text: str, context: str, before: str, after: str, limit: int, neighbours: bool
) -> None:
    recipe = PLAIN.model_copy(update={"max_input_tokens": limit, "neighbours": neighbours})
    made = slots(recipe, SourceChunk("c", text, context, before, after))
    assert all(estimate_tokens(slot.text) + SPECIAL_TOKENS <= limit for slot in made)
    assert len({slot.slot for slot in made}) == len(made)


def test_plain_texts_are_told_from_others() -> None:
    assert is_plain(PLAIN, ["a" * 10_000, "b"])
    assert is_plain(CAPPED, ["short", "short too"])
    assert not is_plain(CAPPED, ["word " * 200])
    assert not is_plain(NEIGHBOURLY, ["a", "b"])
    assert is_plain(NEIGHBOURLY, ["a"])


def test_a_query_is_cut_to_what_the_model_takes() -> None:
    assert query_text(PLAIN, "q" * 5000) == "q" * 5000
    assert estimate_tokens(query_text(CAPPED, "q" * 5000)) + SPECIAL_TOKENS == 64
