import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { wasInterrupted } from '../../../extension/daemon/interrupted.js';
import { parseRunText, type RunFile } from '../../../runtime/config/index.js';
import {
  activeRunsFile,
  parseActiveRuns,
  type ActiveRun,
  type Recovered,
} from '../../../runtime/protocol/activeRuns.js';
import * as methods from '../../../runtime/protocol/methods.js';
import type { Notifications } from '../../../runtime/protocol/notifications.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { cleanUp, folder, record, removeFolders, testClient, type TestClient } from '../../helpers/daemon/harness.js';
import { processTree } from '../../helpers/machine/processes.js';
import { ensureBundle, replay } from '../../helpers/run/cli.js';
import { smallRun } from '../../helpers/run/smallRun.js';

/** The daemon as users have it, killed in the middle of a run, started again as a window would. */
const noLocal = await whyNoLocalDesktops();
let dir: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-recovery-'));
});
afterEach(cleanUp);
afterAll(async () => {
  removeFolders();
  await rm(dir, { recursive: true, force: true });
});

const runFile = (name: string, o: RunFile = {}): string => smallRun(name, { budget: { minutes: 10 }, ...o });

type Status = Notifications['run/status'];
interface Window extends TestClient {
  /** The first status that fits. */
  status(fits: (s: Status) => boolean): Promise<Status>;
  recovered(): Promise<Recovered>;
}
async function attach(storage: string): Promise<Window> {
  const c = await testClient(storage, {
    runtime: resolve('dist/runtime.js'),
    build: JSON.parse(await readFile('dist/build.json', 'utf8')) as { version: string; time: number },
  });
  const told = new Promise<Recovered>((done) => c.client.on(methods.runRecovered, done));
  await c.client.connect({ start: true });
  return {
    ...c,
    status: (fits) =>
      new Promise((done) => {
        const off = c.client.on(methods.runStatus, (s) => {
          if (!fits(s)) return;
          off();
          done(s);
        });
      }),
    recovered: () => Promise.resolve(c.client.hello?.recovered?.[0] ?? told),
  };
}
/** Ends the daemon without a word, and the window with it. */
async function kill(storage: string, w: Window): Promise<void> {
  const { pid } = record(storage)!;
  w.client.dispose();
  process.kill(pid, 'SIGKILL');
}
/** The newest checkpoint is damaged on disk, and the trainer dies before there is another. */
async function loseWeights(run: string, daemon: number): Promise<number> {
  const trainer = processTree(daemon).find((p) => p.what.includes('__trainer'))!;
  const newest = async (): Promise<string> =>
      (await readdir(join(run, 'checkpoints')))
        .filter((n) => /^v\d+$/.test(n))
        .sort()
        .at(-1)!,
    told = async (): Promise<number> => {
      const journal = await replay(run);
      return Math.max(...[...journal.of('checkpoint'), ...journal.of('batch.trained')].map((e) => e.version));
    };
  // Stopped, it makes no other one meanwhile. One that nobody has heard of yet would be made again.
  let version = 0;
  for (process.kill(trainer.pid, 'SIGSTOP'); ; process.kill(trainer.pid, 'SIGSTOP')) {
    version = Number((await newest()).slice(1));
    if ((await told()) === version) break;
    process.kill(trainer.pid, 'SIGCONT');
    await new Promise((r) => setTimeout(r, 100));
  }
  const file = join(run, 'checkpoints', await newest(), 'weights.f32'),
    bytes = await readFile(file);
  bytes[1000]! ^= 1;
  await writeFile(file, bytes);
  process.kill(trainer.pid, 'SIGKILL');
  return version;
}
const active = async (storage: string): Promise<ActiveRun[]> =>
  parseActiveRuns(await readFile(join(storage, activeRunsFile), 'utf8'));

describe.skipIf(noLocal !== undefined)('a daemon that is killed in the middle of a run', () => {
  it(
    'is followed by one that goes on with it, its time and its pause; three times without anything new and it is left',
    { timeout: 400_000 },
    async () => {
      const storage = folder();
      let w = await attach(storage);
      const { run } = await w.client.request(methods.startRun, { text: runFile('killed'), base: dir });
      const before = await w.status(
        (s) => s.status.phase === 'training' && s.ledger.generated > 6 && s.status.elapsedMs > 5000,
      );
      expect(await active(storage)).toMatchObject([{ run, deaths: 0, minutes: 10 }]);
      expect(await wasInterrupted(storage)).toBe(true);
      await kill(storage, w);

      w = await attach(storage);
      expect(await w.recovered()).toMatchObject({ run, name: 'killed', outcome: 'resumed' });
      expect((await w.client.request(methods.listRuns, { roots: [run] })).runs[0]).toMatchObject({ state: 'running' });
      const after = await w.status((s) => s.ledger.generated > before.ledger.generated + 4);
      // Time used survives to within seconds: what the dead daemon used is neither given back nor counted twice.
      const first = (await replay(run)).of('run.time');
      expect(first.length).toBeGreaterThan(1);
      expect(after.status.elapsedMs).toBeGreaterThan(before.status.elapsedMs - 3000);

      // A trainer that dies when its last checkpoint is damaged costs what was learned since the one before, and no person.
      const lost = await loseWeights(run, record(storage)!.pid);
      await w.status((s) => s.status.phase === 'training' && s.status.version >= lost + 2);
      const recorded = await replay(run),
        [standIn] = recorded.of('checkpoint').flatMap((e) => (e.learned?.source === 'stand-in' ? [e] : []));
      expect(standIn).toMatchObject({ version: lost + 1, learned: { values: { of: lost } } });
      for (const c of recorded.of('batch.claimed'))
        for (const lag of c.lags)
          expect(lag).toBeLessThanOrEqual(parseRunText(runFile('killed'), '').curation.staleness.eta);
      // It has made something new, so its deaths are forgotten.
      await w.client.request(methods.pauseRun, { run });
      expect(await active(storage)).toMatchObject([{ deaths: 0, paused: true }]);
      await kill(storage, w);

      for (const deaths of [1, 2]) {
        w = await attach(storage);
        expect(await w.recovered()).toMatchObject({
          outcome: 'resumed',
          message: expect.stringContaining('paused') as string,
        });
        expect((await active(storage))[0]!.deaths).toBe(deaths);
        await kill(storage, w);
      }
      w = await attach(storage);
      expect(await w.recovered()).toMatchObject({
        outcome: 'left',
        message: expect.stringContaining('3 times') as string,
      });
      expect(await wasInterrupted(storage)).toBe(false);
      const [left] = (await w.client.request(methods.listRuns, { roots: [run] })).runs;
      expect(left).toMatchObject({
        state: 'interrupted',
        error: { message: expect.stringContaining('left stopped') as string },
      });

      // The others go on: a run of its own beside it, and the one that was left once a person says so.
      const other = await w.client.request(methods.startRun, { text: runFile('other'), base: dir });
      await w.status((s) => s.run === other.run);
      expect((await active(storage)).map((r) => [r.name, r.left === undefined])).toEqual([
        ['killed', false],
        ['other', true],
      ]);
      await w.client.request(methods.stopRun, { run: other.run, now: true });
      expect((await active(storage)).map((r) => r.name)).toEqual(['killed']);
      await w.client.request(methods.resumeRun, { run });
      expect(await active(storage)).toMatchObject([{ deaths: 0 }]);
      await w.client.shutdown();
      // A person ended it: nothing is resumed.
      expect(await active(storage)).toEqual([]);
      const end = await replay(run);
      expect([end.damage, end.events.at(-1)!.type]).toEqual([0, 'run.closed']);
    },
  );

  // Lessons longer than the test: what has been used is written down while they go on.
  it.each([
    ['reading', { reading: { screens: 8, steps: 100_000 } }],
    ['warm start', { demonstrations: 1, steps: 100_000 }],
  ] as const)('during %s goes on there, and the time is counted', { timeout: 200_000 }, async (phase, warmStart) => {
    const storage = folder();
    let w = await attach(storage);
    const { run } = await w.client.request(methods.startRun, {
        text: runFile(`killed-in-${phase.replace(' ', '-')}`, { warmStart }),
        base: dir,
      }),
      inLesson = ({ status }: Status): boolean =>
        status.phase === phase && /^step \d+ of 100000/.test(status.detail ?? ''),
      began = await w.status(inLesson),
      screens = async (): Promise<number> => (await stat(join(run, 'reading.screens'))).mtimeMs,
      drawn = phase === 'reading' ? await screens() : undefined,
      // So much longer than what a window allows that time given back would show.
      before = await w.status((s) => inLesson(s) && s.status.elapsedMs > began.status.elapsedMs + 5000);
    await kill(storage, w);

    w = await attach(storage);
    const first = await w.status((s) => s.run === run),
      { outcome } = await w.recovered();
    expect(outcome).toBe('resumed');
    expect(first.status.elapsedMs).toBeGreaterThanOrEqual(before.status.elapsedMs - 3000);
    await w.status(inLesson);
    // Screens that were all drawn are there, and are not drawn again.
    if (drawn !== undefined) expect(await screens()).toBe(drawn);
    await w.client.request(methods.stopRun, { run, now: true });
    await w.client.shutdown();
  });

  it('or ends because the machine does, says why it cannot go on where it cannot', async () => {
    const storage = folder();
    let w = await attach(storage);
    const { run } = await w.client.request(methods.startRun, { text: runFile('gone'), base: dir });
    await w.status(() => true);
    await w.client.request(methods.pauseRun, { run });
    w.client.dispose();
    const { pid } = record(storage)!;
    process.kill(pid, 'SIGTERM');
    while (record(storage)) await new Promise((r) => setTimeout(r, 20));
    expect(await active(storage)).toMatchObject([{ run, deaths: 0, paused: true }]);
    await rm(run, { recursive: true });
    w = await attach(storage);
    expect(await w.recovered()).toMatchObject({
      run,
      outcome: 'failed',
      message: expect.stringContaining('gone') as string,
    });
    expect(await active(storage)).toEqual([]);
    await w.client.shutdown();
  });
});
