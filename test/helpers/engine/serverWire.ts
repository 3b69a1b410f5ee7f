import { messageType } from '../../../runtime/trainer/remote/wire/schema.js';
import type {
  Chunk,
  Datum,
  ForwardBackwardRequest,
  SampledSequence,
} from '../../../runtime/trainer/remote/wire/types.js';

/** The server's half of the wire: reads requests and writes results, in protobuf and JSON. */

interface ProtoTensor {
  readonly dense?: Uint8Array;
  readonly dtype: number;
  readonly shape: readonly number[];
}
interface ProtoChunk {
  readonly encoded_text?: { readonly tokens: Uint8Array };
  readonly image?: { readonly data: Uint8Array; readonly format: string; readonly expected_tokens?: number };
}
interface ProtoRequest {
  readonly model_id: string;
  readonly seq_id: number;
  readonly data: readonly {
    readonly model_input: readonly ProtoChunk[];
    readonly loss_fn_inputs: Readonly<Record<string, ProtoTensor>>;
  }[];
  readonly loss_fn: string;
  readonly loss_fn_config: Readonly<Record<string, number>>;
  readonly loss_fn_config_v2: Readonly<Record<string, { readonly number?: number }>>;
  readonly forward_only: boolean;
}

const view = (b: Uint8Array): DataView => new DataView(b.buffer, b.byteOffset, b.byteLength);
const int32s = (b: Uint8Array): number[] =>
  Array.from({ length: b.length / 4 }, (_, i) => view(b).getInt32(4 * i, true));

export function readProtoRequest(bytes: Uint8Array): ForwardBackwardRequest {
  const type = messageType('ForwardBackwardRequest'),
    m = type.toObject(type.decode(bytes), {
      longs: Number,
      arrays: true,
      objects: true,
      defaults: true,
    }) as ProtoRequest;
  const config = { ...m.loss_fn_config };
  for (const [k, v] of Object.entries(m.loss_fn_config_v2)) if (v.number !== undefined) config[k] = v.number;
  return {
    modelId: m.model_id,
    seqId: m.seq_id,
    lossFn: m.loss_fn,
    forwardOnly: m.forward_only,
    ...(Object.keys(config).length > 0 ? { lossFnConfig: config } : {}),
    data: m.data.map((d) => ({
      chunks: d.model_input.map(chunkOf),
      inputs: Object.fromEntries(
        Object.entries(d.loss_fn_inputs).map(([name, t]) => {
          const b = t.dense ?? new Uint8Array(),
            v = view(b);
          return [
            name,
            t.dtype === 1
              ? {
                  dtype: 'float32',
                  data: Float32Array.from({ length: b.length / 4 }, (_, i) => v.getFloat32(4 * i, true)),
                  shape: t.shape,
                }
              : {
                  dtype: 'int64',
                  data: Float64Array.from({ length: b.length / 8 }, (_, i) => Number(v.getBigInt64(8 * i, true))),
                  shape: t.shape,
                },
          ];
        }),
      ),
    })),
  };
}
function chunkOf(c: ProtoChunk): Chunk {
  if (c.encoded_text) return { type: 'encoded_text', tokens: int32s(c.encoded_text.tokens) };
  const { data, format, expected_tokens } = c.image!;
  return {
    type: 'image',
    data: new Uint8Array(data),
    format: format as 'png' | 'jpeg',
    ...(expected_tokens === undefined ? {} : { expectedTokens: expected_tokens }),
  };
}

interface JsonInput {
  readonly data: readonly {
    readonly model_input: { readonly chunks: readonly JsonChunk[] };
    readonly loss_fn_inputs: Readonly<
      Record<string, { data: readonly number[]; dtype: string; shape?: readonly number[] }>
    >;
  }[];
  readonly loss_fn: string;
  readonly loss_fn_config?: Readonly<Record<string, number>> | null;
}
export interface JsonChunk {
  readonly type: string;
  readonly tokens?: readonly number[];
  readonly data?: string;
  readonly format?: string;
  readonly expected_tokens?: number | null;
}
export function readJsonRequest(json: unknown): ForwardBackwardRequest {
  const b = json as {
    model_id: string;
    seq_id: number;
    forward_input?: JsonInput;
    forward_backward_input?: JsonInput;
  };
  const input = (b.forward_input ?? b.forward_backward_input)!;
  return {
    modelId: b.model_id,
    seqId: b.seq_id,
    lossFn: input.loss_fn,
    forwardOnly: b.forward_input !== undefined,
    ...(input.loss_fn_config ? { lossFnConfig: input.loss_fn_config } : {}),
    data: input.data.map((d): Datum => ({
      chunks: d.model_input.chunks.map(readJsonChunk),
      inputs: Object.fromEntries(
        Object.entries(d.loss_fn_inputs).map(([name, t]) => [
          name,
          {
            dtype: t.dtype === 'int64' ? 'int64' : 'float32',
            data: t.dtype === 'int64' ? Float64Array.from(t.data) : Float32Array.from(t.data),
            shape: t.shape ?? [t.data.length],
          },
        ]),
      ),
    })),
  };
}
export const readJsonChunk = (c: JsonChunk): Chunk =>
  c.type === 'encoded_text'
    ? { type: 'encoded_text', tokens: c.tokens! }
    : {
        type: 'image',
        data: new Uint8Array(Buffer.from(c.data!, 'base64')),
        format: c.format as 'png' | 'jpeg',
        ...(typeof c.expected_tokens === 'number' ? { expectedTokens: c.expected_tokens } : {}),
      };

/** Rows of one field, end to end, as a BatchedTensor; `f32` little-endian. */
const batched = (rows: readonly ArrayLike<number>[]): object => {
  const n = rows.reduce((a, r) => a + r.length, 0),
    data = new Uint8Array(4 * n),
    offsets = new Uint8Array(8 * (rows.length + 1));
  let at = 0;
  rows.forEach((row, i) => {
    view(offsets).setBigInt64(8 * i, BigInt(4 * at), true);
    for (let t = 0; t < row.length; t++) view(data).setFloat32(4 * at++, row[t]!, true);
  });
  view(offsets).setBigInt64(8 * rows.length, BigInt(4 * at), true);
  return { data, offsets, dtype: 1, trailing_shape: [] };
};

export interface Result {
  /** By field: one row a datum. */
  readonly fields: Readonly<Record<string, readonly ArrayLike<number>[]>>;
  readonly metrics: Readonly<Record<string, number>>;
}
export const writeProtoOutput = (r: Result): Uint8Array =>
  messageType('ForwardBackwardOutput')
    .encode({
      loss_fn_output_type: 'ArrayRecord',
      loss_fn_outputs: [
        {
          type_tag: 'ArrayRecord',
          fields: Object.fromEntries(Object.entries(r.fields).map(([k, rows]) => [k, batched(rows)])),
          num_datums: Object.values(r.fields)[0]?.length ?? 0,
        },
      ],
      metrics: r.metrics,
    })
    .finish();
export const writeJsonOutput = (r: Result): object => ({
  loss_fn_output_type: 'ArrayRecord',
  loss_fn_outputs: (Object.values(r.fields)[0] ?? []).map((_, i) =>
    Object.fromEntries(
      Object.entries(r.fields).map(([k, rows]) => [
        k,
        { data: Array.from(rows[i]!), dtype: 'float32', shape: [rows[i]!.length] },
      ]),
    ),
  ),
  metrics: r.metrics,
});

export interface Sampled {
  readonly sequences: readonly SampledSequence[];
  readonly promptLogprobs?: Float32Array | undefined;
}
const f32 = (a: ArrayLike<number>): Uint8Array => new Uint8Array(Float32Array.from(a).buffer);
export const writeProtoSample = (s: Sampled): Uint8Array =>
  messageType('SampleResponse')
    .encode({
      sequences: s.sequences.map((q) => ({
        stop_reason: q.stopReason === 'stop' ? 0 : 1,
        tokens: new Uint8Array(Int32Array.from(q.tokens).buffer),
        ...(q.logprobs ? { logprobs: f32(q.logprobs) } : {}),
      })),
      ...(s.promptLogprobs ? { prompt_logprobs: f32(s.promptLogprobs) } : {}),
    })
    .finish();
const nullable = (a: Float32Array): (number | null)[] => Array.from(a, (x) => (Number.isFinite(x) ? x : null));
export const writeJsonSample = (s: Sampled): object => ({
  type: 'sample',
  sequences: s.sequences.map((q) => ({
    stop_reason: q.stopReason,
    tokens: Array.from(q.tokens),
    logprobs: q.logprobs ? nullable(q.logprobs) : null,
  })),
  prompt_logprobs: s.promptLogprobs ? nullable(s.promptLogprobs) : null,
});
