import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { RunFile } from '../../runtime/config/index.js';
import { whyNoLocalDesktops } from '../helpers/cluster/desktops.js';
import { Cockpit } from '../helpers/workbench/cockpit.js';
import { flowIn, Given } from '../helpers/workbench/given.js';
import { whyNoWorkbench } from '../helpers/workbench/rig.js';
import { until } from '../helpers/workbench/workbench.js';

/**
 * A run on task files in OSWorld's format, in the extension as it is installed: what judges them is a program of its own
 * beside the runtime, and has to be in the package.
 */
const missing = whyNoWorkbench('latest') ?? (await whyNoLocalDesktops());
if (missing) console.warn(`skipped: OSWorld's task files in VS Code (${missing})`);

const printed = (command: string, expected: string): object => ({
    func: 'exact_match',
    result: { type: 'vm_command_line', command, shell: true },
    expected: { type: 'rule', rules: { expected } },
  }),
  task = (id: string, instruction: string, evaluator: object, apps: string[]): string =>
    JSON.stringify({
      id,
      instruction,
      config: [{ type: 'execute', parameters: { command: 'echo of the task >/home/user/there', shell: true } }],
      related_apps: apps,
      evaluator,
    });
const NOTHING = 'Leave the desktop as it is',
  NEVER = 'Write a poem into a file',
  CODE = 'Install an extension';
const FILES: Readonly<Record<string, string>> = {
  'tasks/os/11111111-1111-4111-8111-111111111111.json': task(
    '11111111-1111-4111-8111-111111111111',
    NOTHING,
    printed('cat /home/user/there', 'of the task\n'),
    ['os'],
  ),
  'tasks/os/22222222-2222-4222-8222-222222222222.json': task(
    '22222222-2222-4222-8222-222222222222',
    NEVER,
    printed('cat /home/user/poem', 'roses\n'),
    ['os'],
  ),
  'tasks/vs_code/33333333-3333-4333-8333-333333333333.json': task(
    '33333333-3333-4333-8333-333333333333',
    CODE,
    { func: 'infeasible' },
    ['vscode'],
  ),
  'osworld.dart-run.json': JSON.stringify({
    name: 'osworld',
    seed: 3,
    tasks: { suite: 'folder', dir: 'tasks' },
    desktops: { count: 2, provider: 'local' },
    policy: { replicas: 1 },
    rollout: { maxSteps: 3 },
    curation: { dynamicRollouts: { max: 2 } },
    trainer: { batchGroups: 1 },
    warmStart: { demonstrations: 0 },
    evaluation: { episodes: 2, everyMinutes: 0 },
    budget: { minutes: 10, rollouts: 8 },
  } satisfies RunFile),
};

describe.skipIf(missing !== undefined)("VS Code, current, OSWorld's task files", () => {
  let c: Cockpit, given: Given;
  beforeAll(async () => {
    c = await Cockpit.start({ which: 'latest', files: FILES });
    given = new Given(c, 'osworld');
  });
  afterAll(async () => {
    await c?.stop();
  });
  const flow = flowIn(
    () => given,
    (name) => c.picture(name),
  );

  flow('a run on them is started from the palette, and its tasks have their words', async () => {
    await given.clearWorkbench();
    await c.ui.palette('DART Studio: Start Training');
    await c.ui.pick('osworld.dart-run.json');
    await given.sideBar('Tasks', 'Trajectories');
    await until(
      async () => (await c.ui.rows('Runs')).some((r) => r.startsWith('osworld, finished')),
      'the run has ended by its budget',
      300_000,
    );
    const tasks = await c.ui.rows('Tasks');
    expect(tasks.filter((r) => r.includes(NOTHING))).toHaveLength(1);
    expect(tasks.filter((r) => r.includes(NEVER))).toHaveLength(1);
    // No image of ours has VS Code: such a task is left out, and not failed.
    expect(tasks.filter((r) => r.includes(CODE))).toEqual([]);
    const page = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    expect(await page.evaluate<string>("document.querySelector('.banners')?.textContent ?? ''")).toBe('');
    await c.picture('osworld-run');
  });

  flow('a rollout says what judged it, and how', async () => {
    await given.runtime();
    await given.sideBar('Trajectories');
    await c.ui.row('Trajectories', NOTHING).click();
    const page = await c.ui.webview('inspector', { timeoutMs: 60_000 });
    await page.locator('.ds-report summary').click();
    await until(
      async () => {
        const text = await page.evaluate<string>("document.querySelector('.ds-report')?.textContent ?? ''");
        return text.includes('exact_match: command cat /home/user/there');
      },
      'the report names the evaluator and what it asked',
      30_000,
    );
    await c.picture('osworld-report');
  });
});
