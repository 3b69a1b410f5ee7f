import { afterEach, describe, expect, it } from 'vitest';
import { TrainingClient, type RemoteModel } from '../../../../runtime/trainer/remote/client.js';
import {
  askedOfPass,
  askedOfSample,
  CONTROL,
  decodeOutput,
  decodeSample,
  floats,
  integers,
  type Datum,
} from '../../../../runtime/trainer/remote/wire/index.js';
import { messageType } from '../../../../runtime/trainer/remote/wire/schema.js';
import { ReferenceServer } from '../../../helpers/engine/server.js';
import { writeProtoOutput } from '../../../helpers/engine/serverWire.js';

/** Answers that cost more to read than what was asked for. */

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});
const never = new AbortController().signal;
async function model(speaks: 'both' | 'json' = 'both'): Promise<[ReferenceServer, TrainingClient, RemoteModel]> {
  const s = await ReferenceServer.start({ policy: { imageTokens: () => 2 }, pollMs: 50, speaks }),
    client = await TrainingClient.connect({ url: s.url, version: '0.38.0' }, never);
  open.push(() => {
    client.close();
    s.close();
  });
  return [s, client, await client.createModel({ base: 'tiny', rank: 8 }, never)];
}
const datum = (n: number): Datum => ({
  chunks: [{ type: 'encoded_text', tokens: new Array<number>(n).fill(97) }],
  inputs: { target_tokens: integers(new Array<number>(n).fill(98)), weights: floats(new Array<number>(n).fill(1)) },
});
const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
const beyond: readonly [string, object, RegExp][] = [
  ['nested too deep', { x: nested(20) }, /more than 16 lists and objects/],
  ['of too many values', { x: new Array<number>(11_000).fill(1) }, /more than 10000 values/],
  ['too long', { x: 'x'.repeat(CONTROL.bytes) }, /longer than 1048576 bytes/],
];
const refused = (words: RegExp): object => ({
  kind: 'trainer.remote',
  message: expect.stringMatching(words) as string,
});

describe('an answer without tensors', () => {
  it.each(beyond)('that is %s is refused, wherever it comes', async (_, more, words) => {
    const [s, client, m] = await model();
    s.next('optim_step', { status: 200, body: { request_id: 'r', ...more } });
    const adam = { learningRate: 1, beta1: 0, beta2: 0, eps: 1, weightDecay: 0, gradClip: 0 };
    await expect(m.optimStep(adam, never), 'submit').rejects.toMatchObject(refused(words));
    s.next('retrieve_future', { status: 200, body: { path: 'p', ...more } });
    await expect(m.saveWeights('1', never), 'poll').rejects.toMatchObject(refused(words));
    s.next('get_info', { status: 200, body: { model_id: m.id, ...more } });
    await expect(m.info(never), 'call').rejects.toMatchObject(refused(words));
    s.next('get_server_capabilities', { status: 200, body: more });
    await expect(client.supportedModels(never), 'page').rejects.toMatchObject(refused(words));
  });
});

describe('an answer with tensors', () => {
  it('may be as large as what was asked for, in JSON too', async () => {
    const [s, , m] = await model('json');
    const row = new Array<number>(30_000).fill(-0.12345678901234567),
      tensor = { data: row, dtype: 'float32', shape: [row.length] };
    s.next('retrieve_future', {
      status: 200,
      body: { loss_fn_outputs: [{ logprobs: tensor, elementwise_loss: tensor }] },
    });
    const [got] = await m.forward([datum(row.length)], never);
    expect(got).toEqual(Float32Array.from(row));
  });
  it('that has more values or is nested deeper is refused', async () => {
    const [s, , m] = await model();
    s.next('retrieve_future', { status: 200, body: { loss_fn_outputs: new Array(20_000).fill({}) } });
    await expect(m.forward([datum(5)], never)).rejects.toMatchObject(refused(/more than \d+ values/));
    s.next('retrieve_future', { status: 200, body: { loss_fn_outputs: [], x: nested(20) } });
    await expect(m.forward([datum(5)], never)).rejects.toMatchObject(refused(/within one another/));
  });
  it('in protobuf has no more bytes, datums, tensors or fields than were asked for', () => {
    const most = askedOfPass([datum(3), datum(2)]),
      rows = [
        [-1, -2, -3],
        [-4, -5],
      ],
      read = (fields: Record<string, number[][]>): unknown =>
        decodeOutput(writeProtoOutput({ fields, metrics: {} }), most),
      words = (f: () => unknown): unknown => {
        try {
          return f();
        } catch (e) {
          return e;
        }
      };
    expect(read({ logprobs: rows, elementwise_loss: rows })).toMatchObject({ outputs: { length: 2 } });
    expect(words(() => read({ logprobs: [...rows, [-6]] }))).toMatchObject(refused(/more datums than were sent/));
    const many = Object.fromEntries(Array.from({ length: 70 }, (_, i) => [`t${i}`, rows]));
    expect(words(() => read(many))).toMatchObject(refused(/70 tensors of a datum/));
    expect(words(() => decodeOutput(new Uint8Array(most.bytes + 1), most))).toMatchObject(refused(/at most/));
    // Two bytes each: records without anything in them.
    const empty = Buffer.from('1200'.repeat(20_000), 'hex');
    expect(words(() => decodeOutput(empty, most))).toMatchObject(refused(/more than \d+ fields/));
    const type = messageType('ForwardBackwardOutput'),
      shape = { fields: { a: { dtype: 1, trailing_shape: new Array<number>(20_000).fill(1) } } },
      flat = type.encode({ loss_fn_outputs: [shape] }).finish();
    expect(words(() => decodeOutput(flat, most))).toMatchObject(refused(/more than \d+ fields/));
    const samples = askedOfSample({
      chunks: [],
      samples: 1,
      maxTokens: 4,
      temperature: 1,
      from: { baseModel: 'tiny' },
    });
    expect(words(() => decodeSample(Buffer.from('0a00'.repeat(2), 'hex'), samples))).toMatchObject(
      refused(/2 sequences/),
    );
    expect(words(() => decodeSample(Buffer.from('0a00'.repeat(20_000), 'hex'), samples))).toMatchObject(
      refused(/more than \d+ fields/),
    );
  });
});
