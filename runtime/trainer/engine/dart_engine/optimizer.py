"""AdamW with float32 state, so that a restored optimizer is the same to the bit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .errors import user_error


@dataclass(frozen=True)
class AdamParams:
    """`grad_clip_norm` 0 means no clipping; weight decay is decoupled."""

    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-12
    weight_decay: float = 0.0
    grad_clip_norm: float = 0.0


def adam_params(body) -> AdamParams:
    """Reads and checks `adam_params`; an unknown name is refused, because it would be ignored."""
    body = dict(body or {})
    if body.pop("type", "adamw") not in ("adamw", "adam"):
        raise user_error("This engine has AdamW only.")
    unknown = sorted(set(body) - set(AdamParams.__dataclass_fields__))
    if unknown:
        raise user_error(f"adam_params has no {', '.join(unknown)}.")
    for name, value in body.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            raise user_error(f"adam_params.{name} must be a finite number of at least 0.")
    params = AdamParams(**{name: float(value) for name, value in body.items()})
    if params.beta1 >= 1 or params.beta2 >= 1:
        raise user_error("beta1 and beta2 must be below 1.")
    return params


class AdamW:
    """Holds m, v and, for weights below float32, float32 master copies. Names are parameter names."""

    def __init__(self, weights: dict[str, torch.Tensor]):
        self._weights = weights
        self.step_count = 0
        self.state: dict[str, torch.Tensor] = {}

    def _reserve(self) -> None:
        """Allocates the whole state before anything is applied: running out of memory here changes nothing."""
        if self.state:
            return
        state = {}
        for name, weight in self._weights.items():
            state[f"m.{name}"] = torch.zeros_like(weight, dtype=torch.float32)
            state[f"v.{name}"] = torch.zeros_like(weight, dtype=torch.float32)
            if weight.dtype != torch.float32:
                state[f"w.{name}"] = weight.float()
        self.state = state

    @torch.no_grad()
    def step(self, grads: dict[str, torch.Tensor], params: AdamParams) -> float:
        """Applies one step and returns the gradient's global norm before clipping. Weights without a gradient get 0.

        A gradient that is not finite changes nothing; its norm says so.
        """
        norm = global_norm(grads)
        if not math.isfinite(norm):
            return norm
        self._reserve()
        largest = max(self._weights.values(), key=lambda weight: weight.numel())
        scratch = torch.empty(largest.numel() * 3, dtype=torch.float32, device=largest.device)
        del scratch  # room for the temporaries below is there
        scale = 1.0
        if params.grad_clip_norm > 0 and norm > params.grad_clip_norm:
            scale = params.grad_clip_norm / norm
        self.step_count += 1
        size = params.learning_rate / (1.0 - params.beta1**self.step_count)
        root = math.sqrt(1.0 - params.beta2**self.step_count)
        for name, weight in self._weights.items():
            m, v = self.state[f"m.{name}"], self.state[f"v.{name}"]
            target = self.state.get(f"w.{name}", weight)
            grad = grads.get(name)
            m.mul_(params.beta1)
            v.mul_(params.beta2)
            if grad is not None:
                grad = grad.float() * scale
                m.add_(grad, alpha=1.0 - params.beta1)
                v.addcmul_(grad, grad, value=1.0 - params.beta2)
            if params.weight_decay:
                target.mul_(1.0 - params.learning_rate * params.weight_decay)
            target.addcdiv_(m, v.sqrt().div_(root).add_(params.eps), value=-size)
            if target is not weight:
                weight.copy_(target)
        return norm

    def restore(self, step_count: int, state: dict[str, torch.Tensor]) -> None:
        self.step_count = step_count
        self.state = state


def global_norm(grads: dict[str, torch.Tensor]) -> float:
    """In float64 over float32 norms, one transfer a tensor's worth of scalars at the end."""
    if not grads:
        return 0.0
    norms = torch.stack([torch.linalg.vector_norm(grad.float()) for grad in grads.values()])
    return float(torch.linalg.vector_norm(norms.double()))
