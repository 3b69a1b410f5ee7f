import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { id, isTerminal, type FamilyId } from '../../runtime/domain/index.js';
import type { RunFile } from '../../runtime/config/index.js';
import type { ControlState, DesktopRow, PoolView, TrajectoryView } from '../../runtime/protocol/types.js';
import { createStudioService, type StudioService } from '../../runtime/service/index.js';
import { deskSuite, trainSeed } from '../../runtime/tasks/suites/desk/index.js';
import { whyNoLocalDesktops } from '../helpers/cluster/desktops.js';
import { whichTerminal } from '../helpers/workbench/hand.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { bundle } from '../helpers/pages/page.js';
import { Desk } from '../helpers/pages/live/desk.js';
import { ensureBundle } from '../helpers/run/cli.js';

const shots = process.env['DART_STUDIO_SHOTS'];
const found = await openBrowser(),
  missing = 'why' in found ? found.why : await whyNoLocalDesktops();
if (missing) console.warn(`a demonstration in the live page on a real desktop skipped: ${missing}`);

/**
 * One task that a rollout has 60 turns for: what is stepped through here does not run out of them, whenever it is taken
 * over.
 */
async function stepped(dir: string): Promise<string> {
  const t = deskSuite().task(id<FamilyId>('desk/press-button'), trainSeed(0));
  await mkdir(dir, { recursive: true });
  await writeFile(
    join(dir, 'press-button.json'),
    JSON.stringify({
      id: 'press-button',
      instruction: t.instruction,
      config: t.config,
      evaluator: t.evaluator,
      related_apps: t.relatedApps,
      max_steps: 60,
    }),
  );
  return JSON.stringify({
    name: 'steered',
    seed: 3,
    tasks: { suite: 'folder', dir },
    desktops: { count: 1, provider: 'local' },
    policy: { replicas: 1 },
    rollout: { maxSteps: 60 },
    curation: { dynamicLength: { enabled: false } },
    warmStart: { demonstrations: 0 },
    evaluation: { episodes: 1, everyMinutes: 0 },
    budget: { rollouts: 10_000 },
  } satisfies RunFile);
}

/** Page, service and desktop are real; between them is this process instead of the extension and the WebSocket. */
describe.skipIf(missing)('a demonstration in the live page, on a real desktop', () => {
  const { browser } = found as RealBrowser,
    stop = new AbortController();
  let dir: string, service: StudioService, d: Desk | undefined;
  const call = async <R>(method: string, params: unknown): Promise<R> =>
    (await service.handlers.get(method)!(params, {
      signal: new AbortController().signal,
      client: stop.signal,
      notify: () => undefined,
    })) as R;
  const told = (e: unknown): never => {
    const {
      kind = 'internal',
      message = String(e),
      remedy = '',
    } = e as { kind?: string; message?: string; remedy?: string };
    throw { kind, message, remedy };
  };

  beforeAll(async () => {
    ensureBundle();
    dir = await mkdtemp(join(tmpdir(), 'live-real-'));
    service = createStudioService({
      entry: { file: join(process.cwd(), 'dist/runtime.js') },
      cacheDir: join(dir, 'cache'),
      log: () => undefined,
    });
  });
  afterAll(async () => {
    stop.abort();
    await d?.page.close();
    await service?.close({ now: true });
    await browser.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('is recorded by pointer and keys as the policy would have acted, verified, and in the pool', async () => {
    const state = await call<ControlState>('control/record', {
        base: dir,
        family: 'desk/term-which',
        provider: 'local',
      }),
      { click, line } = whichTerminal(state.seed);
    d = await Desk.open(browser, await bundle('live'), {
      state,
      input: { kind: 'live', desktop: state.desktop, session: state.session },
      answer: (method, params) => call(method, params).catch(told),
    });
    const page = d.page.page,
      desk = d;
    service.onBroadcast((b) => {
      if (b.method === 'control/changed') {
        desk.state = b.params as ControlState;
        void desk.page.post({ type: 'control', state: desk.state }).catch(() => undefined);
      }
    });
    const { width, height, patches } = await service.watch(state.desktop, { maxFps: 15 }, stop.signal);
    const pictures = (async () => {
      for await (const p of patches)
        await desk.picture(Buffer.from(p.png).toString('base64'), p.width, p.height, p.x, p.y, { width, height });
    })();
    pictures.catch(() => undefined);
    await d.page.until(
      "document.querySelector('.live-now h2')?.textContent === 'You are in control' && document.querySelector('.live-canvas').width > 0 && !document.querySelector('.live-box').hidden",
    );

    const at = await d.at(click.x + 90, click.y + 110);
    await page.mouse.move(at.x, at.y, { steps: 4 });
    await page.mouse.down();
    await page.mouse.up();
    await d.page.until(
      "[...document.querySelectorAll('.live-steps li')].some((x) => x.textContent.includes('click at'))",
    );
    expect(d.state!.steps[0]).toMatchObject({
      origin: 'human',
      actions: [{ type: 'click', at: { x: click.x + 90, y: click.y + 110 } }],
    });
    await page.keyboard.type(line);
    await page.keyboard.press('Enter');
    await d.page.until(
      `[...document.querySelectorAll('.live-steps li')].some((x) => x.textContent.includes(${JSON.stringify(line.slice(0, 20))}))`,
    );
    if (shots) await page.screenshot({ path: join(shots, 'live-real-record.png') });
    await page.keyboard.press('Control+Alt');
    await d.page.until("!document.querySelector('.live-box').classList.contains('captured')");
    await page.keyboard.press('f');
    await d.page.until("document.querySelector('.live-now h2').textContent === 'Success'");
    await expect.poll(() => d!.state?.kept).toMatchObject({ pooled: true });

    if (shots) await page.screenshot({ path: join(shots, 'live-real-success.png') });
    // The chord that gave the keyboard back is no step, and the runtime has what the page showed.
    const { kept, run, steps } = d.state!,
      t = await call<TrajectoryView>('trajectory/get', { run, rollout: kept!.rollout });
    expect(t.steps.map((s) => [s.origin, s.actions[0]!.type])).toEqual(steps.map((s) => ['human', s.actions[0]!.type]));
    expect(t.steps.flatMap((s) => s.actions.map((a) => a.type))).toEqual(['click', 'type', 'finished']);
    expect((await call<PoolView>('pool/list', { run })).families.flatMap((f) => f.entries)).toMatchObject([
      { rollout: kept!.rollout, source: 'human', enabled: true },
    ]);
    expect(d.page.faults).toEqual([]);
  });

  it('a rollout is taken over, stepped through with consent and without, and handed back', async () => {
    await d?.page.close();
    const { run } = await call<{ run: string }>('run/start', { text: await stepped(join(dir, 'tasks')), base: dir });
    // Not the desktop of the recording: it goes.
    const desktop = await new Promise<string>((there) =>
      service.onBroadcast((b) => {
        if (b.method !== 'desktop/changed') return;
        const { desktop: which, row } = b.params as { desktop: string; row?: DesktopRow };
        if (row?.run === run && row.rollout !== undefined && row.state !== 'starting') there(which);
      }),
    );
    d = await Desk.open(browser, await bundle('live'), {
      input: { kind: 'live', desktop },
      answer: (method, params) => call(method, params).catch(told),
    });
    const desk = d;
    service.onBroadcast((b) => {
      if (b.method === 'control/changed') {
        desk.state = b.params as ControlState;
        void desk.page.post({ type: 'control', state: desk.state }).catch(() => undefined);
      }
      if (b.method === 'desktop/changed')
        void desk.page
          .post({ type: 'desktop', ...(b.params as { desktop: string; row?: DesktopRow }) })
          .catch(() => undefined);
    });
    const { width, height, patches } = await service.watch(desktop, { maxFps: 15 }, stop.signal);
    void (async () => {
      for await (const p of patches)
        await desk.picture(Buffer.from(p.png).toString('base64'), p.width, p.height, p.x, p.y, { width, height });
    })().catch(() => undefined);
    // Asked for once: the evaluation before it is left alone, and the first rollout of the training is taken.
    await desk.page.until(
      "/Reset|Setup|Observe|Decide|Act|Settle|Verify|Idle/.test(document.querySelector('.live-state').textContent)",
    );
    await desk.page.page.keyboard.press('s');
    await expect.poll(() => desk.state?.proposal?.id ?? 0, { timeout: 120_000 }).toBeGreaterThan(0);
    await desk.page.until("document.querySelector('.live-proposal')?.dataset.state === 'open'");
    const at = await desk.at(5, 395),
      instead = async (): Promise<void> => {
        await desk.page.page.mouse.move(at.x, at.y);
        await desk.page.page.mouse.down();
        await desk.page.page.mouse.up();
      };
    // What would end the rollout at once is not consented to.
    for (let p = desk.state!.proposal!; isTerminal(p.actions[0]!); p = desk.state!.proposal!) {
      await instead();
      await expect.poll(() => desk.state!.proposal?.id ?? 0, { timeout: 30_000 }).toBeGreaterThan(p.id);
    }
    await desk.page.until("document.querySelector('.live-proposal').dataset.state === 'open'");
    const first = desk.state!.proposal!.id,
      before = desk.state!.steps.length;
    if (shots) await desk.page.page.screenshot({ path: join(shots, 'live-real-step.png') });
    // Not acceptable before it was seen; the next one is another question.
    await expect
      .poll(
        async () => {
          if (desk.state!.proposal?.id === first) await desk.page.page.keyboard.press('Enter');
          return desk.asked('control/accept').length;
        },
        { interval: 100 },
      )
      .toBeGreaterThan(0);
    await expect.poll(() => desk.state!.steps.length).toBeGreaterThan(before);
    expect(desk.state!.steps.at(-1)!.origin).toBe('policy');
    expect(desk.asked('control/accept')[0]).toMatchObject({ proposal: first });
    await expect.poll(() => desk.state!.proposal?.id ?? 0).toBeGreaterThan(first);
    await desk.page.until("document.querySelector('.live-proposal').dataset.state === 'open'");
    await instead();
    await expect
      .poll(() => desk.state!.steps.at(-1))
      .toMatchObject({ origin: 'human', actions: [{ type: 'click', at: { x: 5, y: 395 } }] });
    await desk.page.page.keyboard.press('Control+Alt');
    await desk.page.page.keyboard.press('h');
    await expect.poll(() => desk.state!.mode).toMatch(/policy|verifying|ended/);
    await desk.page.until(
      "/policy acts|Verifying|Success|Not solved/.test(document.querySelector('.live-now h2').textContent)",
    );
    await call('run/stop', { run });
    expect(desk.page.faults).toEqual([]);
  });
});
