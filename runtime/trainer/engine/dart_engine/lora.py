"""LoRA inside the model: one PEFT adapter for each configuration, whose tensors are exchanged version by version."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.tuners_utils import BaseTunerLayer

from .errors import user_error
from .lora_linear import round_once

ATTENTION = {"q_proj", "k_proj", "v_proj", "o_proj"}
MLP = {"gate_proj", "up_proj", "down_proj"}


@dataclass(frozen=True)
class LoraSpec:
    """Rank, alpha and the full names of the layers. Two versions with equal specs share one place in the model."""

    rank: int
    alpha: float
    targets: tuple[str, ...]
    seed: int = 0
    train_attn: bool = True
    train_mlp: bool = True
    train_unembed: bool = True

    @property
    def place(self) -> tuple:
        return (self.rank, self.alpha, self.targets)

    def wire(self) -> dict:
        return {
            "rank": self.rank,
            "alpha": self.alpha,
            "seed": self.seed,
            "train_attn": self.train_attn,
            "train_mlp": self.train_mlp,
            "train_unembed": self.train_unembed,
            "targets": list(self.targets),
        }


def linear_layers(model: torch.nn.Module) -> list[str]:
    names = []
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and not any(part.startswith("lora_") for part in name.split(".")):
            names.append(name.replace(".base_layer", ""))
    return names


def is_vision(name: str) -> bool:
    return any(part in ("visual", "vision_tower", "vision_model", "multi_modal_projector") for part in name.split("."))


def choose_targets(layers: list[str], config: dict, *, vision: bool, names: list[str] | None) -> tuple[str, ...]:
    """The layers a model's lora_config asks for. `names` (last parts of layer names) takes the place of the switches."""
    chosen = []
    for name in layers:
        last = name.split(".")[-1]
        if is_vision(name) and not vision:
            continue
        if names is not None:
            wanted = last in names
        elif is_vision(name):
            wanted = last not in ("patch_embed",)
        else:
            wanted = (
                (last in ATTENTION and config["train_attn"])
                or (last in MLP and config["train_mlp"])
                or (last == "lm_head" and config["train_unembed"])
            )
        if wanted:
            chosen.append(name)
    if not chosen:
        raise user_error("No layer of this model is chosen: turn on train_attn, train_mlp or train_unembed, or name other targets.")
    return tuple(sorted(chosen))


class LoraSlots:
    """Places for LoRA tensors in the model, made when a configuration is first used."""

    def __init__(self, model: torch.nn.Module):
        self._model = model
        self._names: dict[tuple, str] = {}
        self._layers: list[BaseTunerLayer] = []
        self._parameters: dict[str, dict[str, torch.nn.Parameter]] = {}
        self._current: str | None = None

    def _slot(self, spec: LoraSpec) -> str:
        name = self._names.get(spec.place)
        if name is not None:
            return name
        name = f"slot{len(self._names)}"
        config = LoraConfig(r=spec.rank, lora_alpha=spec.alpha, target_modules=list(spec.targets), lora_dropout=0.0, bias="none")
        with warnings.catch_warnings():
            # an adapter of the head alone, where the head's weight is the embedding's, is what train_unembed means
            warnings.filterwarnings("ignore", message=".*tie_word_embeddings.*")
            inject_adapter_in_model(config, self._model, adapter_name=name)
        round_once(self._model)
        self._names[spec.place] = name
        self._layers = [module for module in self._model.modules() if isinstance(module, BaseTunerLayer)]
        marker = f".{name}."
        self._parameters[name] = {
            parameter_name.replace(marker, "."): parameter
            for parameter_name, parameter in self._model.named_parameters()
            if marker in parameter_name
        }
        self._current = ""  # whatever was active before is to be set again
        return name

    def activate(self, spec: LoraSpec | None, tensors: dict[str, torch.Tensor]) -> None:
        name = self._slot(spec) if spec is not None else None
        if name != self._current:
            for layer in self._layers:
                layer.enable_adapters(name is not None and name in layer.lora_A)
                if name is not None and name in layer.lora_A:
                    layer.set_adapter([name])
            self._current = name
        if name is not None:
            for key, parameter in self._parameters[name].items():
                parameter.data = tensors[key]

    def parameters(self, spec: LoraSpec) -> dict[str, torch.nn.Parameter]:
        return self._parameters[self._slot(spec)]

    def shapes(self, spec: LoraSpec) -> dict[str, torch.Size]:
        """Names and shapes of a version's tensors, as in a PEFT file without its prefix."""
        out = {}
        modules = dict(self._model.named_modules())
        for target in spec.targets:
            layer = modules[target]
            layer = getattr(layer, "base_layer", layer)
            out[f"{target}.lora_A.weight"] = torch.Size((spec.rank, layer.in_features))
            out[f"{target}.lora_B.weight"] = torch.Size((layer.out_features, spec.rank))
        return out


def fresh_tensors(shapes: dict[str, torch.Size], seed: int, device: torch.device) -> dict[str, torch.Tensor]:
    """A uniform in +-1/sqrt(inputs), B zero, in float32; the same seed gives the same numbers on every device."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in shapes.items():
        if name.endswith("lora_A.weight"):
            bound = 1.0 / math.sqrt(shape[1])
            tensors[name] = (torch.rand(shape, generator=generator) * 2 - 1).mul_(bound).to(device)
        else:
            tensors[name] = torch.zeros(shape, device=device)
    return tensors
