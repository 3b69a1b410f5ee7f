import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import * as methods from '../../runtime/protocol/methods.js';
import { exitAlreadyRunning } from '../../runtime/protocol/version.js';
import { cli, ensureBundle } from '../helpers/run/cli.js';
import { cleanUp, folder, raw, record, removeFolders, testClient } from '../helpers/daemon/harness.js';

beforeAll(ensureBundle);
afterEach(cleanUp);
afterAll(removeFolders);

describe('the bundle', () => {
  it('serves: started by a window, of the build it was made in, one per folder, and stopped', async () => {
    const dir = folder(),
      build = JSON.parse(readFileSync('dist/build.json', 'utf8')) as { version: string; time: number };
    const c = await testClient(dir, { runtime: resolve('dist/runtime.js'), build });
    await c.client.connect({ start: true });
    expect(c.client.hello).toMatchObject({
      build: { version: build.version, time: build.time },
      activeRuns: [],
      storage: dir,
    });
    expect(await c.client.request(methods.listRuns, { roots: [dir] })).toEqual({ runs: [] });
    expect(JSON.parse((await c.client.request(methods.template, { preset: 'quickstart' })).text)).toMatchObject({
      preset: 'quickstart',
    });
    await expect(c.client.request(methods.getRun, { run: dir })).rejects.toMatchObject({ name: 'DaemonError' });
    await expect(raw(c.client, methods.getRun.method, { run: 7 })).rejects.toMatchObject({ kind: 'params.invalid' });
    const failed = await new Promise((done) => {
      c.client.subscribe({ run: `${dir}/none`, sinceSeq: 0 }, () => undefined, done);
    });
    expect(failed).toMatchObject({ kind: 'not.found' });
    expect((await cli('serve', dir)).code).toBe(exitAlreadyRunning);
    await c.client.shutdown();
    expect(record(dir)).toBeUndefined();
  });
  it('every request of the protocol has a handler', async () => {
    const c = await testClient(folder(), { runtime: resolve('dist/runtime.js') });
    await c.client.connect({ start: true });
    const requests = Object.values(methods).flatMap((m) =>
      'numberOfParams' in m && m.constructor.name === 'RequestType' && !m.method.startsWith('daemon/')
        ? [m.method]
        : [],
    );
    expect(requests.length).toBeGreaterThan(20);
    // Wrong on purpose, so that none of them does anything: an unknown method would be told apart from wrong
    // parameters.
    for (const method of requests) {
      const e = await raw(c.client, method, { nonsense: { of: 'this' } }, AbortSignal.timeout(30_000)).then(
        () => undefined,
        (e: unknown) => e as { message: string },
      );
      expect(e?.message ?? '', method).not.toMatch(/does not know/);
    }
  });
  it("a wrong option is the caller's mistake", async () => {
    for (const minutes of ['0', 'soon', '-1']) {
      const r = await cli('serve', folder(), `--idle-minutes=${minutes}`);
      expect(r.code).toBe(2);
      expect(r.stderr).toContain('is not a number of minutes');
    }
  });
});
