import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lastCheckpoint, startingPoint } from '../../../runtime/run/resume.js';
import { dataConfig, openManager, withDir } from '../../helpers/data/manager.js';

describe('the checkpoint a resumed run goes on from', () => {
  it('is the newest the journal knows whose folder is there, wherever the run was moved', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig());
      expect(await lastCheckpoint(m.store)).toBeUndefined();
      for (const version of [1, 2, 3])
        await m.note({ type: 'checkpoint', version, dir: `/elsewhere/checkpoints/v${version}` });
      await m.close();
      for (const version of [1, 2]) await mkdir(join(dir, 'checkpoints', `v${version}`), { recursive: true });
      const r = await openManager(dir, dataConfig());
      expect(await lastCheckpoint(r.store)).toEqual({ version: 2, dir: join(dir, 'checkpoints', 'v2') });
      expect(await lastCheckpoint(r.store, 1)).toEqual({ version: 1, dir: join(dir, 'checkpoints', 'v1') });
      expect(await lastCheckpoint(r.store, 3)).toBeUndefined();
      expect(r.stats().version).toBe(3);
      await r.close();
    }));
});

describe('the policy a run starts from', () => {
  it('is a checkpoint folder, or the newest whole one of a run folder', () =>
    withDir(async (dir) => {
      for (const v of ['v000002', 'v000010', 'v000011']) await mkdir(join(dir, 'checkpoints', v), { recursive: true });
      // The newest has no manifest: it was being written when its run was killed.
      for (const v of ['v000002', 'v000010']) await writeFile(join(dir, 'checkpoints', v, 'manifest.json'), '{}');
      expect(await startingPoint(dir)).toEqual({ version: 10, dir: join(dir, 'checkpoints', 'v000010') });
      expect(await startingPoint(join(dir, 'checkpoints', 'v000002'))).toEqual({
        version: 2,
        dir: join(dir, 'checkpoints', 'v000002'),
      });
    }));
  it('is asked for when there is none', () =>
    withDir(async (dir) => {
      await expect(startingPoint(dir)).rejects.toMatchObject({ kind: 'config.invalid' });
      await expect(startingPoint(join(dir, 'nowhere'))).rejects.toMatchObject({ kind: 'config.invalid' });
    }));
});
