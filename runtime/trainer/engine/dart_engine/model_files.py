"""What a model folder needs beside its weights."""

from __future__ import annotations

import shutil
from pathlib import Path

from transformers import AutoImageProcessor, AutoTokenizer

PROCESSOR_FILES = ("preprocessor_config.json", "video_preprocessor_config.json", "processor_config.json", "chat_template.json")


def save_beside(model: str, out: Path, tokenizer=None, processor=None) -> None:
    """Tokenizer and image processor, as transformers and vLLM look for them."""
    (tokenizer or AutoTokenizer.from_pretrained(model, trust_remote_code=False)).save_pretrained(out)
    for name in PROCESSOR_FILES:
        if (Path(model) / name).is_file():
            shutil.copyfile(Path(model) / name, out / name)
    if not (out / "preprocessor_config.json").is_file():
        (processor or AutoImageProcessor.from_pretrained(model, backend="pil", trust_remote_code=False)).save_pretrained(out)
