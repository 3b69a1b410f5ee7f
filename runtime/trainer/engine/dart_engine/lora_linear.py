"""Linear layers of a 16-bit model whose sums are rounded once, at the end.

PEFT adds an adapter's part to what the layer has rounded already, where a part below half a unit in the last place is
lost: a small adapter, and each is small at first, does nothing until it is large, and all at once then. Here the layer's
product stays in float32 until the adapter's part is in it, so that small parts move the roundings of some sums and, in the
mean, everything by what they are. It moves fewer bytes, too. A float32 model takes PEFT's own way.
"""

from __future__ import annotations

from functools import cache, partial

import torch
from peft.tuners.lora.layer import Linear as LoraLinear
from torch.nn.functional import linear


def round_once(model: torch.nn.Module) -> None:
    """Of all adapted layers of the model that compute in 16 bits."""
    for module in model.modules():
        if isinstance(module, LoraLinear) and module.get_base_layer().weight.dtype != torch.float32:
            module.forward = partial(_forward, module)


def linear32(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    """What a linear layer, adapted or not, makes of x [..., inputs], in float32."""
    base = module.get_base_layer() if isinstance(module, LoraLinear) else module
    if type(base) is not torch.nn.Linear or base.weight.dtype == torch.float32:
        return module(x).float()
    return _Linear32.apply(x, base.weight, base.bias, *_adapter(module))


def _forward(module: LoraLinear, x: torch.Tensor) -> torch.Tensor:
    base, (a, b, scale) = module.get_base_layer(), _adapter(module)
    if a is None:
        return base(x)
    return _Linear32.apply(x, base.weight, base.bias, a, b, scale).to(x.dtype)


def _adapter(module: torch.nn.Module) -> tuple:
    """Weights [rank, inputs] and [outputs, rank] and the scale of the adapter that is active; Nones without one."""
    if not isinstance(module, LoraLinear) or module.disable_adapters:
        return None, None, 0.0
    active = [name for name in module.active_adapters if name in module.lora_A]
    if not active:
        return None, None, 0.0
    (name,) = active
    return module.lora_A[name].weight, module.lora_B[name].weight, module.scaling[name]


def _product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x [n, k] times weight [k, m], of 16 bits each, as float32."""
    if _mixes(x.device, x.dtype):
        return torch.mm(x, weight, out_dtype=torch.float32)
    return x.float() @ weight.float()


@cache
def _mixes(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether products of 16-bit numbers come out as float32 there: on NVIDIA's GPUs, not on the processor."""
    some = torch.ones(16, 16, device=device, dtype=dtype)
    try:
        return torch.mm(some, some, out_dtype=torch.float32).dtype == torch.float32
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        return False


class _Linear32(torch.autograd.Function):
    """x W' + bias + scale (x A') B' in float32; gradients in the number format of what they are of."""

    @staticmethod
    def forward(ctx, x, weight, bias, a, b, scale):
        flat = x.reshape(-1, x.shape[-1])
        out = _product(flat, weight.t())
        if bias is not None:
            out += bias
        low = None
        if a is not None:
            low = linear(flat.to(a.dtype), a)
            out.addmm_(low, b.t(), alpha=scale)
        ctx.save_for_backward(flat, weight, a, b, low)
        ctx.scale, ctx.shape = scale, x.shape
        return out.reshape(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx, grad):
        flat, weight, a, b, low = ctx.saved_tensors
        wide = grad.reshape(-1, grad.shape[-1])
        to_low = ctx.scale * (wide @ b) if a is not None else None
        to_x = to_weight = to_bias = to_a = to_b = None
        if ctx.needs_input_grad[0]:
            to_x = _product(wide.to(weight.dtype), weight)
            if to_low is not None:
                to_x.addmm_(to_low, a)
            to_x = to_x.to(flat.dtype).reshape(ctx.shape)
        if to_low is not None and ctx.needs_input_grad[3]:
            to_a = to_low.t() @ flat.to(a.dtype)
        if to_low is not None and ctx.needs_input_grad[4]:
            to_b = ctx.scale * (wide.t() @ low)
        if ctx.needs_input_grad[1]:
            to_weight = _product(wide.to(weight.dtype).t(), flat).to(weight.dtype)
        if ctx.needs_input_grad[2]:
            to_bias = wide.sum(0).to(weight.dtype)
        return to_x, to_weight, to_bias, to_a, to_b, None
