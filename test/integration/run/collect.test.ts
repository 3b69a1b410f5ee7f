import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunFile } from '../../../runtime/config/index.js';
import type { CollectReport } from '../../../runtime/run/collect/collect.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { cliJson, endAll, ensureBundle, folderOf, replay, start } from '../../helpers/run/cli.js';
import {
  askedCommand,
  DONE,
  isFirstStep,
  scriptedModel,
  typing,
  type ScriptedModel,
} from '../../helpers/run/scriptedModel.js';

/** `collect`, and a run that joins what it made, through the bundle and on real desktops. */
const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: collecting on local desktops (${noLocal})`);

let dir: string, runs: string, server: ScriptedModel, url: string;
const limits = new Set<unknown>();
/** Episodes so far; every second one solves its task, where that is to run a command. */
let asked = 0;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-collect-'));
  runs = join(dir, 'runs');
  server = await scriptedModel((body) => {
    limits.add((JSON.parse(body) as { max_tokens?: unknown }).max_tokens);
    const command = askedCommand(body);
    return command !== undefined && isFirstStep(body) && asked++ % 2 === 1 ? typing(command) : DONE;
  });
  ({ url } = server);
});
afterEach(endAll);
afterAll(async () => {
  server.close();
  await rm(dir, { recursive: true, force: true });
});

describe.skipIf(noLocal)('collect', () => {
  it('keeps verified successes of another model, goes on after a kill, and gives a run its pool and success rates', async () => {
    const args = ['collect', '--policy', url, '--tasks', 'desk', '--families', 'term-touch,press-missing'],
      counts = ['--seeds', '2', '--attempts', '4', '--stop-after', '2'],
      sampling = [...counts, '--max-steps', '2', '--temperature', '0.7', '--max-tokens', '99', '--images', '2'],
      where = ['--into', 'pool', '--runs', runs, '--provider', 'local', '--desktops', '2', '--json'];
    const first = start(...args, ...sampling, ...where),
      pool = join(runs, 'pool');
    // At least: two can be recorded between two looks.
    while (((await replay(pool).catch(() => undefined))?.of('trajectory.recorded').length ?? 0) < 3)
      await new Promise((r) => setTimeout(r, 50));
    first.signal('SIGKILL', true);
    await first.ended;
    const before = (await replay(pool)).of('trajectory.recorded').length,
      report = await cliJson<CollectReport>(...args, ...sampling, ...where);
    // Of each family two tasks; a task is left after two successes or four verdicts.
    expect(report.tasks).toHaveLength(4);
    for (const t of report.tasks) {
      expect(t.successes === 2 || t.successes + t.failures === 4, JSON.stringify(t)).toBe(true);
      if (t.family.endsWith('press-missing')) expect(t.successes).toBe(0);
    }
    expect(report.successes).toBeGreaterThan(1);
    expect(report.pooled).toBe(2);
    const { of, counts: now } = await replay(pool);
    expect(of('trajectory.recorded').length).toBe(report.attempts);
    expect(report.attempts).toBeGreaterThan(before);
    expect(now.byState).toMatchObject({ queued: 0, running: 0 });
    expect(of('trajectory.recorded').every((e) => e.head.cap === 2)).toBe(true);

    const other = start(...args, ...sampling, ...where, '--model', 'another');
    expect((await other.ended).stderr).toContain('was collected with large at');
    const shorter = start(...args, ...sampling, ...where, '--max-tokens', '98');
    expect((await shorter.ended).stderr).toContain('other settings: policy.openai.maxTokens.');
    expect([...limits]).toEqual([99]);

    const file = join(dir, 'join.json');
    const content: RunFile = {
      name: 'join',
      tasks: { families: ['term-touch', 'press-missing'] },
      desktops: { count: 1, provider: 'local' },
      policy: { kind: 'openai', openai: { baseUrls: [url], model: 'large' } },
      curation: { pool: { from: ['pool'] } },
      evaluation: { episodes: 0 },
      budget: { rollouts: 1 },
    };
    await writeFile(file, JSON.stringify(content));
    const c = start('train', file, '--json', '--runs', runs),
      run = await folderOf(c);
    expect(await c.ended).toMatchObject({ code: 0 });
    const joined = await replay(run);
    const sums = (family: string): { successes: number; failures: number } => ({
      successes: report.tasks.reduce((n, t) => n + (t.family === family ? t.successes : 0), 0),
      failures: report.tasks.reduce((n, t) => n + (t.family === family ? t.failures : 0), 0),
    });
    expect(joined.of('rates.seeded')[0]!.families).toEqual({
      'desk/term-touch': sums('desk/term-touch'),
      'desk/press-missing': sums('desk/press-missing'),
    });
    expect(joined.of('pool.added')).toHaveLength(2);
    expect(await readFile(join(pool, 'run.json'), 'utf8')).toContain('"collected"');
  });
});
