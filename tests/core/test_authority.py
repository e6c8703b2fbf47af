import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_plane.contracts.enums import CreatedByKind, SourceChannel
from memory_plane.core.authority import authority


@pytest.mark.parametrize(
    ("kind", "actors", "channel", "social", "expected"),
    [
        (CreatedByKind.HUMAN, 1, SourceChannel.NATIVE, False, 0.42),
        (CreatedByKind.AGENT, 1, SourceChannel.NATIVE, False, 0.30),
        (CreatedByKind.SYSTEM, 1, SourceChannel.RECORD, False, 0.21),
        (CreatedByKind.ADAPTER, 2, SourceChannel.CALL, False, 0.09 + 0.1 + 0.21),
        (CreatedByKind.HUMAN, 8, SourceChannel.CHANNEL, True, 1.0),
        (CreatedByKind.HUMAN, 10_000, SourceChannel.CHANNEL, True, 1.0),
        (CreatedByKind.ADAPTER, 10_000, SourceChannel.RECORD, False, 0.48),
        (CreatedByKind.HUMAN, 0, SourceChannel.THREAD, False, 0.54),
    ],
)
def test_formula(kind: CreatedByKind, actors: int, channel: SourceChannel, social: bool, expected: float) -> None:
    found = authority(kind, actor_count=actors, channel=channel, has_social_signal=social)
    assert found == pytest.approx(expected)


@given(st.sampled_from(CreatedByKind), st.integers(-5, 10**9), st.sampled_from(SourceChannel), st.booleans())
def test_within_bounds_and_growing_with_actors(
    kind: CreatedByKind, actors: int, channel: SourceChannel, social: bool
) -> None:
    fewer = authority(kind, actor_count=actors, channel=channel, has_social_signal=social)
    more = authority(kind, actor_count=actors + 1, channel=channel, has_social_signal=social)
    assert 0.0 <= fewer <= more <= 1.0
