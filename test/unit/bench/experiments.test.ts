import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Interrupted, Lab, type Experiment } from '../../bench/lib/experiments.js';
import { withDir } from '../../helpers/data/manager.js';
import { writeSyntheticRun } from '../../helpers/data/syntheticRun.js';

/**
 * A runtime that "trains" by copying a finished run's folder: `how` makes it fail, or wait for SIGINT in the middle.
 */
const RUNTIME = `
import { appendFileSync, cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
const args = process.argv.slice(2), runs = args[args.indexOf('--runs') + 1], how = process.env.FAKE_HOW;
appendFileSync(join(process.env.FAKE_DIR, 'calls'), JSON.stringify(args) + '\\n');
if (args[0] === 'evaluate') { console.log(JSON.stringify({ episodes: 4, successes: args.includes('0') ? 0 : 3, perFamily: {} })); process.exit(0); }
const dir = join(runs, 'r1');
if (!existsSync(dir)) { mkdirSync(runs, { recursive: true }); cpSync(join(process.env.FAKE_DIR, 'template'), dir, { recursive: true }); mkdirSync(join(dir, 'frames'), { recursive: true }); }
if (how === 'fail') { console.error('no desktop could be started'); process.exit(1); }
if (how === 'wait') { process.on('SIGINT', () => process.exit(130)); console.log(JSON.stringify({ type: 'note', text: 'Evaluation waits' })); setInterval(() => {}, 1000); }
`;

async function withLab(
  f: (o: {
    lab: (signal?: AbortSignal, note?: (t: string) => void) => Lab;
    calls: () => Promise<string[][]>;
    dir: string;
  }) => Promise<void>,
): Promise<void> {
  await withDir(async (dir) => {
    await writeSyntheticRun(join(dir, 'template'), { groups: 4, close: 'finished' });
    await writeFile(join(dir, 'runtime.mjs'), RUNTIME);
    process.env['FAKE_DIR'] = dir;
    delete process.env['FAKE_HOW'];
    const log = (note: (t: string) => void): { status: () => void; note: (t: string) => void } => ({
      status: () => undefined,
      note,
    });
    await f({
      dir,
      lab: (signal = new AbortController().signal, note = () => undefined) =>
        new Lab({
          bench: 'test',
          dir: join(dir, 'work'),
          runtime: join(dir, 'runtime.mjs'),
          provider: 'local',
          signal,
          log: log(note),
        }),
      calls: async () =>
        (await readFile(join(dir, 'calls'), 'utf8').catch(() => ''))
          .split('\n')
          .filter(Boolean)
          .map((l) => JSON.parse(l) as string[]),
    });
  });
}
const base: Experiment = { name: 'base', variant: 'base', seed: 1, half: 'redo', file: { seed: 1 } };
const one: Experiment = {
  name: 's1-all',
  variant: 'all',
  seed: 1,
  half: 'resume',
  from: 'base',
  file: { seed: 1, budget: { rollouts: 10 } },
};

describe('experiments', () => {
  it('are done once: read back by a later invocation, done again when their run file or what they start from changed', () =>
    withLab(async ({ lab, calls, dir }) => {
      const first = lab(),
        made = [await first.run(base, ''), await first.run(one, '')];
      expect(made[1]!.measure.rollouts.ended).toBeGreaterThan(0);
      expect(JSON.parse(await readFile(join(dir, 'work/s1-all/run.json'), 'utf8'))).toMatchObject({
        budget: { rollouts: 10 },
        warmStart: { from: join(dir, 'work/base/runs/r1') },
      });
      expect(existsSync(join(dir, 'work/s1-all/runs/r1/frames'))).toBe(false);
      expect(await calls()).toHaveLength(2);
      const second = lab();
      expect([await second.run(base, ''), await second.run(one, '')]).toEqual(made);
      expect(await calls()).toHaveLength(2);
      const third = lab(),
        changed: Experiment = { ...base, file: { seed: 2 } };
      expect(third.finished(changed)).toBeUndefined();
      await third.run(changed, '');
      expect(third.finished(one)).toBeUndefined();
      await third.run(one, '');
      expect(await calls()).toHaveLength(4);
    }));

  it('that were made with fewer splits get those they lack, while their folder is there', () =>
    withLab(async ({ lab, calls, dir }) => {
      const asked = (splits: readonly string[]): Experiment => ({ ...base, splits, episodes: 4 }),
        more = asked(['words', 'looks', 'looks-untrained', 'looks-blind']),
        made = await lab().run(asked(['words']), ''),
        whole = await lab().run(more, '');
      expect(whole).toEqual({
        ...made,
        splits: {
          ...made.splits,
          looks: { episodes: 4, successes: 3, perFamily: {} },
          'looks-untrained': { episodes: 4, successes: 0, perFamily: {} },
          'looks-blind': { episodes: 4, successes: 3, perFamily: {} },
        },
        later: Object.fromEntries(['looks', 'looks-untrained', 'looks-blind'].map((s) => [s, lab().commit])),
      });
      const evaluated = (await calls()).filter(([c]) => c === 'evaluate').map((c) => c.slice(2).join(' '));
      expect(evaluated).toEqual(
        ['words', 'looks', 'looks', 'looks'].map(
          (s, i) => `--split ${s} --episodes 4${['', '', ' --checkpoint 0', ' --blind'][i]} --provider local --json`,
        ),
      );
      // Trained once, and all of it is read back from now on.
      expect(await lab().run(more, '')).toEqual(whole);
      expect((await calls()).map(([c]) => c)).toEqual(['train', ...evaluated.map(() => 'evaluate')]);
      await rm(join(dir, 'work/base/runs'), { recursive: true });
      expect(await lab().run({ ...more, splits: [...more.splits!, 'near'] }, '')).toEqual(whole);
    }));

  it('that were cut short go on in their own folder, or begin again where time is measured', () =>
    withLab(async ({ lab, calls, dir }) => {
      process.env['FAKE_HOW'] = 'wait';
      const stop = new AbortController(),
        heard: string[] = [];
      const running = lab(stop.signal, (t) => {
        heard.push(t);
        if (t.includes('waits')) stop.abort();
      }).run(base, '');
      await expect(running).rejects.toBeInstanceOf(Interrupted);
      expect(heard.some((t) => t.includes('waits'))).toBe(true);
      expect(existsSync(join(dir, 'work/base/result.json'))).toBe(false);
      delete process.env['FAKE_HOW'];
      expect((await lab().run({ ...base, half: 'resume' }, '')).resumed).toBe(true);
      expect((await calls()).at(-1)).toContain('--resume');
      await mkdir(join(dir, 'work/base'), { recursive: true });
      await writeFile(join(dir, 'work/base/result.json'), 'torn');
      expect((await lab().run(base, '')).resumed).toBe(false);
      expect((await calls()).at(-1)).not.toContain('--resume');
    }));

  it('that fail say why and leave no result', () =>
    withLab(async ({ lab, dir }) => {
      process.env['FAKE_HOW'] = 'fail';
      await expect(lab().run(base, '')).rejects.toThrow(/base: ended with 1: no desktop could be started/);
      expect(existsSync(join(dir, 'work/base/result.json'))).toBe(false);
    }));

  it('that start from what was not made are refused before anything runs', () =>
    withLab(async ({ lab, calls }) => {
      await expect(lab().run(one, '')).rejects.toThrow(/starts from base, which was not made/);
      expect(await calls()).toHaveLength(0);
    }));
});
