import { describe, expect, it } from 'vitest';
import { adapterNames } from '../../../runtime/policy/remote/endpointReplica.js';
import { factsIn, factsOf } from '../../../runtime/policy/remote/serverFacts.js';
import { servedModel } from '../../../runtime/run/backends/served.js';
import { ReferenceServer } from '../../helpers/engine/server.js';

const never = new AbortController().signal;

describe('what a server says of itself', () => {
  it('is its name and version where it is a vLLM, and the context of its model', () => {
    expect(factsIn({ version: '0.32.0' }, { id: 'm', owned_by: 'vllm', max_model_len: 4096 })).toEqual({
      server: 'vllm 0.32.0',
      context: 4096,
    });
  });
  it('is all that decides what a record means where it is our engine', () => {
    const said = {
      name: 'dart_engine',
      version: '0.2.0',
      packages: { torch: '2.13.0', transformers: '5.18.0' },
      dtype: 'bfloat16',
      chat_template_sha256: 'a'.repeat(64),
      image_processor: { shortest_edge: 3136, resample: 3, do_resize: true, image_mean: [0.5] },
    };
    expect(factsIn(said, { owned_by: 'dart_engine' })).toEqual({
      server: 'dart_engine 0.2.0 torch 2.13.0 transformers 5.18.0',
      dtype: 'bfloat16',
      chatTemplate: 'a'.repeat(64),
      imageProcessor: { shortest_edge: 3136, resample: 3, do_resize: true },
    });
  });
  it('is nothing where it says nothing, and no more than fits', () => {
    for (const odd of [undefined, null, 7, [], { version: {} }, { version: 'x'.repeat(1000) }, { dtype: 4 }])
      expect(factsIn(odd, odd)).toEqual({});
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, i]));
    expect(Object.keys(factsIn({ image_processor: many }, {}).imageProcessor!)).toHaveLength(24);
    expect(factsIn({ chat_template_sha256: 'no digest' }, {})).toEqual({});
  });
  it('of a server that is away is its address alone', async () => {
    expect(await factsOf({ url: 'http://127.0.0.1:9/v1' }, 'm', never)).toEqual({ url: 'http://127.0.0.1:9/v1' });
  });
});

describe('what the records of a run are of', () => {
  it('has every server, and asks one that does both once', async () => {
    const s = await ReferenceServer.start(),
      acting = { url: `${s.url}/v1` };
    try {
      const served = await servedModel(
        {
          model: s.baseModel,
          adapters: adapterNames('run', 'a'),
          acting: [acting],
          training: { url: s.url, version: 'test' },
          proof: { prompt: Int32Array.of(1, 2), answer: Int32Array.of(3), tokens: ['x'] },
        },
        never,
      );
      expect(served).toEqual({
        model: 'tiny',
        adapters: 'run.a@v',
        acting: [{ ...acting, server: 'vllm 0.32.0' }],
        training: { url: s.url, server: 'vllm 0.32.0' },
        conversation: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      });
      expect(s.count('/version')).toBe(1);
    } finally {
      s.close();
    }
  });
});
