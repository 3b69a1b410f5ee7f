"""The one model in memory: its inputs, its forward pass, and which version of the weights it has at the moment.

A version (`Weights`) is a dictionary of tensors. Activating one points the model's parameters at its tensors, so
switching between the policy that trains and a frozen one costs milliseconds and no copy.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import torch
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoImageProcessor, AutoModelForImageTextToText, AutoTokenizer

from . import ENGINE_VERSION
from .data import ImagePart
from .errors import user_error
from .images import ImageStore, Patches
from .lora import LoraSlots, LoraSpec, linear_layers
from .lora_linear import linear32
from .model_files import save_beside
from .settings import Settings
from .vision_attention import use_segments

PROCESSOR_SETTINGS = ("patch_size", "merge_size", "temporal_patch_size", "resample", "do_resize", "do_rescale", "rescale_factor")


def _plain(value):
    """A number or a flag; resampling filters are numbers of an enumeration. None for anything else."""
    return value if isinstance(value, (bool, float)) else int(value) if isinstance(value, int) else None


@dataclass(eq=False)
class Weights:
    """One version. `spec` None: full weights (or, with no tensors, the base model as it was loaded)."""

    name: str
    spec: LoraSpec | None = None
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    parent: str = "base"
    root: str = ""

    def frozen_copy(self, name: str) -> "Weights":
        return Weights(name, self.spec, {key: value.detach().clone() for key, value in self.tensors.items()}, self.parent)


@dataclass(eq=False)
class Sequence:
    """Token ids with images expanded, its patches in order, and positions of shape [3 or 1, length]."""

    ids: torch.Tensor
    kinds: torch.Tensor
    images: list[Patches]
    positions: torch.Tensor
    next_position: int

    def __len__(self) -> int:
        return int(self.ids.shape[0])


def choose_device(name: str) -> torch.device:
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    # A GPU that was hidden on purpose is none.
    if Path("/dev/nvidia0").exists() and os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() not in ("", "-1"):
        raise NoCuda(
            f"There is a GPU, and torch {torch.__version__} cannot use it: {why_no_cuda()} "
            "Update the NVIDIA driver (580 or newer), or set the device to cpu, which is for tests only "
            "(trainer.remote.options.device of a run file, --device of engine serve)."
        )
    return torch.device("cpu")


class NoCuda(RuntimeError):
    """The device `auto` would be the processor beside a GPU: hours of computing that nobody asked for."""


def why_no_cuda() -> str:
    """Torch's own reason, in one sentence."""
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        # What follows are addresses to download from.
        said = str(error).strip().split("\n")[0].split(". ")[0] or type(error).__name__
        return f"{said.removesuffix('.')}."
    return "it says that there is none."


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


class PolicyModel:
    """Everything here runs on the torch thread, but `sequence`, which any thread may call."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.device = choose_device(settings.device)
        self.dtype = choose_dtype(settings.dtype, self.device)
        if settings.threads:
            torch.set_num_threads(settings.threads)
        code = {"trust_remote_code": settings.allow_remote_code}
        self.config = AutoConfig.from_pretrained(settings.model, **code)
        self.tokenizer = AutoTokenizer.from_pretrained(settings.model, **code)
        processor = AutoImageProcessor.from_pretrained(settings.model, backend="pil", **code)
        self.processor = processor
        self._size_images(processor)
        self.model = AutoModelForImageTextToText.from_pretrained(
            settings.model, dtype=self.dtype, attn_implementation=settings.attention, **code
        ).to(self.device)
        if settings.attention == "sdpa":
            use_segments(self.model)
        self._no_dropout()
        self.inner = self.model.model
        self.vocabulary = int(self.model.get_input_embeddings().num_embeddings)
        self.image_token = self._token_id("image_token_id", "image_token_index")
        self.forbidden = sorted(
            {token for token in (self.image_token, self._token_id("video_token_id")) if token is not None}
        )
        eos = self.model.generation_config.eos_token_id if self.model.generation_config else None
        eos = eos if eos is not None else self.tokenizer.eos_token_id
        self.eos = set(eos if isinstance(eos, (list, tuple)) else [] if eos is None else [eos])
        self._kinds_wanted = "mm_token_type_ids" in inspect.signature(self.inner.forward).parameters
        self.images = ImageStore(processor, self._count_tokens, settings)
        self.base = {name: parameter.data for name, parameter in self.model.named_parameters()}
        self._named = dict(self.model.named_parameters())
        for parameter in self._named.values():
            parameter.requires_grad_(False)
        self.slots = LoraSlots(self.model)
        self.layers = linear_layers(self.model)
        self._active: Weights | None = None
        self._overlaid = False
        if settings.checkpointing:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
            # What it turns on with it would send gradients through the whole vision tower, for nobody.
            self.model.disable_input_require_grads()
        self.model.eval()

    def _size_images(self, processor) -> None:
        low, high = self.settings.min_pixels, self.settings.max_pixels
        if low is not None or high is not None:
            size = dict(processor.size)
            processor.size = type(processor.size)(
                shortest_edge=low if low is not None else size["shortest_edge"],
                longest_edge=high if high is not None else size["longest_edge"],
            )
        self.image_size = {key: value for key, value in dict(processor.size).items() if value is not None}
        self.patch = getattr(processor, "patch_size", None)
        self.merge = getattr(processor, "merge_size", 1)

    def described(self) -> dict:
        """What records are of: versions, number format, chat template, and the image processor as it works here."""
        template = self.tokenizer.chat_template
        processor = {name: _plain(getattr(self.processor, name, None)) for name in PROCESSOR_SETTINGS}
        return {
            "name": "dart_engine",
            "version": ENGINE_VERSION,
            "packages": {name: version(name) for name in ("torch", "transformers", "pillow")},
            "dtype": str(self.dtype).removeprefix("torch."),
            "device": str(self.device),
            "chat_template_sha256": hashlib.sha256(template.encode()).hexdigest() if isinstance(template, str) else None,
            "image_processor": {**self.image_size, **{name: value for name, value in processor.items() if value is not None}},
        }

    def _no_dropout(self) -> None:
        for module in self.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            if isinstance(getattr(module, "attention_dropout", None), float):
                module.attention_dropout = 0.0

    def _token_id(self, *names: str) -> int | None:
        for name in names:
            value = getattr(self.config, name, None)
            if value is not None:
                return int(value)
        return None

    def _count_tokens(self, processed) -> int:
        grid = processed.get("image_grid_thw")
        if grid is not None:
            return int(grid[0].prod()) // (self.merge**2)
        for name in ("mm_tokens_per_image", "image_seq_length"):
            value = getattr(self.config, name, None)
            if value is not None:
                return int(value) * int(processed["pixel_values"].shape[0])
        raise user_error(f"This engine does not know how many tokens an image has in {self.config.model_type}.")

    # --- inputs ---

    def sequence(self, parts: list) -> Sequence:
        """Parts as one sequence. Raises user errors for bad tokens, too many images and too long sequences."""
        ids: list[int] = []
        kinds: list[int] = []
        images: list[Patches] = []
        after_image = False
        for part in parts:
            if isinstance(part, ImagePart):
                if self.image_token is None:
                    raise user_error("This model takes no images.")
                if after_image:
                    raise user_error("Two image chunks need a text token between them (the template's vision tokens).")
                patches = self.images.prepare(part)
                images.append(patches)
                ids += [self.image_token] * patches.tokens
                kinds += [1] * patches.tokens
                after_image = True
            elif part:
                self._check_tokens(part)
                ids += part
                kinds += [0] * len(part)
                after_image = False
        if not ids:
            raise user_error("The sequence is empty.")
        if len(images) > self.settings.max_images:
            raise user_error(f"{len(images)} images in one sequence; the limit is {self.settings.max_images} (--max-images).")
        if len(ids) > self.settings.max_context:
            raise user_error(f"{len(ids)} tokens in one sequence; the limit is {self.settings.max_context} (--max-context).")
        tensor, kind = torch.tensor(ids), torch.tensor(kinds)
        positions = self._positions(tensor, kind, images)
        return Sequence(tensor, kind, images, positions, int(positions.max()) + 1)

    def _check_tokens(self, tokens: list[int]) -> None:
        if min(tokens) < 0 or max(tokens) >= self.vocabulary:
            raise user_error(f"A token id is outside 0 to {self.vocabulary - 1}: is this the model the tokens were made for?")
        # Others that stand for something seen (a video) are text here, as they are where a server sampled one by chance.
        if self.image_token is not None and self.image_token in tokens:
            raise user_error(
                f"Token {self.image_token} stands for an image; send an image chunk in its place. A sampled answer that holds "
                "it cannot be trained on."
            )

    def _positions(self, ids: torch.Tensor, kinds: torch.Tensor, images: list[Patches]) -> torch.Tensor:
        rope_index = getattr(self.inner, "get_rope_index", None)
        if rope_index is None:
            return torch.arange(len(ids))[None]
        grids = torch.cat([image.grid for image in images]) if images else None
        positions, _ = rope_index(ids[None], mm_token_type_ids=kinds[None], image_grid_thw=grids)
        return positions[:, 0]

    def batch(self, sequences: list[Sequence], left: bool) -> dict:
        """Pads to the longest; `left` pads in front, for generation."""
        length = max(len(sequence) for sequence in sequences)
        rows = len(sequences)
        planes = sequences[0].positions.shape[0]
        ids = torch.full((rows, length), self.tokenizer.pad_token_id or 0)
        mask = torch.zeros(rows, length, dtype=torch.long)
        kinds = torch.zeros(rows, length, dtype=torch.long)
        positions = torch.zeros(planes, rows, length, dtype=torch.long)
        for row, sequence in enumerate(sequences):
            start = length - len(sequence) if left else 0
            span = slice(start, start + len(sequence))
            ids[row, span] = sequence.ids
            mask[row, span] = 1
            kinds[row, span] = sequence.kinds
            positions[:, row, span] = sequence.positions
        out = {"input_ids": ids, "attention_mask": mask, "position_ids": positions if planes > 1 else positions[0]}
        images = [image for sequence in sequences for image in sequence.images]
        if self._kinds_wanted:
            out["mm_token_type_ids"] = kinds
        if images:
            out["pixel_values"] = torch.cat([image.pixel_values for image in images]).to(self.dtype)
            if images[0].grid is not None:
                out["image_grid_thw"] = torch.cat([image.grid for image in images])
        return {name: value.to(self.device, non_blocking=True) for name, value in out.items()}

    # --- versions ---

    def activate(self, weights: Weights) -> None:
        """Points the parameters at this version. Called before every use, since training and sampling take turns."""
        if weights is self._active:
            return
        full = weights.tensors if weights.spec is None else {}
        if full or self._overlaid:
            for name, base in self.base.items():
                self._named[name].data = full.get(name, base)
            self._overlaid = bool(full)
        self.slots.activate(weights.spec, weights.tensors if weights.spec is not None else {})
        self._active = weights

    def parameters_of(self, weights: Weights) -> dict[str, torch.nn.Parameter]:
        """The parameters that hold this (active) version's tensors, by the same names."""
        if weights.spec is None:
            return {name: self._named[name] for name in weights.tensors}
        return self.slots.parameters(weights.spec)

    def save_whole(self, weights: Weights, folder) -> None:
        """A model folder that transformers and vLLM load: weights, configuration, tokenizer, image processor."""
        state = {name: weights.tensors.get(name, base) for name, base in self.base.items()}
        self.model.save_pretrained(folder, state_dict={name: tensor.to("cpu") for name, tensor in state.items()})
        save_beside(self.settings.model, folder, self.tokenizer, self.processor)

    # --- passes ---

    def hidden(self, inputs: dict, **more) -> torch.Tensor:
        return self.inner(**inputs, **more)

    def target_logprobs(self, rows: torch.Tensor, targets: torch.Tensor, gradient: bool) -> torch.Tensor:
        """log pi of `targets` from hidden `rows` [n, d], in float32, a bounded number of rows at a time."""
        out = []
        for start in range(0, rows.shape[0], self.settings.head_rows):
            piece = slice(start, start + self.settings.head_rows)
            if gradient:
                out.append(checkpoint(self._score, rows[piece], targets[piece], use_reentrant=False))
            else:
                with torch.no_grad():
                    out.append(self._score(rows[piece], targets[piece]))
        return torch.cat(out) if out else rows.new_zeros(0, dtype=torch.float32)

    def _score(self, rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        logits = self.logits(rows)
        return logits.gather(1, targets[:, None])[:, 0] - torch.logsumexp(logits, dim=-1)

    def logits(self, rows: torch.Tensor) -> torch.Tensor:
        """Of hidden `rows` [n, d]: [n, vocabulary], float32 also in what a 16-bit model computes last."""
        return linear32(self.model.get_output_embeddings(), rows)
