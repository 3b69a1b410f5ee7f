"""The protobuf side of the Tinker protocol: message classes built at run time, field numbers as on the wire.

Only the messages an engine reads or writes are declared; unknown fields are skipped by protobuf itself.
"""

from __future__ import annotations

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "dart_engine_wire"

_SCALARS = {
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "double": descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
}

# name: [(field, number, type)]; a type may be `repeated X`, `map X` (string keys), `optional X` or `oneof:GROUP X`.
_MESSAGES = {
    "EncodedTextChunk": [("tokens", 1, "bytes")],
    "ImageDimensions": [("width", 1, "int32"), ("height", 2, "int32")],
    "ImageChunk": [
        ("data", 1, "bytes"),
        ("format", 2, "string"),
        ("expected_tokens", 3, "optional int32"),
        ("override_dimensions", 4, "ImageDimensions"),
    ],
    "Chunk": [("encoded_text", 1, "oneof:chunk EncodedTextChunk"), ("image", 2, "oneof:chunk ImageChunk"), ("dmel", 3, "bytes")],
    "SparseCsr": [("values", 1, "bytes"), ("crow_indices", 2, "bytes"), ("col_indices", 3, "bytes")],
    "Tensor": [
        ("dense", 1, "oneof:encoding bytes"),
        ("sparse_csr", 2, "oneof:encoding SparseCsr"),
        ("dtype", 3, "int32"),
        ("shape", 4, "repeated int64"),
    ],
    "Datum": [("model_input", 1, "repeated Chunk"), ("loss_fn_inputs", 2, "map Tensor")],
    "LossConfigValue": [("number", 1, "oneof:value double"), ("text", 2, "oneof:value string")],
    "ForwardBackwardRequest": [
        ("model_id", 1, "string"),
        ("seq_id", 2, "int64"),
        ("data", 3, "repeated Datum"),
        ("loss_fn", 4, "string"),
        ("loss_fn_config", 5, "map double"),
        ("forward_only", 6, "bool"),
        ("loss_fn_config_v2", 7, "map LossConfigValue"),
    ],
    "BatchedTensor": [
        ("data", 1, "bytes"),
        ("offsets", 2, "bytes"),
        ("dtype", 3, "int32"),
        ("trailing_shape", 4, "repeated int64"),
    ],
    "ArrayRecord": [("type_tag", 1, "string"), ("fields", 2, "map BatchedTensor"), ("num_datums", 3, "int64")],
    "ForwardBackwardOutput": [
        ("loss_fn_output_type", 1, "string"),
        ("loss_fn_outputs", 2, "repeated ArrayRecord"),
        ("metrics", 3, "map double"),
    ],
    "TopkLogprobs": [("token_ids", 1, "bytes"), ("logprobs", 2, "bytes"), ("k", 3, "int32"), ("length", 4, "int32")],
    "SampledSequence": [
        ("stop_reason", 1, "int32"),
        ("tokens", 2, "bytes"),
        ("logprobs", 3, "optional bytes"),
        ("topk_sampled_logprobs", 4, "TopkLogprobs"),
    ],
    "SampleResponse": [
        ("sequences", 1, "repeated SampledSequence"),
        ("prompt_logprobs", 2, "optional bytes"),
        ("topk_prompt_logprobs", 3, "TopkLogprobs"),
        ("prompt_cache_hit_tokens", 4, "int64"),
    ],
}

FLOAT32, INT64, INT32, BFLOAT16 = 1, 2, 3, 4
STOP, LENGTH = 0, 1


def _set_type(field, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"


def _add_map(message, field, owner: str, kind: str) -> None:
    entry = message.nested_type.add()
    entry.name = "".join(part.capitalize() for part in field.name.split("_")) + "Entry"
    entry.options.map_entry = True
    for name, number, part in (("key", 1, "string"), ("value", 2, kind)):
        item = entry.field.add(name=name, number=number, label=1)
        _set_type(item, part)
    field.label = field.LABEL_REPEATED
    field.type = field.TYPE_MESSAGE
    field.type_name = f".{PACKAGE}.{owner}.{entry.name}"


def _add_oneof(message, field, group: str) -> None:
    names = [declared.name for declared in message.oneof_decl]
    if group not in names:
        message.oneof_decl.add(name=group)
        names.append(group)
    field.oneof_index = names.index(group)


def _describe(message, fields) -> None:
    optional = []
    for name, number, text in fields:
        modifier, _, kind = text.rpartition(" ")
        field = message.field.add(name=name, number=number, label=1)
        if modifier == "map":
            _add_map(message, field, message.name, kind)
            continue
        _set_type(field, kind)
        if modifier == "repeated":
            field.label = field.LABEL_REPEATED
        elif modifier.startswith("oneof:"):
            _add_oneof(message, field, modifier.removeprefix("oneof:"))
        elif modifier == "optional":
            optional.append(field)
    for field in optional:
        field.proto3_optional = True
        _add_oneof(message, field, f"_{field.name}")


def _build() -> dict:
    file = descriptor_pb2.FileDescriptorProto(name="dart_engine_wire.proto", package=PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        _describe(file.message_type.add(name=name), fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in _MESSAGES}


MESSAGES = _build()


def forward_backward_output(result: dict) -> bytes:
    """`{loss_fn_output_type, logprobs: [float32 array per datum], metrics}` as a ForwardBackwardOutput."""
    message = MESSAGES["ForwardBackwardOutput"]()
    message.loss_fn_output_type = result["loss_fn_output_type"]
    for name, value in result["metrics"].items():
        message.metrics[name] = value
    arrays = result["logprobs"]
    record = message.loss_fn_outputs.add(type_tag=result["loss_fn_output_type"], num_datums=len(arrays))
    offsets = np.zeros(len(arrays) + 1, dtype=np.int64)
    offsets[1:] = np.cumsum([array.nbytes for array in arrays])
    field = record.fields["logprobs"]
    field.data = b"".join(array.astype("<f4").tobytes() for array in arrays)
    field.offsets = offsets.astype("<i8").tobytes()
    field.dtype = FLOAT32
    return message.SerializeToString()


def _topk(message, rows: list) -> None:
    """`rows`: one list of (token, log-prob) a position, or None; empty cells are (0, -99999)."""
    k = max((len(row) for row in rows if row), default=0)
    ids = np.zeros((len(rows), k), dtype="<i4")
    logprobs = np.full((len(rows), k), -99999.0, dtype="<f4")
    for index, row in enumerate(rows):
        for rank, (token, logprob) in enumerate(row or []):
            ids[index, rank] = token
            logprobs[index, rank] = logprob
    message.token_ids = ids.tobytes()
    message.logprobs = logprobs.tobytes()
    message.k = k
    message.length = len(rows)


def sample_response(result: dict) -> bytes:
    """`{sequences: [{tokens, logprobs, stop_reason, topk?}], prompt_logprobs?, topk_prompt_logprobs?}`."""
    message = MESSAGES["SampleResponse"]()
    for sequence in result["sequences"]:
        out = message.sequences.add(stop_reason=STOP if sequence["stop_reason"] == "stop" else LENGTH)
        out.tokens = np.asarray(sequence["tokens"], dtype="<i4").tobytes()
        out.logprobs = np.asarray(sequence["logprobs"], dtype="<f4").tobytes()
        if sequence.get("topk") is not None:
            _topk(out.topk_sampled_logprobs, sequence["topk"])
    if result.get("prompt_logprobs") is not None:
        values = [np.nan if value is None else value for value in result["prompt_logprobs"]]
        message.prompt_logprobs = np.asarray(values, dtype="<f4").tobytes()
    if result.get("topk_prompt_logprobs") is not None:
        _topk(message.topk_prompt_logprobs, result["topk_prompt_logprobs"])
    return message.SerializeToString()
