import pytest
from pydantic import ValidationError

from memory_plane.contracts.recipe import EmbedRecipe, Recipe

BASE = Recipe(embed=EmbedRecipe(base_url="http://models", model="small", max_input_tokens=256))


def test_partial_recipe_inherits_what_it_leaves_out() -> None:
    merged = Recipe.merged_over({"chunk": {"maxTokens": 220}, "embed": {"model": "large"}, "mmrLambda": 0.9}, BASE)
    assert merged.chunk.max_tokens == 220
    assert merged.chunk.overlap_tokens == BASE.chunk.overlap_tokens
    assert merged.embed is not None
    assert (merged.embed.base_url, merged.embed.model) == ("http://models", "large")
    assert merged.mmr_lambda == 0.9
    assert merged.authority_weight == BASE.authority_weight


def test_what_is_stored_is_camel_case_and_reads_back() -> None:
    stored = BASE.stored()
    assert {"authorityWeight", "recencyHalfLifeDays", "mmrLambda", "overfetch"} <= set(stored)
    assert Recipe.model_validate(stored) == BASE


@pytest.mark.parametrize("partial", [{"mmrLamda": 0.5}, {"chunk": {"maxToken": 10}}, {"embed": {"apiKey": "s"}}])
def test_mistyped_knobs_are_refused(partial: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Recipe.merged_over(partial, BASE)


@pytest.mark.parametrize("overfetch", [2, 11])
def test_overfetch_is_bounded(overfetch: int) -> None:
    with pytest.raises(ValidationError):
        Recipe.merged_over({"overfetch": overfetch}, BASE)


def test_inherited_caps_yield_to_a_smaller_chunk() -> None:
    chunk = Recipe.merged_over({"chunk": {"maxTokens": 48}}, BASE).chunk
    assert (chunk.max_tokens, chunk.min_tokens, chunk.overlap_tokens) == (48, 24, 24)
    with pytest.raises(ValidationError):
        Recipe.merged_over({"chunk": {"maxTokens": 64, "overlapTokens": 60}}, BASE)


def test_the_key_of_one_endpoint_is_not_sent_to_another() -> None:
    base = Recipe(embed=EmbedRecipe(base_url="http://models", model="small", api_key_env="EMBED_API_KEY"))
    same = Recipe.merged_over({"embed": {"model": "large"}}, base).embed
    other = Recipe.merged_over({"embed": {"baseUrl": "http://elsewhere"}}, base).embed
    named = Recipe.merged_over({"embed": {"baseUrl": "http://elsewhere", "apiKeyEnv": "OTHER"}}, base).embed
    assert same is not None and same.api_key_env == "EMBED_API_KEY"
    assert other is not None and other.api_key_env is None
    assert named is not None and named.api_key_env == "OTHER"
