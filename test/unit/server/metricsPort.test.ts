import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { MetricsPort, metricsTokenFile } from '../../../runtime/server/metricsPort.js';
import { openMetricsText } from '../../../runtime/server/openMetrics.js';
import type { Broadcast } from '../../../runtime/service/types.js';
import { Strangers } from '../../helpers/machine/strangers.js';
import { makeRun } from '../../helpers/pages/dashboard/run.js';

/** Less than the 30 s after which Node.js, left alone, looks for late headers. */
const GONE_MS = 29_000;
const made = makeRun(),
  told = { run: '/runs/a"b', status: made.status, ledger: made.ledger };
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
async function listen(): Promise<{ port: MetricsPort; dir: string; tell: (b: Broadcast) => void }> {
  const dir = await mkdtemp(join(tmpdir(), 'dart-metrics-'));
  ends.push(() => rm(dir, { recursive: true, force: true }));
  const listeners = new Set<(b: Broadcast) => void>(),
    port = await MetricsPort.listen({
      port: 0,
      storage: dir,
      service: {
        onBroadcast: (l) => {
          listeners.add(l);
          return () => listeners.delete(l);
        },
      },
    });
  ends.push(() => port.close());
  return {
    port,
    dir,
    tell: (b) => {
      for (const l of listeners) l(b);
    },
  };
}
const get = (
  port: number,
  headers: Record<string, string>,
  path = '/metrics',
  method = 'GET',
): Promise<{ status: number | undefined; text: string; type: string | undefined }> =>
  new Promise((done, fail) => {
    request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (res) => {
      let text = '';
      res.on('data', (d) => (text += String(d)));
      res.on('end', () => done({ status: res.statusCode, text, type: res.headers['content-type'] }));
    })
      .once('error', fail)
      .end();
  });

describe('figures for Prometheus', () => {
  it('are OpenMetrics: a type and a help for each family, counters end in _total, labels are escaped', () => {
    const text = openMetricsText([told]);
    expect(text.endsWith('\n# EOF\n')).toBe(true);
    expect(text).toContain(`dart_policy_version{run="a\\"b"} ${made.status.version}\n`);
    expect(text).toContain(`dart_rollouts_trained_total{run="a\\"b"} ${made.ledger.trained}\n`);
    expect(text).toContain(`dart_rollouts_retired_total{run="a\\"b",reason="no-variance"} `);
    const names = [...text.matchAll(/^# TYPE (\S+) /gm)].map((m) => m[1]!);
    expect(new Set(names).size).toBe(names.length);
    for (const line of text.split('\n').filter((l) => l !== '' && !l.startsWith('#'))) {
      expect(line).toMatch(/^dart_\w+\{run="[^\n]*"\} -?[\d.e+-]+$/);
      expect(names).toContain(/^(\w+?)(_total)?\{/.exec(line)![1]);
    }
    expect(openMetricsText([{ ...told, status: { ...made.status, success: NaN } }])).not.toContain('NaN');
  });
  it('are given to who has the token, at one address, and to no page of a browser', async () => {
    const { port, dir, tell } = await listen(),
      token = await readFile(join(dir, metricsTokenFile), 'utf8'),
      authorization = `Bearer ${token}`;
    expect((await stat(join(dir, metricsTokenFile))).mode & 0o777).toBe(0o600);
    expect((await get(port.port, { authorization })).text).not.toContain('{run=');
    tell({ method: 'run/status', params: told });
    const good = await get(port.port, { authorization });
    expect(good.status).toBe(200);
    expect(good.type).toContain('application/openmetrics-text');
    expect(good.text).toContain('dart_rollouts_begun_total');
    expect((await get(port.port, {})).status).toBe(401);
    expect((await get(port.port, { authorization: `Bearer ${'0'.repeat(64)}` })).status).toBe(401);
    expect((await get(port.port, { authorization, origin: 'http://127.0.0.1' })).status).toBe(403);
    expect((await get(port.port, { authorization, host: `localhost:${port.port}` })).status).toBe(403);
    expect((await get(port.port, { authorization }, '/')).status).toBe(404);
    expect((await get(port.port, { authorization }, '/metrics', 'POST')).status).toBe(404);
  });
  it(
    'reach the scraper however many connections others hold, and those are gone after a few seconds',
    { timeout: GONE_MS },
    async () => {
      const { port, dir } = await listen(),
        authorization = `Bearer ${await readFile(join(dir, metricsTokenFile), 'utf8')}`;
      let others: Strangers;
      // Again where the machine stood still until they were gone.
      do {
        const some = (others = await Strangers.at(port.port, 200));
        ends.push(() => Promise.resolve(some.end()));
        expect((await get(port.port, { authorization })).status).toBe(200);
      } while (others.left === 0);
      await others.gone();
    },
  );
  it('keep their token over restarts, and have another where the file holds none', async () => {
    const { port, dir } = await listen(),
      first = await readFile(join(dir, metricsTokenFile), 'utf8');
    await port.close();
    const service = { onBroadcast: () => () => undefined },
      again = await MetricsPort.listen({ port: 0, storage: dir, service });
    expect(await readFile(join(dir, metricsTokenFile), 'utf8')).toBe(first);
    // The port is taken.
    await expect(MetricsPort.listen({ port: again.port, storage: dir, service })).rejects.toThrow(/EADDRINUSE/);
    await again.close();
    await writeFile(join(dir, metricsTokenFile), 'short');
    await (await MetricsPort.listen({ port: 0, storage: dir, service })).close();
    expect(await readFile(join(dir, metricsTokenFile), 'utf8')).toMatch(/^[0-9a-f]{64}$/);
  });
});
