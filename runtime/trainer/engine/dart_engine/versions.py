"""Frozen versions that sample: loaded adapters by name, checkpoints by URI, snapshots by sampling session."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

import torch
from transformers import AutoModelForImageTextToText

from .checkpoints import CheckpointStore, parse_uri, read_adapter
from .errors import user_error
from .lora import LoraSpec
from .model import PolicyModel, Weights
from .trainer import check_shapes


@dataclass
class SamplingSession:
    id: str
    session_id: str
    weights: Weights
    model_id: str | None = None
    ephemeral: bool = False
    created: float = field(default_factory=time.time)


class Versions:
    """A version lives as long as a name, a session or a call in flight refers to it; then its memory is free."""

    def __init__(self, policy: PolicyModel, store: CheckpointStore, roots: list[Path], keep: int):
        self._policy = policy
        self._store = store
        self._roots = [root.resolve() for root in [*roots, store.root]]
        self._keep = keep
        self._lock = threading.RLock()
        self._recent: OrderedDict[str, Weights] = OrderedDict()
        self.base = Weights("base", root=policy.settings.model)
        self.adapters: dict[str, Weights] = {}
        self.sessions: dict[str, SamplingSession] = {}

    def remember(self, uri: str, weights: Weights) -> None:
        """Keeps the last few saved versions in memory, so that loading one that was just saved reads no file.

        Of whole models only the last: each takes as much memory as the base model.
        """
        with self._lock:
            if weights.spec is None:
                self._recent = OrderedDict((key, kept) for key, kept in self._recent.items() if kept.spec is not None)
            self._recent[uri] = weights
            self._recent.move_to_end(uri)
            while len(self._recent) > self._keep:
                self._recent.popitem(last=False)

    def forget(self, path: str) -> None:
        """Its files are gone, or no name holds it any more. Names that hold it keep it."""
        with self._lock:
            self._recent.pop(path, None)

    def resolve(self, path: str) -> Weights:
        """A version from a tinker:// URI or a folder. Reads files; not for the event loop."""
        with self._lock:
            if path in self._recent:
                return self._recent[path]
        weights = self._from_uri(path) if path.startswith("tinker://") else self._from_folder(self._allowed(path), path)
        if path.startswith("tinker://"):
            self.remember(path, weights)
        return weights

    def _from_uri(self, uri: str) -> Weights:
        model_id, kind, name = parse_uri(uri)
        return self._from_folder(self._store.existing(model_id, kind, name), uri)

    def _allowed(self, path: str) -> Path:
        folder = Path(path)
        if not folder.is_absolute():
            raise user_error(f"{path!r} must be a tinker:// path or an absolute folder.")
        folder = folder.resolve()
        if not any(folder.is_relative_to(root) for root in self._roots):
            raise user_error(f"{folder} is outside the engine's folders; start it with --adapter-root FOLDER to allow it.", status=403)
        if not folder.is_dir():
            raise user_error(f"There is no folder {folder}.", status=404)
        return folder

    def _from_folder(self, folder: Path, root: str) -> Weights:
        if (folder / "adapter_config.json").is_file():
            return self._adapter(folder, root)
        if (folder / "weights.safetensors").is_file():
            from .checkpoints import load_tensors

            tensors = load_tensors(folder / "weights.safetensors", self._policy.device)
        elif (folder / "config.json").is_file():
            model = AutoModelForImageTextToText.from_pretrained(str(folder), dtype=self._policy.dtype)
            tensors = {name: parameter.data.to(self._policy.device) for name, parameter in model.named_parameters()}
        else:
            raise user_error(f"{folder} holds neither an adapter nor a model.")
        base = {name: self._policy.base[name].shape for name in tensors if name in self._policy.base}
        check_shapes(tensors, base or {name: tensor.shape for name, tensor in self._policy.base.items()})
        return Weights(root, None, tensors, root=str(folder))

    def _adapter(self, folder: Path, root: str) -> Weights:
        config, tensors = read_adapter(folder, self._policy.device)
        if config.get("use_rslora") or config.get("use_dora") or config.get("bias", "none") != "none" or config.get("rank_pattern"):
            raise user_error("Only plain LoRA adapters are supported (no rslora, dora, bias or rank_pattern).")
        targets = tuple(sorted({name.rsplit(".lora_", 1)[0] for name in tensors}))
        rank, alpha = config.get("r"), config.get("lora_alpha")
        if type(rank) is not int or rank < 1 or not isinstance(alpha, (int, float)):
            raise user_error("adapter_config.json needs r and lora_alpha.")
        spec = LoraSpec(rank, float(alpha), targets)
        known = set(self._policy.layers)
        strangers = [target for target in targets if target not in known]
        if strangers or not targets:
            raise user_error(
                f"The adapter changes layers this model does not have (first: {strangers[:1]}); it would be a silent no-op. Its names "
                "must be those of transformers' model, after base_model.model."
            )
        check_shapes(tensors, self._policy.slots.shapes(spec))
        return Weights(root, spec, tensors, root=str(folder))

    # --- names of OpenAI's face ---

    def load(self, name: str, path: str) -> str:
        """Loads under a new name; a name is never given to other weights. Returns what happened, in words."""
        with self._lock:
            taken = self.adapters.get(name)
            if taken is not None and taken.parent == path:
                return f"Success: '{name}' was loaded already."
            if taken is not None or name in self.base_names():
                raise user_error(f"The name '{name}' is taken by {taken.parent if taken else 'the base model'}; use a new name a version.")
        found = self.resolve(path)
        weights = Weights(name, found.spec, found.tensors, parent=path, root=found.root)
        with self._lock:
            self.adapters[name] = weights
        note = "" if changes_anything(weights) else " It changes nothing: every lora_B is 0."
        return f"Success: LoRA adapter '{name}' added successfully.{note}"

    def unload(self, name: str) -> None:
        """New calls no longer find the name; calls in flight end with the weights they began with."""
        with self._lock:
            gone = self.adapters.pop(name, None)
            if gone is None:
                raise user_error(f"No adapter '{name}' is loaded.", status=404)
            if all(kept.parent != gone.parent for kept in self.adapters.values()):
                self.forget(gone.parent)

    def base_names(self) -> set[str]:
        model = self._policy.settings.model
        return {"base", model, Path(model).name}

    def named(self, name: str | None) -> Weights:
        with self._lock:
            if name is None or name in self.base_names():
                return self.base
            weights = self.adapters.get(name)
        if weights is None:
            loaded = ", ".join(["base", *self.adapters]) or "none"
            raise user_error(f"The model '{name}' does not exist. Loaded: {loaded}.", status=404)
        return weights

    # --- sampling sessions ---

    def open_session(self, session: SamplingSession) -> None:
        with self._lock:
            self.sessions[session.id] = session
            same = [s for s in self.sessions.values() if s.ephemeral and s.model_id == session.model_id and s.model_id]
            for old in sorted(same, key=lambda s: s.created)[: -self._keep]:
                del self.sessions[old.id]

    def session(self, session_id: str) -> SamplingSession:
        found = self.sessions.get(session_id)
        if found is None:
            raise user_error(
                f"There is no sampling session {session_id}: the engine restarted, its session ended, or more than {self._keep} newer "
                "snapshots of its model exist (--keep-snapshots).",
                status=404,
            )
        return found

    def close_of(self, session_ids: set[str]) -> int:
        """Drops the sampling sessions of ended sessions and returns how many."""
        with self._lock:
            ended = [key for key, session in self.sessions.items() if session.session_id in session_ids]
            for key in ended:
                del self.sessions[key]
        return len(ended)


def changes_anything(weights: Weights) -> bool:
    if weights.spec is None:
        return True
    return any(bool(torch.any(tensor != 0)) for name, tensor in weights.tensors.items() if name.endswith("lora_B.weight"))


def sampler_meta(kind: str, meta: dict, order: int) -> str:
    return json.dumps({"kind": kind, "time": time.time(), "order": order, "model": meta})
