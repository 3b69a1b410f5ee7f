"""Failures as the wire reports them: what happened, whose fault it is, what to do next."""

from __future__ import annotations

import torch


class EngineError(Exception):
    """A failure with a category of the protocol: `user`, `server` or `unknown`.

    `status` is the HTTP status where the failure is found while the request is still open; later it is the
    answer of its future, with status 200.
    """

    def __init__(self, message: str, *, category: str = "user", status: int = 400):
        super().__init__(message)
        self.message = message
        self.category = category
        self.status = status

    def body(self) -> dict:
        return {"error": self.message, "category": self.category}


def user_error(message: str, status: int = 400) -> EngineError:
    """What the caller asked for cannot be done; asking again does not help."""
    return EngineError(message, category="user", status=status)


def server_error(message: str, status: int = 503) -> EngineError:
    """The engine failed; nothing was applied and the same request may be sent again."""
    return EngineError(message, category="server", status=status)


def model_lost(message: str) -> EngineError:
    """The model is not what its caller believes, whatever the request carries; clients take a 404 as a lost model."""
    return EngineError(message, category="server", status=404)


def gone(message: str) -> EngineError:
    """The answer is no longer kept, or the engine restarted: send the original request again."""
    return EngineError(message, category="server", status=410)


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "out of memory" in str(error).lower()


def is_device_lost(error: BaseException) -> bool:
    """After such an error no CUDA call of this process works any more."""
    text = str(error)
    return isinstance(error, RuntimeError) and ("CUDA error" in text or "device-side assert" in text)


def describe(error: BaseException, doing: str) -> EngineError:
    """Turns any exception of the torch thread into an error body."""
    if isinstance(error, EngineError):
        return error
    if is_out_of_memory(error):
        return server_error(
            f"Out of memory while {doing}; nothing was applied. Lower --micro-batch-tokens, --sample-rows or --sample-tokens, the number "
            "or size of the images (--max-pixels; a run that names this engine must say the same in "
            "trainer.remote.options.maxPixels) or --max-context, turn --checkpointing on, or choose a smaller "
            "model or LoRA rank; then send the request again."
        )
    if is_device_lost(error):
        return server_error(f"The GPU failed while {doing} ({error}). Restart the engine; it goes on from its last checkpoint.")
    return EngineError(
        f"{type(error).__name__} while {doing}: {error}. Nothing was applied. The engine's log has the whole trace.",
        category="unknown",
        status=500,
    )
