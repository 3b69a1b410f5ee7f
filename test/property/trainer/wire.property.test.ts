import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StudioError } from '../../../runtime/domain/index.js';
import {
  decodeOutput,
  decodeSample,
  encodeRequest,
  jsonRequest,
  parseOutput,
  parseSample,
  type ForwardBackwardRequest,
  type SampledSequence,
} from '../../../runtime/trainer/remote/wire/index.js';
import {
  readJsonRequest,
  readProtoRequest,
  writeJsonOutput,
  writeJsonSample,
  writeProtoOutput,
  writeProtoSample,
} from '../../helpers/engine/serverWire.js';

const token = fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  real = fc.float({ noNaN: true, noDefaultInfinity: true }),
  name = fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme-ascii' }).filter((s) => s !== '__proto__'),
  row = fc.array(real, { maxLength: 12 });
const request: fc.Arbitrary<ForwardBackwardRequest> = fc.record(
  {
    modelId: fc.string(),
    seqId: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    lossFn: fc.constantFrom('cross_entropy', 'importance_sampling'),
    forwardOnly: fc.boolean(),
    lossFnConfig: fc.dictionary(name, fc.double({ noNaN: true, noDefaultInfinity: true }), {
      minKeys: 1,
      maxKeys: 3,
      noNullPrototype: true,
    }),
    data: fc.array(
      fc.record({
        chunks: fc.array(
          fc.oneof(
            fc.record({ type: fc.constant('encoded_text' as const), tokens: fc.array(token, { maxLength: 20 }) }),
            fc.record(
              {
                type: fc.constant('image' as const),
                data: fc.uint8Array({ maxLength: 64 }),
                format: fc.constantFrom('png' as const, 'jpeg' as const),
                expectedTokens: fc.integer({ min: 0, max: 10_000 }),
              },
              { requiredKeys: ['type', 'data', 'format'] },
            ),
          ),
          { maxLength: 5 },
        ),
        inputs: fc.dictionary(
          name,
          fc.oneof(
            row.map((d) => ({ dtype: 'float32' as const, data: Float32Array.from(d), shape: [d.length] })),
            fc.array(fc.maxSafeInteger(), { maxLength: 12 }).map((d) => ({
              dtype: 'int64' as const,
              data: Float64Array.from(d),
              shape: [d.length],
            })),
          ),
          { maxKeys: 4, noNullPrototype: true },
        ),
      }),
      { maxLength: 4 },
    ),
  },
  { requiredKeys: ['modelId', 'seqId', 'lossFn', 'forwardOnly', 'data'] },
);
/** As text, so that kinds of byte arrays and -0 do not count. */
const shown = (x: unknown): string =>
  JSON.stringify(x, (_, v: unknown) => (ArrayBuffer.isView(v) ? Array.from(v as Uint8Array) : v));

const runs = { numRuns: 300 };
describe('a request', () => {
  it('is read as what was sent, in protobuf', () => {
    fc.assert(
      fc.property(request, (r) => {
        expect(shown(sorted(readProtoRequest(encodeRequest(r))))).toBe(shown(sorted(r)));
      }),
      runs,
    );
  });
  it('is read as what was sent, in JSON', () => {
    fc.assert(
      fc.property(request, (r) => {
        expect(shown(sorted(readJsonRequest(JSON.parse(JSON.stringify(jsonRequest(r))))))).toBe(shown(sorted(r)));
      }),
      runs,
    );
  });
});
const sorted = (r: ForwardBackwardRequest): unknown => ({
  model: [r.modelId, r.seqId, r.lossFn, r.forwardOnly],
  config: Object.entries(r.lossFnConfig ?? {}).sort(),
  data: r.data.map((d) => ({
    chunks: d.chunks.map((c) => Object.entries(c).sort()),
    inputs: Object.entries(d.inputs)
      .map(([k, t]) => [k, t.dtype, t.data, t.shape])
      .sort(),
  })),
});

describe('a result', () => {
  const datums = fc.array(row, { minLength: 1, maxLength: 6 });
  it('of forward_backward is read as what was sent, in both languages', () => {
    fc.assert(
      fc.property(datums, fc.dictionary(name, real, { maxKeys: 3 }), (rows, metrics) => {
        const result = { fields: { logprobs: rows, elementwise_loss: rows.map((r) => [...r].reverse()) }, metrics };
        for (const out of [
          decodeOutput(writeProtoOutput(result)),
          parseOutput(JSON.parse(JSON.stringify(writeJsonOutput(result)))),
        ]) {
          expect(out.outputs.map((o) => shown(o.get('logprobs')!.data))).toEqual(rows.map(shown));
          expect(out.outputs.map((o) => o.get('elementwise_loss')!.shape)).toEqual(rows.map((r) => [r.length]));
          expect(shown([...out.metrics].sort())).toBe(shown(Object.entries(metrics).sort()));
        }
      }),
      runs,
    );
  });
  const sequence: fc.Arbitrary<SampledSequence> = fc
    .array(fc.tuple(token, real), { minLength: 1, maxLength: 8 })
    .chain((pairs) =>
      fc.record({
        stopReason: fc.constantFrom('stop' as const, 'length' as const),
        tokens: fc.constant(Int32Array.from(pairs, (p) => p[0])),
        logprobs: fc.option(fc.constant(Float32Array.from(pairs, (p) => p[1])), { nil: undefined }),
      }),
    );
  it('of sampling is read as what was sent, in both languages', () => {
    fc.assert(
      fc.property(fc.array(sequence, { maxLength: 4 }), fc.option(row, { nil: undefined }), (sequences, prompt) => {
        const promptLogprobs = prompt && prompt.length > 0 ? Float32Array.from([NaN, ...prompt]) : undefined,
          sent = { sequences, promptLogprobs };
        for (const got of [
          decodeSample(writeProtoSample(sent)),
          parseSample(JSON.parse(JSON.stringify(writeJsonSample(sent)))),
        ])
          expect(shown([got.sequences.map((s) => [s.stopReason, s.tokens, s.logprobs]), got.promptLogprobs])).toBe(
            shown([sequences.map((s) => [s.stopReason, s.tokens, s.logprobs]), promptLogprobs]),
          );
      }),
      runs,
    );
  });

  it('that was tampered with is refused in words or read within its bounds, never anything else', () => {
    const sent = writeProtoOutput({ fields: { logprobs: [[-1, -2], [-3]] }, metrics: { 'loss:sum': 1 } });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(sent.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        fc.nat(sent.length),
        (changes, length) => {
          const bytes = sent.slice(0, length);
          for (const [i, b] of changes) if (i < length) bytes[i] = b;
          try {
            for (const o of decodeOutput(bytes).outputs)
              for (const t of o.values()) expect(t.data.length).toBeLessThanOrEqual(bytes.length);
          } catch (e) {
            expect(e).toBeInstanceOf(StudioError);
          }
        },
      ),
      { numRuns: 3000 },
    );
  });
  it('of any JSON is refused in words or read', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (json) => {
        for (const read of [parseOutput, parseSample])
          try {
            read(json);
          } catch (e) {
            expect(e).toBeInstanceOf(StudioError);
          }
      }),
      runs,
    );
  });
});
