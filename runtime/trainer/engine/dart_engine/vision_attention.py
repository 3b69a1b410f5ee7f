"""Attention of a vision tower over many short segments at once.

Towers attend within windows and pictures: at 1280x720 Qwen2.5-VL's has 84 windows a picture, of three lengths. Without the
flash-attn package transformers takes them one by one: 94,000 small kernels for forty pictures, which took an H200 longer
than the language model. Here the segments of one length are one batch.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

# transformers gives the bounds of segments to implementations with this word in their name.
NAME = "segments_flash_sdpa"
# Segments of one call: kernels count them in 16 bits.
MOST = 16_384


@dataclass(eq=False)
class Segments:
    """Segments of one length: `index` [count * length] of their positions, None where they are all there is, in order."""

    length: int
    index: torch.Tensor | None


@dataclass(eq=False)
class Plan:
    groups: list[Segments]
    # Where each position is among the groups' outputs one after the other; None where it is where it was.
    back: torch.Tensor | None


def use_segments(model: torch.nn.Module) -> None:
    """Of those towers whose attention is told the bounds of its segments."""
    AttentionInterface.register(NAME, attend)
    for module in model.modules():
        config = getattr(module, "config", None)
        if config is not None and "cu_seqlens" in inspect.signature(module.forward).parameters:
            config._attn_implementation = NAME


def plan(bounds: torch.Tensor) -> Plan:
    """Bounds [segments + 1], ascending from 0. Kept with the tensor: every layer of a pass is given the same one."""
    kept = getattr(bounds, "_segments", None)
    if kept is None:
        kept = bounds._segments = _plan(bounds)
    return kept


def _plan(bounds: torch.Tensor) -> Plan:
    lengths = bounds[1:] - bounds[:-1]
    distinct = [length for length in torch.unique(lengths).tolist() if length > 0]
    if len(distinct) == 1:
        return Plan([Segments(distinct[0], None)], None)
    groups = []
    for length in distinct:
        starts = bounds[:-1][lengths == length].long()
        within = torch.arange(length, device=bounds.device)
        groups.append(Segments(length, (starts[:, None] + within).flatten()))
    return Plan(groups, torch.argsort(torch.cat([group.index for group in groups])))


def attend(module, query, key, value, attention_mask, scaling=None, dropout=0.0, cu_seq_lens_q=None, **kwargs):
    """Query, key, value [1, heads, positions, width]; returns [1, positions, heads, width], as transformers wants it."""
    if cu_seq_lens_q is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs)
    planned = plan(cu_seq_lens_q)
    out = torch.cat([_of_one_length(query, key, value, group, scaling, dropout) for group in planned.groups])
    return (out if planned.back is None else out[planned.back])[None], None


def _of_one_length(query, key, value, group: Segments, scaling, dropout) -> torch.Tensor:
    """[count * length, heads, width]"""
    heads, width = query.shape[1], query.shape[3]

    def batch(x: torch.Tensor) -> torch.Tensor:
        positions = x[0] if group.index is None else x[0][:, group.index]
        return positions.reshape(heads, -1, group.length, width).transpose(0, 1)

    parts = zip(*(batch(x).split(MOST) for x in (query, key, value)), strict=True)
    attended = [
        torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, scale=scaling, is_causal=False)
        for q, k, v in parts
    ]
    return torch.cat(attended).transpose(1, 2).reshape(-1, heads, width)
