"""A document that alone has the query's rare words comes first, whatever is merely similar."""

from collections.abc import AsyncIterator
from random import Random
from uuid import uuid4

import pytest

from memory_plane.plane.engine import Engine
from tests.fakes.endpoint import FakeEndpoint
from tests.search.world import World

WORDS = "meeting budget garden kitchen travel summer report music window paper river market school letter".split()
RARE = "quokkafish zirconbrook"


def small_talk(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=12))


@pytest.fixture
async def chat(hybrid_engine: Engine, fake: FakeEndpoint) -> AsyncIterator[World]:
    """Sixty short notes in a row, all about as far from any question, each among neighbours that are too."""
    world = World(hybrid_engine, f"t-{uuid4().hex[:12]}")
    await world.allow("ann")
    random = Random(7)
    for number in range(60):
        await world.add(small_talk(random), title=f"note {number}")
    yield world


async def test_the_last_sentence_of_a_long_document_beats_a_stream_of_similar_notes(chat: World) -> None:
    """The field case of a text of some megabytes, in small: a document of many chunks has no neighbours to lend it
    anything, and of its own chunk the sentence is a small part."""
    random = Random(8)
    filler = ". ".join(small_talk(random) for _ in range(120))
    wanted = await chat.add(f"{filler}. The last sentence names the {RARE}.", title="a long report")
    response = await chat.search(RARE)
    assert response.degraded is None
    assert response.items[0].document_id == wanted.document_id


@pytest.mark.parametrize("place", [0, 30, 60])
async def test_a_line_with_the_rare_words_beats_the_lines_around_it(chat: World, place: int) -> None:
    random = Random(9)
    for _ in range(place):
        await chat.add(small_talk(random))
    wanted = await chat.add(f"{small_talk(random)} {RARE}")
    for _ in range(60 - place):
        await chat.add(small_talk(random))
    assert (await chat.found(RARE))[0] == wanted.document_id


async def test_all_of_the_rare_words_beat_one_of_them_in_good_company(chat: World) -> None:
    wanted = await chat.add(f"{small_talk(Random(1))} {RARE}", principal="ann")
    random = Random(2)
    for _ in range(12):
        await chat.add(f"zirconbrook {small_talk(random)}")
    assert (await chat.found(RARE))[0] == wanted.document_id
