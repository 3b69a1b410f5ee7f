"""The built-in losses, summed over tokens. x is log pi of the targets, q the log-probs sent with the request.

    cross_entropy         sum( -x w )                                  w may be negative or fractional
    importance_sampling   sum( -e^(x - q) A )
    ppo                   sum( -min( r A, clip(r, low, high) A ) )     r = e^(x - q), bounds are ratios, 0.8 and 1.2
    cispo                 sum( -sg( clip(r, low, high) ) A x )
    dro                   sum( -( A x - beta / 2 (x - q)^2 ) )
"""

from __future__ import annotations

import torch

from .errors import user_error

_DEFAULTS = {
    "cross_entropy": {},
    "importance_sampling": {},
    "ppo": {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2},
    "cispo": {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2},
    "dro": {"beta": 0.05},
}


def loss_config(loss_fn: str, given: dict) -> dict:
    """The loss's options with defaults; an option that would be ignored is refused."""
    known = _DEFAULTS[loss_fn]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise user_error(f"{loss_fn} has no option {', '.join(unknown)}; it takes {', '.join(known) or 'none'}.")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            raise user_error(f"loss_fn_config.{name} must be a number.")
    config = {**known, **given}
    if config.get("clip_low_threshold", 0.0) > config.get("clip_high_threshold", 0.0):
        raise user_error("clip_low_threshold is above clip_high_threshold; both are absolute ratios such as 0.8 and 1.2.")
    return config


def live_rows(loss_fn: str, inputs: dict) -> torch.Tensor:
    """Which targets have a gradient. The others are scored without one."""
    if loss_fn == "cross_entropy":
        return inputs["weights"] != 0
    if loss_fn == "dro":
        return torch.ones_like(inputs["advantages"], dtype=torch.bool)
    return inputs["advantages"] != 0


def loss_sum(loss_fn: str, config: dict, x: torch.Tensor, inputs: dict) -> torch.Tensor:
    """The summed loss over all targets of a micro-batch; `x` and every input are float32 of shape [targets]."""
    if loss_fn == "cross_entropy":
        return -(x * inputs["weights"]).sum()
    q, advantages = inputs["logprobs"], inputs["advantages"]
    if loss_fn == "dro":
        return -(advantages * x - 0.5 * config["beta"] * (x - q) ** 2).sum()
    ratio = torch.exp(x - q)
    if loss_fn == "importance_sampling":
        return -(ratio * advantages).sum()
    clipped = ratio.clamp(config["clip_low_threshold"], config["clip_high_threshold"])
    if loss_fn == "ppo":
        return -torch.minimum(ratio * advantages, clipped * advantages).sum()
    return -(clipped.detach() * advantages * x).sum()
