"""What the command line decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Settings:
    """Options of `serve`. Sizes are in tokens, pixels, bytes or seconds as named."""

    model: str
    state: Path
    host: str = "127.0.0.1"
    port: int = 8377
    device: str = "auto"
    dtype: str = "auto"
    attention: str = "sdpa"
    threads: int = 0
    lora: int | None = None
    lora_alpha: float | None = None
    lora_vision: bool = False
    lora_targets: str | None = None
    checkpointing: bool = True
    micro_batch_tokens: int = 16_384
    head_rows: int = 1024
    sample_rows: int = 64
    sample_tokens: int = 131_072
    sample_window_ms: float = 4.0
    max_context: int = 32_768
    max_image_bytes: int = 20_000_000
    max_image_pixels: int = 40_000_000
    max_images: int = 64
    min_pixels: int | None = None
    max_pixels: int | None = None
    image_cache_bytes: int = 1_000_000_000
    max_body_bytes: int = 256_000_000
    max_queue: int = 4096
    keep_snapshots: int = 8
    keep_answers_s: float = 3600.0
    session_ttl_s: float = 3600.0
    stall_after_s: float = 300.0
    key_env: str = "DART_ENGINE_API_KEY"
    adapter_roots: list[Path] = field(default_factory=list)
    end_with_stdin: bool = False
    allow_remote_code: bool = False

    @property
    def loopback(self) -> bool:
        return self.host in ("127.0.0.1", "::1", "localhost")
