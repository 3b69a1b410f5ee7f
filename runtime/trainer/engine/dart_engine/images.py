"""Images from bytes to patches: bounded, decoded on a thread pool, kept by hash."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass

import torch
from PIL import Image, UnidentifiedImageError

from .data import ImagePart
from .errors import user_error
from .settings import Settings

FORMATS = {"PNG", "JPEG", "WEBP"}
# A run sends screens as they are and sets no such flag: what reduces them here (max_pixels) comes later.
SMALLER = "Start the engine with a larger limit; where a run starts it, set a smaller desktops.screen in the run file."


@dataclass(eq=False)
class Patches:
    """`pixel_values` as the vision tower takes them, `grid` (t, h, w) in patches or None, and the tokens they become."""

    pixel_values: torch.Tensor
    grid: torch.Tensor | None
    tokens: int


class ImageStore:
    """Decodes and prepares images; the same bytes are prepared once while they are in the cache, however many ask at once."""

    def __init__(self, processor, count_tokens, settings: Settings):
        self._processor = processor
        self._count_tokens = count_tokens
        self._settings = settings
        self._kept: OrderedDict[str, Patches] = OrderedDict()
        self._coming: dict[str, Future] = {}
        self._bytes = 0
        self._lock = threading.Lock()
        self.hits = 0
        self.queries = 0

    def prepare(self, part: ImagePart) -> Patches:
        """Raises a user error for what is too large, not an image, or not of the length the caller expects."""
        patches = self._patches(part)
        if part.expected is not None and part.expected != patches.tokens:
            raise user_error(
                f"An image becomes {patches.tokens} tokens here, the request expects {part.expected}. Use the same image "
                "processor settings (min_pixels, max_pixels, patch size) on both sides."
            )
        return patches

    def _patches(self, part: ImagePart) -> Patches:
        with self._lock:
            self.queries += 1
            patches, coming = self._kept.get(part.digest), self._coming.get(part.digest)
            first = patches is None and coming is None
            if first:
                coming = self._coming[part.digest] = Future()
            else:
                self.hits += 1
            if patches is not None:
                self._kept.move_to_end(part.digest)
                return patches
        if first:
            self._fill(coming, part)
        return coming.result()

    def _fill(self, coming: Future, part: ImagePart) -> None:
        """Prepares it for everybody who waits for `coming`; a failure is everybody's, too."""
        try:
            patches = self._process(self._decode(part))
            self._keep(part.digest, patches)
            coming.set_result(patches)
        except BaseException as error:
            coming.set_exception(error)
        finally:
            with self._lock:
                del self._coming[part.digest]

    def _decode(self, part: ImagePart) -> Image.Image:
        if len(part.data) > self._settings.max_image_bytes:
            raise user_error(
                f"An image has {len(part.data)} bytes; the limit is {self._settings.max_image_bytes} "
                f"(--max-image-bytes). {SMALLER}"
            )
        try:
            image = Image.open(io.BytesIO(part.data))
            if image.format not in FORMATS:
                raise user_error(f"Images must be PNG, JPEG or WebP, this one is {image.format}.")
            pixels = image.width * image.height
            if pixels > self._settings.max_image_pixels:
                raise user_error(
                    f"An image has {image.width}x{image.height} pixels; the limit is {self._settings.max_image_pixels} "
                    f"(--max-image-pixels). {SMALLER}"
                )
            return image.convert("RGB")
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise user_error(f"An image could not be decoded: {error}.") from None

    def _process(self, image: Image.Image) -> Patches:
        try:
            out = self._processor(images=[image], return_tensors="pt")
        except ValueError as error:
            raise user_error(f"The image processor refuses an image of {image.width}x{image.height}: {error}.") from None
        grid = out.get("image_grid_thw")
        return Patches(out["pixel_values"], grid, self._count_tokens(out))

    def _keep(self, digest: str, patches: Patches) -> None:
        size = patches.pixel_values.numel() * patches.pixel_values.element_size()
        with self._lock:
            if size > self._settings.image_cache_bytes:
                return
            self._kept[digest] = patches
            self._bytes += size
            while self._bytes > self._settings.image_cache_bytes:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= dropped.pixel_values.numel() * dropped.pixel_values.element_size()
