import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunFile } from '../../../runtime/config/index.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { servedPolicy } from '../../helpers/engine/servedPolicy.js';
import { ReferenceServer } from '../../helpers/engine/server.js';
import { endAll, ensureBundle, folderOf, journalWhen, replay, start, type Replay } from '../../helpers/run/cli.js';

/** A run with `run.deterministic` that is killed again and again trains what the same run trains undisturbed. */
const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: deterministic runs on local desktops (${noLocal})`);

let dir: string;
const servers: ReferenceServer[] = [];
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-deterministic-'));
});
afterEach(async () => {
  await endAll();
  for (const s of servers.splice(0)) s.close();
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const COMMON: RunFile = {
  seed: 3,
  run: { deterministic: true },
  tasks: { families: ['press-button', 'term-touch'] },
  desktops: { provider: 'local' },
  rollout: { maxSteps: 3 },
  curation: { dynamicRollouts: { max: 3 } },
  evaluation: { episodes: 0 },
  budget: { updates: 4 },
};
const embedded = (): Promise<RunFile> =>
  Promise.resolve({
    ...COMMON,
    trainer: { batchGroups: 2, replay: 4 },
    warmStart: { reading: { screens: 4, steps: 2 }, demonstrations: 2, steps: 6 },
  });
/** A server of its own for every run, so that none helps another. */
async function vlm(): Promise<RunFile> {
  const s = await ReferenceServer.start({
    policy: { words: ["Action: click(start_box='(500,500)')", 'Action: wait()', "Action: finished(content='')"] },
  });
  servers.push(s);
  return {
    ...COMMON,
    ...servedPolicy(s),
    warmStart: { demonstrations: 1, steps: 4, lr: 0.02 },
  };
}

/** What the journal has of each batch: its claim, how it was trained, and every step of its trajectories. */
async function batches(run: string): Promise<string[]> {
  const r = await replay(run),
    reader = await RunReader.open(run, { index: 'local' });
  try {
    return await Promise.all(
      r.of('batch.trained').map(async ({ seq: _s, at: _a, checkpoint, ...trained }) => {
        const { seq: _q, at: _t, ...claimed } = r.of('batch.claimed').find((e) => e.batch === trained.batch)!,
          trajectories = await Promise.all(trained.rollouts.map((id) => reader.readTrajectory(id)));
        return plain({ claimed, trained: { ...trained, checkpoint: basename(checkpoint!) }, trajectories });
      }),
    );
  } finally {
    await reader.close();
  }
}
/** Numbers of typed arrays by their bytes: equal texts are equal bits. */
const plain = (x: unknown): string =>
  JSON.stringify(
    x,
    (_k, v: unknown) =>
      ArrayBuffer.isView(v) ? Buffer.from(v.buffer, v.byteOffset, v.byteLength).toString('base64') : v,
    1,
  );

const drawn =
  (steps: number) =>
  (r: Replay): boolean =>
    r.of('rollout.step').length >= steps && r.counts.byState.running > 0;
/** Where it is killed; the second place is drawn. */
const kills = (draw: () => number): ((r: Replay) => boolean)[] => [
  (r) => r.of('trajectory.recorded').length >= 1,
  drawn(6 + Math.floor(draw() * 20)),
  (r) => r.of('batch.claimed').length > r.of('batch.trained').length && r.of('batch.trained').length >= 1,
];

describe.skipIf(noLocal)('a deterministic run, killed at random and resumed,', () => {
  it.each([
    ['embedded', embedded, 11],
    ['vlm', vlm, 12],
  ] as const)('trains the batches of an undisturbed one, byte for byte (%s)', async (name, fileOf, seed) => {
    const make = async (disturbed: boolean): Promise<string[]> => {
      const file = join(dir, `${name}-${disturbed}.json`);
      await writeFile(file, JSON.stringify({ ...(await fileOf()), name: `${name}-${disturbed}` }));
      let c = start('train', file, '--json', '--runs', join(dir, 'runs'));
      const run = await folderOf(c);
      let state = seed;
      const draw = (): number => (state = (state * 48271) % 2147483647) / 2147483647;
      let lost = 0;
      for (const here of disturbed ? kills(draw) : []) {
        await journalWhen(run, c, here);
        c.signal('SIGKILL');
        await c.ended;
        const { running, queued, claimed } = (await replay(run)).counts.byState;
        lost += running + queued + claimed;
        c = start('train', '--resume', run, '--json');
      }
      const ended = await c.ended;
      expect(ended, ended.stderr).toMatchObject({ code: 0 });
      if (disturbed) expect(lost).toBeGreaterThan(0);
      return batches(run);
    };
    // Beside each other, so that what else the machine does is not the same for both.
    const [whole, killed] = await Promise.all([make(false), make(true)]);
    expect(whole).toHaveLength(4);
    expect(killed).toEqual(whole);
  });
});
