"""A generation made from the command line."""

from uuid import uuid4

from tests.cli.conftest import Memory


async def test_a_recipe_is_completed_by_the_service_not_by_the_shell_of_who_runs_it(memory: Memory) -> None:
    """The shell has the addresses of database and Temporal alone, as `memory dev` prints them for operators."""
    await memory("add", "Kettle", "The kettle is in the second drawer.")
    created = await memory(
        *("transform", "config", "create", f"smaller-{uuid4().hex[:8]}", "--tenant", "dev", "--json"),
        *("--params", '{"chunk": {"maxTokens": 64}}'),
    )
    assert created.code == 0, created.err
    ran = await memory(*("transform", "run", "--tenant", "dev", "--config", created.json["id"], "--wait", "--json"))
    assert ran.code == 0, ran.err
    assert ran.json["model"], "without a model it would find by words alone"
    discarded = await memory("transform", "discard", "--tenant", "dev", "--generation", ran.json["generation"])
    assert discarded.code == 0, discarded.err


async def test_a_config_there_is_not_starts_nothing(memory: Memory) -> None:
    ran = await memory("transform", "run", "--tenant", "dev", "--config", "tcfg_unknown")
    assert ran.code == 1
    assert "config" in ran.err and "Traceback" not in ran.err
