"""Folders of weights on disk: written under another name, flushed, renamed. Tensors only, never pickles.

    STATE/models/<model>/model.json                      how the model was created
    STATE/models/<model>/weights/<name>/                 weights, optimizer, pending gradient, idempotency map
    STATE/models/<model>/sampler_weights/<name>/         a PEFT adapter, or a whole model, as others load it
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from urllib.parse import quote, unquote

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from .errors import user_error

PREFIX = "base_model.model."
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._@:+-]{0,199}$")
_URI = re.compile(r"^tinker://([^/]+)/(weights|sampler_weights)/([^/]+)$")


def check_name(name: str) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise user_error(f"{name!r} is not a name for weights: use letters, digits and . _ @ : + -, at most 200.")
    return name


def parse_uri(uri: str) -> tuple[str, str, str]:
    """`tinker://MODEL/weights/NAME` as (model, kind, name)."""
    found = _URI.match(uri) if isinstance(uri, str) else None
    if not found:
        raise user_error(f"{uri!r} is not of the form tinker://MODEL/weights/NAME or tinker://MODEL/sampler_weights/NAME.")
    return found.group(1), found.group(2), check_name(found.group(3))


class CheckpointStore:
    def __init__(self, root: Path):
        self.root = root
        (root / "models").mkdir(parents=True, exist_ok=True)
        for kind in ("new", "gone"):  # what an engine that was killed had not finished, or not finished deleting
            for left in root.glob(f"models/*/*/.{kind}-*"):
                shutil.rmtree(left, ignore_errors=True)

    def model_folder(self, model_id: str) -> Path:
        safe = quote(model_id, safe="")
        if safe.strip(".") == "" or len(safe) > 200:
            raise user_error(f"{model_id!r} is not a model id.")
        return self.root / "models" / safe

    def model_ids(self) -> list[str]:
        return sorted(unquote(folder.name) for folder in (self.root / "models").iterdir() if (folder / "model.json").is_file())

    def folder(self, model_id: str, kind: str, name: str) -> Path:
        return self.model_folder(model_id) / kind / check_name(name)

    def write_model(self, model_id: str, meta: dict) -> None:
        folder = self.model_folder(model_id)
        folder.mkdir(parents=True, exist_ok=True)
        _write_file(folder / "model.json.new", json.dumps(meta).encode())
        os.replace(folder / "model.json.new", folder / "model.json")
        _flush_folder(folder)

    def read_model(self, model_id: str) -> dict | None:
        path = self.model_folder(model_id) / "model.json"
        return json.loads(path.read_text()) if path.is_file() else None

    def write(self, model_id: str, kind: str, name: str, fill) -> Path:
        """`fill(folder)` writes the files. An older folder of that name is replaced."""
        final = self.folder(model_id, kind, name)
        final.parent.mkdir(parents=True, exist_ok=True)
        fresh = final.parent / f".new-{name}"
        old = final.parent / f".old-{name}"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        try:
            fill(fresh)
            for path in fresh.rglob("*"):
                if path.is_file():
                    _flush_file(path)
            _flush_folder(fresh)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)  # a full disk is not filled further
            raise
        if final.exists():
            shutil.rmtree(old, ignore_errors=True)
            os.rename(final, old)
        os.rename(fresh, final)
        _flush_folder(final.parent)
        shutil.rmtree(old, ignore_errors=True)
        return final

    def existing(self, model_id: str, kind: str, name: str) -> Path:
        final = self.folder(model_id, kind, name)
        old = final.parent / f".old-{name}"
        if not final.is_dir() and old.is_dir():  # a crash between two renames
            os.rename(old, final)
        if not (final / "engine.json").is_file():
            raise user_error(f"There is no checkpoint tinker://{model_id}/{kind}/{name}.", status=404)
        return final

    def list(self, model_id: str, kind: str) -> list[dict]:
        """Newest last: `{name, time, size}`."""
        parent = self.model_folder(model_id) / kind
        if not parent.is_dir():
            return []
        for old in parent.glob(".old-*"):
            if not (parent / old.name.removeprefix(".old-")).exists():
                os.rename(old, parent / old.name.removeprefix(".old-"))
        found = []
        for folder in parent.iterdir():
            if (folder / "engine.json").is_file() and not folder.name.startswith("."):
                meta = json.loads((folder / "engine.json").read_text())
                size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
                found.append({"name": folder.name, "time": meta["time"], "size": size, "order": meta.get("order", meta["time"])})
        return sorted(found, key=lambda item: item["order"])

    def delete(self, model_id: str, kind: str, name: str) -> None:
        folder = self.existing(model_id, kind, name)
        gone = folder.parent / f".gone-{name}-{time.time_ns()}"
        os.rename(folder, gone)
        shutil.rmtree(gone, ignore_errors=True)


def save_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    save_file({name: tensor.detach().to("cpu").contiguous() for name, tensor in tensors.items()}, str(path))


def load_tensors(path: Path, device: torch.device) -> dict[str, torch.Tensor]:
    try:
        return {name: tensor.to(device) for name, tensor in load_file(str(path)).items()}
    except Exception as error:  # safetensors raises its own kind for a truncated file
        raise user_error(f"{path.name} cannot be read ({error}); the checkpoint is damaged, use another one.") from None


def save_adapter(folder: Path, spec, tensors: dict[str, torch.Tensor], base: str) -> None:
    """A PEFT folder that peft and vLLM load."""
    save_tensors(folder / "adapter_model.safetensors", {PREFIX + name: tensor for name, tensor in tensors.items()})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": spec.rank,
        "lora_alpha": spec.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(spec.targets),
        "inference_mode": True,
        "fan_in_fan_out": False,
        "use_rslora": False,
        "use_dora": False,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1))


def read_adapter(folder: Path, device: torch.device) -> tuple[dict, dict[str, torch.Tensor]]:
    """The configuration and the tensors of a PEFT folder, without PEFT's prefix."""
    config_path, weights_path = folder / "adapter_config.json", folder / "adapter_model.safetensors"
    if not config_path.is_file() or not weights_path.is_file():
        raise user_error(f"{folder} has no adapter_config.json and adapter_model.safetensors.")
    try:
        config = json.loads(config_path.read_text())
    except ValueError as error:
        raise user_error(f"adapter_config.json cannot be read: {error}.") from None
    tensors = load_tensors(weights_path, device)
    wrong = [name for name in tensors if not name.startswith(PREFIX)]
    if wrong:
        raise user_error(f"The adapter's names must begin with {PREFIX}; {wrong[0]} does not. It would change nothing.")
    return config, {name.removeprefix(PREFIX): tensor.float() for name, tensor in tensors.items()}


def tensor_names(path: Path) -> list[str]:
    with safe_open(str(path), framework="pt") as file:
        return list(file.keys())


def _write_file(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    _flush_file(path)


def _flush_file(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
