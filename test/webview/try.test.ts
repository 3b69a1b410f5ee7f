import { readFile, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { tmpdir } from 'node:os';
import type { ControlState, StepView, TrySteps } from '../../runtime/protocol/types.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { bundle, themes, type Bundle, type OpenOptions } from '../helpers/pages/page.js';
import { bare, pseudo } from '../helpers/pages/pseudo.js';
import { FrameFolder, height, width } from '../helpers/pages/screens.js';
import { Desk } from '../helpers/pages/live/desk.js';
import { report } from '../helpers/pages/live/samples.js';
import {
  listed,
  tried,
  tryImages,
  tryInput,
  tryPolicies,
  tryRun,
  tryStep,
  tryTasks,
} from '../helpers/pages/trySamples.js';

const found = await openBrowser();
if ('why' in found) console.warn(`tests of trying a policy skipped: ${found.why}`);
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('try policy page', () => {
  const { browser, axe } = found as RealBrowser;
  let b: Bundle, dir: string, hash: string, png: string, open: Desk | undefined, steps: StepView[];
  let proposal: TrySteps['proposal'];
  const state = (o: Partial<ControlState> = {}, trial: Parameters<typeof tried>[1] = {}): ControlState =>
    tried({ steps: listed(steps), ...o }, { frames: dir, ...trial });
  const show = async (o: Partial<OpenOptions> = {}, on: (d: Desk) => void = () => undefined): Promise<Desk> => {
    open = await Desk.open(browser, b, {
      input: tryInput,
      folders: [dir],
      width: 1180,
      height: 860,
      ...o,
      prepare: (d) => {
        d.on['try/policies'] = () => ({ policies: tryPolicies });
        d.on['desktop/images'] = () => ({ images: tryImages });
        d.on['run/get'] = () => tryRun;
        d.on['task/list'] = () => ({ tasks: tryTasks });
        d.on['try/start'] = () => (d.state = state());
        d.on['try/stop'] = () => (d.state = state({ mode: 'ended' }, { stopped: true }));
        d.on['try/steps'] = (p) => ({ steps: steps.slice(Number(p['from'])), ...(proposal ? { proposal } : {}) });
        on(d);
      },
    });
    return open;
  };
  const word = (d: Desk, w: string): Promise<void> =>
    d.page.until(`document.querySelector('.live-now h2').textContent === ${JSON.stringify(w)}`);
  const press = (d: Desk, name: string | RegExp): Promise<void> => d.page.page.getByRole('button', { name }).click();
  /** A session under way, with its picture. */
  const acting = async (o: Partial<ControlState> = {}, opened: Partial<OpenOptions> = {}): Promise<Desk> => {
    const first = state(o),
      d = await show({ ...opened, input: { ...tryInput, desktop: first.desktop, session: first.session } }, (x) => {
        x.state = first;
      });
    await d.picture(png, width, height);
    if (steps.length > 0) await d.page.until(`document.querySelectorAll('.try-steps li').length === ${steps.length}`);
    return d;
  };
  beforeAll(async () => {
    b = await bundle('try');
    dir = await mkdtemp(join(tmpdir(), 'try-'));
    ({ hash } = await new FrameFolder(dir).add('list'));
    png = (await readFile(join(dir, hash.slice(0, 2), `${hash}.png`))).toString('base64');
  });
  beforeAll(() => {
    steps = [];
  });
  afterEach(async () => {
    const faults = open?.page.faults ?? [];
    await open?.page.close();
    open = undefined;
    steps = [];
    proposal = undefined;
    expect(faults).toEqual([]);
  });
  afterAll(async () => {
    await browser.close();
    await rm(dir, { recursive: true, force: true });
  });

  describe.each(themes)('%s', (theme) => {
    it('has nothing that axe finds: before, asking, at the end', async () => {
      const shot = async (d: Desk, name: string): Promise<void> => {
          if (shots) await d.page.page.screenshot({ path: join(shots, `try-${theme}-${name}.png`) });
        },
        check = async (d: Desk, name: string): Promise<void> => {
          await shot(d, name);
          expect(await d.page.axe(axe)).toEqual([]);
        };
      // Its fields are there in the other states, too.
      if (theme === 'dark' || shots) {
        const idle = await show({ theme });
        await idle.page.until("document.querySelector('.try-field select').options.length === 2");
        await idle.page.until("document.querySelectorAll('.try-field select')[1].options.length === 5");
        await check(idle, 'idle');
        await idle.page.close();
      }
      steps = [0, 1, 2].map((i) => tryStep(i, hash));
      const d = await acting({}, { theme });
      if (shots) await shot(d, 'acting');
      proposal = { id: 5, step: tryStep(3, '') };
      await d.push(
        state({
          mode: 'step',
          left: 3,
          proposal: { id: 5, actions: proposal.step.actions, probability: 0.7, labels: ['click'] },
        }),
      );
      await word(d, 'The policy asks');
      if (theme === 'dark' || theme === 'light') await check(d, 'asking');
      else if (shots) await shot(d, 'asking');
      proposal = undefined;
      await d.push(
        state(
          { mode: 'ended', proposal: undefined, verdict: { outcome: 'failure', reward: 0, report: report(false) } },
          { verified: true },
        ),
      );
      await word(d, 'Not solved');
      await press(d, /^2 /);
      await check(d, 'ended');
      await d.push(
        state({
          mode: 'ended',
          verdict: {
            outcome: 'error',
            error: {
              kind: 'policy.remote',
              message: 'http://gpu:8000/v1 cannot be reached.',
              remedy: 'Check that the model server is running.',
            },
          },
        }),
      );
      await word(d, 'Ended with an error');
      await shot(d, 'fault');
    });
  });

  it('offers versions by what they came to, and asks for what is missing where it is missing', async () => {
    const d = await show(),
      { page } = d.page;
    await d.page.until("document.querySelectorAll('.try-field select')[1].options.length === 5");
    expect(await page.getByLabel('Version').locator('option').allInnerTexts()).toEqual([
      'Newest (v12)',
      'Best evaluated (v9, 80 % of 20 episodes)',
      'v12, 65 % of 20 episodes',
      'v9, 80 % of 20 episodes',
      'v4',
    ]);
    await press(d, 'Try');
    await d.page.until("document.activeElement === document.querySelector('.try-field.wide input')");
    await d.page.until("document.querySelector('.try-missing').innerText === 'Enter an instruction or choose a task.'");
    expect(d.asked('try/start')).toEqual([]);
    await page.getByLabel('Version').selectOption('best');
    await page.locator('select').nth(2).selectOption('web');
    await page.getByLabel('Choices').selectOption('sampled');
    await page.getByLabel('Task').selectOption('desk/press-button');
    await page.getByLabel('Seed').fill('x');
    await page.getByLabel('Instruction').fill('Press Cancel');
    await page.keyboard.press('Enter');
    await d.page.until("document.querySelector('.try-missing').textContent.startsWith('A seed')");
    await page.getByLabel('Seed').fill('2000017');
    await page.getByLabel('Instruction').press('Enter');
    await expect
      .poll(() => d.asked('try/start'))
      .toEqual([
        {
          policy: { run: '/work/runs/quick-s1', version: 9 },
          base: '/work/runs',
          mode: 'policy',
          image: 'web',
          family: 'desk/press-button',
          seed: 2000017,
          instruction: 'Press Cancel',
          sampled: true,
        },
      ]);
    await expect.poll(() => d.asked('control/attach')).toEqual([{ session: 'a1b2c3d4e5f6' }]);
    await word(d, 'The policy acts');
    // What was typed is there when the page is built again, and so is the session.
    expect(d.page.saved).toMatchObject({
      input: { kind: 'try', session: 'a1b2c3d4e5f6', desktop: 'local-7' },
      form: { version: 'best', instruction: 'Press Cancel' },
    });
    expect(await page.evaluate<boolean>("document.querySelector('.try-form select').disabled")).toBe(true);
  });

  it('a start goes on while the page is hidden, and the page that is back shows what it came to', async () => {
    let answer = (): void => undefined;
    const d = await show({}, (x) => {
      x.on['try/start'] = () =>
        new Promise((r) => {
          answer = () => r((x.state = state()));
        });
    });
    await d.page.until("document.querySelectorAll('.try-field select')[1].options.length === 5");
    await d.page.page.getByLabel('Instruction').fill('Press Cancel');
    await press(d, 'Try');
    const starting = "document.querySelector('.live-empty').textContent.includes('are being started')";
    await d.page.until(starting);
    await d.page.page.reload();
    await d.page.until(`document.querySelector('.live-empty') && ${starting}`);
    answer();
    await expect.poll(() => d.asked('control/attach')).toEqual([{ session: 'a1b2c3d4e5f6' }]);
    await word(d, 'The policy acts');
    expect(d.asked('try/start')).toHaveLength(1);
  });

  it('a model of a run file has no versions; a start is called off; a refusal says what to do', async () => {
    let answer: (() => void) | undefined;
    const d = await show({}, (x) => {
        x.on['try/start'] = () =>
          new Promise((_, refuse) => {
            answer = () => {
              refuse({ kind: 'desktop.image', message: 'The image web is not built.', remedy: 'Build it.' });
            };
          });
      }),
      { page } = d.page;
    await d.page.until("document.querySelector('.try-field select').options.length === 2");
    await page.locator('select').first().selectOption('/work/ui-tars.dart-run.json');
    await d.page.until("document.querySelectorAll('.try-field')[1].hidden");
    await page.getByLabel('Instruction').fill('Open the calculator');
    await press(d, 'Step Through');
    await d.page.until("document.querySelector('.live-empty').textContent.startsWith('The policy and a desktop')");
    expect(d.asked('try/start')).toMatchObject([{ policy: { file: '/work/ui-tars.dart-run.json' }, mode: 'step' }]);
    await press(d, 'Cancel');
    await expect.poll(() => d.page.cancelled.length).toBe(1);
    answer!();
    await d.page.until("!document.querySelector('.try-begin vscode-button').hidden");
    expect(await page.locator('.live-notice').isVisible()).toBe(false);
    await press(d, 'Try');
    await expect.poll(() => d.asked('try/start').length).toBe(2);
    answer!();
    await d.page.until(
      "document.querySelector('.live-notice .words')?.textContent === 'The image web is not built. Build it.'",
    );
    await press(d, 'Build Desktop Image');
    await expect.poll(() => d.page.actions).toEqual([{ action: 'command', command: 'buildDesktop' }]);
  });

  it('each step comes with its entropy; looking at one shows its screen, its choices and where it would have clicked', async () => {
    steps = [tryStep(0, hash)];
    const d = await acting(),
      { page } = d.page;
    steps = [0, 1].map((i) => tryStep(i, hash));
    await d.push(state());
    await d.page.until("document.querySelectorAll('.try-steps li').length === 2");
    // The one before it is read again: only now is known what it led to.
    expect(d.asked('try/steps').map((p) => p['from'])).toEqual([0, 0]);
    expect((await page.locator('.try-steps button').allInnerTexts()).map((x) => x.split('\n').at(-1))).toEqual([
      'H 0.15',
      'H 0.35',
    ]);
    // The newest, until one is chosen.
    await d.page.until("document.querySelector('.try-detail h3').textContent.startsWith('Step 2')");
    await d.page.until("document.querySelectorAll('.live-box .heat rect').length === 2");
    await page.locator('.try-steps button').first().focus();
    await page.keyboard.press('Enter');
    await d.page.until("document.querySelector('.try-detail h3').textContent.startsWith('Step 1')");
    expect(await page.locator('.ds-stage img').getAttribute('src')).toContain(hash);
    // Drawn once the picture is there.
    await d.page.until("document.querySelectorAll('.ds-stage .heat rect').length === 2");
    expect(await page.locator('.try-detail .ds-alternatives').count()).toBe(2);
    await page.locator('.ds-alternatives [tabindex]').first().hover();
    await d.page.until("document.querySelector('.ds-stage .highlight')");
    await page.keyboard.press('m');
    await d.page.until("document.querySelectorAll('.ds-stage .heat rect').length === 0");
    await page.keyboard.press('l');
    await d.page.until("document.querySelector('.ds-stage').hidden && !document.querySelector('.live-box').hidden");
  });

  it('pauses, asks before each step, is taken over by keyboard, goes on and stops', async () => {
    steps = [tryStep(0, hash)];
    const d = await acting(),
      { page } = d.page;
    await page.locator('.live-box').focus();
    await page.keyboard.press('t');
    await expect.poll(() => d.asked('control/mode')).toEqual([{ session: 'a1b2c3d4e5f6', mode: 'human' }]);
    await word(d, 'You are in control');
    await page.keyboard.press('k');
    await d.page.until("document.querySelector('.live-box').classList.contains('captured')");
    await page.keyboard.type('hi');
    await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'i'));
    await page.keyboard.press('Control+Alt');
    await d.page.until("!document.querySelector('.live-box').classList.contains('captured')");
    await page.keyboard.press('s');
    await word(d, 'The policy decides');
    proposal = { id: 3, step: tryStep(1, '') };
    await d.push(state({ mode: 'step', proposal: { id: 3, actions: proposal.step.actions, probability: 0.7 } }));
    await d.page.until("document.querySelector('.try-detail h3').textContent.startsWith('Proposed')");
    await d.page.until("document.querySelectorAll('.live-box .heat rect').length === 2");
    // An Enter that comes too soon accepts nothing.
    await expect
      .poll(async () => {
        await page.keyboard.press('Enter');
        return d.asked('control/accept');
      })
      .toEqual([{ session: 'a1b2c3d4e5f6', proposal: 3 }]);
    proposal = undefined;
    await d.push(state({ mode: 'step', proposal: undefined }));
    await page.keyboard.press('h');
    await word(d, 'The policy acts');
    await page.keyboard.press('e');
    await expect.poll(() => d.asked('try/stop')).toEqual([{ session: 'a1b2c3d4e5f6' }]);
    await word(d, 'Stopped');
  });

  it('is kept with what the person says, opened and annotated; another try lets the unkept one go', async () => {
    steps = [tryStep(0, hash)];
    const d = await acting({ mode: 'ended' }),
      { page } = d.page;
    await word(d, 'The policy is done');
    d.on['control/keep'] = () =>
      (d.state = state({
        mode: 'ended',
        verdict: { outcome: 'success', reward: 1 },
        kept: { rollout: 'try/x/1', pooled: true },
      }));
    await page.getByLabel('Note').fill('well done');
    await press(d, 'Succeeded: Keep');
    await expect
      .poll(() => d.asked('control/keep'))
      .toEqual([{ session: 'a1b2c3d4e5f6', pool: 'auto', verdict: 'success', note: 'well done' }]);
    await word(d, 'Success');
    expect(await page.locator('.live-now p').innerText()).toContain('in the experience pool of its collection');
    await press(d, 'Open Trajectory');
    await press(d, 'Annotate');
    await expect
      .poll(() => d.page.actions)
      .toEqual([
        { action: 'openTrajectory', run: '/work/runs/tries', rollout: 'try/x/1', beside: true },
        { action: 'annotate', run: '/work/runs/tries', rollout: 'try/x/1' },
      ]);
    // The same, but kept by nobody.
    await d.push(state({ mode: 'ended', verdict: undefined, kept: undefined }));
    await page.getByLabel('Instruction').fill('Again');
    await press(d, 'Try');
    await expect.poll(() => d.asked('control/discard')).toEqual([{ session: 'a1b2c3d4e5f6' }]);
    await expect.poll(() => d.asked('try/start').length).toBe(1);
  });

  it('says what there is to do where there is nothing to try, and is narrow beside another editor', async () => {
    const d = await show({ width: 420 }, (x) => {
      x.on['try/policies'] = () => ({ policies: [] });
    });
    await d.page.until("document.querySelector('.live-empty').textContent.includes('There is no policy to try yet')");
    if (shots) await d.page.page.screenshot({ path: join(shots, 'try-narrow-nothing.png') });
    expect(await d.page.page.locator('.try-begin vscode-button[disabled]').count()).toBe(2);
    // The sign of the page is large, that of the button under it is not.
    const sign = (of: string): Promise<string> =>
      d.page.page.evaluate(`getComputedStyle(document.querySelector('.live-empty ${of}')).fontSize`);
    expect([await sign('> .codicon'), await sign('vscode-button .codicon')]).toEqual(['32px', '16px']);
    await press(d, 'Start Training…');
    await expect.poll(() => d.page.actions).toEqual([{ action: 'command', command: 'startTraining' }]);
    await d.page.close();
    steps = [0, 1].map((i) => tryStep(i, hash));
    const e = await acting({}, { width: 420 });
    // The fields leave their room to the session, can be looked at, and are back at its end.
    const fields = e.page.page.locator('.try-form');
    await fields.waitFor({ state: 'hidden' });
    await e.page.page.getByText('What to try').click();
    await fields.waitFor({ state: 'visible' });
    await e.page.page.getByText('What to try').click();
    await fields.waitFor({ state: 'hidden' });
    await e.push(state({ mode: 'ended' }));
    await fields.waitFor({ state: 'visible' });
    await e.push(state());
    await fields.waitFor({ state: 'hidden' });
    if (shots) await e.page.page.screenshot({ path: join(shots, 'try-narrow.png') });
    expect(
      await e.page.page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    ).toBe(0);
  });

  it('what can be tried and could not be read is read again on demand', async () => {
    let reads = 0;
    const d = await show({}, (x) => {
        x.on['try/policies'] = () => {
          if (reads++ === 0) throw { kind: 'store.damaged', message: 'A run cannot be read.', remedy: 'See the log.' };
          return { policies: tryPolicies };
        };
      }),
      policies = "[...document.querySelector('.try-field select').options].map((o) => o.label).join()";
    await d.page.until(
      "document.querySelector('.live-notice .words')?.textContent.startsWith('A run cannot be read.')",
    );
    expect(await d.page.page.evaluate(policies)).toBe('–');
    await press(d, 'Try again');
    await d.page.until(`${policies}.startsWith('quick-s1')`);
    await d.page.until("document.querySelector('.live-notice').hidden");
  });

  it('at its end nothing is still to come; a long instruction leaves the buttons in sight, and scrolls by keyboard', async () => {
    const d = await acting({ mode: 'ended', left: 6, instruction: 'Open the spreadsheet. '.repeat(60) }),
      { page } = d.page;
    await word(d, 'Ended');
    expect(await page.locator('.live-task').innerText()).not.toContain('left');
    expect(await page.locator('.try-recorded h3').innerText()).toBe('No steps');
    await d.page.until(
      "((p) => p.scrollHeight > p.clientHeight && p.clientHeight < 140 && p.tabIndex === 0)(document.querySelector('.live-panel .live-instruction'))",
    );
    await d.push(state({ mode: 'policy', instruction: 'Press OK.' }));
    await d.page.until("document.querySelector('.live-panel .live-instruction').tabIndex === -1");
    await d.page.until("document.querySelector('.try-recorded h3').textContent === 'No step yet'");
  });

  it('leaves no word untranslated', async () => {
    steps = [tryStep(0, hash), { ...tryStep(1, hash), origin: 'human', tokens: undefined, entropy: undefined }];
    const d = await acting({ mode: 'ended' }, { words: pseudo });
    await d.page.until("document.querySelectorAll('.try-steps li').length === 2");
    expect(
      await bare(d.page, [tryPolicies, tryImages, tryTasks, d.state], ['Enter', 'Desk', 'Web', 'quick-s1 v9']),
    ).toEqual([]);
  });
});
