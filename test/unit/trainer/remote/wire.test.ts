import { describe, expect, it } from 'vitest';
import {
  clientConfig,
  compressed,
  decodeOutput,
  decodeSample,
  encodeRequest,
  floats,
  future,
  integers,
  logprobRows,
  parsed,
  parseOutput,
  parseSample,
  polled,
  sampleBody,
  type ForwardBackwardRequest,
} from '../../../../runtime/trainer/remote/wire/index.js';
import { messageType } from '../../../../runtime/trainer/remote/wire/schema.js';
import { writeProtoOutput, writeProtoSample } from '../../../helpers/engine/serverWire.js';

const hex = (s: string): Uint8Array => new Uint8Array(Buffer.from(s, 'hex'));
const remote = expect.objectContaining({ kind: 'trainer.remote' }) as Error;
function refused(f: () => unknown, words: RegExp): void {
  let caught: unknown;
  try {
    f();
  } catch (e) {
    caught = e;
  }
  expect(caught).toMatchObject({ kind: 'trainer.remote', message: expect.stringMatching(words) as string });
}

describe('bytes of the official client (SDK 0.38)', () => {
  const request: ForwardBackwardRequest = {
    modelId: 's:train:0',
    seqId: 3,
    lossFn: 'cross_entropy',
    forwardOnly: true,
    lossFnConfig: { clip_low_threshold: 0.8 },
    data: [
      {
        chunks: [
          { type: 'encoded_text', tokens: [1, 2, 151655] },
          { type: 'image', data: Uint8Array.of(137, 80), format: 'png', expectedTokens: 40 },
          { type: 'encoded_text', tokens: [7] },
        ],
        inputs: { target_tokens: integers([2, 3, 4]), weights: floats([0, -0.25, 1.5]) },
      },
    ],
  };
  it('are what a request is written as', () => {
    // Read back by the SDK's own message class, field by field, when this was recorded.
    expect(Buffer.from(encodeRequest(request)).toString('hex')).toBe(
      '0a09733a747261696e3a3010031a7d0a100a0e0a0c0100000002000000675002000a0d120b0a0289501203706e6718280a080a060a040700000012300a0d7461726765745f746f6b656e73121f0a180200000000000000030000000000000004000000000000001802220103121e0a077765696768747312130a0c00000000000080be0000c03f1801220103220d63726f73735f656e74726f70792a1d0a12636c69705f6c6f775f7468726573686f6c64119a9999999999e93f30013a1f0a12636c69705f6c6f775f7468726573686f6c641209099a9999999999e93f',
    );
  });
  it('are read: log-probs in f32 and bf16, token ids with a dimension of their own, metrics', () => {
    const out = decodeOutput(
      hex(
        '0a11613a546f7263684c6f737352657475726e12bb010a0f546f7263684c6f737352657475726e122c0a0468616c6612240a0680bf20c0003e1218000000000000000004000000000000000600000000000000180412360a086c6f6770726f6273122a0a0c000080bf000020c0000000be1218000000000000000008000000000000000c00000000000000180112400a03746f7012390a180100000002000000030000000400000005000000060000001218000000000000000010000000000000001800000000000000180322010218021a130a086c6f73733a73756d11000000000000fc3f',
      ),
    );
    const row = (name: string): unknown => out.outputs.map((o) => [...o.get(name)!.data]);
    expect(row('logprobs')).toEqual([[-1, -2.5], [-0.125]]);
    expect(row('half')).toEqual([[-1, -2.5], [0.125]]);
    expect(out.outputs.map((o) => o.get('top'))).toEqual([
      { dtype: 'int64', data: Float64Array.of(1, 2, 3, 4), shape: [2, 2] },
      { dtype: 'int64', data: Float64Array.of(5, 6), shape: [1, 2] },
    ]);
    expect([...out.metrics]).toEqual([['loss:sum', 1.75]]);
  });
  it('are read as samples: tokens, log-probs, why it ended, an unscored first token of the prompt', () => {
    expect(decodeSample(hex('0a1608011208090000005d5002001a08000000bf000040c012080000c07f000080bf2005'))).toEqual({
      sequences: [{ stopReason: 'length', tokens: Int32Array.of(9, 151645), logprobs: Float32Array.of(-0.5, -3) }],
      promptLogprobs: Float32Array.of(NaN, -1),
    });
  });
});

describe('an answer out of bounds', () => {
  const output = (fields: object, datums: number): Uint8Array =>
    messageType('ForwardBackwardOutput')
      .encode({ loss_fn_outputs: [{ fields, num_datums: datums }] })
      .finish();
  const offsets = (...at: number[]): Uint8Array => new Uint8Array(BigInt64Array.from(at, BigInt).buffer);
  it.each<[string, () => unknown, RegExp]>([
    ['no message', () => decodeOutput(hex('ffffffff')), /no ForwardBackwardOutput/],
    ['more datums than there are', () => decodeOutput(output({}, 1e9)), /more datums than were sent/],
    [
      'a datum beyond its bytes',
      () => decodeOutput(output({ a: { data: new Uint8Array(8), offsets: offsets(0, 4096), dtype: 1 } }, 1)),
      /byte 0 to 4096 of 8/,
    ],
    [
      'a datum that ends before it begins',
      () => decodeOutput(output({ a: { data: new Uint8Array(8), offsets: offsets(8, 4), dtype: 1 } }, 1)),
      /byte 8 to 4/,
    ],
    [
      'fields of unequal number',
      () => decodeOutput(output({ a: { data: new Uint8Array(8), offsets: offsets(0, 8), dtype: 1 } }, 2)),
      /2 datums but 1 entries of a/,
    ],
    [
      'an unknown type of number',
      () => decodeOutput(output({ a: { data: new Uint8Array(8), offsets: offsets(0, 8), dtype: 9 } }, 1)),
      /unknown type \(9\)/,
    ],
    [
      'half a number',
      () => decodeOutput(output({ a: { data: new Uint8Array(7), offsets: offsets(0, 7), dtype: 1 } }, 1)),
      /7 bytes are no whole number/,
    ],
    ['JSON of another kind', () => parseOutput({ loss_fn_outputs: 'none' }), /loss_fn_outputs/],
    [
      'JSON values that do not fill their shape',
      () => parseOutput({ loss_fn_outputs: [{ logprobs: { data: [1, 2, 3], dtype: 'float32', shape: [2] } }] }),
      /shape \[2\] with 3 values/,
    ],
    ['a token that is none', () => parseSample({ sequences: [{ stop_reason: 'stop', tokens: [1.5] }] }), /tokens/],
    [
      'fewer log-probs than tokens',
      () => parseSample({ sequences: [{ stop_reason: 'stop', tokens: [1, 2], logprobs: [-1] }] }),
      /2 tokens has 1 log-probs/,
    ],
    [
      'the same in protobuf',
      () =>
        decodeSample(
          writeProtoSample({
            sequences: [{ stopReason: 'stop', tokens: Int32Array.of(1, 2), logprobs: Float32Array.of(-1) }],
          }),
        ),
      /2 tokens has 1 log-probs/,
    ],
  ])('%s is refused in words', (_, read, words) => {
    refused(read, words);
  });
  it('a token that is no 32-bit number is not sent', () => {
    const chunks = [{ type: 'encoded_text' as const, tokens: [2 ** 40] }];
    expect(() =>
      encodeRequest({ modelId: 'm', seqId: 1, lossFn: 'x', forwardOnly: true, data: [{ chunks, inputs: {} }] }),
    ).toThrow(RangeError);
  });
});

describe('log-probs of a forward pass', () => {
  const of = (rows: readonly (readonly number[])[]): ReturnType<typeof decodeOutput> =>
    decodeOutput(writeProtoOutput({ fields: { logprobs: rows }, metrics: {} }));
  it('are one row a datum, one value a target', () => {
    expect(logprobRows(of([[-1, -2], [-3]]), [2, 1])).toEqual([Float32Array.of(-1, -2), Float32Array.of(-3)]);
  });
  it.each<[string, readonly (readonly number[])[], readonly number[], RegExp]>([
    ['a datum less', [[-1]], [1, 1], /2 datums were sent and 1 came back/],
    ['a target less', [[-1]], [2], /2 targets and 1 log-probs/],
    ['a value that is none', [[-1, NaN]], [2], /target 1 of datum 0 has the log-prob NaN/],
  ])('%s is refused', (_, rows, targets, words) => {
    refused(() => logprobRows(of(rows), targets), words);
  });
});

describe('JSON answers', () => {
  it('have the defaults of the protocol and ignore what is new', () => {
    expect(parsed(clientConfig, { pjwt_auth_enabled: false, something: 1 })).toEqual({
      proto_compress_fwdbwd: false,
      fwdbwd_max_chunk_len: 1024,
      fwdbwd_max_chunk_bytes_count: 5_000_000,
    });
    refused(() => parsed(clientConfig, { fwdbwd_max_chunk_len: -1 }), /fwdbwd_max_chunk_len/);
    expect(() => parsed(future, { request_id: 'x'.repeat(5000) })).toThrow(remote);
  });
  it('of a future say that it is not there, that it failed, or what came out', () => {
    expect(polled({ type: 'try_again', request_id: 'r', queue_state: 'paused_capacity' })).toEqual({
      kind: 'pending',
      queue: 'paused_capacity',
    });
    expect(polled({ error: 'no such image', category: 'User' })).toEqual({
      kind: 'failed',
      message: 'no such image',
      user: true,
    });
    expect(polled({ error: 'out of memory', category: 'server' })).toMatchObject({ kind: 'failed', user: false });
    expect(polled({ path: 'tinker://m/weights/1' })).toEqual({ kind: 'done', json: { path: 'tinker://m/weights/1' } });
  });
});

describe('sampling', () => {
  it('asks for the whole distribution, so that recorded log-probs are those of what was sampled from', () => {
    expect(
      sampleBody({
        chunks: [{ type: 'image', data: Uint8Array.of(1, 2, 3), format: 'jpeg', expectedTokens: 4 }],
        samples: 2,
        maxTokens: 8,
        temperature: 1,
        seed: 7,
        from: { session: 's:sample:1', seqId: 3 },
      }),
    ).toEqual({
      prompt: { chunks: [{ type: 'image', data: 'AQID', format: 'jpeg', expected_tokens: 4 }] },
      num_samples: 2,
      sampling_params: { max_tokens: 8, temperature: 1, top_p: 1, top_k: -1, seed: 7, stop: null },
      prompt_logprobs: false,
      sampling_session_id: 's:sample:1',
      seq_id: 3,
    });
  });
});

describe('compression', () => {
  const body = new Blob([Uint8Array.of(1, 2, 3)]),
    reversed = (b: Uint8Array, done: (e: Error | null, out: Buffer) => void): void => {
      done(null, Buffer.from(b.toReversed()));
    };
  it('happens where the server asks for it and Node can', async () => {
    expect(await compressed(body, true, reversed)).toEqual({
      bytes: Buffer.from([3, 2, 1]),
      headers: { 'content-encoding': 'zstd' },
    });
    expect(await compressed(body, false, reversed)).toEqual({ bytes: body, headers: {} });
  });
  it('is left out by a Node without zstd', async () => {
    const { zstdCompress } = (await import('node:zlib')) as { zstdCompress?: unknown };
    const { headers } = await compressed(body, true);
    expect(headers).toEqual(zstdCompress ? { 'content-encoding': 'zstd' } : {});
  });
});
