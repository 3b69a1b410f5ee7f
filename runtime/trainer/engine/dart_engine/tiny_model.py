"""Writes a tiny, randomly initialised Qwen3-VL or Qwen2.5-VL with tokenizer, chat template and image processor.

Nothing is downloaded, so tests and the bench need no network. The folder loads in transformers and in vLLM
(head_dim 32: smaller ones pass vLLM's start-up and kill its first request).
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2_5_VLConfig, Qwen3VLConfig
from transformers import Qwen2_5_VLForConditionalGeneration, Qwen3VLForConditionalGeneration

SPECIAL_TOKENS = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
]

CHAT_TEMPLATE = (
    "{%- for message in messages -%}<|im_start|>{{ message.role + '\n' }}"
    "{%- if message.content is string -%}{{ message.content }}{%- else -%}"
    "{%- for part in message.content -%}"
    "{%- if part.type in ['image', 'image_url'] -%}<|vision_start|><|image_pad|><|vision_end|>"
    "{%- else -%}{{ part.text }}{%- endif -%}{%- endfor -%}{%- endif -%}<|im_end|>\n{% endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n{% endif -%}"
)


def build_tokenizer(words: list[str]) -> PreTrainedTokenizerFast:
    """One token a byte, plus the special tokens, plus `words` as single tokens (to keep sequences short)."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: index for index, symbol in enumerate(alphabet)}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens=[token for token in SPECIAL_TOKENS if token not in ("<|im_end|>", "<|endoftext|>")],
        clean_up_tokenization_spaces=False,
        model_max_length=8192,
    )
    if words:
        tokenizer.add_tokens(words)
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _text_config(hidden: int, layers: int, vocabulary: int, eos: int) -> dict:
    return {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": hidden * 2,
        "num_hidden_layers": layers,
        "num_attention_heads": max(1, hidden // 32),
        "num_key_value_heads": max(1, hidden // 64),
        "head_dim": 32,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": eos,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [8, 4, 4]},
    }


def _qwen3(hidden: int, layers: int, vision: int, depth: int, ids: dict, vocabulary: int):
    text = _text_config(hidden, layers, vocabulary, ids["<|im_end|>"])
    # As in published models: transformers takes it for granted, and vLLM places images by it.
    text["rope_parameters"]["mrope_interleaved"] = True
    config = Qwen3VLConfig(
        text_config=text,
        vision_config={
            "depth": depth,
            "hidden_size": vision,
            "intermediate_size": vision * 2,
            "num_heads": max(1, vision // 32),
            "patch_size": 16,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "out_hidden_size": hidden,
            "num_position_embeddings": 1024,
            "deepstack_visual_indexes": [0],
        },
        tie_word_embeddings=True,
        **_token_ids(ids),
    )
    return Qwen3VLForConditionalGeneration, config, {"patch_size": 16}


def _qwen25(hidden: int, layers: int, vision: int, depth: int, ids: dict, vocabulary: int):
    text = _text_config(hidden, layers, vocabulary, ids["<|im_end|>"])
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config={
            "depth": depth,
            "hidden_size": vision,
            "intermediate_size": vision * 2,
            "num_heads": max(1, vision // 32),
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "out_hidden_size": hidden,
            "window_size": 56,
            "fullatt_block_indexes": [depth - 1],
        },
        tie_word_embeddings=True,
        **_token_ids(ids),
    )
    return Qwen2_5_VLForConditionalGeneration, config, {"patch_size": 14}


def _token_ids(ids: dict) -> dict:
    return {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
    }


def write_tiny_model(
    folder: Path,
    *,
    family: str = "qwen3",
    hidden: int = 128,
    layers: int = 2,
    vision: int = 64,
    depth: int = 1,
    seed: int = 0,
    words: list[str] | None = None,
    min_pixels: int = 1024,
    max_pixels: int = 1_003_520,
) -> dict:
    """Writes the folder and returns `{parameters, vocabulary, folder}`.

    `hidden` must be a multiple of 64 and `vision` of 32; pixels are areas.
    """
    if hidden % 64 or vision % 32:
        raise ValueError("hidden must be a multiple of 64 and vision of 32")
    tokenizer = build_tokenizer(words or [])
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS}
    build = {"qwen3": _qwen3, "qwen2.5": _qwen25}[family]
    model_class, config, processor = build(hidden, layers, vision, depth, ids, len(tokenizer))
    torch.manual_seed(seed)
    model = model_class(config).float()
    model.generation_config.eos_token_id = ids["<|im_end|>"]
    model.generation_config.pad_token_id = ids["<|endoftext|>"]
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _write_processors(folder, family, processor["patch_size"], min_pixels, max_pixels)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabulary": len(tokenizer),
        "folder": str(folder),
    }


def _write_processors(folder: Path, family: str, patch: int, min_pixels: int, max_pixels: int) -> None:
    half = [0.5, 0.5, 0.5]
    name = "Qwen3VL" if family == "qwen3" else "Qwen2_5_VL"
    image = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": f"{name}Processor",
        "patch_size": patch,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "size": {"shortest_edge": min_pixels, "longest_edge": max_pixels},
        "image_mean": half,
        "image_std": half,
        "do_resize": True,
        "do_rescale": True,
        "do_normalize": True,
        "do_convert_rgb": True,
        "resample": 3,
    }
    video = {**image, "video_processor_type": "Qwen3VLVideoProcessor" if family == "qwen3" else "Qwen2VLVideoProcessor"}
    del video["image_processor_type"]
    (folder / "preprocessor_config.json").write_text(json.dumps(image, indent=2))
    (folder / "video_preprocessor_config.json").write_text(json.dumps(video, indent=2))
