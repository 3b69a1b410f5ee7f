import type * as Fs from 'node:fs/promises';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { lastCheckpoint, soundCheckpoint } from '../../../runtime/run/checkpoints.js';
import { earlierPart } from '../../../runtime/run/startWeights.js';
import { damageOf, policyOfCheckpoint, readCheckpoint, writeCheckpoint } from '../../../runtime/trainer/checkpoint.js';
import { dataConfig, openManager, withDir } from '../../helpers/data/manager.js';

/** Calls about files whose path ends in this fail so. */
let fails: { readonly path: string; readonly code: string; readonly of: 'open' | 'lstat' } | undefined;
vi.mock('node:fs/promises', async (original) => {
  const fs = await original<typeof Fs>(),
    failing =
      <A extends readonly unknown[], R>(of: 'open' | 'lstat', f: (...a: A) => Promise<R>) =>
      (...a: A): Promise<R> =>
        fails?.of === of && String(a[0]).endsWith(fails.path)
          ? Promise.reject(Object.assign(new Error(`${fails.code}: it failed, ${of}`), { code: fails.code }))
          : f(...a);
  return { ...fs, open: failing('open', fs.open), lstat: failing('lstat', fs.lstat as never) };
});
afterEach(() => {
  fails = undefined;
});

const head = { policy: 'p', layout: 'l' };
const made = async (dir: string, version: number): Promise<string> => {
  const to = join(dir, 'checkpoints', `v00000${version}`);
  await writeCheckpoint(to, { ...head, values: { version } }, { 'weights.f32': Buffer.alloc(64, version) });
  return to;
};
const notNow = { kind: 'store.io', message: expect.stringContaining('at the moment') as string };

describe('a checkpoint that cannot be read at the moment', () => {
  it.each([
    ['open', 'weights.f32', 'EIO'],
    ['open', 'manifest.json', 'EMFILE'],
    ['open', 'manifest.json', 'EACCES'],
    ['lstat', 'v000002', 'ESTALE'],
    ['lstat', 'manifest.json', 'ENOMEM'],
  ] as const)('is not given up as damaged (%s of %s: %s)', (of, path, code) =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig());
      for (const version of [1, 2])
        await m.note({ type: 'checkpoint', version, dir: await made(dir, version), learned: undefined });
      const newest = join(dir, 'checkpoints', 'v000002');
      fails = { of, path, code };
      await expect(damageOf(newest)).rejects.toMatchObject(notNow);
      await expect(readCheckpoint(newest, head)).rejects.toMatchObject(notNow);
      await expect(soundCheckpoint(m.store)).rejects.toMatchObject(notNow);
      await expect(earlierPart(m)).rejects.toMatchObject(notNow);
      if (path === 'v000002') await expect(lastCheckpoint(m.store)).rejects.toMatchObject(notNow);
      if (path === 'manifest.json') await expect(policyOfCheckpoint(newest)).rejects.toMatchObject(notNow);
      // It is all there once it can be read, and the run goes on with it.
      fails = undefined;
      expect(await soundCheckpoint(m.store)).toEqual({ checkpoint: { version: 2, dir: newest } });
      await m.close();
    }),
  );

  it('is another thing than one that is not whole, or not there', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig());
      for (const version of [1, 2, 3])
        await m.note({ type: 'checkpoint', version, dir: await made(dir, version), learned: undefined });
      await rm(join(dir, 'checkpoints', 'v000003'), { recursive: true });
      await rm(join(dir, 'checkpoints', 'v000002', 'weights.f32'));
      await mkdir(join(dir, 'checkpoints', 'v000002', 'weights.f32'));
      expect(await soundCheckpoint(m.store)).toMatchObject({ checkpoint: { version: 1 }, damaged: { version: 3 } });
      expect(await damageOf(join(dir, 'checkpoints', 'v000002'))).toMatchObject({ kind: 'trainer.invalid' });
      expect(await policyOfCheckpoint(join(dir, 'checkpoints', 'v000003'))).toBeUndefined();
      await m.close();
    }));
});
