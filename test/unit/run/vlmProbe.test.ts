import { afterEach, describe, expect, it } from 'vitest';
import { parseRunFile, type RunConfig, type RunFile } from '../../../runtime/config/index.js';
import { resizeLimits } from '../../../runtime/policy/actions/imageTokens.js';
import type { CoordinateMode } from '../../../runtime/policy/actions/coordinates.js';
import { needsOf, probed, trainsHead } from '../../../runtime/run/backends/vlmProbe.js';
import type { Fault } from '../../helpers/engine/faults.js';
import { resizedTokens } from '../../helpers/engine/imageTokens.js';
import { ReferenceServer } from '../../helpers/engine/server.js';

const open: ReferenceServer[] = [];
afterEach(() => {
  for (const s of open.splice(0)) s.close();
});

const ENGINE = 'http://127.0.0.1:8377',
  config = (remote: object, endpoints: readonly string[] = [], coordinates: CoordinateMode = 'qwen25'): RunConfig =>
    parseRunFile({
      desktops: { screen: { width: 320, height: 200 } },
      policy: { kind: 'vlm', vlm: { model: 'tiny', endpoints, coordinates } },
      trainer: { remote },
    } as RunFile);

/** What the probe says to a run whose engine counts the tokens of a picture as `imageTokens` does. */
async function seen(
  imageTokens: (png: Uint8Array) => number,
  coordinates: CoordinateMode,
  options?: { readonly minPixels?: number; readonly maxPixels?: number },
): Promise<unknown> {
  const s = await ReferenceServer.start({ pollMs: 20, policy: { imageTokens } });
  open.push(s);
  return probed(
    config({ engine: 'auto', options }, [], coordinates),
    {
      server: { url: s.url, version: '0.38.0', fetch: s.direct, conflictMs: 0, sleep: () => Promise.resolve() },
      model: { base: s.baseModel, rank: 4 },
    },
    new AbortController().signal,
  );
}

async function asked(fault: Fault, endpoints: readonly string[]): Promise<unknown> {
  const s = await ReferenceServer.start({
    faults: [fault],
    pollMs: 20,
    policy: { imageTokens: resizedTokens(resizeLimits('qwen25', undefined)) },
  });
  open.push(s);
  const server = { url: s.url, version: '0.38.0', fetch: s.direct, conflictMs: 0, sleep: () => Promise.resolve() },
    own = endpoints.length === 0;
  return probed(
    config(own ? { engine: 'auto' } : { url: s.url }, endpoints),
    { server, model: { base: s.baseModel, rank: 4 } },
    new AbortController().signal,
  );
}

describe('the probe before a run', () => {
  it('looks at sampling where what trains acts too', () => {
    expect(needsOf(config({ engine: 'auto' })).sampling).toBe(true);
    expect(needsOf(config({ url: ENGINE }, [`${ENGINE}/v1`])).sampling).toBe(true);
    expect(needsOf(config({ url: `${ENGINE}/api/v1/` }, [`${ENGINE}/v1/`])).sampling).toBe(true);
  });
  it('leaves it to the pool where others act', () => {
    const others = ['http://127.0.0.1:8000/v1'];
    expect(needsOf(config({ engine: 'auto' }, others)).sampling).toBe(false);
    expect(needsOf(config({ url: ENGINE }, others)).sampling).toBe(false);
  });
  it('leaves the output layer out of adapters that other servers load, since not every vLLM takes it', () => {
    const others = 'http://127.0.0.1:8000/v1';
    expect(trainsHead(config({ engine: 'auto' }))).toBe(true);
    expect(trainsHead(config({ url: ENGINE }, [`${ENGINE}/v1`]))).toBe(true);
    expect(trainsHead(config({ engine: 'auto' }, [others]))).toBe(false);
    expect(trainsHead(config({ url: ENGINE }, [others]))).toBe(false);
    expect(trainsHead(config({ url: ENGINE }, [`${ENGINE}/v1`, others]))).toBe(false);
  });
  it.each(['stale-sampler', 'noop-adapter', 'biased-logprobs'] as const)(
    'refuses an engine of its own with the fault %s',
    async (fault) => {
      await expect(asked(fault, [])).rejects.toMatchObject({
        error: { kind: 'config.invalid', message: expect.not.stringContaining('images:') as string },
      });
    },
  );
  it.each([
    ['qwen25', { maxPixels: 40_000 }],
    // A square of 448 pixels is enlarged by it.
    ['qwen25', { minPixels: 210_000 }],
    ['relative999', { maxPixels: 40_000 }],
    // A model whose clicks do not tell how it resizes.
    ['relative1000', { minPixels: 210_000 }],
  ] as const)('shows the screen of a run as its options resize it: %s %o', async (mode, options) => {
    const model = mode === 'relative1000' ? 'relative999' : mode,
      found = await seen(resizedTokens(resizeLimits(model, options)), mode, options);
    expect(found).toMatchObject({ carriage: { carrier: 'cross_entropy' } });
  });
  it('refuses a run that reads clicks in another size than its engine resizes to, and says what to set', async () => {
    const engine = resizedTokens(resizeLimits('qwen25', { minPixels: 120_000 }));
    await expect(seen(engine, 'qwen25')).rejects.toMatchObject({
      kind: 'config.invalid',
      message: expect.stringMatching(
        /images: .*a screen of 320x200.*set both to what the engine resizes by.*preprocessor_config\.json/,
      ) as string,
    });
    // Clicks that are shares of the screen are the same in any size: a picture that the engine takes will do.
    expect(await seen(engine, 'relative1000')).toMatchObject({ carriage: { carrier: 'cross_entropy' } });
  });
  it('goes on with a server that samples wrong where others act', async () => {
    expect(await asked('stale-sampler', ['http://127.0.0.1:8000/v1'])).toMatchObject({
      carriage: { carrier: 'cross_entropy' },
    });
  });
});
