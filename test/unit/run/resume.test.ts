import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { StudioError } from '../../../runtime/domain/index.js';
import { lastCheckpoint, soundCheckpoint, startingPoint } from '../../../runtime/run/checkpoints.js';
import { progressOf } from '../../../runtime/run/resume.js';
import type { RunParts } from '../../../runtime/run/parts.js';
import { RunState } from '../../../runtime/run/runState.js';
import { earlierPart, startWeights, withoutDamage } from '../../../runtime/run/startWeights.js';
import { lostCheckpoint } from '../../../runtime/trainer/native/lasting.js';
import { damageOf, writeCheckpoint } from '../../../runtime/trainer/checkpoint.js';
import { dataConfig, openManager, withDir } from '../../helpers/data/manager.js';

const made = async (dir: string, version: number): Promise<string> => {
  const to = join(dir, 'checkpoints', `v${String(version).padStart(6, '0')}`);
  await writeCheckpoint(
    to,
    { policy: 'p', layout: 'l', values: { version, rng: [1, 2, 3, 4] } },
    { 'weights.f32': Buffer.alloc(3 << 20, version) },
  );
  return to;
};

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

describe('a journal of somebody else', () => {
  it('leads to no folder but those of checkpoints beside it', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig());
      await made(dir, 1);
      await m.note({ type: 'checkpoint', version: 1, dir: 'v000001' });
      for (const [i, to] of ['..', '/', '', 'a/..', 'v1/../../..', '.', 'journal'].entries())
        await m.note({ type: 'checkpoint', version: 2 + i, dir: to });
      const one = { version: 1, dir: join(dir, 'checkpoints', 'v000001') };
      expect(await lastCheckpoint(m.store)).toEqual(one);
      expect((await soundCheckpoint(m.store)).checkpoint).toEqual(one);
      await m.close();
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

describe('a run whose newest checkpoint is damaged', () => {
  const flip = async (file: string, at: number): Promise<void> => {
    const b = await readFile(file);
    b[at]! ^= 4;
    await writeFile(file, b);
  };
  const trained = (version: number, source: string) => ({
    type: 'checkpoint' as const,
    version,
    dir: `/elsewhere/v${String(version).padStart(6, '0')}`,
    learned: { source, values: { loss: 1, steps: 10 } },
  });

  it('goes on from the one before, as a version that was never given', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig());
      await m.note(trained(1, 'reading'));
      await m.note(trained(2, 'warm-start'));
      for (const v of [1, 2]) await made(dir, v);
      expect(await soundCheckpoint(m.store)).toEqual({
        checkpoint: { version: 2, dir: join(dir, 'checkpoints', 'v000002') },
      });
      await flip(join(dir, 'checkpoints', 'v000002', 'weights.f32'), (2 << 20) + 77);
      const { progress, own } = await earlierPart(m);
      expect(own).toMatchObject({ checkpoint: { version: 1 }, damaged: { version: 2 } });
      expect(own.damaged!.why).toContain('weights.f32 does not match its checksum');
      expect(await startWeights(own, undefined)).toMatchObject({ base: { version: 1 }, version: 3 });
      // What the damaged weights had learned is learned again; what those before them had is not.
      expect(progress).toMatchObject({ warmStartVersion: undefined, untaught: false });
      await m.close();
    }));

  it('learns again from the beginning where none is whole, also when it is interrupted as it does', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig());
      await m.note(trained(1, 'reading'));
      await m.note(trained(2, 'warm-start'));
      await made(dir, 1);
      await rm(join(dir, 'checkpoints', 'v000001', 'weights.f32'));
      const { progress, own } = await earlierPart(m);
      expect(own).toMatchObject({ checkpoint: undefined, damaged: { version: 2 } });
      expect(own.damaged!.why).toContain('is gone');
      expect(await startWeights(own, undefined)).toMatchObject({ base: undefined, version: 3 });
      expect(progress).toMatchObject({ warmStartVersion: undefined, untaught: true });
      // It wrote that it stands in, and was killed.
      await m.note({ ...trained(3, 'stand-in'), learned: { source: 'stand-in', values: { of: 2, base: 0 } } });
      await made(dir, 3);
      expect((await earlierPart(m)).progress).toMatchObject({ untaught: true, warmStartVersion: undefined });
      await m.note(trained(4, 'reading'));
      await made(dir, 4);
      expect(await progressOf(m.store)).toMatchObject({ untaught: false, warmStartVersion: undefined });
      await m.note(trained(5, 'warm-start'));
      expect(await progressOf(m.store)).toMatchObject({ untaught: false, warmStartVersion: 5 });
      await m.close();
    }));

  it('goes on in the middle of its work when its trainer is lost too, as a resume would', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig());
      await m.note(trained(1, 'reading'));
      await m.note(trained(2, 'warm-start'));
      for (const order of ['a', 'b'] as const)
        expect(await m.nextOrder({ maxConcurrent: 9, version: 2 }), order).toBeDefined();
      for (const v of [1, 2]) await made(dir, v);
      const said: string[] = [],
        ledger = m.stats().ledger,
        lost = new StudioError('trainer.invalid', 'It is damaged.', 'Resume.', { details: { checkpoint: 2 } });
      let weights = 2;
      const learner = {
        lostCheckpoint,
        startOver: (version: number, from?: { version: number; dir: string }) => {
          weights = version;
          said.push(`starts over as ${version} from ${from?.dir.slice(-3)}, which counts as ${from?.version}`);
          return Promise.resolve();
        },
        checkpoint: async () => ({ version: weights, dir: await made(dir, weights) }),
        snapshot: () =>
          Promise.resolve({ version: weights, publish: () => Promise.resolve(said.push(`publishes ${weights}`)) }),
      };
      const r = {
        data: m,
        state: Object.assign(new RunState(), { version: 2, warmStartVersion: 2 }),
        config: parseRunFile({}),
        log: { note: (text: string) => said.push(text) },
        engine: { learner },
      } as unknown as RunParts;
      // A checkpoint that is whole after all, and errors of another kind, are nobody's to mend here.
      await expect(withoutDamage(r, lost)).rejects.toBe(lost);
      const other = new Error('x');
      await expect(withoutDamage(r, other)).rejects.toBe(other);
      expect(said).toEqual([]);

      await flip(join(dir, 'checkpoints', 'v000002', 'weights.f32'), 99);
      const on = await withoutDamage(r, lost);
      expect(said).toEqual([
        'starts over as 3 from 001, which counts as 3',
        expect.stringMatching(/weights.f32 does not match.*continues with the weights of version 1, as version 3/),
        'publishes 3',
      ]);
      // The warm start was lost with the weights, so it is made again; the reading lessons are not.
      expect([on.progress.warmStartVersion, on.progress.untaught, r.state.version, r.state.warmStartVersion]).toEqual([
        undefined,
        false,
        3,
        undefined,
      ]);
      expect(m.stats().version).toBe(3);
      expect(m.stats().ledger).toEqual(ledger);
      expect((await soundCheckpoint(m.store)).checkpoint?.version).toBe(3);
      await m.close();
    }));

  it('is found whatever byte of it was changed', () =>
    withDir(async (dir) => {
      const file = join(await made(dir, 7), 'manifest.json'),
        whole = await readFile(file);
      expect(await damageOf(join(dir, 'checkpoints', 'v000007'))).toBeUndefined();
      const text = JSON.parse(whole.toString()) as { values: { version: number } };
      await writeFile(file, JSON.stringify({ ...text, values: { ...text.values, version: 8 } }));
      expect((await damageOf(join(dir, 'checkpoints', 'v000007')))?.message).toContain('altered');
    }));
});
