import type { ChildProcess } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  headOffsets,
  id,
  random,
  toRunError,
  type BatchId,
  type EmbeddedBatch,
  type EmbeddedSample,
  type RolloutId,
} from '../../../runtime/domain/index.js';
import type { ProcessEntry } from '../../../runtime/concurrency/process.js';
import { processWork } from '../../../runtime/run/processWork.js';
import { createTrainer } from '../../../runtime/trainer/native/engine.js';
import { lastingTrainer } from '../../../runtime/trainer/native/lasting.js';
import type { EmbeddedTrainer, ReadingScreen } from '../../../runtime/trainer/types.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { trainerEntry } from '../../helpers/trainer/entry.js';
import { randomStates, TINY } from '../../helpers/trainer/tinyModel.js';

const off = headOffsets(TINY);
function batch(seed: number, kind: 'policy' | 'imitation' = 'policy'): EmbeddedBatch {
  const rng = random(`lasting/${seed}`);
  const samples = Array.from({ length: 8 }, (_, i): EmbeddedSample => {
    const s = randomStates(TINY, 1, random(`state/${seed}/${i >> 2}`));
    return {
      rollout: id<RolloutId>(`r${i}`),
      step: 0,
      stateKey: `s${i >> 2}`,
      state: {
        obs: s.obs.data as Uint8Array,
        instruction: s.instruction.data as Int32Array,
        history: s.history.data as Int32Array,
      },
      choices: Int32Array.of(0, off.cell + rng.int(8)),
      rolloutLogprobs: Float32Array.of(-1.6, -2.1),
      kind,
      advantage: kind === 'imitation' ? 0 : i % 2 ? 1 : -1,
      weight: 1,
    };
  });
  return { id: id<BatchId>(`b${seed}`), samples, epochs: 1 };
}
const screens: ReadingScreen[] = Array.from({ length: 4 }, (_, i) => ({
  obs: randomStates(TINY, 1, random(`screen/${i}`)).obs.data as Uint8Array,
  buckets: Int32Array.of(1),
  boxes: Int32Array.of(2, 2, 20, 12),
  marks: new Float32Array(),
}));

describe('a trainer that outlives its process', () => {
  let entry: ProcessEntry, dir: string;
  const open: EmbeddedTrainer[] = [];
  beforeAll(async () => {
    entry = await trainerEntry();
    dir = await mkdtemp(join(tmpdir(), 'lasting-'));
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((t) => t.close()));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  /** `kill` signals the process that works now. */
  async function start(name: string, o: { readonly dies?: (started: number) => boolean } = {}) {
    const notes: string[] = [];
    let process: ChildProcess | undefined,
      started = 0;
    const trainer = await lastingTrainer({
      start: async () => {
        const t = await createTrainer({
          entry,
          spec: TINY,
          seed: 1,
          dir: join(dir, name),
          options: { ...baseTrainerOptions, lr: 3e-3, warmup: 1, imitateStates: 4, readingCoef: 0.5 },
          workOf: processWork,
        });
        process = (t as unknown as { child: ChildProcess }).child;
        if (o.dies?.(++started)) process.kill('SIGKILL');
        return t;
      },
      screens: () => Promise.resolve(screens),
      note: (text) => notes.push(text),
    });
    open.push(trainer);
    return { trainer, notes, kill: (signal: NodeJS.Signals) => process!.kill(signal) };
  }
  it('leaves in the middle of long lessons when nobody is there any more, and keeps nothing for telemetry', async () => {
    const home = await mkdtemp(join(tmpdir(), 'lasting-home-')),
      before = process.env['HOME'];
    try {
      process.env['HOME'] = home;
      delete process.env['ORT_DISABLE_TELEMETRY'];
      const options = { ...baseTrainerOptions, lr: 3e-3, warmup: 1, imitateStates: 4, readingCoef: 0.5 },
        t = await createTrainer({ entry, spec: TINY, seed: 1, dir: join(dir, 'alone'), options, workOf: processWork }),
        { child } = t as unknown as { child: ChildProcess };
      const gone = once(child, 'exit'),
        years = { steps: 1e9, lr: 1e-3, shift: 2 };
      const lessons = [t.read(screens, years), t.imitate(batch(1, 'imitation'), years)].map((l) =>
        l.then(
          () => 'learned',
          () => 'lost',
        ),
      );
      while (!((await once(child, 'message')) as [{ kind: string }])[0].kind.startsWith('progress'));
      child.disconnect();
      await gone;
      expect(await Promise.all(lessons)).toEqual(['lost', 'lost']);
      expect(await readdir(home)).toEqual([]);
    } finally {
      process.env['HOME'] = before;
      await rm(home, { recursive: true, force: true });
    }
  });

  type Started = Awaited<ReturnType<typeof start>>;

  /** The same lessons with a fault before each of the calls named. */
  async function lessons(name: string, faults: readonly string[]): Promise<{ weights: Buffer; at: Started }> {
    const at = await start(name),
      { trainer: t } = at;
    const before = (what: string): void => {
      if (faults.includes(what)) at.kill('SIGKILL');
    };
    await t.read(screens, { steps: 3, lr: 1e-3, shift: 2 });
    before('imitate');
    await t.imitate(batch(1, 'imitation'), { steps: 4, lr: 1e-3, shift: 2 });
    before('export');
    await t.exportWeights();
    before('checkpoint');
    expect((await t.checkpoint()).version).toBe(2);
    before('update');
    expect((await t.update(batch(2))).version).toBe(3);
    before('second update');
    expect((await t.update(batch(3))).version).toBe(4);
    before('last checkpoint');
    expect((await t.checkpoint()).version).toBe(4);
    before('last export');
    return { weights: await readFile((await t.exportWeights()).path), at };
  }

  it('comes to the same weights, to the bit, whatever call its process is killed before', async () => {
    const whole = await lessons('whole', []);
    expect(whole.at.notes).toEqual([]);
    const killed = await lessons('killed', [
      'imitate',
      'export',
      'checkpoint',
      'update',
      'second update',
      'last checkpoint',
      'last export',
    ]);
    expect(killed.weights.equals(whole.weights)).toBe(true);
    expect(killed.at.notes).toHaveLength(7);
    expect(killed.at.notes[0]).toMatch(/^The trainer process ended \(signal SIGKILL\)\. It is started again\.$/);
    expect(killed.at.notes.at(-1)).toMatch(/It is started again from the checkpoint of version 4\.$/);
  });

  it.skipIf(process.platform !== 'linux')('finds a process that was stopped within 8 s, and goes on', async () => {
    const { trainer, kill, notes } = await start('stopped');
    await trainer.checkpoint();
    kill('SIGSTOP');
    expect((await trainer.update(batch(1))).version).toBe(1);
    expect(notes).toEqual([expect.stringMatching(/gave no sign of life for [5-8] s and did nothing/)]);
  });

  it('gives up when the same call is lost three times, and says which', async () => {
    const { trainer, notes, kill } = await start('hopeless', { dies: (started) => started > 1 });
    kill('SIGKILL');
    // Every process but the first dies as soon as it is there.
    await expect(trainer.update(batch(1))).rejects.toSatisfy((e) => {
      const { kind, message } = toRunError(e);
      return kind === 'trainer.lost' && message.startsWith('The trainer was lost 3 times in a row over batch b1;');
    });
    expect(notes).toHaveLength(2);
  });

  it('closes though its process is stopped', async () => {
    const { trainer, kill } = await start('stop');
    kill('SIGSTOP');
    const running = trainer.update(batch(1)).then(
      () => 'trained',
      (e: unknown) => toRunError(e).kind,
    );
    await trainer.close();
    expect(await running).toBe('trainer.lost');
  });
});
