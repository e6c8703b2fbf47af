"""The facade as a person uses it from a shell."""

from uuid import uuid4

from tests.cli.conftest import Memory


async def test_a_document_from_the_first_word_to_its_end(memory: Memory) -> None:
    name = uuid4().hex
    added = (
        await memory("add", f"Kettle {name}", f"The kettle {name} is in the drawer.", "--ref", name, "--json")
    ).json
    again = await memory(
        "add", f"Kettle {name}", "-", "--ref", name, "--json", stdin=f"The kettle {name} is in the drawer."
    )
    assert again.json["status"] == "noop"
    assert again.json["documentId"] == added["documentId"]

    found = (await memory("search", f"where is kettle {name}", "--json")).json
    assert found["items"][0]["documentId"] == added["documentId"]
    shown = await memory("search", f"where is kettle {name}")
    assert added["documentId"] in shown.out
    assert name in (await memory("list")).out
    assert f"The kettle {name} is in the drawer." in (await memory("get", added["documentId"])).out

    forgotten = (await memory("forget", added["documentId"], "--json")).json
    assert forgotten == {"documentId": added["documentId"], "versions": 1, "derivedForgotten": 0}
    assert (await memory("purge", added["documentId"])).code == 2
    assert (await memory("purge", added["documentId"], "--yes", "--json")).json["deleted"] is True
    gone = await memory("get", added["documentId"])
    assert (gone.code, gone.out) == (1, "")
    assert gone.err.count("\n") == 1


async def test_a_refusal_is_a_sentence_a_field_and_an_exit_code(memory: Memory) -> None:
    refused = await memory("add", "Title", "Text", "--tag", "memory")
    assert refused.code == 1
    assert "access_tags" in refused.err
    assert "Traceback" not in refused.err
    assert (await memory("list", "--limit", "0")).code == 2
    assert (await memory("no-such-command")).code == 2
    assert (await memory("add", "Title", "Text", "--attribute", "novalue")).code == 2


async def test_what_is_not_set_is_named(memory: Memory) -> None:
    unset = await memory("list", without=("MEMORY_TOKEN",))
    assert unset.code == 1
    assert "MEMORY_TOKEN" in unset.err
    assert "MEMORY_API" not in unset.err
    incomplete = await memory("migrate", without=("DATABASE_URL",))
    assert incomplete.code == 1
    assert "DATABASE_URL" in incomplete.err
