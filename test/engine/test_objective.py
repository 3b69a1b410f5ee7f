"""The objective, carried to the engine as signed weights of cross_entropy, against autograd of the objective itself.

The driver's own arithmetic (objective.ts) says the weights; here the objective is written down another time, from the
formulas of runtime/trainer/README.md#objective, and differentiated through the model's own forward, with images.
"""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest
import torch
from dart_engine import trainer
from dart_engine.data import train_request_from_json
from dart_engine.model import PolicyModel
from dart_engine.settings import Settings
from helpers import datum
from test_gradients import drain, make

PROGRAM = os.environ.get("OBJECTIVE_PROGRAM")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="npm run test:engine bundles the driver's objective")

BASE = {
    "algorithm": "ppo",
    "epsLow": 0.2,
    "epsHigh": 0.28,
    "dualClip": 1.4,
    "tis": {"enabled": True, "level": "token", "cap": 1.1},
    "unknownBehaviour": "one",
    "klBeta": 0.0,
    "imitationCoef": 0.4,
}
WHOLE_STEP = {"enabled": True, "level": "sequence", "cap": 1.1}
CASES = {
    "ppo, dual clip": {},
    "ppo, dual clip, k3": {"klBeta": 0.1},
    "ppo, no truncation": {"tis": {**BASE["tis"], "enabled": False}},
    "ppo, unknown log-probs left out": {"unknownBehaviour": "masked"},
    "gspo": {"algorithm": "gspo"},
    "gspo, k3, truncation of whole steps": {"algorithm": "gspo", "klBeta": 0.1, "tis": WHOLE_STEP},
    "cispo": {"algorithm": "cispo"},
    "cispo, k3": {"algorithm": "cispo", "klBeta": 0.1},
}
STEPS = 7


@pytest.fixture(scope="module")
def policy(tiny, tmp_path_factory) -> PolicyModel:
    torch.set_num_threads(2)
    state = tmp_path_factory.mktemp("state")
    return PolicyModel(Settings(model=str(tiny), state=state, micro_batch_tokens=256, head_rows=16, checkpointing=True))


def request_of(loss: str, weights: list[np.ndarray] | None):
    data = [datum(seed, images=seed % 3, answer=7, weights=lambda _, n: np.zeros(n)) for seed in range(STEPS)]
    if weights is not None:
        for item, row in zip(data, weights, strict=True):
            item["loss_fn_inputs"]["weights"]["data"] = [float(x) for x in row]
    body = {"model_id": "m", "seq_id": 1, "forward_backward_input": {"data": data, "loss_fn": loss, "loss_fn_config": None}}
    return train_request_from_json(body, False)


def steps_of(rows: list[np.ndarray]) -> list[dict]:
    """Steps of a batch that is some updates old: every clip, an unknown log-prob, a masked step, a demonstration."""
    random = np.random.default_rng(11)
    steps = []
    for index, row in enumerate(rows):
        length = 4 + index % 3
        now = row[-length:].astype(np.float64)
        noisy = lambda scale: (now + scale * random.normal(size=length)).tolist()  # noqa: E731
        steps.append(
            {
                "term": "imitation" if index == 2 else "policy",
                "now": now.tolist(),
                "old": noisy(0.5),
                "rollout": noisy(0.35),
                "reference": noisy(0.5),
                "advantage": [1.1, -0.7, 0.0, -1.3, 0.9, -0.4, 0.6][index],
                "weight": 0 if index == 5 else 1 / (1 + index % 3),
                "span": {"targets": len(row), "start": len(row) - length},
            }
        )
    steps[3]["rollout"][1] = None
    return steps


def plain(step: dict, x: torch.Tensor, o: dict) -> tuple[torch.Tensor, int]:
    """Mean over a step's tokens of its loss, and how many count."""
    if step["term"] == "imitation":
        return -o["imitationCoef"] * x.mean(), len(x)
    old, reference = (torch.tensor(step[name], dtype=torch.float64) for name in ("old", "reference"))
    known = torch.tensor([value is not None for value in step["rollout"]])
    rollout = torch.tensor([0.0 if value is None else value for value in step["rollout"]], dtype=torch.float64)
    counted = known if o["unknownBehaviour"] == "masked" else torch.ones_like(known)
    difference = (x - old)[counted]
    ratio = difference.mean().exp().expand(len(difference)) if o["algorithm"] == "gspo" else difference.exp()
    advantage, low, high = step["advantage"], 1 - o["epsLow"], 1 + o["epsHigh"]
    if o["algorithm"] == "cispo":
        loss = -ratio.clamp(low, high).detach() * advantage * x[counted]
    else:
        loss = torch.maximum(-advantage * ratio, -advantage * ratio.clamp(low, high))
        if advantage < 0:
            loss = torch.minimum(loss, torch.tensor(-advantage * o["dualClip"], dtype=torch.float64))
    weight = torch.ones_like(x)
    if o["tis"]["enabled"]:
        off = (old - rollout)[known]
        off = off.sum().expand(len(off)) if o["tis"]["level"] == "sequence" else off
        weight[known] = off.exp().clamp(max=o["tis"]["cap"])
    total = (weight[counted].detach() * loss).mean()
    if o["klBeta"] > 0:
        gap = (reference - x)[counted]
        total = total + o["klBeta"] * (gap.exp() - gap - 1).mean()
    return total, int(counted.sum())


def autograd(policy: PolicyModel, model, request, sequences, steps: list[dict], o: dict) -> tuple[float, dict]:
    policy.activate(model.weights)
    parameters = policy.parameters_of(model.weights)
    for parameter in parameters.values():
        parameter.requires_grad_(True)
        parameter.grad = None
    losses, weights = [], []
    for step, item, sequence in zip(steps, request.data, sequences, strict=True):
        if step["weight"] == 0:
            continue
        logits = policy.model(**policy.batch([sequence], left=False), use_cache=False).logits[0].double()
        x = torch.log_softmax(logits, -1).gather(1, torch.from_numpy(item.targets.copy())[:, None])[:, 0]
        loss, counted = plain(step, x[step["span"]["start"] :], o)
        if counted:
            losses.append(loss)
            weights.append(step["weight"])
    total = sum(weight / sum(weights) * loss for weight, loss in zip(weights, losses, strict=True))
    total.backward()
    grads = {name: parameter.grad.double() for name, parameter in parameters.items() if parameter.grad is not None}
    for parameter in parameters.values():
        parameter.grad = None
        parameter.requires_grad_(False)
    return float(total.detach()), grads


def apart(mine: dict, exact: dict, sign: float = 1.0) -> float:
    square = sum(float((mine.get(name, torch.zeros_like(grad)).double() - sign * grad).pow(2).sum()) for name, grad in exact.items())
    return (square / sum(float(grad.pow(2).sum()) for grad in exact.values())) ** 0.5


@pytest.mark.parametrize("rank", [8, 0])
@pytest.mark.parametrize("case", list(CASES))
def test_the_objective_arrives_whole(policy, case, rank, figures):
    o = {**BASE, **CASES[case]}
    model, scored = make(policy, rank), request_of("cross_entropy", None)
    sequences = [policy.sequence(item.parts) for item in scored.data]
    scored.forward_only = True
    rows = drain(trainer.forward_backward(policy, model, scored, sequences, lambda: None))["logprobs"]
    steps = steps_of(rows)
    asked = json.dumps({"options": o, "steps": steps})
    said = json.loads(subprocess.run(["node", PROGRAM], input=asked, capture_output=True, text=True, check=True).stdout)
    if o["algorithm"] == "ppo":
        assert min(said["clipped"].values()) > 0, "a bound that holds nothing tests nothing"
    request = request_of("cross_entropy", [np.asarray(row, np.float32) for row in said["weights"]])
    drain(trainer.forward_backward(policy, model, request, sequences, lambda: None))
    loss, exact = autograd(policy, model, request, sequences, steps, o)
    assert said["loss"] == pytest.approx(loss, rel=1e-5, abs=1e-6)
    error = apart(model.grads, exact)
    figures["objective_gradient_relative_error"] = max(error, figures.get("objective_gradient_relative_error", 0.0))
    assert error <= 1e-5
    assert apart(model.grads, exact, sign=-1.0) > 1  # the other sign would be seen
