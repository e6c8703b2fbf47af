"""The operator's commands: what they find, what they print, and that they end cleanly."""

from pathlib import Path

from tests.cli.conftest import Memory, run_memory
from tests.fixtures.stack import clean_environment


async def test_doctor_tells_the_state_of_every_part(memory: Memory) -> None:
    report = (await memory("doctor", "--json")).json
    states = {finding["part"]: finding["state"] for finding in report["findings"]}
    assert {states[part] for part in ("database", "migrations", "fts language", "temporal")} == {"ok"}
    assert states["embed endpoint"] == "warn", "none is configured in this environment"
    assert set(report["embed"]) == {"pending", "failed"}


async def test_doctor_fails_with_a_way_out_when_a_part_is_down(memory: Memory) -> None:
    ended = await memory("doctor", "--json", without=("TEMPORAL_ADDRESS",))
    found = {finding["part"]: finding for finding in ended.json["findings"]}
    assert ended.code == 1
    assert found["temporal"]["state"] == "fail"
    assert "TEMPORAL_ADDRESS" in found["temporal"]["message"]


async def test_config_prints_no_secret(memory: Memory) -> None:
    masked = (await memory("config", "--json")).json
    assert masked["DATABASE_URL"] == "***"
    assert "postgres" not in (await memory("config")).out.lower()


async def test_commands_that_speak_to_temporal_end_cleanly_each_time(memory: Memory) -> None:
    codes = [(await memory("setup", "--json")).code for _ in range(5)]
    assert codes == [0] * 5
    assert (await memory("migrate", "--json")).json == {"applied": []}


async def test_a_namespace_that_is_not_there_is_a_sentence_with_a_way_out(memory: Memory) -> None:
    elsewhere = {"TEMPORAL_NAMESPACE": "nowhere"}
    for arguments in (("setup",), ("reembed", "--tenant", "acme")):
        ended = await memory(*arguments, more=elsewhere)
        assert ended.code == 1
        assert "has no namespace nowhere; check TEMPORAL_NAMESPACE" in ended.err
        assert "Traceback" not in ended.err


async def test_temporal_down_is_a_sentence_with_a_way_out(memory: Memory) -> None:
    ended = await memory("setup", more={"TEMPORAL_ADDRESS": "127.0.0.1:1"})
    assert ended.code == 1
    assert ended.err.strip() == ("Temporal at 127.0.0.1:1 cannot be reached; check TEMPORAL_ADDRESS, and that it runs.")


async def test_doctor_tells_no_backlog_that_it_could_not_read(memory: Memory) -> None:
    ended = await memory("doctor", "--json", more={"DATABASE_URL": "postgresql://u@127.0.0.1:1/d"})
    assert ended.json["embed"] == {"pending": None, "failed": None}


async def test_a_ready_file_in_no_directory_is_refused_before_anything_starts(tmp_path: Path) -> None:
    ended = await run_memory(
        *("dev", "--data-dir", str(tmp_path / "data"), "--ready-file", "not/there/ready.json"),
        environment=dict(clean_environment()),
        cwd=tmp_path,
    )
    assert ended.code == 2
    assert "There is no directory" in ended.err
    assert not (tmp_path / "data").exists()
