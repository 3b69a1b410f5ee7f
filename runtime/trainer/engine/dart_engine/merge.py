"""A checkpoint as a whole model folder: the adapter added into the base weights, or the weights that were all trained."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import AutoModelForImageTextToText

from .checkpoints import load_tensors, read_adapter
from .errors import EngineError, user_error
from .model_files import save_beside
from .trainer import check_shapes

def merge(model: str, weights: Path, out: Path) -> dict:
    """Writes `out`, which must not exist; returns `{layers, parameters, dtype}`. Numbers keep the base model's type."""
    if out.exists():
        raise user_error(f"{out} exists already.")
    base = AutoModelForImageTextToText.from_pretrained(model, dtype="auto", trust_remote_code=False)
    with torch.no_grad():
        if (weights / "adapter_config.json").is_file():
            layers = _add(base, *read_adapter(weights, torch.device("cpu")))
        elif (weights / "weights.safetensors").is_file():
            layers = _replace(base, load_tensors(weights / "weights.safetensors", torch.device("cpu")))
        else:
            raise user_error(f"{weights} holds neither an adapter nor weights.")
    base.save_pretrained(out)
    save_beside(model, out)
    return {
        "layers": layers,
        "parameters": sum(parameter.numel() for parameter in base.parameters()),
        "dtype": str(base.dtype).removeprefix("torch."),
    }


def _add(model: torch.nn.Module, config: dict, tensors: dict[str, torch.Tensor]) -> int:
    """W + alpha / r * B A, layer by layer, added in float32."""
    scale = config["lora_alpha"] / config["r"]
    targets = sorted({name.rsplit(".lora_", 1)[0] for name in tensors})
    modules = dict(model.named_modules())
    strangers = [target for target in targets if target not in modules]
    if strangers or not targets:
        raise user_error(f"The adapter is of another model: it changes {strangers[:1] or 'nothing'}.")
    for target in targets:
        layer = modules[target]
        change = scale * (tensors[f"{target}.lora_B.weight"] @ tensors[f"{target}.lora_A.weight"])
        if change.shape != layer.weight.shape:
            raise user_error(f"The adapter is of another model: {target} is {tuple(layer.weight.shape)}, not {tuple(change.shape)}.")
        if layer is model.get_output_embeddings():
            _untie(model)
        layer.weight.data = (layer.weight.data.float() + change).to(layer.weight.dtype)
    return len(targets)


def _untie(model: torch.nn.Module) -> None:
    """A head whose weight is the embedding's gets one of its own: the adapter changed the head alone."""
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    if head.weight is embedding.weight:
        head.weight = torch.nn.Parameter(head.weight.data.clone())
    for config in (model.config, getattr(model.config, "text_config", None)):
        if config is not None:
            config.tie_word_embeddings = False


def _replace(model: torch.nn.Module, tensors: dict[str, torch.Tensor]) -> int:
    parameters = dict(model.named_parameters())
    check_shapes(tensors, {name: parameter.shape for name, parameter in parameters.items()})
    for name, tensor in tensors.items():
        parameters[name].data = tensor.to(parameters[name].dtype)
    return len(tensors)


def run(options: dict) -> int:
    try:
        print(json.dumps(merge(options["model"], options["weights"], options["out"])))
        return 0
    except EngineError as error:
        print(json.dumps(error.body()))
        return 1
