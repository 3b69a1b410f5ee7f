import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as m from '../../../runtime/protocol/methods.js';
import { createStudioService, type StudioService } from '../../../runtime/service/index.js';
import { ensureBundle } from '../../helpers/run/cli.js';
import { untaughtRun } from '../../helpers/run/untaughtRun.js';

/** Files for people elsewhere, made in a worker thread of the real bundle. */
const entry = { file: join(process.cwd(), 'dist/runtime.js') };
let dir: string, run: string, service: StudioService;
const call = async <R>(method: { readonly method: string }, params: unknown): Promise<R> =>
  service.handlers.get(method.method)!(params, {
    signal: new AbortController().signal,
    client: new AbortController().signal,
    notify: () => undefined,
  }) as Promise<R>;

beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-exports-'));
  run = join(dir, 'runs', 'untaught');
  await untaughtRun(run, entry);
  service = createStudioService({ entry, cacheDir: join(dir, 'cache'), log: () => undefined });
});
afterAll(async () => {
  await service.close({ now: true });
  await rm(dir, { recursive: true, force: true });
});

describe('exports of the service', () => {
  it.each(['csv', 'json', 'parquet'])('a table of a run as %s', async (ending) => {
    for (const what of ['metrics', 'rollouts']) {
      const to = join(dir, `${what}.${ending}`);
      expect(await call(m.exportTable, { run, what, to })).toEqual({ rows: 0 });
      const text = await readFile(to);
      if (ending === 'csv')
        expect(text.toString()).toMatch(what === 'metrics' ? /^name,at,version,value\n/ : /^id,family,/);
      else if (ending === 'json') expect(JSON.parse(text.toString())).toEqual([]);
      else expect(text.subarray(0, 4).toString()).toBe('PAR1');
    }
  });

  it('never writes over anything but a table, and only of a run', async () => {
    await expect(call(m.exportTable, { run, what: 'metrics', to: join(dir, 'profile') })).rejects.toMatchObject({
      kind: 'params.invalid',
    });
    await expect(call(m.exportTable, { run, what: 'steps', to: join(dir, 'x.csv') })).rejects.toMatchObject({
      kind: 'params.invalid',
    });
    await expect(
      call(m.exportTable, { run: join(dir, 'none'), what: 'metrics', to: join(dir, 'x.csv') }),
    ).rejects.toMatchObject({ kind: 'not.found' });
    expect(existsSync(join(dir, 'x.csv'))).toBe(false);
  });

  it('a page of a trajectory file, which is parsed in the worker; one that is none says so', async () => {
    const file = join(dir, 'a.traj.jsonl'),
      to = join(dir, 'a.html'),
      row = { rollout: 'r', instruction: 'Press OK', task: 't', family: 'f', outcome: 'success', steps: 0, cap: 3 };
    await writeFile(
      file,
      JSON.stringify({
        format: 'dart-studio/trajectory',
        formatVersion: 1,
        framesDir: 'frames',
        row: { ...row, provenance: 'rollout' },
      }),
    );
    expect(await call(m.sharePage, { trajectory: file, to })).toMatchObject({ file: to, without: 0 });
    expect(await readFile(to, 'utf8')).toContain('Press OK');
    await writeFile(file, '[]');
    await expect(call(m.sharePage, { trajectory: file, to })).rejects.toMatchObject({ kind: 'config.invalid' });
  });
});
