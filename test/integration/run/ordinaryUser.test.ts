import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { QUICKSTART_FAMILIES, type RunFile } from '../../../runtime/config/index.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { idleThreads } from '../../helpers/machine/idleThreads.js';
import { OrdinaryUser } from '../../helpers/machine/ordinaryUser.js';
import { cli, endAll, ensureBundle, replay, type Ended } from '../../helpers/run/cli.js';

/**
 * What works for root must work for an ordinary user with an editor and a browser open: desktops, and the making of the
 * quick start's demonstrations. Run by root, an ordinary user is made for it; run by an ordinary user, every test is
 * that already, and only the demonstrations are made here.
 */
const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);
const root = process.getuid?.() === 0;
const THREADS = 300,
  FAMILIES = QUICKSTART_FAMILIES.length,
  EACH = 1,
  DEMONSTRATIONS = EACH * FAMILIES;

/** The quick start as far as its demonstrations, one of each family; nothing is learned and nothing evaluated. */
const runFile = (dir: string): RunFile => ({
  preset: 'quickstart',
  desktops: { provider: 'local' },
  warmStart: { demonstrations: EACH, reading: { screens: 0, steps: 0 }, steps: 0 },
  evaluation: { episodes: 0 },
  budget: { rollouts: 1 },
  store: { dir },
});

/** One demonstration of each family, none left out. */
async function madeAll(r: Pick<Ended, 'code' | 'stdout' | 'stderr'>): Promise<void> {
  expect(r.code, r.stderr).toBe(0);
  const said = r.stdout
    .split('\n')
    .filter((l) => l.startsWith('{"'))
    .map((l) => JSON.parse(l) as { type: string; text?: string; dir?: string });
  expect(said.filter((l) => l.text?.startsWith('Demonstration left out: '))).toEqual([]);
  expect(said.find((l) => l.text?.startsWith('Demonstrations: '))?.text).toMatch(ALL);
  const successes = (await replay(said.find((l) => l.type === 'result')!.dir!))
    .of('trajectory.recorded')
    .map((e) => e.head)
    .filter((h) => h.provenance.kind === 'oracle' && h.outcome.kind === 'success');
  expect(successes).toHaveLength(DEMONSTRATIONS);
  const setups = successes.map((h) => h.resetMs).toSorted((a, b) => a - b);
  console.log(`Set-up of a demonstration, median: ${setups[setups.length >> 1]!.toFixed(0)} ms.`);
}
const ALL = new RegExp(`^Demonstrations: ${DEMONSTRATIONS} verified successes of ${FAMILIES} families in \\d+ s\\.$`);
/** Each kind of user has tests of its own; those of the other are not there, rather than skipped, which fails CI. */
const itAsRoot = (name: string, o: { readonly timeout: number }, f: () => Promise<void>): void => {
  if (root) it(name, o, f);
};
const itAsOrdinaryUser = (name: string, f: () => Promise<void>): void => {
  if (!root) it(name, f);
};

describe.skipIf(why)('an ordinary user', () => {
  let dir: string, user: OrdinaryUser | undefined;
  const ends: (() => unknown)[] = [];
  beforeAll(async () => {
    ensureBundle();
    dir = mkdtempSync(join(tmpdir(), 'dart-ordinary-'));
    if (root) user = await OrdinaryUser.create();
    const idle = await idleThreads(THREADS, user);
    ends.push(() => idle.end());
    if (root) expect(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${idle.pid}/status`, 'utf8'))![1]).not.toBe('0');
  });
  afterAll(async () => {
    await endAll();
    for (const end of ends) await end();
    user?.remove();
    if (dir) rmSync(dir, { recursive: true, force: true });
  });

  itAsRoot(
    "passes the desktop's integration tests beside 300 idle threads of its own",
    { timeout: 600_000 },
    async () => {
      const report = join(user!.home, 'report.json');
      const tests = user!.start(
        'node',
        'node_modules/vitest/vitest.mjs',
        'run',
        '--configLoader=runner',
        '--project=integration',
        '--reporter=json',
        `--outputFile.json=${report}`,
        'test/integration/cluster/',
      );
      ends.push(() => tests.end());
      const { code, stdout, stderr } = await tests.done;
      const r = JSON.parse(readFileSync(report, 'utf8')) as {
        numPassedTests: number;
        testResults: {
          name: string;
          status: string;
          message: string;
          assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
        }[];
      };
      const tested = r.testResults.flatMap((f) => f.assertionResults);
      expect(tested.filter((t) => t.status === 'failed').map((t) => [t.fullName, ...t.failureMessages])).toEqual([]);
      expect(r.testResults.filter((f) => f.status === 'failed').map((f) => [f.name, f.message])).toEqual([]);
      expect(code, stdout + stderr).toBe(0);
      // The Docker engine's socket is root's: nothing else may have been left out.
      expect(tested.filter((t) => t.status !== 'passed' && !/docker/.test(t.fullName)).map((t) => t.fullName)).toEqual(
        [],
      );
      for (const file of ['sandbox', 'isolation', 'abandoned', 'pool', 'actions', 'liveInput', 'taskWatch'])
        expect(
          r.testResults
            .find((f) => f.name.endsWith(`/${file}.test.ts`))
            ?.assertionResults.some((t) => t.status === 'passed'),
          file,
        ).toBe(true);
    },
  );

  itAsRoot('makes demonstrations of all families of the quick start beside them', { timeout: 600_000 }, async () => {
    const file = user!.write('run.json', JSON.stringify(runFile(join(user!.home, 'runs')))),
      run = user!.start('node', 'dist/runtime.js', 'train', file, '--json');
    ends.push(() => run.end());
    await madeAll(await run.done);
  });

  itAsOrdinaryUser(
    'makes demonstrations of all families of the quick start beside 300 idle threads of its own',
    async () => {
      const file = join(dir, 'run.json');
      writeFileSync(file, JSON.stringify(runFile(join(dir, 'runs'))));
      await madeAll(await cli('train', file, '--json'));
    },
  );
});
