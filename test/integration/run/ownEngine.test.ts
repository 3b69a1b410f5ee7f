import { readdir, readFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunFile } from '../../../runtime/config/index.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { fakeModel, fakePython, type FakePython } from '../../helpers/engine/fakePython.js';
import { SPECIAL } from '../../helpers/engine/policy.js';
import { endAll, ensureBundle, folderOf, journalWhen, replay, startWith, type Command } from '../../helpers/run/cli.js';

/**
 * A run that starts its engine by itself, as a user starts it: the bundle in a process of its own, real desktops, and in
 * the place of PyTorch the reference server behind an interpreter that plays Python (test/helpers/engine/fakePython.ts).
 */
const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: runs with an engine of their own (${noLocal})`);

let dir: string, runs: string, python: FakePython, model: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-own-engine-'));
  runs = join(dir, 'runs');
  python = await fakePython(dir);
  model = await fakeModel(join(dir, 'models', 'tiny'));
});
afterEach(endAll);
afterAll(() => rm(dir, { recursive: true, force: true }));

const WORDS = ["Action: click(start_box='(500,500)')", 'Action: wait()', "Action: finished(content='')"];
const start = (...args: string[]): Command =>
  startWith({ ...python.env, FAKE_ENGINE_WORDS: JSON.stringify(WORDS) }, ...args);

async function runFile(name: string, o: RunFile = {}): Promise<string> {
  const file = join(dir, `${name}.json`);
  const content: RunFile = {
    name,
    seed: 3,
    tasks: { families: ['press-button', 'term-touch'] },
    desktops: { count: 2, provider: 'local' },
    policy: {
      kind: 'vlm',
      vlm: {
        // Beside the run file.
        model: 'models/tiny',
        coordinates: 'relative1000',
        imageToken: SPECIAL.imagePad,
        maxTokens: 8,
        images: 2,
        prompt: 'Task: {instruction}',
      },
    },
    rollout: { maxSteps: 3 },
    curation: { dynamicRollouts: { max: 4 } },
    trainer: { remote: { engine: 'auto', rank: 4 }, batchGroups: 1, lr: 0.05, replay: 4, minibatchStates: 0 },
    warmStart: { demonstrations: 1, steps: 0 },
    evaluation: { episodes: 0, everyMinutes: 0 },
    // Rollouts that end while the engine is away are errors, and would use up a number of rollouts.
    budget: { updates: 6 },
    ...o,
  };
  await writeFile(file, JSON.stringify(content));
  return file;
}

/** Processes whose command line names this test's folder, by id. */
async function processes(): Promise<number[]> {
  const found: number[] = [];
  for (const pid of await readdir('/proc'))
    if (/^\d+$/.test(pid)) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (line.includes(`--state=${dir}`)) found.push(Number(pid));
    }
  return found;
}
const gone = async (): Promise<void> => {
  while ((await processes()).length > 0) await new Promise((r) => setTimeout(r, 20));
};
const texts = (c: Command): string =>
  c.said.flatMap((l) => (typeof l['text'] === 'string' ? [l['text']] : [])).join('\n');

describe.skipIf(noLocal)('a run that starts its engine', () => {
  it('installs, starts, probes and uses it, also when it dies, and ends it; an evaluation needs the run folder alone', async () => {
    const c = start('train', await runFile('whole'), '--json', '--runs', runs),
      run = await folderOf(c);
    await journalWhen(run, c, (r) => r.of('batch.trained').length >= 1);
    const [engine] = await processes();
    process.kill(engine!, 'SIGKILL');
    const ended = await c.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(texts(c)).toContain('The engine answers on cpu and ends with the run.');
    expect(texts(c)).toContain('It is started again (1 of 5)');
    const versions = (await replay(run)).of('batch.trained').map((e) => e.version);
    expect(versions.length).toBeGreaterThan(1);
    expect(versions).toEqual(versions.map((_, i) => i + 1));
    expect(await processes()).toEqual([]);
    // What the journal names is in the run folder, whatever becomes of the folder of the run file.
    const { config } = JSON.parse(await readFile(join(run, 'run.json'), 'utf8')) as { config: RunFile };
    expect(config.policy!.vlm!.model).toBe(model);
    const weights = (): Promise<string[]> => readdir(join(run, 'engine'), { recursive: true }),
      before = await weights(),
      evaluated = start('evaluate', run, '--episodes', '2', '--json', '--provider', 'local'),
      { code, stdout, stderr } = await evaluated.ended;
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ version: versions.at(-1), episodes: 2 });
    // An evaluation reads only.
    expect(await weights()).toEqual(before);
  });

  it('takes the engine along when it is killed, and resumes from what that had saved', async () => {
    const c = start('train', await runFile('killed'), '--json', '--runs', runs),
      run = await folderOf(c);
    await journalWhen(run, c, (r) => r.of('batch.trained').length >= 1);
    expect(await processes()).toHaveLength(1);
    c.signal('SIGKILL', true);
    await c.ended;
    await gone();
    const { length } = (await replay(run)).of('batch.trained'),
      resumed = await start('train', '--resume', run, '--json', '--runs', runs).ended;
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    const versions = (await replay(run)).of('batch.trained').map((e) => e.version);
    expect(versions).toEqual(versions.map((_, i) => i + 1));
    expect(versions.length).toBeGreaterThan(length);
  });
});
