import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_plane.contracts.errors import Invalid
from memory_plane.contracts.wire import Share
from memory_plane.core.access_tags import (
    MAX_TAG_CHARS,
    MAX_TAGS,
    common_tags,
    document_tag,
    owner_tag,
    share_principals,
    split_audience,
    tag_problems,
    tenant_tag,
    written_tags,
)
from tests.core.strategies import any_text


def test_without_wishes_a_document_carries_its_owner_alone() -> None:
    assert written_tags("alice", "acme") == ["memory.owner:alice"]
    assert written_tags("alice", "acme", ["", "  ", "\u200b"], Share(principals=[" "])) == ["memory.owner:alice"]


def test_share_is_sugar_for_tags() -> None:
    share = Share(tenant=True, principals=["bob", " bob ", "alice"], tags=["memory.space:eng"])
    assert written_tags("alice", "acme", [" team:x ", "team:x"], share, "kdoc_1") == [
        "memory.owner:alice",
        "team:x",
        "memory.tenant:acme",
        "memory.owner:bob",
        "memory.space:eng",
        "memory.doc:kdoc_1",
    ]


def test_only_peers_call_for_the_document_tag() -> None:
    assert document_tag("kdoc_1") not in written_tags("alice", "acme", [], Share(tenant=True), "kdoc_1")
    assert document_tag("kdoc_1") not in written_tags("alice", "acme", [], Share(principals=["alice"]), "kdoc_1")


def test_the_owner_is_no_peer_of_himself() -> None:
    assert share_principals("alice", Share(principals=["alice", "bob", "bob"])) == ["bob"]
    assert share_principals("alice", None) == []


def test_what_was_read_can_be_sent_back() -> None:
    tags = written_tags("alice", "acme", ["a:b"], Share(tenant=True, principals=["bob"]), "kdoc_1")
    assert written_tags("alice", "acme", tags) == tags


@pytest.mark.parametrize(
    "tag",
    [
        "memory",
        "*",
        "memory.*",
        "memory.owner:*",
        "memory.space:e*g",
        "ns:",
        ":id",
        "my space:id",
        "ns: id",
        "memory.tenant:other",
        "a:" + "x" * MAX_TAG_CHARS,
        "a:b\x00",
        "a:\ud800",
        "a:b\u202ec",
        "a:b\nc",
    ],
)
def test_a_tag_that_is_no_name_is_refused_without_repeating_it(tag: str) -> None:
    with pytest.raises(Invalid) as caught:
        written_tags("alice", "acme", ["good:one", tag])
    assert [error.field for error in caught.value.errors] == ["access_tags.1"]
    assert tag in ("memory", "*") or tag not in caught.value.detail


@pytest.mark.parametrize("peer", ["*", "b*b", "x" * 250, "a\x00b", "a\u202eb"])
def test_a_peer_is_one_principal(peer: str) -> None:
    assert [error.field for error in tag_problems("acme", [], Share(principals=["bob", peer]))] == [
        "share.principals.1"
    ]


def test_every_refused_tag_is_named_at_once() -> None:
    problems = tag_problems("acme", ["memory", "a:b", "*"], Share(tags=["bare"], principals=["*"]))
    assert [error.field for error in problems] == [
        "access_tags.0",
        "access_tags.2",
        "share.tags.0",
        "share.principals.0",
    ]


def test_the_number_of_tags_is_bounded() -> None:
    tags = [f"t:{number}" for number in range(MAX_TAGS)]
    assert tag_problems("acme", tags) == []
    assert [error.field for error in tag_problems("acme", tags, Share(tags=["t:x"]))] == ["access_tags"]


def test_split_audience() -> None:
    source = ["memory.owner:alice", "memory.space:eng"]
    proposed = ["memory.owner:agent", "memory.space:eng", "memory.tenant:acme", "memory.space:eng"]
    assert split_audience(source, proposed, writer="agent") == (
        ["memory.owner:agent", "memory.space:eng"],
        ["memory.tenant:acme"],
    )
    assert split_audience(source, proposed)[1] == ["memory.owner:agent", "memory.tenant:acme"]
    assert split_audience([], []) == ([], [])


def test_common_tags() -> None:
    assert common_tags([["a:1", "b:2", "c:3"], ["c:3", "a:1"], ["a:1", "c:3", "d:4"]]) == ["a:1", "c:3"]
    assert common_tags([["a:1"], ["b:2"]]) == []
    assert common_tags([]) == []


TAGS = st.lists(st.sampled_from([f"n:{letter}" for letter in "abcdef"]), max_size=8)


@given(TAGS, TAGS)
def test_nothing_is_widened_without_approval(source: list[str], proposed: list[str]) -> None:
    allowed, needs_approval = split_audience(source, proposed)
    assert set(allowed) <= set(source)
    assert set(allowed) | set(needs_approval) == set(proposed)
    assert not set(allowed) & set(needs_approval)


@given(st.lists(any_text, max_size=5), st.lists(any_text, max_size=3))
def test_inv_07_any_tags_are_written_or_refused(tags: list[str], peers: list[str]) -> None:
    share = Share.model_construct(tenant=False, principals=peers, tags=[])
    try:
        written = written_tags("alice", "acme", tags, share, "kdoc_1")
    except Invalid as refused:
        assert refused.errors
        return
    assert written[0] == owner_tag("alice")
    assert len(set(written)) == len(written)
    for tag in written:
        tag.encode()
        assert ":" in tag
        assert "*" not in tag
        assert tag.isprintable()
    assert tenant_tag("other") not in written
