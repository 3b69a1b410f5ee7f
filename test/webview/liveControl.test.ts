import { describe, expect, it } from 'vitest';
import type { ControlState } from '../../runtime/protocol/types.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { height, width } from '../helpers/pages/screens.js';
import type { Desk } from '../helpers/pages/live/desk.js';
import { livePages, press, textOf } from '../helpers/pages/live/pages.js';
import { controlState, report } from '../helpers/pages/live/samples.js';

const found = await openBrowser();
if ('why' in found) console.warn(`live page tests skipped: ${found.why}`);

describe.skipIf('why' in found)('recording and taking over in the live page', () => {
  const { show } = livePages(found as RealBrowser);

  describe('watching and taking over', () => {
    it('takes over by key, follows what the runtime says, hands back', async () => {
      const d = await show(),
        { keyboard } = d.page.page;
      await d.page.until("document.querySelector('.live-facts').textContent.includes('Melon')");
      await keyboard.press('t');
      await expect.poll(() => d.asked('control/takeOver')).toEqual([{ desktop: 'desktop-1', mode: 'human' }]);
      await d.page.until("document.querySelector('.live-now h2')?.textContent === 'You are in control'");
      await expect.poll(() => d.asked('control/attach')).toEqual([{ session: 'c1' }]);
      await expect
        .poll(() => d.page.saved)
        .toMatchObject({ input: { kind: 'live', desktop: 'desktop-1', session: 'c1' } });
      await d.push({ doing: 'typing "hel"' });
      await d.page.until("document.querySelector('.live-doing').textContent === 'typing \"hel\"'");
      await d.push({
        doing: undefined,
        steps: [
          ...d.state!.steps,
          {
            index: 3,
            origin: 'human',
            actions: [{ type: 'type', text: 'hello' }],
            frame: { hash: 'a', width, height },
          },
        ],
      });
      await d.page.until(
        "document.querySelector('.live-steps .newest').textContent.includes('hello') && document.querySelectorAll('.live-steps li').length === 4 && document.querySelector('.live-doing').hidden",
      );
      await expect.poll(() => textOf(d, '[role=status][aria-live]')).toContain('Step 4, human: type “hello”');
      await keyboard.press('h');
      await expect.poll(() => d.asked('control/mode')).toEqual([{ session: 'c1', mode: 'policy' }]);
      await d.page.until("document.querySelector('.live-now h2').textContent === 'The policy acts'");
      await keyboard.press('t');
      await d.page.until("document.querySelector('.live-now h2').textContent === 'You are in control'");
      await d.push({ mode: 'ended', verdict: { outcome: 'success', reward: 1, report: report(true) } });
      await d.page.until("document.querySelector('.live-now h2').textContent === 'Success'");
      await press(d, 'Keep Watching');
      await expect.poll(() => d.asked('control/detach')).toEqual([{ session: 'c1' }]);
      await d.page.until(
        "document.querySelector('.live-panel').hidden && !document.querySelector('.live-facts').hidden",
      );
      await expect.poll(() => d.page.saved).not.toHaveProperty('input.session');
    });

    it('what has not come about yet is called off by asking again', async () => {
      let told: (e: unknown) => void = () => undefined;
      const d = await show({
          prepare: (x) => {
            x.on['control/takeOver'] = () =>
              new Promise((_r, refuse) => {
                told = refuse;
              });
          },
        }),
        { keyboard } = d.page.page;
      await d.page.until("document.querySelector('.live-facts').textContent.includes('Melon')");
      await keyboard.press('t');
      await d.page.until("document.querySelector('.live-facts').textContent.includes('Press again to cancel')");
      await keyboard.press('t');
      await expect.poll(() => d.page.cancelled.length).toBe(1);
      told({ kind: 'cancelled', message: 'Taking over was cancelled.', remedy: '' });
      await d.page.until(
        "!document.querySelector('.live-facts').textContent.includes('Press again to cancel') && document.querySelector('.live-notice').hidden",
      );
      expect(d.asked('control/takeOver')).toHaveLength(1);
      delete d.on['control/takeOver'];
      await keyboard.press('t');
      await d.page.until("document.querySelector('.live-now h2')?.textContent === 'You are in control'");
    });

    it('says why it cannot be taken over, and what the runtime answers when it refuses', async () => {
      const d = await show({
        prepare: (x) => {
          x.desktops = [{ ...x.desktops[0]!, state: 'stopped' }];
          x.on['control/takeOver'] = () => {
            throw { kind: 'busy', message: 'Another window is in control.', remedy: 'Look for it.' };
          };
        },
      });
      const why = 'document.querySelector(\'vscode-button[title^="The policy waits before"]\')';
      await d.page.until(
        `${why}.getAttribute('aria-disabled') === 'true' && ${why}.title.includes('The desktop has stopped')`,
      );
      await d.page.page.keyboard.press('t');
      await d.page.until("document.querySelector('.live-notice').textContent.includes('The desktop has stopped')");
      expect(d.asked('control/takeOver')).toEqual([]);
      await d.page.post({ type: 'desktop', desktop: 'desktop-1', row: { ...d.desktops[0]!, state: 'act' } });
      await d.page.until(`!${why}.hasAttribute('aria-disabled')`);
      await press(d, /^Step Through/);
      await expect.poll(() => d.asked('control/takeOver')).toEqual([{ desktop: 'desktop-1', mode: 'step' }]);
      await d.page.until(
        "document.querySelector('.live-notice').textContent.includes('Another window is in control. Look for it.')",
      );
      await press(d, 'Dismiss');
      await d.page.until("document.querySelector('.live-notice').hidden");
    });
  });

  it('takes over as soon as a rollout can be, and asks one that refuses only once', async () => {
    const d = await show({
        prepare: (x) => {
          x.desktops = [{ ...x.desktops[0]!, state: 'idle', rollout: undefined }];
        },
      }),
      row = d.desktops[0]!,
      say = (o: Partial<typeof row>): Promise<void> =>
        d.page.post({ type: 'desktop', desktop: 'desktop-1', row: { ...row, ...o } });
    await d.page.until("document.querySelector('.live-state').textContent === 'Idle'");
    for (const times of [1, 2, 3]) {
      await d.page.page.keyboard.press('t');
      await d.page.until(
        times === 2
          ? "document.querySelector('.live-notice').hidden"
          : "document.querySelector('.live-notice').textContent.includes('as soon as a rollout can be taken over')",
      );
    }
    expect(d.asked('control/takeOver')).toEqual([]);
    d.on['control/takeOver'] = () => {
      throw {
        kind: 'params.invalid',
        message: 'An evaluation is on this desktop.',
        remedy: 'Take over a training rollout.',
      };
    };
    await say({ state: 'setup', rollout: 'e1' });
    await say({ state: 'act', rollout: 'e1' });
    await d.page.until(
      "document.querySelector('.live-notice').textContent.includes('An evaluation is on this desktop.')",
    );
    delete d.on['control/takeOver'];
    await say({ state: 'settle', rollout: 'e1' });
    await say({ state: 'idle', rollout: undefined });
    await say({ state: 'setup', rollout: 'r2' });
    await d.page.until("document.querySelector('.live-now h2')?.textContent === 'You are in control'");
    expect(d.asked('control/takeOver')).toEqual([
      { desktop: 'desktop-1', mode: 'human' },
      { desktop: 'desktop-1', mode: 'human' },
    ]);
  });

  it('an evaluation that is asked says no, and the next rollout is taken without asking again; or it is called off', async () => {
    const d = await show(),
      row = d.desktops[0]!,
      say = (o: Partial<typeof row>): Promise<void> =>
        d.page.post({ type: 'desktop', desktop: 'desktop-1', row: { ...row, ...o } });
    const notice = (words: string): Promise<void> =>
      d.page.until(`document.querySelector('.live-notice').textContent.includes('${words}')`);
    await say({ state: 'act', rollout: 'e1' });
    await d.page.until("document.querySelector('.live-facts').textContent.includes('Melon')");
    d.on['control/takeOver'] = () => {
      throw {
        kind: 'params.invalid',
        message: 'An evaluation is on this desktop.',
        remedy: 'Take over a training rollout.',
      };
    };
    await d.page.page.keyboard.press('s');
    await notice('An evaluation is on this desktop. You get control as soon as a rollout can be taken over.');
    await d.page.page.keyboard.press('s');
    await d.page.until("document.querySelector('.live-notice').hidden");
    await say({ state: 'observe', rollout: 'e2' });
    await d.page.page.keyboard.press('s');
    await notice('An evaluation is on this desktop.');
    delete d.on['control/takeOver'];
    await say({ state: 'decide', rollout: 'e2' });
    await say({ state: 'setup', rollout: 'r1' });
    await d.page.until("document.querySelector('.live-now h2')?.textContent.startsWith('The policy')");
    expect(d.asked('control/takeOver')).toEqual([1, 2, 3].map(() => ({ desktop: 'desktop-1', mode: 'step' })));
  });

  describe('step mode', () => {
    const proposal = (id: number, x: number): NonNullable<ControlState['proposal']> => ({
      id,
      actions: [{ type: 'click', at: { x, y: 147 } }],
      probability: 0.78,
      labels: ['click', `${x},147`],
    });
    const stepping = (): ControlState => controlState({ mode: 'step', proposal: proposal(7, 398) });
    /** Enter until it is heard: one that comes before the proposal could be seen accepts nothing. */
    const enter = async (d: Desk, accepted: readonly number[]): Promise<void> => {
      await expect
        .poll(
          async () => {
            await d.page.page.keyboard.press('Enter');
            return d.asked('control/accept').map((p) => p['proposal']);
          },
          { interval: 100 },
        )
        .toEqual(accepted);
    };

    it('draws the proposal and its probability; Enter accepts it once, and an Enter too late accepts no other', async () => {
      const d = await show({ state: stepping() });
      await d.page.until("document.querySelectorAll('.ds-overlay.proposal .mark').length === 1");
      for (const sel of ['.live-proposed', '.live-proposal'])
        expect(await textOf(d, sel)).toMatch(/click at 398,147.*78 %/);
      await enter(d, [7]);
      await d.page.until("document.querySelector('.live-proposal').textContent.includes('Accepted')");
      // The next one comes, and an Enter pressed in the same moment is still that of the last.
      await d.pushAndPress({ proposal: proposal(8, 120) }, 'Enter');
      await d.page.until(
        "document.querySelector('.live-proposal').textContent.includes('click at 120,147') && document.querySelector('.live-proposal').dataset.state === 'open'",
      );
      expect(d.asked('control/accept')).toHaveLength(1);
      await enter(d, [7, 8]);
      expect(d.input).toEqual([]);
    });

    it('accepts by Enter while the desktop has the keyboard, and by the button', async () => {
      const d = await show({ state: controlState({ mode: 'step' }) });
      await d.page.page.locator('.live-box').focus();
      await d.page.page.keyboard.press('k');
      await d.page.until("document.querySelector('.live-box').classList.contains('captured')");
      await d.push({ proposal: proposal(1, 300) });
      await d.page.until("document.querySelectorAll('.ds-overlay.proposal .mark').length === 1");
      await d.pushAndPress({ proposal: proposal(2, 310) }, 'Enter');
      await d.page.until("document.querySelector('.live-proposal').textContent.includes('click at 310,147')");
      await enter(d, [2]);
      expect(d.input).toEqual([]);
      await d.push({ proposal: proposal(3, 320) });
      await expect
        .poll(
          async () => {
            await press(d, /^Accept/);
            return d.asked('control/accept').map((p) => p['proposal']);
          },
          { interval: 100 },
        )
        .toEqual([2, 3]);
    });

    it('anything done on the picture overrides; then Enter is the desktop’s, until the next proposal', async () => {
      const d = await show({ state: stepping() }),
        { keyboard, mouse } = d.page.page,
        hover = await d.at(200, 300);
      await d.page.until("document.querySelectorAll('.ds-overlay.proposal .mark').length === 1");
      // To look is not to act.
      await mouse.move(hover.x, hover.y);
      const p = await d.at(210, 310);
      await mouse.move(p.x, p.y);
      await mouse.down();
      await mouse.up();
      await d.page.until(
        "document.querySelector('.live-proposal').dataset.state === 'overridden' && document.querySelectorAll('.ds-overlay .mark').length === 0",
      );
      await keyboard.press('a');
      await keyboard.press('Enter');
      await d.settled((all) => all.some((e) => e.type === 'key' && e.key === 'Enter' && !e.down));
      expect(
        d.input.map((e) =>
          e.type === 'key'
            ? `${e.key}${e.down ? '+' : '-'}`
            : e.type === 'button'
              ? `${e.x},${e.y}${e.down ? '+' : '-'}`
              : e.type,
        ),
      ).toEqual(['210,310+', '210,310-', 'a+', 'a-', 'Enter+', 'Enter-']);
      expect(d.asked('control/accept')).toEqual([]);
      await d.push({ proposal: undefined, doing: 'typing "a"' });
      await d.page.until("document.querySelector('.live-now h2').textContent === 'You act instead'");
      d.batches.length = 0;
      await d.pushAndPress({ proposal: proposal(9, 300), doing: undefined }, 'Enter');
      await d.page.until("document.querySelector('.live-proposal').dataset.state === 'open'");
      await enter(d, [9]);
      expect(d.input).toEqual([]);
    });

    it('says when the runtime takes an acceptance for too late, and lets it be tried again', async () => {
      const d = await show({
        state: stepping(),
        prepare: (x) => {
          x.on['control/accept'] = () => {
            throw { kind: 'params.invalid', message: 'The policy has gone on.', remedy: '' };
          };
        },
      });
      // Refused, it is open again, and a key on its way accepts it once more.
      await expect
        .poll(async () => {
          await d.page.page.keyboard.press('Enter');
          return [...new Set(d.asked('control/accept').map((p) => p['proposal']))];
        })
        .toEqual([7]);
      await d.page.until(
        "document.querySelector('.live-notice').textContent.includes('The policy has gone on.') && document.querySelector('.live-proposal').dataset.state === 'open'",
      );
    });
  });
});
