"""The vision tower: all segments of a length at once is what one by one is, and nothing learns that should not."""

from __future__ import annotations

import pytest
import torch
from dart_engine.data import image_part
from dart_engine.model import PolicyModel
from dart_engine.settings import Settings
from dart_engine.tiny_model import write_tiny_model
from dart_engine.vision_attention import NAME, attend, plan
from helpers import png
from transformers.integrations.sdpa_attention import sdpa_attention_forward

SIZES = ((224, 140), (640, 400), (700, 300))


@pytest.mark.parametrize("bounds", [[0, 4, 8, 12], [0, 4, 6, 10, 11, 15], [0, 7], [0, 3, 3, 5]])
def test_segments_are_attended_one_by_one(bounds):
    torch.manual_seed(2)
    query, key, value = torch.randn(3, 1, 2, bounds[-1], 8).unbind(0)
    got, _ = attend(torch.nn.Module(), query, key, value, None, scaling=0.3, cu_seq_lens_q=torch.tensor(bounds))
    parts = [
        sdpa_attention_forward(torch.nn.Module(), *(x[:, :, start:end] for x in (query, key, value)), None, scaling=0.3, is_causal=False)
        for start, end in zip(bounds, bounds[1:])
        if end > start
    ]
    assert torch.allclose(got, torch.cat([part for part, _ in parts], dim=1), atol=1e-6)


def test_a_plan_is_made_once():
    bounds = torch.tensor([0, 2, 5])
    assert plan(bounds) is plan(bounds)


@pytest.fixture(scope="module", params=["qwen3", "qwen2.5"])
def policy(request, tmp_path_factory) -> PolicyModel:
    folder = tmp_path_factory.mktemp("models") / request.param
    write_tiny_model(folder, family=request.param, depth=2)
    return PolicyModel(Settings(model=str(folder), state=folder, device="cpu", checkpointing=True))


def pictures(policy: PolicyModel) -> dict:
    parts: list = []
    for index, size in enumerate(SIZES):
        parts += [[50 + index], image_part(png(index, *size), "png", None)]
    return policy.batch([policy.sequence([*parts, [60]])], left=False)


def seen(policy: PolicyModel, inputs: dict) -> torch.Tensor:
    return torch.cat(list(policy.inner.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"]).pooler_output))


def test_pictures_look_as_transformers_sees_them(policy):
    inputs = pictures(policy)
    towers = [m.config for m in policy.model.modules() if getattr(getattr(m, "config", None), "_attn_implementation", "") == NAME]
    assert towers
    with torch.no_grad():
        ours = seen(policy, inputs)
        for config in towers:
            config._attn_implementation = "sdpa"
        theirs = seen(policy, inputs)
        for config in towers:
            config._attn_implementation = NAME
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_no_gradient_goes_through_a_tower_that_does_not_learn(policy):
    policy.model.train()
    try:
        assert not seen(policy, pictures(policy)).requires_grad
    finally:
        policy.model.eval()
