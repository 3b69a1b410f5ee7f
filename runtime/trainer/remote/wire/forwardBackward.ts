import { z } from 'zod';
import { LARGEST, type AnswerBounds } from './asked.js';
import { hasParts } from './parts.js';
import { messageType } from './schema.js';
import {
  DTYPES,
  dtypeOf,
  elementBytes,
  floatBytes,
  int32Bytes,
  int64Bytes,
  numbers,
  publicType,
  tensor,
} from './tensors.js';
import {
  LIMITS,
  malformed,
  unread,
  type Chunk,
  type ForwardBackwardOutput,
  type ForwardBackwardRequest,
  type WireTensor,
} from './types.js';

/** forward_backward and its result in both encodings: protobuf (today's servers), JSON (older ones). */

/** Body of `POST forward_backward` as protobuf; `forward_only` is a field of it. */
export function encodeRequest(r: ForwardBackwardRequest): Uint8Array {
  const config = Object.entries(r.lossFnConfig ?? {});
  return messageType('ForwardBackwardRequest')
    .encode({
      model_id: r.modelId,
      seq_id: r.seqId,
      data: r.data.map((d) => ({
        model_input: d.chunks.map(protoChunk),
        loss_fn_inputs: Object.fromEntries(Object.entries(d.inputs).map(([k, t]) => [k, protoTensor(t)])),
      })),
      loss_fn: r.lossFn,
      forward_only: r.forwardOnly,
      // Old servers read the first map, new ones prefer the second.
      loss_fn_config: Object.fromEntries(config),
      loss_fn_config_v2: Object.fromEntries(config.map(([k, number]) => [k, { number }])),
    })
    .finish();
}
const protoChunk = (c: Chunk): object =>
  c.type === 'encoded_text'
    ? { encoded_text: { tokens: int32Bytes(c.tokens) } }
    : {
        image: {
          data: c.data,
          format: c.format,
          ...(c.expectedTokens === undefined ? {} : { expected_tokens: c.expectedTokens }),
        },
      };
const protoTensor = (t: WireTensor): object => ({
  dense: t.dtype === 'float32' ? floatBytes(t.data) : int64Bytes(t.data),
  dtype: DTYPES[t.dtype],
  shape: t.shape,
});

/** Body of `POST forward_backward` or, where `forwardOnly`, `POST forward` as JSON. */
export function jsonRequest(r: ForwardBackwardRequest): object {
  const input = {
    data: r.data.map((d) => ({
      model_input: { chunks: d.chunks.map(jsonChunk) },
      loss_fn_inputs: Object.fromEntries(
        Object.entries(d.inputs).map(([k, t]) => [k, { data: Array.from(t.data), dtype: t.dtype, shape: t.shape }]),
      ),
    })),
    loss_fn: r.lossFn,
    loss_fn_config: r.lossFnConfig ?? null,
  };
  return {
    model_id: r.modelId,
    seq_id: r.seqId,
    ...(r.forwardOnly ? { forward_input: input } : { forward_backward_input: input }),
  };
}
/** A chunk as `asample` and JSON servers take it: images in base64. */
export const jsonChunk = (c: Chunk): object =>
  c.type === 'encoded_text'
    ? { type: 'encoded_text', tokens: Array.from(c.tokens) }
    : {
        type: 'image',
        data: Buffer.from(c.data.buffer, c.data.byteOffset, c.data.byteLength).toString('base64'),
        format: c.format,
        expected_tokens: c.expectedTokens ?? null,
      };

interface ProtoBatched {
  readonly data: Uint8Array;
  readonly offsets: Uint8Array;
  readonly dtype: number;
  readonly trailing_shape: readonly number[];
}
interface ProtoRecord {
  readonly fields: Readonly<Record<string, ProtoBatched>>;
  readonly num_datums: number;
}

/** `bytes` of a ForwardBackwardOutput. Throws `trainer.remote` on anything else. */
export function decodeOutput(bytes: Uint8Array, most: AnswerBounds = LARGEST): ForwardBackwardOutput {
  const m = decodeMessage('ForwardBackwardOutput', bytes, most) as {
    readonly loss_fn_outputs: readonly ProtoRecord[];
    readonly metrics: Readonly<Record<string, number>>;
  };
  const outputs: Map<string, WireTensor>[] = [];
  for (const record of m.loss_fn_outputs) outputs.push(...datumsOf(record, most.items - outputs.length));
  return { outputs, metrics: metricsOf(m.metrics) };
}

/** Splits the fields of a record, which hold all its datums end to end. */
function datumsOf(record: ProtoRecord, room: number): Map<string, WireTensor>[] {
  const named = Object.entries(record.fields);
  checkTensors(named.length);
  const fields = named.map(([name, b]) => [name, split(b, room)] as const),
    n = record.num_datums > 0 ? record.num_datums : (fields[0]?.[1].length ?? 0);
  if (n > room) throw malformed('it holds more datums than were sent');
  for (const [name, rows] of fields)
    if (rows.length !== n) throw malformed(`${n} datums but ${rows.length} entries of ${name.slice(0, 64)}`);
  return Array.from({ length: n }, (_, i) => new Map(fields.map(([name, rows]) => [name, rows[i]!])));
}

function split(b: ProtoBatched, room: number): WireTensor[] {
  if (b.offsets.length / 8 > room + 1) throw malformed('it holds more datums than were sent');
  const dtype = dtypeOf(b.dtype),
    all = numbers(b.data, dtype),
    offsets = numbers(b.offsets, 'int64'),
    row = b.trailing_shape.reduce((a, d) => a * d, 1),
    size = elementBytes(dtype);
  return Array.from({ length: Math.max(0, offsets.length - 1) }, (_, i) => {
    const from = offsets[i]! / size,
      to = offsets[i + 1]! / size;
    if (!Number.isInteger(from) || !Number.isInteger(to) || from < 0 || to < from || to > all.length)
      throw malformed(`a datum from byte ${offsets[i]} to ${offsets[i + 1]} of ${b.data.length}`);
    return tensor(publicType(dtype), all.slice(from, to), [row > 0 ? (to - from) / row : 0, ...b.trailing_shape]);
  });
}

const jsonTensor = z.object({
  data: z.array(z.number().nullable()).max(LIMITS.elements),
  dtype: z.enum(['float32', 'int64', 'int32', 'bfloat16']).default('float32'),
  shape: z.array(z.number()).max(LIMITS.dimensions).nullish(),
});
const jsonOutput = z.object({
  loss_fn_outputs: z.array(z.record(z.string(), jsonTensor)).max(LIMITS.items),
  metrics: z.record(z.string(), z.number().nullable()).nullish(),
});

/** The same result as JSON. A value of null is one that JSON cannot write (NaN, infinity). */
export function parseOutput(json: unknown): ForwardBackwardOutput {
  const p = jsonOutput.safeParse(json);
  if (!p.success) throw unread(firstIssue(p.error), p.error);
  const outputs = p.data.loss_fn_outputs.map((fields) => {
    const entries = Object.entries(fields);
    checkTensors(entries.length);
    return new Map(
      entries.map(([name, t]) => {
        const values = t.data.map((x) => x ?? NaN),
          type = publicType(t.dtype);
        return [
          name,
          tensor(
            type,
            type === 'float32' ? Float32Array.from(values) : Float64Array.from(values),
            t.shape ?? undefined,
          ),
        ] as const;
      }),
    );
  });
  return { outputs, metrics: metricsOf(p.data.metrics ?? {}) };
}

function metricsOf(m: Readonly<Record<string, number | null>>): Map<string, number> {
  checkNames(Object.keys(m).length);
  return new Map(Object.entries(m).map(([k, v]) => [k, v ?? NaN]));
}
function checkNames(n: number): void {
  if (n > LIMITS.names) throw malformed(`${n} named values (at most ${LIMITS.names})`);
}
function checkTensors(n: number): void {
  if (n > LIMITS.tensors) throw malformed(`${n} tensors of a datum (at most ${LIMITS.tensors})`);
}
/** The first fault of a JSON answer: where it is, and what is wrong. */
export const firstIssue = (e: z.ZodError): string => {
  const i = e.issues[0];
  return i ? `${i.path.join('.').slice(0, 120) || 'it'}: ${i.message.slice(0, 200)}` : 'it is not what was expected';
};

/** Fields of a message beside those of its items, metrics mostly, and fields of one datum or sequence. */
const PARTS = 4096,
  PARTS_OF_ITEM = 64;
/** Decodes a protobuf message into plain values; numbers for 64-bit integers, which are counts and shapes here. */
export function decodeMessage(
  name: 'ForwardBackwardOutput' | 'SampleResponse',
  bytes: Uint8Array,
  most: AnswerBounds,
): unknown {
  if (bytes.length > most.bytes) throw malformed(`${bytes.length} bytes (at most ${most.bytes})`);
  const type = messageType(name),
    parts = PARTS + PARTS_OF_ITEM * most.items;
  try {
    if (hasParts(type, bytes, parts))
      return type.toObject(type.decode(bytes), { longs: Number, arrays: true, objects: true, defaults: true });
  } catch (e) {
    throw unread(`it is no ${name} message`, e);
  }
  throw malformed(`it has more than ${parts} fields`);
}

/**
 * Log-probs of every target, one row a datum, from the result of a forward pass over datums with so many targets. A
 * server that leaves targets out, or does not score those of weight 0, must not be trained with: throws `trainer.remote`
 * on a missing row, one of another length, or a value that is not finite.
 */
export function logprobRows(output: ForwardBackwardOutput, targets: readonly number[]): Float32Array[] {
  if (output.outputs.length !== targets.length)
    throw malformed(`${targets.length} datums were sent and ${output.outputs.length} came back`);
  return output.outputs.map((fields, i) => {
    const row = fields.get('logprobs')?.data;
    if (!row || row.length !== targets[i])
      throw malformed(`datum ${i} has ${targets[i]} targets and ${row?.length ?? 'no'} log-probs`);
    const bad = row.findIndex((x) => !Number.isFinite(x));
    if (bad >= 0) throw malformed(`target ${bad} of datum ${i} has the log-prob ${row[bad]}`);
    return Float32Array.from(row);
  });
}
