"""One model that trains: its weights, pending gradient, optimizer and ledger. Runs on the torch thread.

A forward_backward that fails leaves the pending gradient as it was; an optim_step that fails leaves the weights.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from . import ENGINE_VERSION
from .checkpoints import load_tensors, read_adapter, save_adapter, save_tensors
from .data import Datum, TrainRequest
from .errors import user_error
from .ledger import Ledger
from .lora import LoraSpec, fresh_tensors, is_vision
from .losses import live_rows, loss_config, loss_sum
from .model import PolicyModel, Sequence, Weights
from .optimizer import AdamParams, AdamW


@dataclass(eq=False)
class TrainedModel:
    """`meta` is model.json: session, base model, lora_config with the chosen layers, metadata."""

    id: str
    meta: dict
    weights: Weights
    optimizer: AdamW
    ledger: Ledger = field(default_factory=Ledger)
    grads: dict[str, torch.Tensor] = field(default_factory=dict)
    used: float = field(default_factory=time.time)

    @property
    def spec(self) -> LoraSpec | None:
        return self.weights.spec


def new_model(policy: PolicyModel, model_id: str, meta: dict) -> TrainedModel:
    """A fresh adapter, or for rank 0 a copy of the base weights."""
    lora = meta["lora_config"]
    if lora["rank"] == 0:
        vision = lora.get("train_vision", True)
        tensors = {name: base.clone() for name, base in policy.base.items() if vision or not is_vision(name)}
        weights = Weights(model_id, None, tensors)
    else:
        spec = spec_from_meta(lora)
        tensors = fresh_tensors(policy.slots.shapes(spec), spec.seed, policy.device)
        weights = Weights(model_id, spec, tensors)
    return TrainedModel(model_id, meta, weights, AdamW(weights.tensors))


def spec_from_meta(lora: dict) -> LoraSpec:
    names = ("rank", "alpha", "seed", "train_attn", "train_mlp", "train_unembed")
    return LoraSpec(targets=tuple(lora["targets"]), **{name: lora[name] for name in names})


def micro_batches(lengths: list[int], tokens: int) -> list[list[int]]:
    """Indexes by length, in groups whose padded size stays within `tokens` (a longer sequence is alone)."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if groups and lengths[index] * (len(groups[-1]) + 1) <= tokens:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def check_targets(policy: PolicyModel, datum: Datum, sequence: Sequence) -> None:
    if len(datum.targets) != len(sequence):
        raise user_error(
            f"A datum has {len(sequence)} positions (images included) and {len(datum.targets)} targets; there must be one target "
            "a position, shifted by one."
        )
    if datum.targets.min() < 0 or datum.targets.max() >= policy.vocabulary:
        raise user_error(f"target_tokens must be from 0 to {policy.vocabulary - 1}.")


def forward_backward(policy: PolicyModel, model: TrainedModel, request: TrainRequest, sequences: list[Sequence], beat) -> Iterator[None]:
    """Yields between micro-batches; returns `{loss_fn_output_type, logprobs, metrics}`."""
    config = loss_config(request.loss_fn, request.config)
    for datum, sequence in zip(request.data, sequences, strict=True):
        check_targets(policy, datum, sequence)
    logprobs: list[np.ndarray | None] = [None] * len(sequences)
    grads: dict[str, torch.Tensor] = {}
    total = 0.0
    for group in micro_batches([len(sequence) for sequence in sequences], policy.settings.micro_batch_tokens):
        batch = [(request.data[index], sequences[index]) for index in group]
        loss, scored = _micro_batch(policy, model, batch, request, config, grads)
        total += loss
        for index, values in zip(group, scored, strict=True):
            logprobs[index] = values
        beat()
        yield
    if not math.isfinite(total):
        raise user_error(f"The loss is {total}; nothing was applied. Are `logprobs` those of the policy that sampled the tokens?")
    for name, grad in grads.items():
        model.grads[name] = model.grads[name] + grad if name in model.grads else grad
    model.used = time.time()
    return {
        "loss_fn_output_type": "ArrayRecord",
        "logprobs": logprobs,
        "metrics": {"loss:sum": total, "tokens:sum": float(sum(len(sequence) for sequence in sequences))},
    }


def _micro_batch(policy, model, batch, request, config, grads) -> tuple[float, list[np.ndarray]]:
    device = policy.device
    names = batch[0][0].inputs
    inputs = {name: torch.from_numpy(np.concatenate([datum.inputs[name] for datum, _ in batch])).to(device) for name in names}
    targets = torch.from_numpy(np.concatenate([datum.targets for datum, _ in batch])).to(device)
    live = live_rows(request.loss_fn, inputs)
    learn = bool(live.any()) and not request.forward_only
    policy.activate(model.weights)
    parameters = policy.parameters_of(model.weights)
    sequences = [sequence for _, sequence in batch]
    try:
        if learn:
            for parameter in parameters.values():
                parameter.requires_grad_(True)
                parameter.grad = None
            policy.model.train(policy.settings.checkpointing)
        with torch.set_grad_enabled(learn):
            states = policy.hidden(policy.batch(sequences, left=False), use_cache=False).last_hidden_state
            rows = torch.cat([states[row, : len(sequence)] for row, sequence in enumerate(sequences)])
            x = torch.zeros(len(targets), dtype=torch.float32, device=device)
            if learn:
                x = x.index_put((live,), policy.target_logprobs(rows[live], targets[live], gradient=True))
                x = x.index_put((~live,), policy.target_logprobs(rows[~live].detach(), targets[~live], gradient=False))
            else:
                x = policy.target_logprobs(rows, targets, gradient=False)
            loss = loss_sum(request.loss_fn, config, x, inputs)
        if learn:
            loss.backward()
            for name, parameter in parameters.items():
                if parameter.grad is not None:
                    grad = parameter.grad.float()
                    grads[name] = grads[name].add_(grad) if name in grads else grad
    finally:
        if learn:
            policy.model.eval()
            for parameter in parameters.values():
                parameter.grad = None
                parameter.requires_grad_(False)
    values = x.detach().cpu().numpy()
    cuts = np.cumsum([len(sequence) for sequence in sequences])[:-1]
    return float(loss.detach()), [np.array(piece) for piece in np.split(values, cuts)]


def optim_step(model: TrainedModel, params: AdamParams) -> dict:
    """Applies the pending gradient and drops it. Without one, only decay and momentum act.

    A gradient that is not finite is dropped alone: `grad_norm` is null then, and the step is not counted.
    """
    grads, model.grads = model.grads, {}
    try:
        norm = model.optimizer.step(grads, params)
    except Exception as error:
        if not getattr(error, "category", None):
            model.grads = grads  # out of memory: the step can be asked again
        raise
    model.used = time.time()
    said = norm if math.isfinite(norm) else None  # JSON has no NaN
    return {
        "type": "optim_step",
        "metrics": {"grad_norm": said, "learning_rate": params.learning_rate, "step": float(model.optimizer.step_count)},
    }


def save_training(policy: PolicyModel, model: TrainedModel, folder: Path, order: int, saving: tuple | None) -> None:
    """Everything that a later engine needs to go on to the bit: weights, m and v, pending gradient, ledger."""
    if model.spec is None:
        save_tensors(folder / "weights.safetensors", model.weights.tensors)
    else:
        save_adapter(folder, model.spec, model.weights.tensors, policy.settings.model)
    state = dict(model.optimizer.state)
    state.update({f"g.{name}": grad for name, grad in model.grads.items()})
    save_tensors(folder / "optimizer.safetensors", state)
    meta = {
        "kind": "training",
        "time": time.time(),
        "order": order,
        "engine": ENGINE_VERSION,
        "model": model.meta,
        "step": model.optimizer.step_count,
        "ledger": model.ledger.to_json(saving),
    }
    (folder / "engine.json").write_text(json.dumps(meta))


def load_training(policy: PolicyModel, model: TrainedModel, folder: Path, *, optimizer: bool, pending: bool) -> None:
    """Replaces weights (and optimizer, and pending gradient) only after everything was read and fits."""
    meta = json.loads((folder / "engine.json").read_text())
    if model.spec is None:
        if not (folder / "weights.safetensors").is_file():
            raise user_error("This checkpoint holds an adapter; the model trains its full weights (rank 0).")
        tensors = load_tensors(folder / "weights.safetensors", policy.device)
    else:
        _, tensors = read_adapter(folder, policy.device)
    check_shapes(tensors, {name: tensor.shape for name, tensor in model.weights.tensors.items()})
    state: dict[str, torch.Tensor] = {}
    if optimizer and (folder / "optimizer.safetensors").is_file():
        state = load_tensors(folder / "optimizer.safetensors", policy.device)
    for name, tensor in model.weights.tensors.items():
        tensor.copy_(tensors[name])
    model.grads = {name.removeprefix("g."): grad for name, grad in state.items() if name.startswith("g.")} if pending else {}
    kept = {name: tensor for name, tensor in state.items() if not name.startswith("g.")}
    model.optimizer.restore(meta["step"] if optimizer else 0, kept)


def check_shapes(tensors: dict[str, torch.Tensor], expected: dict[str, torch.Size]) -> None:
    """Refuses what would load in part or not at all: an adapter whose names match nothing changes nothing."""
    missing = sorted(set(expected) - set(tensors))
    unknown = sorted(set(tensors) - set(expected))
    if missing or unknown:
        raise user_error(
            f"The weights do not fit this model: {len(missing)} missing (first: {missing[:1]}), {len(unknown)} unknown (first: "
            f"{unknown[:1]}). They were made for another model or with other LoRA layers."
        )
    for name, tensor in tensors.items():
        if tensor.shape != expected[name]:
            raise user_error(f"{name} has shape {tuple(tensor.shape)}, the model needs {tuple(expected[name])}.")
        if not torch.isfinite(tensor).all():
            raise user_error(f"{name} holds numbers that are not finite.")
