import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { RunFile } from '../../runtime/config/index.js';
import { whyNoLocalDesktops } from '../helpers/cluster/desktops.js';
import { servedPolicy } from '../helpers/engine/servedPolicy.js';
import { ReferenceServer } from '../helpers/engine/server.js';
import { eventFiles, scalarsOfFile, type ReadScalar } from '../helpers/run/eventFile.js';
import { Cockpit, tinyRun } from '../helpers/workbench/cockpit.js';
import { flowIn, Given } from '../helpers/workbench/given.js';
import type { Frame, Locator } from '../helpers/workbench/playwright.js';
import { whyNoWorkbench } from '../helpers/workbench/rig.js';
import { writeTrainedRun } from '../helpers/workbench/runFolders.js';
import { tryServedModel, tryWithOwnWords } from '../helpers/workbench/tryFlow.js';
import { came, until } from '../helpers/workbench/workbench.js';
import { RunsWindow } from './cockpitRuns/window.js';

/**
 * One short run from its first lesson to its end and beyond: what it tells meanwhile, to whom, and what is left of it
 * when its runtime is killed. Each flow goes on where the one before it left the run.
 */
const missing = whyNoWorkbench('latest') ?? (await whyNoLocalDesktops());
if (missing) console.warn(`skipped: a live run in VS Code (${missing})`);

const budget = { minutes: 20, rollouts: 72 };
const tiny = JSON.parse(tinyRun('local')) as RunFile;
/**
 * As `tinyRun`, with a few reading lessons; it ends by its rollouts. Whatever an evaluation says is its target, any disk
 * is too small for it, and three updates are enough for the bound of its entropy: each group is trained.
 */
const liveRun = JSON.stringify({
  ...tiny,
  name: 'live',
  budget,
  warmStart: { demonstrations: 2, steps: 10, reading: { screens: 12, steps: 6 } },
  curation: { ...tiny.curation, groupFilter: { enabled: false } },
  watch: { target: 0, diskBelowGb: 1e6, entropyBelow: 100 },
  store: { tensorboard: { enabled: true } },
} satisfies RunFile);
/** Waits in the queue while the other one trains; its first evaluation ends it, whatever that says. */
const nextRun = JSON.stringify({
  ...tiny,
  name: 'next',
  budget: { minutes: 5, rollouts: 4 },
  warmStart: { demonstrations: 1, steps: 1 },
  evaluation: { episodes: 1, everyMinutes: 0 },
  watch: { target: 0, stop: ['target'] },
} satisfies RunFile);

/** A model that a server trains and acts with; a success from the pool joins groups that failed, so there is always a lesson. */
const vlmRun = (s: ReferenceServer): string =>
  JSON.stringify({
    name: 'vlm',
    seed: 3,
    tasks: { families: ['press-button', 'term-touch'] },
    desktops: { count: 2, provider: 'local' },
    ...servedPolicy(s),
    rollout: { maxSteps: 3 },
    curation: { dynamicRollouts: { max: 2 }, pool: { reuseCap: 0 } },
    warmStart: { demonstrations: 2, steps: 4, lr: 0.02 },
    evaluation: { episodes: 0, everyMinutes: 0 },
  } satisfies RunFile);

interface Heard {
  readonly name: string;
  readonly kind: string;
  readonly message: string;
}

describe.skipIf(missing !== undefined)('VS Code, current, a live run', () => {
  let c: Cockpit,
    given: Given,
    outside: string,
    hooks: Server,
    metricsPort: number,
    served: Server,
    engine: ReferenceServer;
  const posted: { readonly path: string; readonly alert: Heard }[] = [];
  /** What the command that the machine's settings name has read. */
  const told = (): readonly Heard[] =>
    existsSync(join(outside, 'machine'))
      ? readFileSync(join(outside, 'machine'), 'utf8')
          .split('\n')
          .filter((l) => l !== '')
          .map((l) => JSON.parse(l) as Heard)
      : [];
  beforeAll(async () => {
    outside = mkdtempSync(join(tmpdir(), 'dart-alerts-'));
    for (const who of ['machine', 'workspace']) {
      const program = join(outside, `${who}.sh`);
      writeFileSync(program, `#!/bin/sh\nbody=$(cat)\nprintf '%s\\n' "$body" >> '${join(outside, who)}'\n`);
      chmodSync(program, 0o755);
    }
    hooks = createServer((req, res) => {
      let text = '';
      req.on('data', (d: Buffer) => (text += d.toString()));
      req.on('end', () => {
        posted.push({ path: req.url ?? '', alert: JSON.parse(text) as Heard });
        res.end();
      });
    });
    const port = await listen(hooks),
      free = createServer();
    metricsPort = await listen(free);
    await new Promise((done) => free.close(done));
    served = createServer((req, res) => {
      req.resume();
      const message = { role: 'assistant', content: "Action: click(start_box='(200,200)')" };
      req.on('end', () => res.end(JSON.stringify({ choices: [{ message, finish_reason: 'stop' }] })));
    });
    const servedPort = await listen(served);
    engine = await ReferenceServer.start({
      policy: { words: ["Action: click(start_box='(500,500)')", 'Action: wait()', "Action: finished(content='')"] },
    });
    c = await Cockpit.start({
      which: 'latest',
      settings: {
        'dartStudio.alerts.command': join(outside, 'machine.sh'),
        'dartStudio.alerts.webhook': `http://127.0.0.1:${port}/machine`,
        'dartStudio.metrics.port': metricsPort,
      },
      files: {
        'live.dart-run.json': liveRun,
        'next.dart-run.json': nextRun,
        'vlm.dart-run.json': vlmRun(engine),
        'served.dart-run.json': JSON.stringify({
          name: 'served',
          tasks: tiny.tasks,
          policy: { kind: 'openai', openai: { baseUrls: [`http://127.0.0.1:${servedPort}/v1`], model: 'clicker' } },
        } satisfies RunFile),
        '.vscode/settings.json': JSON.stringify({
          'dartStudio.alerts.command': join(outside, 'workspace.sh'),
          'dartStudio.alerts.webhook': `http://127.0.0.1:${port}/workspace`,
        }),
      },
      prepare: (folder) =>
        writeTrainedRun(join(folder, 'runs', 'before-3'), {
          name: 'before',
          seed: 3,
          lr: 7e-4,
          begin: Date.UTC(2026, 10, 16, 9),
        }),
    });
    given = new Given(c, 'live');
  });
  afterAll(async () => {
    await c?.stop();
    engine?.close();
    served?.closeAllConnections();
    await new Promise((done) => (served ? served.close(done) : done(undefined)));
    await new Promise((done) => (hooks ? hooks.close(done) : done(undefined)));
    if (outside) rmSync(outside, { recursive: true, force: true });
  });
  const flow = flowIn(
    () => given,
    (name) => c.picture(name),
  );
  const textOf = (f: Frame, selector: string): Promise<string> =>
    f.evaluate<string>(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? ''`);
  /** Worked and allowed time of the header, in seconds. */
  const times = async (page: Frame): Promise<readonly [number, number]> => {
    const m = /(\d+):(\d\d) of (\d+):(\d\d)/.exec(await textOf(page, '.top-facts')) ?? [];
    return [60 * Number(m[1]) + Number(m[2]), 60 * Number(m[3]) + Number(m[4])];
  };
  const step = (page: Frame): Promise<string> => textOf(page, '.run-step[aria-current=step]');
  /** Trajectories that the view lists, in view or not: "20 of 34". */
  const ended = async (): Promise<number> =>
    Number(/of (\d+)/.exec(await c.ui.section('Trajectories').locator('.pane-header').innerText())?.[1] ?? 0);
  /** Of the row of the run, while that says that it runs. */
  const rolloutsOfRow = async (): Promise<number> => {
    const row = (await c.ui.rows('Runs')).find((r) => r.startsWith('live, running'));
    return Number(/.*\b(\d+) rollouts?\b/.exec(row ?? '')?.[1] ?? NaN);
  };
  /** What page, toasts and row say until something else has been said. */
  const sayings = async (page: Frame, end: () => Promise<unknown>): Promise<readonly string[]> => {
    const all = new Set<string>(),
      labels = await c.ui.collectRows('Runs');
    let over = false;
    const ends = end().finally(() => (over = true));
    while (!over) {
      const [banners, toasts] = await Promise.all([textOf(page, '.banners').catch(() => ''), c.ui.notificationTexts()]);
      for (const x of [banners, ...toasts]) all.add(x);
    }
    await ends;
    for (const x of await c.ui.notificationTexts()) all.add(x);
    for (const x of await labels()) all.add(`row ${x}`);
    return [...all];
  };
  const metrics = (token: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${metricsPort}/metrics`, { headers: { authorization: `Bearer ${token}` } });

  flow('it is never taken for one that was only evaluated, and says where it is from the first lesson on', async () => {
    await c.ui.palette('DART Studio: Start Training');
    await c.ui.pick('live.dart-run.json');
    const page = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await page.locator('.state', { hasText: 'Running' }).waitFor({ timeout: 60_000 });
    await until(
      async () => {
        const now = (await step(page)).split(',')[0]!.trim();
        expect(await textOf(page, '.banners')).toBe('');
        expect(await page.locator('#throughput').isVisible(), now).toBe(true);
        return now === 'RL';
      },
      'it comes to reinforcement learning',
      300_000,
    );
    // How long it will take is an estimate once rollouts end, and its end a time of day.
    await until(
      async () => /\d left, until about \d/.test(await textOf(page, '.top-facts')),
      'the header tells when it will be over',
      120_000,
    );
    // A step that is only past says no time: it took place if it has one. The last one's end is read with the next phase.
    await expect
      .poll(() =>
        page
          .locator('.run-step.done > span')
          .evaluateAll((all) => all.filter((x) => /It took/.test(x.getAttribute('aria-description') ?? '')).length),
      )
      .toBe(3);
    await c.ui.told(/live: An evaluation reached \d+ %; the target is 0 %/);
    await c.ui.told(/live: .* GB are left on the disk/);
    await c.picture('target');
    for (const kind of ['target', 'disk']) {
      await until(() => told().some((a) => a.kind === kind), `the command of the machine was called: ${kind}`);
      await until(() => posted.some((p) => p.alert.kind === kind), `and its webhook: ${kind}`);
    }
  });

  flow('Prometheus reads its figures with the token, and nobody without', async () => {
    await given.training();
    const token = readFileSync(join(c.storage, 'metrics-token'), 'utf8').trim();
    expect((await metrics('0'.repeat(64))).status).toBe(401);
    const text = await (await metrics(token)).text();
    expect(text).toMatch(/^dart_run_state\{.*state="running".*\} 1$/m);
    expect(text).toMatch(/^dart_run_elapsed_seconds\{.*\} [\d.]+$/m);
    expect(text.trimEnd().endsWith('# EOF')).toBe(true);
  });

  flow('TensorBoard can follow it: its event file grows with every update, whole at any moment', async () => {
    await given.training();
    const dir = join(given.runFolder!, 'tensorboard'),
      read = (): { readonly bytes: number; readonly scalars: readonly ReadScalar[] } => {
        const files = eventFiles(dir);
        return {
          bytes: files.reduce((n, f) => n + f.length, 0),
          scalars: files.flatMap(scalarsOfFile),
        };
      },
      of = (x: readonly ReadScalar[], tag: string): readonly number[] =>
        x.filter((s) => s.tag === tag).map((s) => s.step);
    await until(() => of(read().scalars, 'update/loss').length > 0, 'an update is there', 120_000);
    const before = read();
    await until(
      () => of(read().scalars, 'update/loss').length > of(before.scalars, 'update/loss').length,
      'and the next one',
      120_000,
    );
    const after = read();
    expect(after.bytes).toBeGreaterThan(before.bytes);
    expect(after.scalars.slice(0, before.scalars.length)).toEqual(before.scalars);
    const steps = of(after.scalars, 'update/loss');
    expect(steps.every((s, i) => i === 0 || s > steps[i - 1]!)).toBe(true);
    expect(of(after.scalars, 'evaluation/success')[0]).toBe(0);
  });

  flow('while it trains, a run that is over offers neither Stop nor Pause, and it does', async () => {
    await given.training();
    const pageOf = async (run: string, state: string): Promise<Frame> => {
        await c.w.host.command('dartStudio.openDashboard', run);
        const page = await c.ui.webview('dashboard', { timeoutMs: 60_000, text: new RegExp(state) });
        await page.locator('.state', { hasText: state }).waitFor({ timeout: 60_000 });
        return page;
      },
      steersOf = (page: Frame): Locator => page.getByRole('button', { name: /^(Stop|Pause)/ }),
      menuOf = async (row: string): Promise<readonly string[]> => {
        const items = c.w.page.locator('.monaco-menu .action-label');
        await until(
          async () =>
            (await came(c.ui.row('Runs', row).click({ button: 'right', timeout: 5000 }))) &&
            came(items.first().waitFor({ timeout: 5000 })),
          `the menu of ${row} is open`,
        );
        const words = await items.allInnerTexts();
        await c.ui.closeMenu();
        return words;
      },
      steers = (words: readonly string[]): number => words.filter((w) => /^\W*(Stop|Pause)\b/.test(w)).length;
    const live = await pageOf(given.runFolder!, 'Running');
    await until(async () => (await steersOf(live).count()) === 2, 'its page offers both');
    const over = await pageOf(join(c.w.folder, 'runs', 'before-3'), 'Finished');
    await over.getByRole('button', { name: /^Export as HTML/ }).waitFor();
    expect(await steersOf(over).count()).toBe(0);
    expect(steers(await menuOf('live'))).toBe(2);
    expect(steers(await menuOf('before'))).toBe(0);
  });

  flow(
    'its runtime is killed: time used stays used, every view follows, and no reading screen is drawn again',
    async () => {
      await given.training();
      await given.sideBar('Trajectories', 'Tasks', 'Desktops');
      const page = await given.dashboard(),
        { pid } = c.daemon!,
        screens = join(given.runFolder!, 'reading.screens'),
        drawn = statSync(screens).mtimeMs;
      await page.locator('.state', { hasText: 'Running' }).waitFor();
      await until(
        async () => (await times(page))[0] > 3 && (await rolloutsOfRow()) > 0,
        'its page says how long it has trained, its row how many rollouts began',
      );
      const [before] = await times(page),
        begun = await rolloutsOfRow();
      process.kill(pid, 'SIGKILL');
      const said = await sayings(page, async () => c.ui.told(/Training run live: It was interrupted/, 60_000));
      // Whatever is said meanwhile is not that it goes on, nor that somebody has to start it; its row is told.
      expect(said.filter((x) => /goes on meanwhile|Start the runtime/.test(x))).toEqual([]);
      expect(said.filter((x) => /being started again|has been resumed|can be resumed/.test(x))).not.toEqual([]);
      expect(said.filter((x) => /^row live, interrupted/.test(x))).not.toEqual([]);
      await page.locator('.state', { hasText: 'Running' }).waitFor({ timeout: 60_000 });
      const tasks = (await c.ui.rows('Tasks')).join(),
        count = await ended();
      const [after, whole] = await times(page);
      expect(after).toBeGreaterThanOrEqual(before - 3);
      expect(whole).toBe(60 * budget.minutes);
      await until(async () => (await rolloutsOfRow()) > begun, 'its row counts the rollouts that began since', 120_000);
      await until(
        async () => (await c.ui.rows('Desktops')).some((r) => /reading the screen|deciding|acting|settling/.test(r)),
        'its desktops are at work',
        120_000,
      );
      await until(async () => (await ended()) > count, 'rollouts of the resumed run are listed', 120_000);
      await until(async () => (await c.ui.rows('Tasks')).join() !== tasks, 'and the tasks change with them', 120_000);
      expect(statSync(screens).mtimeMs).toBe(drawn);
    },
  );

  flow(
    'it ends by its budget: a notification, the command and the webhook of the machine, none of the workspace',
    async () => {
      await given.runtime();
      await c.ui.told(/Training run live is finished: \d+ rollouts/, 300_000);
      await c.picture('finished-run');
      await until(() => told().some((a) => a.kind === 'finished'), 'the command was called');
      await until(() => posted.some((p) => p.alert.kind === 'finished'), 'the webhook was called');
      expect(told().filter((a) => a.kind === 'finished')).toEqual([
        expect.objectContaining({ name: 'live', message: expect.stringMatching(/^finished, \d+ rollouts/) as string }),
      ]);
      const kinds = ['disk', 'entropy', 'finished', 'target'];
      expect([...new Set(told().map((a) => a.kind))].sort()).toEqual(kinds);
      expect([...new Set(posted.map((p) => p.alert.kind))].sort()).toEqual(kinds);
      expect(new Set(posted.map((p) => p.path))).toEqual(new Set(['/machine']));
      expect(existsSync(join(outside, 'workspace'))).toBe(false);
    },
  );

  flow('what it has learned is tried: an own instruction, a checkpoint of several, what it considered', async () => {
    await given.trained();
    await tryWithOwnWords(c, 'live', 'Press the button Continue');
    await c.closeEditors();
  });

  flow('ten more minutes are ten more, of a run that was finished, and every view follows', async () => {
    await given.runtime();
    await given.sideBar('Trajectories');
    const page = await given.dashboard();
    await page.locator('.state', { hasText: 'Finished' }).waitFor({ timeout: 60_000 });
    const ran = async (): Promise<RegExpExecArray | null> => /ran (\d+):(\d\d)/.exec(await textOf(page, '.top-facts'));
    await until(async () => (await ran()) !== null, 'it says how long it ran');
    const worked = (await ran())!,
      used = 60 * Number(worked[1]) + Number(worked[2]),
      evaluation = await page.locator('.tile').first().getAttribute('aria-label'),
      count = await ended();
    await page.getByRole('button', { name: 'Resume Run…' }).click();
    await c.ui.pick('10 more minutes');
    await page.locator('.state', { hasText: 'Running' }).waitFor({ timeout: 60_000 });
    await until(async () => Number.isFinite((await times(page))[0]), 'the header tells its time');
    const [, whole] = await times(page);
    expect(Math.abs(whole - used - 600)).toBeLessThanOrEqual(2);
    await until(async () => (await ended()) > count, 'new rollouts are listed', 120_000);
    // What it had come to is not overwritten.
    expect(await page.locator('.tile').first().getAttribute('aria-label')).toBe(evaluation);
  });

  flow('a model behind an endpoint, which a run file names, is tried like a checkpoint', async () => {
    await given.runtime();
    await tryServedModel(c, 'clicker');
    await c.closeEditors();
  });

  flow('a queue that is held waits when the run before it is over; released, it goes on without a window', async () => {
    await given.runtime();
    const on = new RunsWindow(c, given),
      rows = async (): Promise<readonly string[]> =>
        (await c.ui.rows('Runs')).filter((r) => r.startsWith('next')).map((r) => r.replace(/\s+/g, ' ')),
      begun = (): readonly string[] => c.runs.filter((r) => basename(r).includes('-next-'));
    await c.ui.palette('DART Studio: Turn Queue On or Off');
    for (const seed of [5, 6]) {
      await on.enqueue('next.dart-run.json', `${seed}`);
      await until(async () => (await rows()).filter((r) => /waiting/.test(r)).length === seed - 4, 'it waits');
    }
    await given.noTraining();
    expect(await rows()).toEqual([expect.stringMatching(/waiting/), expect.stringMatching(/waiting/)]);
    expect(begun()).toEqual([]);
    const queue = c.ui
      .section('Runs')
      .locator('.monaco-list-row', { hasText: /^Queue/ })
      .first();
    await queue.hover();
    await queue.locator('.actions a[aria-label^="Turn Queue On or Off"]').click();
    await until(async () => (await rows()).some((r) => /^next, running/.test(r)), 'the first has begun', 60_000);
    await c.picture('queue-released');
    const over = (): readonly Heard[] => told().filter((a) => a.name === 'next' && a.kind === 'finished');
    await c.w.windowless(() => until(() => over().length === 2, 'both have come and gone', 300_000));
    // As its run file asks, before it had a single rollout.
    expect(over().map((a) => a.message)).toEqual([
      expect.stringMatching(/^finished, 0 rollouts/),
      expect.stringMatching(/^finished, 0 rollouts/),
    ]);
    expect(begun()).toHaveLength(2);
    await given.runtime();
    await until(
      async () => (await rows()).filter((r) => /\bfinished\b/.test(r)).length === 2,
      'the window that comes back lists both',
      60_000,
    );
  });

  flow('a vision-language model that a server trains: started, watched token by token, stopped', async () => {
    await given.noTraining();
    await c.ui.palette('DART Studio: Start Training');
    await c.ui.pick('vlm.dart-run.json');
    const page = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
    await page.locator('.state', { hasText: 'Running' }).waitFor({ timeout: 60_000 });
    // The lesson makes version 1; what is trained after it was published, and acts.
    await until(
      async () => Number(/\bv(\d+)/.exec(await textOf(page, '.top-facts'))?.[1] ?? 0) >= 2,
      'an update has made a version',
      180_000,
    );
    await c.picture('vlm-run');
    const vlm = new Given(c, 'vlm');
    await c.w.host.command('dartStudio.selectRun', vlm.runFolder);
    const inspector = await vlm.inspector();
    expect(await inspector.locator('.ds-tokens').first().innerText()).toContain('Action:');
    expect(await inspector.locator('.ds-detail').innerText()).toMatch(/tokens, \d images?/);
    await c.picture('vlm-inspector');
    const watched = await vlm.dashboard();
    await c.ui.palette('DART Studio: Stop Training');
    await watched.locator('.state', { hasText: 'Stopped' }).waitFor({ timeout: 180_000 });
    await c.closeEditors();
  });
});

const listen = (server: Server): Promise<number> =>
  new Promise((done) => {
    server.listen(0, '127.0.0.1', () => done((server.address() as AddressInfo).port));
  });
