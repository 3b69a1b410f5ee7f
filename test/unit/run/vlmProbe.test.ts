import { afterEach, describe, expect, it } from 'vitest';
import { parseRunFile, type RunConfig, type RunFile } from '../../../runtime/config/index.js';
import { needsOf, probed } from '../../../runtime/run/backends/vlmProbe.js';
import type { Fault } from '../../helpers/engine/faults.js';
import { ReferenceServer } from '../../helpers/engine/server.js';

const open: ReferenceServer[] = [];
afterEach(() => {
  for (const s of open.splice(0)) s.close();
});

const ENGINE = 'http://127.0.0.1:8377',
  config = (remote: object, endpoints: readonly string[] = []): RunConfig =>
    parseRunFile({
      policy: { kind: 'vlm', vlm: { model: 'tiny', endpoints } },
      trainer: { remote },
    } as RunFile);

async function asked(fault: Fault, endpoints: readonly string[]): Promise<unknown> {
  const s = await ReferenceServer.start({ faults: [fault], pollMs: 20 });
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
  it.each(['stale-sampler', 'noop-adapter', 'biased-logprobs'] as const)(
    'refuses an engine of its own with the fault %s',
    async (fault) => {
      await expect(asked(fault, [])).rejects.toMatchObject({ error: { kind: 'config.invalid' } });
    },
  );
  it('goes on with a server that samples wrong where others act', async () => {
    expect(await asked('stale-sampler', ['http://127.0.0.1:8000/v1'])).toMatchObject({
      carriage: { carrier: 'cross_entropy' },
    });
  });
});
