"""Requests as the trainer sees them, whichever wire they came over.

The digest of a request is taken over its parsed content, so the same request in protobuf and in JSON is one request.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field

import numpy as np

from . import wire
from .errors import user_error

LOSS_INPUTS = {
    "cross_entropy": ("weights",),
    "importance_sampling": ("logprobs", "advantages"),
    "ppo": ("logprobs", "advantages"),
    "cispo": ("logprobs", "advantages"),
    "dro": ("logprobs", "advantages"),
}
_PROTO_DTYPES = {wire.FLOAT32: "<f4", wire.INT64: "<i8", wire.INT32: "<i4", wire.BFLOAT16: "<u2"}


@dataclass
class ImagePart:
    """An encoded image as sent. `expected` is the caller's count of its tokens, checked against the real one."""

    data: bytes
    format: str
    expected: int | None
    digest: str


Part = list | ImagePart


@dataclass
class Datum:
    """One sequence: its parts, a target for every position, and the loss's inputs (float32, one a target)."""

    parts: list
    targets: np.ndarray
    inputs: dict


@dataclass
class TrainRequest:
    model_id: str
    seq_id: int | None
    data: list
    loss_fn: str
    config: dict
    forward_only: bool
    digest: str = field(default="")


def image_part(data: bytes, image_format: str, expected: int | None) -> ImagePart:
    return ImagePart(data, image_format or "png", expected, hashlib.sha256(data).hexdigest())


def decode_base64(text) -> bytes:
    if not isinstance(text, str):
        raise user_error("An image's data must be a base64 string.")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise user_error(f"An image's data is not base64: {error}.") from None


def parts_from_json(model_input) -> list:
    """`{"chunks": [...]}` as parts."""
    chunks = model_input.get("chunks") if isinstance(model_input, dict) else None
    if not isinstance(chunks, list):
        raise user_error("model_input and prompt need a list `chunks`.")
    parts: list = []
    for chunk in chunks:
        kind = chunk.get("type", "encoded_text") if isinstance(chunk, dict) else None
        if kind == "encoded_text":
            tokens = chunk.get("tokens")
            if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
                raise user_error("An encoded_text chunk needs `tokens`, a list of integers.")
            parts.append(tokens)
        elif kind == "image":
            parts.append(image_part(decode_base64(chunk.get("data")), chunk.get("format", "png"), chunk.get("expected_tokens")))
        else:
            raise user_error(f"Chunks of type {kind!r} are not supported: send encoded_text or image (with its data).")
    return parts


def _tensor_from_json(name: str, value) -> np.ndarray:
    if not isinstance(value, dict) or "data" not in value:
        raise user_error(f"loss_fn_inputs.{name} needs data, dtype and shape.")
    if value.get("sparse_crow_indices") is not None:
        raise user_error(f"loss_fn_inputs.{name} is sparse; this engine takes dense tensors, one number a target.")
    try:
        array = np.asarray(value["data"], dtype=np.int64 if name == "target_tokens" else np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise user_error(f"loss_fn_inputs.{name}.data is not a list of numbers: {error}.") from None
    return _flat(name, array, value.get("shape"))


def _tensor_from_proto(name: str, message) -> np.ndarray:
    if message.HasField("sparse_csr"):
        raise user_error(f"loss_fn_inputs.{name} is sparse; this engine takes dense tensors, one number a target.")
    kind = _PROTO_DTYPES.get(message.dtype)
    if kind is None or len(message.dense) % np.dtype(kind).itemsize:
        raise user_error(f"loss_fn_inputs.{name} has an unknown dtype or a length that does not fit it.")
    array = np.frombuffer(message.dense, dtype=kind)
    if message.dtype == wire.BFLOAT16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return _flat(name, array.astype(np.int64 if name == "target_tokens" else np.float32), list(message.shape) or None)


def _flat(name: str, array: np.ndarray, shape) -> np.ndarray:
    if array.ndim > 1 or (shape is not None and len(shape) > 1):
        raise user_error(f"loss_fn_inputs.{name} has shape {shape}; this engine takes one number a target ([N]).")
    if array.dtype == np.float32 and not np.isfinite(array).all():
        raise user_error(f"loss_fn_inputs.{name} holds a number that is not finite; nothing was applied.")
    return np.ascontiguousarray(array.reshape(-1))


def _datum(parts: list, tensors: dict, loss_fn: str) -> Datum:
    targets = tensors.pop("target_tokens", None)
    if targets is None or targets.dtype != np.int64:
        raise user_error("loss_fn_inputs needs target_tokens (integers), one a position.")
    needed = LOSS_INPUTS[loss_fn]
    if loss_fn == "cross_entropy" and "weights" not in tensors:
        tensors["weights"] = np.ones(len(targets), dtype=np.float32)
    unknown = sorted(set(tensors) - set(needed))
    missing = sorted(set(needed) - set(tensors))
    if unknown or missing:
        raise user_error(f"{loss_fn} takes target_tokens and {', '.join(needed)}; missing: {missing}, not understood: {unknown}.")
    for name, array in tensors.items():
        if len(array) != len(targets):
            raise user_error(f"loss_fn_inputs.{name} has {len(array)} numbers for {len(targets)} targets.")
    return Datum(parts, targets, tensors)


def _check_loss(loss_fn) -> str:
    if loss_fn not in LOSS_INPUTS:
        raise user_error(f"loss_fn {loss_fn!r} is not supported; choose one of {', '.join(LOSS_INPUTS)}.")
    return loss_fn


def train_request_from_json(body: dict, forward_only: bool) -> TrainRequest:
    inner = body.get("forward_backward_input") or body.get("forward_input")
    if not isinstance(inner, dict) or not isinstance(inner.get("data"), list):
        raise user_error("The body needs forward_backward_input (or forward_input) with a list `data`.")
    loss_fn = _check_loss(inner.get("loss_fn"))
    data = []
    for item in inner["data"]:
        tensors = {name: _tensor_from_json(name, value) for name, value in (item.get("loss_fn_inputs") or {}).items()}
        data.append(_datum(parts_from_json(item.get("model_input")), tensors, loss_fn))
    forward_only = forward_only or bool(body.get("forward_only"))
    request = TrainRequest(_text(body, "model_id"), _seq(body), data, loss_fn, inner.get("loss_fn_config") or {}, forward_only)
    return _finish(request)


def train_message(raw: bytes):
    message = wire.MESSAGES["ForwardBackwardRequest"]()
    try:
        message.ParseFromString(raw)
    except Exception as error:  # protobuf's DecodeError has no stable home
        raise user_error(f"The body is not a ForwardBackwardRequest: {error}.") from None
    return message


def train_request_from_proto(message) -> TrainRequest:
    loss_fn = _check_loss(message.loss_fn)
    data = []
    for item in message.data:
        tensors = {name: _tensor_from_proto(name, value) for name, value in item.loss_fn_inputs.items()}
        data.append(_datum([_part_from_proto(chunk) for chunk in item.model_input], tensors, loss_fn))
    config: dict = dict(message.loss_fn_config)
    for name, value in message.loss_fn_config_v2.items():
        config[name] = value.text if value.WhichOneof("value") == "text" else value.number
    return _finish(TrainRequest(message.model_id, message.seq_id or None, data, loss_fn, config, message.forward_only))


def _part_from_proto(chunk) -> Part:
    kind = chunk.WhichOneof("chunk")
    if kind == "encoded_text":
        if len(chunk.encoded_text.tokens) % 4:
            raise user_error("An encoded_text chunk's tokens are int32, four bytes each.")
        return np.frombuffer(chunk.encoded_text.tokens, dtype="<i4").tolist()
    if kind == "image":
        if chunk.image.HasField("override_dimensions"):
            raise user_error("override_dimensions is not supported: send the image in the size that is to be used.")
        expected = chunk.image.expected_tokens if chunk.image.HasField("expected_tokens") else None
        return image_part(chunk.image.data, chunk.image.format, expected)
    raise user_error("A chunk must hold encoded_text or image; audio is not supported.")


def _finish(request: TrainRequest) -> TrainRequest:
    if not request.data:
        raise user_error("The request has no data.")
    digest = hashlib.sha256(f"{request.loss_fn}|{sorted(request.config.items())}|{request.forward_only}".encode())
    for datum in request.data:
        for part in datum.parts:
            digest.update(part.digest.encode() if isinstance(part, ImagePart) else np.asarray(part, dtype="<i8").tobytes() + b"t")
        digest.update(datum.targets.tobytes())
        for name in sorted(datum.inputs):
            digest.update(name.encode() + datum.inputs[name].tobytes())
    request.digest = digest.hexdigest()
    return request


def _text(body: dict, name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise user_error(f"The body needs {name}, a string.")
    return value


def _seq(body: dict) -> int | None:
    value = body.get("seq_id")
    if value is not None and type(value) is not int:
        raise user_error("seq_id must be an integer.")
    return value
