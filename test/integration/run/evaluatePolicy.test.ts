import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { id, type FamilyId } from '../../../runtime/domain/index.js';
import type { ImportReport } from '../../../runtime/interchange/importReport.js';
import type { Results } from '../../../runtime/run/collect/results.js';
import { deskSuite, trainSeed } from '../../../runtime/tasks/suites/desk/index.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { cliJson, endAll, ensureBundle, replay, start } from '../../helpers/run/cli.js';
import {
  askedCommand,
  DONE,
  isFirstStep,
  scriptedModel,
  typing,
  type ScriptedModel,
} from '../../helpers/run/scriptedModel.js';

/** `evaluate --policy … --tasks … --out …`: any model on task files, through the bundle and on real desktops. */
const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: measuring a model on local desktops (${noLocal})`);

let dir: string, tasks: string, server: ScriptedModel;
/** Solves what it is asked to run in the terminal, and nothing else. */
const answer = (body: string): string => {
  const command = askedCommand(body);
  return command !== undefined && isFirstStep(body) ? typing(command) : DONE;
};

async function taskFile(domain: string, name: string, content: object): Promise<void> {
  await mkdir(join(tasks, domain), { recursive: true });
  await writeFile(join(tasks, domain, `${name}.json`), JSON.stringify({ id: name, ...content }));
}
const deskTask = (family: string, seed: number): object => {
  const t = deskSuite().task(id<FamilyId>(`desk/${family}`), trainSeed(seed));
  return { instruction: t.instruction, config: t.config, evaluator: t.evaluator, related_apps: t.relatedApps };
};

beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-measure-'));
  tasks = join(dir, 'examples');
  await taskFile('os', 'touch-one', deskTask('term-touch', 0));
  await taskFile('os', 'touch-two', deskTask('term-touch', 1));
  await taskFile('office', 'press', deskTask('press-button', 0));
  const impossible = { instruction: 'Print the screen on paper.', config: [], evaluator: { func: 'infeasible' } };
  await taskFile('os', 'impossible', { ...impossible, related_apps: [] });
  await taskFile('chrome', 'needs-chrome', { ...impossible, related_apps: ['chrome'] });
  server = await scriptedModel(answer);
});
afterEach(endAll);
afterAll(async () => {
  server.close();
  await rm(dir, { recursive: true, force: true });
});

describe.skipIf(noLocal)('a model measured on task files', () => {
  it("goes on after a kill, tells applications and infeasible tasks apart, and leaves OSWorld's layout", async () => {
    const out = join(dir, 'results'),
      args = ['evaluate', '--policy', server.url, '--tasks', tasks, '--out', out, '--episodes', '2'],
      how = ['--max-steps', '2', '--provider', 'local', '--desktops', '1', '--json'];
    const first = start(...args, ...how),
      episodes = join(out, 'episodes');
    while (((await replay(episodes).catch(() => undefined))?.of('trajectory.recorded').length ?? 0) < 3)
      await new Promise((r) => setTimeout(r, 50));
    first.signal('SIGKILL', true);
    await first.ended;
    const report = await cliJson<Results & { leftOut: number; stopped: boolean; policy: string }>(...args, ...how);
    expect(report).toMatchObject({
      policy: `large at ${server.url}`,
      episodes: 6,
      successes: 4,
      errors: 0,
      domains: { office: { episodes: 2, successes: 0, score: 0 }, os: { episodes: 4, successes: 4, score: 1 } },
      infeasible: { episodes: 2, successes: 0 },
      leftOut: 1,
      open: 0,
      stopped: false,
    });
    const { of } = await replay(episodes);
    expect(of('trajectory.recorded')).toHaveLength(8);
    // What is measured on is never trained on.
    expect(of('pool.added')).toEqual([]);

    const model = join(out, 'pyautogui', 'screenshot', 'large');
    expect((await readdir(model)).sort()).toEqual(['args.json', 'office', 'os']);
    expect((await readdir(join(model, 'os'))).sort()).toEqual(['impossible', 'touch-one', 'touch-two']);
    expect(await readFile(join(model, 'os', 'touch-one', 'result.txt'), 'utf8')).toBe('1\n');
    expect(await readFile(join(`${model}.2`, 'office', 'press', 'result.txt'), 'utf8')).toBe('0\n');
    expect(JSON.parse(await readFile(join(out, 'results.json'), 'utf8'))).toMatchObject({
      successes: 4,
      tasks: expect.arrayContaining([
        expect.objectContaining({ task: 'touch-two', domain: 'os', successes: 2, scores: [1, 1] }),
      ]) as unknown,
    });
    const back = await cliJson<ImportReport>(
      'import',
      join(out, 'pyautogui'),
      '--new',
      'back',
      '--runs',
      join(dir, 'runs'),
      '--json',
    );
    // Two attempts of a task are one where every screen was alike, which a slow machine need not see.
    expect(back.problemCount).toBe(0);
    expect(back.imported + back.duplicateCount).toBe(8);
    expect(back.imported).toBeGreaterThanOrEqual(4);
    expect(back.successes).toBeGreaterThanOrEqual(2);
    expect(back.successes).toBeLessThanOrEqual(4);

    // More steps would be another measurement; what lies beside ours stays.
    const longer = start(...args, '--max-steps', '3', '--provider', 'local', '--json');
    expect((await longer.ended).stderr).toContain('under other settings: rollout.maxSteps');
    const theirs = join(out, 'pyautogui', 'screenshot', 'gpt-4o');
    await mkdir(theirs);
    await cliJson(...args, ...how);
    expect(await readdir(theirs)).toEqual([]);
    expect(of('trajectory.recorded').every((e) => e.head.provenance.kind === 'probe')).toBe(true);

    // A folder with something of somebody else's is left as it is.
    const strange = join(dir, 'strange');
    await mkdir(join(strange, 'pyautogui'), { recursive: true });
    const refused = start('evaluate', '--policy', server.url, '--tasks', tasks, '--out', strange, '--json');
    expect(await refused.ended).toMatchObject({ code: 2, stderr: expect.stringContaining('is not empty') as string });
    expect(await readdir(strange)).toEqual(['pyautogui']);

    // The screen blanked is another policy: its episodes go elsewhere.
    const blind = start(...args, ...how, '--blind');
    expect((await blind.ended).stderr).toContain('was collected with large at');
  });
});
