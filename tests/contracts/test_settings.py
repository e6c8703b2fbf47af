"""Every problem of a configuration at once, each a sentence that names its variable and no value."""

import pytest

from memory_plane.settings import Settings, SettingsInvalid

GOOD = {"DATABASE_URL": "postgresql://u:p@h/d"}


def refused(monkeypatch: pytest.MonkeyPatch, **variables: str) -> list[str]:
    for name, value in (GOOD | variables).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsInvalid) as caught:
        Settings.load(_env_file=None)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("DATABASE_URL", "", "DATABASE_URL must be set"),
        ("DATABASE_URL", "mysql://u:secretpw@h/d", "DATABASE_URL must be set"),
        ("DATABASE_DIRECT_URL", "secretpw", "DATABASE_DIRECT_URL must be an address"),
        ("DB_POOL_MAX", "many", "DB_POOL_MAX must be a whole number"),
        ("DB_POOL_MAX", "0", "DB_POOL_MAX must be at least 1"),
        ("FTS_LANGUAGE", "A b", "FTS_LANGUAGE must be the name of a text search configuration"),
        ("MEMORY_AUTH", "none", "MEMORY_AUTH must be one of 'token'"),
        ("MEMORY_EMBEDS_PER_SECOND", "fast", "MEMORY_EMBEDS_PER_SECOND must be a number"),
        ("MEMORY_PROCESSORS", "tagger", "MEMORY_PROCESSORS must be JSON"),
        ("MEMORY_PROCESSORS", "[]", "MEMORY_PROCESSORS must be an object"),
        (
            "MEMORY_PROCESSORS",
            '{"a": {"kind": "x", "type": "t", "task_queue": "q"}}',
            "MEMORY_PROCESSORS a.kind must be",
        ),
        ("DISTILL_TENANTS", "acme,other", "DISTILL_TENANTS must be JSON"),
        ("EMBED_BASE_URL", "http://u:secretpw@h", "EMBED_BASE_URL must not hold credentials"),
        ("EMBED_MODEL", "m", "EMBED_BASE_URL and EMBED_MODEL go together"),
    ],
)
def test_a_problem_is_a_sentence(monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str) -> None:
    [line] = refused(monkeypatch, **{name: value})
    assert line.startswith(sentence)
    assert "secretpw" not in line


def test_all_problems_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = refused(monkeypatch, MEMORY_PROCESSORS="x", DISTILL_TENANTS="y", DB_POOL_MAX="z")
    assert {line.split()[0] for line in lines} == {"MEMORY_PROCESSORS", "DISTILL_TENANTS", "DB_POOL_MAX"}


def test_json_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", GOOD["DATABASE_URL"])
    monkeypatch.setenv("DISTILL_TENANTS", '["acme"]')
    monkeypatch.setenv("MEMORY_PROCESSORS", '{"tagger": {"kind": "activity", "type": "t", "task_queue": "q"}}')
    settings = Settings.load(_env_file=None)
    assert settings.distill_tenants == ["acme"]
    assert settings.memory_processors["tagger"].task_queue == "q"
