"""Gradients and log-probs against autograd of the whole loss through the model's own forward: full logits, one datum at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dart_engine import trainer
from dart_engine.data import train_request_from_json
from dart_engine.model import PolicyModel
from dart_engine.optimizer import AdamParams, AdamW
from dart_engine.settings import Settings
from helpers import datum, drain, signed_weights

KINDS = {
    "cross_entropy": {},
    "importance_sampling": {},
    "ppo": {},
    "cispo": {"clip_low_threshold": 0.9, "clip_high_threshold": 1.05},
    "dro": {"beta": 0.1},
}


@pytest.fixture(scope="module", params=["qwen3", "qwen2.5"])
def family(request, tmp_path_factory):
    from dart_engine.tiny_model import write_tiny_model

    folder = tmp_path_factory.mktemp("models") / request.param
    write_tiny_model(folder, family=request.param)
    return request.param, folder


@pytest.fixture(scope="module")
def policy(family, tmp_path_factory) -> PolicyModel:
    torch.set_num_threads(2)
    state = tmp_path_factory.mktemp("state")
    return PolicyModel(Settings(model=str(family[1]), state=state, micro_batch_tokens=128, head_rows=16, checkpointing=True))


def make(policy: PolicyModel, rank: int):
    lora = {"rank": rank, "alpha": 32.0, "seed": 3, "train_attn": True, "train_mlp": True, "train_unembed": True}
    if rank:
        from dart_engine.lora import choose_targets

        lora["targets"] = list(choose_targets(policy.layers, lora, vision=False, names=None))
    model = trainer.new_model(policy, f"test-{rank}", {"lora_config": lora})
    generator = torch.Generator().manual_seed(5)
    for name, value in model.weights.tensors.items():
        if name.endswith("lora_B.weight"):
            value.copy_(torch.randn(value.shape, generator=generator) * 0.02)
    return model


def reference(policy: PolicyModel, model, request, sequences) -> tuple[float, dict]:
    """Plain: one datum at a time, full logits by the model's own forward, one backward of the whole sum."""
    policy.activate(model.weights)
    parameters = policy.parameters_of(model.weights)
    for parameter in parameters.values():
        parameter.requires_grad_(True)
        parameter.grad = None
    total = torch.zeros((), dtype=torch.float64)
    for item, sequence in zip(request.data, sequences, strict=True):
        inputs = policy.batch([sequence], left=False)
        logits = policy.model(**inputs, use_cache=False).logits[0].double()
        x = torch.log_softmax(logits, -1).gather(1, torch.from_numpy(item.targets.copy())[:, None])[:, 0]
        given = {name: torch.from_numpy(value.copy()).double() for name, value in item.inputs.items()}
        total = total + plain_loss(request.loss_fn, request.config, x, given)
    total.backward()
    grads = {name: parameter.grad.clone() for name, parameter in parameters.items() if parameter.grad is not None}
    for parameter in parameters.values():
        parameter.grad = None
        parameter.requires_grad_(False)
    return float(total.detach()), grads


def plain_loss(kind: str, config: dict, x, given):
    if kind == "cross_entropy":
        return -(x * given["weights"]).sum()
    ratio, advantage = (x - given["logprobs"]).exp(), given["advantages"]
    low, high = config.get("clip_low_threshold", 0.8), config.get("clip_high_threshold", 1.2)
    if kind == "importance_sampling":
        return -(ratio * advantage).sum()
    if kind == "ppo":
        return -torch.min(ratio * advantage, ratio.clamp(low, high) * advantage).sum()
    if kind == "cispo":
        return -(ratio.clamp(low, high).detach() * advantage * x).sum()
    return -(advantage * x - 0.5 * config["beta"] * (x - given["logprobs"]) ** 2).sum()


def requests(kind: str, patch: int):
    inputs = {"weights": signed_weights}
    if kind != "cross_entropy":
        inputs = {
            "logprobs": lambda random, n: -5.5 + random.normal(size=n) * 0.4,
            "advantages": lambda random, n: random.normal(size=n) * (random.random(n) > 0.4),
        }
    data = [datum(seed, images=1 + seed % 3, **inputs) for seed in range(4)]
    for item in data:
        for chunk in item["model_input"]["chunks"]:
            chunk.pop("expected_tokens", None)
    body = {"model_id": "m", "seq_id": 1, "forward_backward_input": {"data": data, "loss_fn": kind, "loss_fn_config": KINDS[kind]}}
    return train_request_from_json(body, False)


def fit(policy: PolicyModel, request) -> list:
    """Sequences, and targets and inputs cut or repeated to this family's number of image tokens."""
    sequences = [policy.sequence(item.parts) for item in request.data]
    for item, sequence in zip(request.data, sequences, strict=True):
        item.targets = np.resize(item.targets, len(sequence))
        item.inputs = {name: np.resize(value, len(sequence)) for name, value in item.inputs.items()}
    return sequences


@pytest.mark.parametrize("rank", [8, 0])
@pytest.mark.parametrize("kind", list(KINDS))
def test_gradient_is_that_of_the_whole_loss(policy, family, kind, rank, figures):
    model, request = make(policy, rank), requests(kind, 16)
    sequences = fit(policy, request)
    result = drain(trainer.forward_backward(policy, model, request, sequences, lambda: None))
    loss, expected = reference(policy, model, request, sequences)
    assert result["metrics"]["loss:sum"] == pytest.approx(loss, rel=1e-5, abs=1e-4)
    live = {name for name, grad in expected.items() if grad.abs().max() > 0}
    assert live <= set(model.grads)
    square = sum(float((model.grads[name].double() - grad.double()).pow(2).sum()) for name, grad in expected.items() if name in live)
    norm = sum(float(grad.double().pow(2).sum()) for grad in expected.values())
    error = (square / norm) ** 0.5
    figures["gradient_relative_error"] = max(error, figures.get("gradient_relative_error", 0.0))
    assert error <= 1e-5
    flipped = sum(float((model.grads[name].double() + grad.double()).pow(2).sum()) for name, grad in expected.items() if name in live)
    assert (flipped / norm) ** 0.5 > 1  # the other sign would be seen


def test_chunks_accumulate_to_the_whole(policy, figures):
    request = requests("cross_entropy", 16)
    sequences = fit(policy, request)
    whole, pieces = make(policy, 8), make(policy, 8)
    drain(trainer.forward_backward(policy, whole, request, sequences, lambda: None))
    for index in range(len(sequences)):
        part = requests("cross_entropy", 16)
        part.data = [request.data[index]]
        drain(trainer.forward_backward(policy, pieces, part, [sequences[index]], lambda: None))
    top = max(float(grad.abs().max()) for grad in whole.grads.values())
    worst = max(float((whole.grads[name] - pieces.grads[name]).abs().max()) for name in whole.grads) / top
    figures["chunk_accumulation_relative_error"] = max(worst, figures.get("chunk_accumulation_relative_error", 0.0))
    assert worst <= 2e-6


def test_a_failure_in_a_later_micro_batch_applies_nothing(policy, monkeypatch):
    request = requests("cross_entropy", 16)
    sequences = fit(policy, request)
    model = make(policy, 8)
    drain(trainer.forward_backward(policy, model, request, sequences, lambda: None))
    before = {name: grad.clone() for name, grad in model.grads.items()}
    calls = []

    def failing():
        calls.append(1)
        if len(calls) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        drain(trainer.forward_backward(policy, model, request, sequences, failing))
    assert len(calls) == 2
    assert all(torch.equal(before[name], grad) for name, grad in model.grads.items())
    assert all(parameter.grad is None for parameter in policy.parameters_of(model.weights).values())


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_adamw_is_torchs(clip):
    generator = torch.Generator().manual_seed(0)
    start = {name: torch.randn(shape, generator=generator) for name, shape in (("a", (5, 3)), ("b", (7,)))}
    ours = {name: value.clone() for name, value in start.items()}
    theirs = {name: torch.nn.Parameter(value.clone()) for name, value in start.items()}
    mine = AdamW(ours)
    other = torch.optim.AdamW(theirs.values(), lr=1e-2, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.1)
    for _ in range(5):
        grads = {name: torch.randn(value.shape, generator=generator) for name, value in start.items()}
        for name, parameter in theirs.items():
            parameter.grad = grads[name].clone()
        if clip:
            torch.nn.utils.clip_grad_norm_(theirs.values(), clip)
        other.step()
        mine.step(grads, AdamParams(1e-2, 0.8, 0.9, 1e-6, 0.1, clip))
    for name in start:
        assert torch.allclose(ours[name], theirs[name], rtol=1e-5, atol=1e-6)


def test_optimizer_out_of_memory_applies_nothing(policy, monkeypatch):
    model, request = make(policy, 8), requests("cross_entropy", 16)
    drain(trainer.forward_backward(policy, model, request, fit(policy, request), lambda: None))
    before = {name: value.clone() for name, value in model.weights.tensors.items()}

    def full(self):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(AdamW, "_reserve", full)
    with pytest.raises(torch.OutOfMemoryError):
        trainer.optim_step(model, AdamParams())
    assert all(torch.equal(before[name], value) for name, value in model.weights.tensors.items())
    assert model.grads and model.optimizer.step_count == 0
    monkeypatch.undo()
    assert trainer.optim_step(model, AdamParams())["metrics"]["step"] == 1
