"""gpu.py [SHAPE ...] [--out FILE] [--steps N] [--minutes M] [--device D] [--probe COMMAND]: what an update costs in the
shape of real models.

Weights are random and made on the device, so nothing is fetched; a step has as many pictures and as much text as a run's.
Each shape is trained by the engine's own parts (an adapter of rank 16 on the language model, gradient checkpointing) on
`--steps` steps, and sampled from. `small` has the same form and runs on a processor in half a minute. `--probe` then
writes a model of `--served`'s shape as a checkpoint, serves it as a run does, and asks COMMAND URL --json of it.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from helpers import ENGINE, drain  # puts the engine on the path: first

from dart_engine import model as engine_model  # noqa: E402
from dart_engine import trainer  # noqa: E402
from dart_engine.data import Datum, TrainRequest, image_part  # noqa: E402
from dart_engine.lora import choose_targets  # noqa: E402
from dart_engine.optimizer import AdamParams  # noqa: E402
from dart_engine.sampler import SampleRequest, Sampler, Sampling  # noqa: E402
from dart_engine.settings import Settings  # noqa: E402
from dart_engine.tiny_model import SPECIAL_TOKENS, _token_ids, _write_processors, build_tokenizer  # noqa: E402
from transformers import Qwen2_5_VLConfig, Qwen3VLConfig  # noqa: E402

PICTURES, TEXT, ANSWER = 5, 1500, 100


def _text(hidden, wide, layers, heads, keys, vocabulary, tied, theta, sections, dim=128, **more) -> dict:
    return {
        "vocab_size": vocabulary, "hidden_size": hidden, "intermediate_size": wide, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": keys, "head_dim": dim, "max_position_embeddings": 32768,
        "tie_word_embeddings": tied, "bos_token_id": None,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta, "mrope_section": sections, **more},
    }  # fmt: skip


def _qwen25(hidden, wide, layers, heads, keys, vocabulary, tied):
    vision = {
        "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "patch_size": 14, "window_size": 112,
        "fullatt_block_indexes": [7, 15, 23, 31], "out_hidden_size": hidden, "spatial_merge_size": 2, "temporal_patch_size": 2,
    }  # fmt: skip
    return Qwen2_5_VLConfig, _text(hidden, wide, layers, heads, keys, vocabulary, tied, 1e6, [16, 24, 24]), vision, 14


def _qwen3(hidden, wide, layers, heads, keys, vocabulary, tied):
    vision = {
        "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "patch_size": 16,
        "deepstack_visual_indexes": [8, 16, 24], "num_position_embeddings": 2304, "out_hidden_size": hidden,
        "spatial_merge_size": 2, "temporal_patch_size": 2,
    }  # fmt: skip
    text = _text(hidden, wide, layers, heads, keys, vocabulary, tied, 5e6, [24, 20, 20], mrope_interleaved=True)
    return Qwen3VLConfig, text, vision, 16


def _small():
    kind, _, vision, patch = _qwen3(128, 256, 2, 4, 2, 512, True)
    text = _text(128, 256, 2, 4, 2, 512, True, 1e4, [8, 4, 4], dim=32, mrope_interleaved=True)
    return kind, text, {**vision, "depth": 2, "hidden_size": 64, "intermediate_size": 128, "num_heads": 2, "deepstack_visual_indexes": [0]}, patch


SHAPES = {
    "small": (_small(), (224, 140)),
    "Qwen2.5-VL-3B": (_qwen25(2048, 11008, 36, 16, 2, 151_936, True), (1280, 720)),
    "Qwen2.5-VL-7B": (_qwen25(3584, 18944, 28, 28, 4, 152_064, False), (1280, 720)),
    "Qwen3-VL-8B": (_qwen3(4096, 12288, 36, 32, 8, 151_936, False), (1280, 720)),
}


class Random:
    """Takes the place of AutoModelForImageTextToText: a model of this configuration, made where it will be."""

    def __init__(self, device: torch.device):
        self._device = device

    def from_pretrained(self, folder, dtype, attn_implementation, **_):
        config = engine_model.AutoConfig.from_pretrained(folder)
        with self._device:
            return self._real.from_config(config, dtype=dtype, attn_implementation=attn_implementation)

    _real = engine_model.AutoModelForImageTextToText


def write_folder(folder: Path, kind, text: dict, vision: dict, patch: int) -> None:
    tokenizer = build_tokenizer([])
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS}
    text = {**text, "eos_token_id": ids["<|im_end|>"]}
    config = kind(text_config=text, vision_config=vision, tie_word_embeddings=text["tie_word_embeddings"], **_token_ids(ids))
    folder.mkdir(parents=True)
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _write_processors(folder, "qwen3" if patch == 16 else "qwen2.5", patch, 3136, 1_003_520)


def picture(seed: int, size: tuple[int, int]) -> bytes:
    """Flat areas, as a desktop has: noise of single pixels would make a PNG that nobody sends."""
    blocks = np.random.default_rng(seed).integers(0, 255, (9, 16, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(blocks).resize(size, Image.Resampling.NEAREST).save(out, "PNG")
    return out.getvalue()


def step(policy, seed: int, size: tuple[int, int]) -> tuple[Datum, object]:
    """A step's prompt with its pictures and an answer; only the answer is weighted, everything is scored."""
    random = np.random.default_rng(seed)
    parts: list = []
    for index in range(PICTURES):
        parts += [random.integers(0, 250, TEXT // PICTURES).tolist(), image_part(picture(10 * seed + index, size), "png", None)]
    parts.append(random.integers(0, 250, ANSWER + 1).tolist())
    sequence = policy.sequence(parts)
    targets = np.roll(sequence.ids.numpy(), -1).astype(np.int64)
    weights = np.zeros(len(targets), np.float32)
    weights[-ANSWER:] = random.normal(size=ANSWER)
    return Datum(parts, targets, {"weights": weights}), sequence


def measure(name: str, o: argparse.Namespace, until: float) -> dict:
    (kind, text, vision, patch), size = SHAPES[name]
    device = engine_model.choose_device(o.device)
    engine_model.AutoModelForImageTextToText = Random(device)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        write_folder(folder, kind, text, vision, patch)
        began = time.monotonic()
        settings = Settings(
            model=str(folder), state=Path(scratch), device=o.device, checkpointing=device.type == "cuda",
            micro_batch_tokens=o.micro_batch_tokens,
        )  # fmt: skip
        policy = engine_model.PolicyModel(settings)
    cuda = device.type == "cuda"
    wait = torch.cuda.synchronize if cuda else lambda: None
    lora = {"rank": 16, "alpha": 32.0, "seed": 1, "train_attn": True, "train_mlp": True, "train_unembed": True, "train_vision": False}
    lora["targets"] = list(choose_targets(policy.layers, lora, vision=False, names=None))
    model = trainer.new_model(policy, "gpu", {"lora_config": lora})
    made = [step(policy, seed, size) for seed in range(o.steps)]
    tokens = sum(len(sequence) for _, sequence in made)
    result = {
        "shape": name,
        "parameters": sum(parameter.numel() for parameter in policy.model.parameters()),
        "dtype": str(policy.dtype).removeprefix("torch."),
        "steps": o.steps,
        "tokens_an_update": tokens,
        "image_tokens_a_step": sum(part.tokens for part in made[0][1].images),
        "made_s": round(time.monotonic() - began, 1),
    }
    seconds = []
    # Both passes of an update: one that scores, one that trains. The first of them warms up and does not count.
    while len(seconds) < 4 and (len(seconds) < 2 or time.monotonic() + max(seconds[1:]) < until):
        wait()
        began = time.monotonic()
        for forward_only in (True, False):
            request = TrainRequest("gpu", None, [datum for datum, _ in made], "cross_entropy", {}, forward_only)
            drain(trainer.forward_backward(policy, model, request, [sequence for _, sequence in made], lambda: None))
        trainer.optim_step(model, AdamParams(learning_rate=1e-5))
        wait()
        seconds.append(time.monotonic() - began)
    best = float(np.median(seconds[1:]))
    result.update(s_an_update=round(best, 2), updates=len(seconds) - 1, tokens_per_s_trained=round(tokens / best))
    if cuda:
        result["peak_gib_trained"] = round(torch.cuda.max_memory_allocated() / 2**30, 1)
        torch.cuda.reset_peak_memory_stats()
    result.update(sampled(policy, model, made, o.rows, wait))
    if cuda:
        result["peak_gib_sampled"] = round(torch.cuda.max_memory_allocated() / 2**30, 1)
    return result


def sampled(policy, model, made, rows: int, wait) -> dict:
    """`rows` prompts of a run at once; every answer has its whole length. What the prompts take stands apart."""
    sampler = Sampler(policy, lambda: None)

    def seconds(tokens: int) -> float:
        options = Sampling(max_tokens=tokens, ignore_eos=True)
        wait()
        began = time.monotonic()
        sampler.run(model.weights, [SampleRequest(made[index % len(made)][1], 1, options) for index in range(rows)])
        wait()
        return time.monotonic() - began

    seconds(2)
    prompts, whole = seconds(1), seconds(ANSWER)
    return {
        "rows_sampled": rows,
        "s_prompts": round(prompts, 2),
        "tokens_per_s_decoded": round(rows * (ANSWER - 1) / (whole - prompts), 1),
        "tokens_per_s_sampled": round(rows * ANSWER / whole, 1),
    }


def probed(command: str, name: str, device: str) -> dict:
    """What the conformance probe says of the engine's own server with a checkpoint of this shape, over HTTP."""
    kind, text, vision, patch = SHAPES[name][0]
    with tempfile.TemporaryDirectory() as scratch:
        folder, began = Path(scratch) / "model", time.monotonic()
        write_folder(folder, kind, text, vision, patch)
        write_weights(folder, engine_model.choose_device(device))
        served = [sys.executable, "-m", "dart_engine", "serve", "--model", str(folder), "--state", scratch + "/state"]
        with open(Path(scratch) / "log", "w") as log:
            server = subprocess.Popen(
                [*served, "--port", "0", "--device", device, "--end-with-stdin"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ENGINE), os.environ.get("PYTHONPATH", "")])},
            )  # fmt: skip
            try:
                line = server.stdout.readline()
                if not line:
                    return {"shape": name, "error": (Path(scratch) / "log").read_text()[-2000:]}
                ready, seconds = json.loads(line), time.monotonic() - began
                began = time.monotonic()
                asked = [*shlex.split(command), ready["url"], "--sampling", "--json"]
                said = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
            finally:
                server.stdin.close()
                server.wait(30)
        result = {"shape": name, "ready_s": round(seconds, 1), "probe_s": round(time.monotonic() - began, 1)}
        try:
            return {**result, **json.loads(said.stdout)}
        except json.JSONDecodeError:
            return {**result, "error": (said.stderr or said.stdout)[-2000:]}


def write_weights(folder: Path, device: torch.device) -> None:
    dtype = engine_model.choose_dtype("auto", device)
    Random(device).from_pretrained(folder, dtype, "sdpa").save_pretrained(folder)
    freed(device.type == "cuda")


def freed(cuda: bool) -> None:
    gc.collect()
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def commit() -> str:
    said = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("shapes", nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--steps", type=int, default=16, help="of an update; seconds grow with it")
    parser.add_argument("--rows", type=int, default=8, help="answers sampled at once")
    parser.add_argument("--minutes", type=float, default=10.0, help="no update begins that would not end in that time")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--probe", metavar="COMMAND", help="such as `npm run -s cli -- engine probe`")
    parser.add_argument("--served", default="Qwen2.5-VL-3B", choices=list(SHAPES), help="the shape that is probed")
    parser.add_argument("--micro-batch-tokens", type=int, default=Settings.micro_batch_tokens)
    o = parser.parse_args()
    cuda = engine_model.choose_device(o.device).type == "cuda"
    shapes = o.shapes or ([name for name in SHAPES if name != "small"] if cuda else ["small"])
    begun = time.monotonic()
    result = {
        "commit": commit(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "versions": {name: version(name) for name in ("torch", "transformers", "peft")},
        "step": {"pictures": PICTURES, "text_tokens": TEXT, "answer_tokens": ANSWER, "lora_rank": 16},
        "micro_batch_tokens": o.micro_batch_tokens,
        "rows": [],
    }

    def keep(row: dict) -> None:
        print(json.dumps(row), flush=True)
        freed(cuda)
        # After each: one that is cut off takes nothing of the others away.
        if o.out:
            o.out.parent.mkdir(parents=True, exist_ok=True)
            o.out.write_text(json.dumps(result, indent=2) + "\n")

    for index, name in enumerate(shapes):
        until = begun + 60 * o.minutes * (index + 1) / len(shapes)
        try:
            row = measure(name, o, until)
        except torch.OutOfMemoryError as error:
            row = {"shape": name, "error": f"out of memory: {str(error).splitlines()[0]}"}
        result["rows"].append(row)
        keep(row)
    if o.probe:
        result["probe"] = probed(o.probe, o.served, o.device)
        keep(result["probe"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
