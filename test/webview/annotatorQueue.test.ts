import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ReviewItem, TrajectoryView } from '../../runtime/protocol/types.js';
import type { PageInput } from '../../webview/protocol.js';
import { annotatePages, gate, on, read, ready, rollout, run, saved, says } from '../helpers/pages/annotatePages.js';
import { FakeAnnotations } from '../helpers/pages/annotations.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { type TestPage } from '../helpers/pages/page.js';
import { view } from '../helpers/pages/trajectories.js';

const found = await openBrowser();
if ('why' in found) console.warn(`annotator tests skipped: ${found.why}`);
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('annotate mode beyond editing', () => {
  const { axe } = found as RealBrowser;
  const pages = annotatePages(found as RealBrowser),
    { show } = pages;

  describe('where nothing can be edited', () => {
    it('a locked trajectory says why and takes no edit', async () => {
      pages.fake = new FakeAnnotations().add(pages.rich, {
        locked: { message: 'Another process writes this run.', remedy: 'Annotate it when that has ended.' },
      });
      const t = await show(),
        p = await ready(t);
      await expect.poll(() => p.locator('.an-banners').innerText()).toContain('Annotate it when that has ended.');
      for (const k of ['k', 'x', '<', 'o', 'v', 'Control+z']) await p.keyboard.press(k);
      await says(t, 'Another process writes this run.');
      expect(await t.axe(axe)).toEqual([]);
      expect(t.requests.filter((r) => !/get$|list$|thumbnails$/.test(r.method))).toEqual([]);
    });
    it('a file and a live rollout say why not; when it ends, the tools come', async () => {
      const file = await show({
        daemon: 'stopped',
        input: { kind: 'inspector', rollout, document: { ...pages.rich, live: false } },
      });
      await file.page.locator('.ds-shot.selected').waitFor();
      await file.page.keyboard.press('e');
      await expect.poll(() => file.page.locator('.an-banners').innerText()).toContain('opened from a file');
      expect(await file.axe(axe)).toEqual([]);
      expect(file.requests).toEqual([]);
      await file.close();
      const live = view(pages.plans.slice(0, 3), pages.session.dir, { outcome: 'running', formed: false });
      let now: TrajectoryView = live;
      const t = await show({
        answer: (m, p) => (m === 'trajectory/get' ? now : pages.fake.answer(pages.pictures)(m, p)),
      });
      await expect.poll(() => t.page.locator('.an-banners').innerText()).toContain('still running');
      now = pages.rich;
      await t.post({
        type: 'events',
        run,
        events: [{ seq: 6100, at: 0, type: 'ended', row: pages.rich.row }],
        nextSeq: 6101,
        live: true,
        ended: true,
      });
      await t.page.getByRole('button', { name: 'Wrong' }).waitFor();
      await t.page.keyboard.press('k');
      await saved(t, 1);
    });
    it('annotations that cannot be read are said, and trying again works', async () => {
      let broken = true;
      pages.fake.before = (m) => {
        if (broken && m === 'annotation/get')
          throw { kind: 'store.damaged', message: 'The annotations are damaged.', remedy: 'See the log.' };
      };
      const t = await show();
      await t.until("document.querySelector('.an-state')?.textContent === 'Cannot be read'");
      expect(await t.axe(axe)).toEqual([]);
      broken = false;
      await t.page.getByRole('button', { name: 'Try again' }).click();
      await t.until("document.querySelector('.an-state').textContent === 'As recorded'");
    });
    it('annotate mode off shows the recording; on again, the revision', async () => {
      pages.fake.edit(rollout, 0, [
        { op: 'delete', steps: [0] },
        { op: 'mark', step: 1, mark: 'key', on: true },
      ]);
      const t = await show({ input: { kind: 'inspector', run, rollout } }),
        p = t.page;
      await p.locator('.ds-shot.selected').waitFor();
      await p.getByRole('button', { name: 'Annotate', exact: true }).click();
      await t.until("document.querySelectorAll('.ds-shot.deleted').length === 1");
      await p.keyboard.press('e');
      await t.until(
        "document.querySelectorAll('.ds-shot.deleted, .ds-chip, .an-handle').length === 0 && !document.querySelector('.an-bar').checkVisibility()",
      );
      await expect.poll(() => p.locator('.ds-detail').innerText()).toContain("click(start_box='(194,154)')");
      await expect.poll(() => t.saved).toMatchObject({ input: { annotate: false } });
    });
  });

  describe('replay and pool', () => {
    it('a replay shows its progress, can be watched and cancelled; the verdict comes with the verifier’s report', async () => {
      const g = gate();
      pages.fake.replay = async (_r, revision) => {
        await g.wait;
        return {
          revision,
          at: 0,
          rollout: 'r-000200',
          outcome: 'success',
          reward: 1,
          report: { checks: [{ what: 'field City', expected: 'Lisbon', found: 'Lisbon', score: 1 }] },
          pooled: true,
        };
      };
      const t = await show(),
        p = await ready(t);
      await p.keyboard.press('x');
      await saved(t, 1);
      await p.keyboard.press('v');
      await t.until("document.querySelector('.an-progress')?.textContent.includes('a fresh desktop is set up')");
      await t.post({ type: 'annotation', run, rollout, replay: { step: 3, of: 11, desktop: 'desk-9' } });
      await t.until(
        "document.querySelector('.an-progress').textContent.includes('Replaying step 3 of 11') && document.querySelector('.an-progress progress').value === 3",
      );
      expect(await t.axe(axe)).toEqual([]);
      await p.getByRole('button', { name: 'Watch' }).click();
      await expect
        .poll(() => t.actions.at(-1))
        .toEqual({ action: 'command', command: 'watchDesktop', argument: 'desk-9' });
      g.open();
      await t.until(
        "document.querySelector('.an-verdict')?.textContent.includes('reward 1 · 1 of 1 checks passed · in the experience pool')",
      );
      await t.until("!document.querySelector('.an-progress').checkVisibility()");
      await p.locator('.an-replays summary').click();
      await expect.poll(() => p.locator('.an-replays').innerText()).toMatch(/Revision 1[^]*field City/);
      await p.getByRole('button', { name: 'Open the recorded replay' }).click();
      await expect.poll(() => t.actions.at(-1)).toEqual({ action: 'openTrajectory', run, rollout: 'r-000200' });
      await p.keyboard.press('ArrowRight');
      await on(t, 2);
      await p.keyboard.press('k');
      await saved(t, 2);
      await t.until("document.querySelector('.an-verdict').textContent === 'This revision was not replayed yet.'");
    });
    it('goes on while the page is hidden: the page that is back shows it, cancels it, and says how it ended', async () => {
      const g = gate();
      pages.fake.replay = async (_r, revision) => {
        await g.wait;
        return { revision, at: 5, rollout: 'replay-2', outcome: 'success', reward: 1 } as never;
      };
      const t = await show(),
        p = await ready(t);
      await p.getByRole('button', { name: 'Replay and verify' }).click();
      await p.locator('.an-progress').waitFor();
      const id = t.requests.findIndex((r) => r.method === 'annotation/replay') + 1;
      await p.reload();
      await ready(t);
      await p.locator('.an-progress').waitFor();
      await p.locator('.an-progress').getByRole('button', { name: 'Cancel' }).click();
      await expect.poll(() => t.cancelled).toEqual([id]);
      g.open();
      await says(t, 'Replayed:');
      await p.getByRole('button', { name: 'Replay and verify' }).waitFor();
      expect(t.requests.filter((r) => r.method === 'annotation/replay')).toHaveLength(1);
      // Annotate mode is left, and stays left.
      await p.locator('[role=listbox]').first().focus();
      await p.keyboard.press('e');
      await t.until("!document.querySelector('.an-tools').checkVisibility()");
      await expect.poll(() => t.saved).toMatchObject({ input: { annotate: false } });
      await p.reload();
      await p.locator('.ds-shot.selected').waitFor();
      expect(await p.locator('.an-tools').isVisible()).toBe(false);
    });
    it('cancelled, it says so; failed, it says why; another window’s replay is seen', async () => {
      const cancelled = gate();
      pages.fake.replay = async () => {
        await cancelled.wait;
        throw { kind: 'cancelled', message: 'Cancelled.', remedy: '' };
      };
      const t = await show(),
        p = await ready(t);
      await p.getByRole('button', { name: 'Replay and verify' }).click();
      await p.getByRole('button', { name: 'Cancel' }).click();
      await expect.poll(() => t.cancelled.length).toBe(1);
      cancelled.open();
      await p.getByRole('button', { name: 'Replay and verify' }).waitFor();
      await says(t, 'Replay cancelled');
      pages.fake.replay = () => {
        throw { kind: 'desktop.start', message: 'No desktop came up.', remedy: 'Check this machine.' };
      };
      await p.getByRole('button', { name: 'Replay and verify' }).click();
      await t.until(
        "document.querySelector('.an-trouble').textContent.includes('No desktop came up. Check this machine.')",
      );
      expect(await t.axe(axe)).toEqual([]);
      await t.post({ type: 'annotation', run, rollout, replay: { step: 1, of: 12 } });
      await t.until(
        "document.querySelector('.an-progress').textContent.includes('Replaying step 1 of 12') && ![...document.querySelectorAll('.an-progress vscode-button')].some((b) => b.checkVisibility())",
      );
      await t.post({ type: 'annotation', run, rollout });
      await p.getByRole('button', { name: 'Replay and verify' }).waitFor();
    });
    it('a failure joins the pool only with a reason, a success at once', async () => {
      const t = await show(),
        p = await ready(t);
      await p.keyboard.press('l');
      await p.keyboard.press('Enter');
      await t.until(
        "document.querySelector('.an-verify .ds-field-trouble').textContent.includes('requires a reason') && document.activeElement.placeholder.startsWith('Why, without')",
      );
      expect(await t.axe(axe)).toEqual([]);
      expect(t.requests.some((r) => r.method === 'pool/add')).toBe(false);
      await p.keyboard.type('The check is wrong.');
      await p.keyboard.press('Enter');
      await p.getByRole('button', { name: 'In the pool' }).waitFor();
      expect(t.requests.find((r) => r.method === 'pool/add')?.params).toEqual({
        run,
        rollout,
        override: 'The check is wrong.',
      });
      await t.close();
      pages.fake = new FakeAnnotations().add(view(pages.plans, pages.session.dir));
      const good = await show();
      await ready(good);
      await good.page.getByRole('button', { name: 'Add to pool' }).click();
      await good.page.getByRole('button', { name: 'In the pool' }).waitFor();
      expect(good.requests.find((r) => r.method === 'pool/add')?.params).toEqual({ run, rollout });
    });
  });

  describe('review queue', () => {
    const names = ['r-000102', 'r-000101', 'r-000105'];
    const others = (): TrajectoryView[] =>
      names.map((r, i) =>
        i ? view(pages.plans.slice(0, 4 + i), pages.session.dir, { rollout: r, outcome: 'failure' }) : pages.rich,
      );
    beforeEach(() => {
      pages.fake = new FakeAnnotations();
      for (const v of others()) pages.fake.add(v);
      pages.fake.queue = {
        items: others().map((v, i) => ({
          row: v.row,
          priority: 9 - i,
          why: `Nobody has solved this task yet: ${40 - i} failures.`,
          reviewed: false,
        })),
        total: 5,
        reviewed: 2,
      };
    });
    const queued: PageInput = { kind: 'inspector', run, rollout: names[0]!, annotate: true, queue: true };
    const at = (t: TestPage, n: number, name: string): Promise<void> =>
      t.until(
        `document.querySelector('.an-queue strong').textContent === '${n} of 3' && document.querySelector('.ds-head').dataset.rollout === '${name}'`,
      );

    it('the screenshot is about as large as without the tools, and few stops of the tab key from the top', async () => {
      const width = (t: TestPage): Promise<number> =>
        read(
          t,
          "(({ width, height }) => Math.min(width / 1280, height / 800))(document.querySelector('.ds-box').getBoundingClientRect())",
        );
      const size = { width: 1280, height: 860 },
        plain = await show({ ...size, input: { kind: 'inspector', run, rollout: names[0]! } });
      await plain.page.locator('.ds-shot.selected').waitFor();
      const before = await width(plain);
      // Roving focus: a stop for each toolbar, the group and the report.
      const stops = async (t: TestPage): Promise<number> => {
        await t.page.evaluate('document.activeElement?.blur()');
        for (let n = 1; n < 30; n++) {
          await t.page.keyboard.press('Tab');
          if (await t.page.evaluate("document.activeElement.closest('.ds-stage') !== null")) return n;
        }
        return 30;
      };
      expect(await stops(plain)).toBeLessThanOrEqual(6);
      await plain.close();
      const t = await show({ ...size, input: queued }),
        p = await ready(t);
      await at(t, 1, names[0]!);
      await t.until("[...document.querySelectorAll('.ds-thumb img')].every((i) => i.complete)");
      if (shots) await p.screenshot({ path: join(shots, 'annotate-review.png') });
      expect((await width(t)) / before).toBeGreaterThan(0.85);
      // Beside those: the queue's two buttons, outcome, note, replay and pool, tags.
      expect(await stops(t)).toBeLessThanOrEqual(11);
      // Everything that was put away is one press away.
      await p.getByRole('button', { name: 'Facts' }).click();
      await t.until("document.querySelector('.ds-facts').getBoundingClientRect().height > 0");
      if (shots) await p.screenshot({ path: join(shots, 'annotate-review-facts.png') });
      expect(await t.axe(axe)).toEqual([]);
    });
    it('from first to last by the keyboard alone: the outcome in one key and its reason, a tag, reviewed and on', async () => {
      const t = await show({ input: queued }),
        p = await ready(t),
        k = p.keyboard;
      await at(t, 1, names[0]!);
      await expect.poll(() => p.locator('.an-why').innerText()).toBe('Nobody has solved this task yet: 40 failures.');
      await k.press('o');
      await k.insertText('It worked.');
      await k.press('Enter');
      await saved(t, 1);
      await k.press('g');
      await k.type('popup');
      await k.press('Enter');
      await k.press('Escape');
      await saved(t, 2);
      const titled = t.titles.length;
      await k.press('Enter');
      await at(t, 2, names[1]!);
      // The host is told where the page is and how it is called now.
      await expect.poll(() => t.actions).toEqual([{ action: 'moved', rollout: names[1] }]);
      await expect.poll(() => t.titles.length).toBeGreaterThan(titled);
      // Asked to show what it shows already.
      await t.post({
        type: 'show',
        input: { ...queued, rollout: names[1]! },
        roots: [
          { path: pages.session.dir, uri: (await read<string>(t, 'location.origin')) + `/root${pages.session.dir}` },
        ],
      });
      await ready(t);
      await k.press(']');
      await at(t, 3, names[2]!);
      await k.press('[');
      await at(t, 2, names[1]!);
      await k.press('w');
      await saved(t, 1);
      await k.press('.');
      await at(t, 3, names[2]!);
      await t.until("document.querySelector('.an-state').textContent === 'As recorded'");
      await k.press('Enter');
      await t.until(
        "document.querySelector('.an-end').checkVisibility() && document.querySelector('.an-end').textContent.includes('That was the last one. 2 reviewed in this pass, 4 in total. One was skipped.')",
      );
      await expect
        .poll(() => names.map((n) => pages.fake.ops(n)))
        .toEqual([
          [
            { op: 'outcome', value: 'success', reason: 'It worked.' },
            { op: 'tags', tags: ['popup'] },
            { op: 'reviewed', value: true },
          ],
          [{ op: 'mark', step: 0, mark: 'wrong', on: true }],
          [{ op: 'reviewed', value: true }],
        ]);
      await expect.poll(() => t.saved).toMatchObject({ input: { rollout: names[2], annotate: true, queue: true } });
      expect(await t.axe(axe)).toEqual([]);
      await p.getByRole('button', { name: 'Review the skipped ones' }).click();
      await t.until(`document.querySelector('.ds-head').dataset.rollout === '${names[1]}'`);
      await p.getByRole('button', { name: 'Next', exact: true }).waitFor();
    });
    it('the next one is read ahead: it shows while the runtime takes its time', async () => {
      const t = await show({ input: queued }),
        p = await ready(t);
      await at(t, 1, names[0]!);
      await expect
        .poll(() => t.requests.some((r) => r.method === 'trajectory/get' && r.params['rollout'] === names[1]))
        .toBe(true);
      await expect
        .poll(() => t.requests.some((r) => r.method === 'annotation/get' && r.params['rollout'] === names[1]))
        .toBe(true);
      await t.page.evaluate('new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))');
      const g = gate();
      pages.fake.before = () => g.wait;
      await p.keyboard.press(']');
      await at(t, 2, names[1]!);
      await t.until(
        "document.querySelector('.ds-shot').getAttribute('aria-setsize') === '5' && document.querySelector('.an-tools').checkVisibility()",
      );
      g.open();
    });
    it('a key held, or pressed while the next one loads, reviews nothing that was not there', async () => {
      const trajectory = gate(),
        annotations = gate();
      pages.fake.before = (m, p) =>
        p['rollout'] !== names[2]
          ? undefined
          : m === 'trajectory/get'
            ? trajectory.wait
            : m === 'annotation/get'
              ? annotations.wait
              : undefined;
      const t = await show({ input: queued }),
        p = await ready(t),
        k = p.keyboard,
        state = (words: string): Promise<void> =>
          t.until(`document.querySelector('.an-state').textContent === '${words}'`),
        hold = async (): Promise<void> => {
          for (let i = 0; i < 3; i++) await k.down('Enter');
          await k.up('Enter');
        };
      await at(t, 1, names[0]!);
      await state('As recorded');
      await hold();
      await at(t, 2, names[1]!);
      await k.press('[');
      await at(t, 1, names[0]!);
      await state('Saved, revision 1');
      await p.getByRole('button', { name: 'Reviewed, next' }).focus();
      await hold();
      await at(t, 2, names[1]!);
      await state('As recorded');
      expect([pages.fake.ops(names[1]!), t.actions.at(-1)]).toEqual([[], { action: 'moved', rollout: names[1] }]);
      await p.locator('[role=listbox]').first().focus();
      await k.press('Enter');
      await t.until("document.querySelector('.an-queue strong').textContent === '3 of 3'");
      await k.press('Enter');
      await says(t, 'Loading…');
      trajectory.open();
      await at(t, 3, names[2]!);
      // Whether somebody reviewed it before is not known yet.
      await k.press('Enter');
      annotations.open();
      await state('As recorded');
      await k.press('Enter');
      await t.until("document.querySelector('.an-end').textContent.includes('3 reviewed in this pass, 5 in total.')");
      await expect
        .poll(() => names.map((n) => pages.fake.ops(n)))
        .toEqual(names.map(() => [{ op: 'reviewed', value: true }]));
    });
    it('in a run that is locked the key reviews as little as its button, and says why', async () => {
      pages.fake = new FakeAnnotations();
      for (const v of others())
        pages.fake.add(v, { locked: { message: 'Another process writes this run.', remedy: 'Wait for its end.' } });
      pages.fake.queue = {
        items: others().map((v) => ({ row: v.row, priority: 1, why: 'w', reviewed: false })),
        total: 3,
        reviewed: 0,
      };
      const t = await show({ input: queued }),
        p = await ready(t);
      await at(t, 1, names[0]!);
      await p.keyboard.press('Enter');
      await says(t, 'Another process writes this run.');
      await at(t, 1, names[0]!);
      await p.keyboard.press(']');
      await at(t, 2, names[1]!);
      expect(t.requests.some((r) => r.method === 'annotation/edit')).toBe(false);
      expect(t.actions).toEqual([{ action: 'moved', rollout: names[1] }]);
    });
    it('an edit that cannot be saved goes along and is said, and is saved when the runtime is back', async () => {
      let down = true;
      pages.fake.before = (m) => {
        if (down && m === 'annotation/edit')
          throw { kind: 'daemon.lost', message: 'The runtime does not answer.', remedy: '' };
      };
      const t = await show({ input: queued }),
        p = await ready(t);
      await at(t, 1, names[0]!);
      await p.keyboard.press('k');
      await t.until("document.querySelector('.an-state').textContent === 'Not saved'");
      await p.keyboard.press(']');
      await at(t, 2, names[1]!);
      await t.until(
        "document.querySelector('.an-banners').textContent.includes('1 edit of another trajectory is not saved yet')",
      );
      down = false;
      await t.post({ type: 'daemon', state: 'ready' });
      await expect.poll(() => pages.fake.ops(names[0]!)).toEqual([{ op: 'mark', step: 0, mark: 'key', on: true }]);
      await t.until("document.querySelector('.an-banners').childElementCount === 0");
    });
    const late = (rollout = 'r-000106'): ReviewItem => {
      const v = view(pages.plans.slice(0, 3), pages.session.dir, { rollout, outcome: 'failure' });
      pages.fake.add(v);
      return { row: v.row, priority: 1, why: `${rollout} came later.`, reviewed: false };
    };
    const place = (t: TestPage, words: string, name: string): Promise<void> =>
      t.until(
        `document.querySelector('.an-queue strong').textContent === '${words}' && document.querySelector('.ds-head').dataset.rollout === '${name}'`,
      );
    const reads = (t: TestPage): number => t.requests.filter((r) => r.method === 'review/queue').length;

    it('a trajectory that came after the queue was read is in it when it is shown', async () => {
      const t = await show({ input: queued }),
        p = await ready(t);
      await at(t, 1, names[0]!);
      await p.keyboard.press(']');
      await at(t, 2, names[1]!);
      await p.keyboard.press(']');
      await at(t, 3, names[2]!);
      await t.until("document.querySelector('.an-state').textContent === 'As recorded'");
      await p.keyboard.press(']');
      await t.until("document.querySelector('.an-end').textContent.includes('That was the last one.')");
      pages.fake.queue = { items: [late()], total: 6, reviewed: 5 };
      const before = reads(t);
      await t.post({
        type: 'show',
        input: { ...queued, rollout: 'r-000106' },
        roots: [
          { path: pages.session.dir, uri: (await read<string>(t, 'location.origin')) + `/root${pages.session.dir}` },
        ],
      });
      await place(t, '1 of 1', 'r-000106');
      await expect.poll(() => p.locator('.an-why').innerText()).toBe('r-000106 came later.');
      // One that the daemon does not list is asked about once.
      pages.fake.queue = { items: [late('r-000107')], total: 7, reviewed: 6 };
      await t.post({ type: 'show', input: { ...queued, rollout: names[0]! }, roots: [] });
      await place(t, 'Review queue: 1', names[0]!);
      await t.until("document.querySelector('.an-state').textContent === 'As recorded'");
      await p.keyboard.press('Enter');
      await place(t, '1 of 1', 'r-000107');
      expect(reads(t)).toBe(before + 2);
    });
    it('at the end of what was listed it goes on with what the daemon lists by then, and ends where that is nothing', async () => {
      const t = await show({ input: queued }),
        p = await ready(t),
        k = p.keyboard,
        asRecorded = (): Promise<void> => t.until("document.querySelector('.an-state').textContent === 'As recorded'");
      await at(t, 1, names[0]!);
      await asRecorded();
      await k.press('Enter');
      await at(t, 2, names[1]!);
      await k.press(']');
      await at(t, 3, names[2]!);
      await asRecorded();
      let broken = true;
      pages.fake.before = (m) => {
        if (broken && m === 'review/queue')
          throw { kind: 'store.io', message: 'The run cannot be read.', remedy: 'See the log.' };
      };
      // The one that was skipped is listed again.
      const [, skipped] = pages.fake.queue.items;
      pages.fake.queue = { items: [skipped!, late()], total: 6, reviewed: 4 };
      await k.press('Enter');
      await t.until("document.querySelector('.an-why').textContent === 'The run cannot be read. See the log.'");
      expect(await p.locator('.an-end').innerText()).toBe('Try again');
      broken = false;
      await k.press('Enter');
      await place(t, '4 of 4', 'r-000106');
      await asRecorded();
      await k.press('Enter');
      await t.until(
        "document.querySelector('.an-end').textContent.includes('That was the last one. 3 reviewed in this pass, 5 in total. One was skipped.')",
      );
      expect(t.requests.filter((r) => r.method === 'review/queue').at(-1)?.params).toEqual({ run, limit: 201 });
    });
    it('an empty queue and one that cannot be read have words', async () => {
      pages.fake.queue = { items: [], total: 3, reviewed: 3 };
      const t = await show({ input: queued });
      await t.until("document.querySelector('.an-end')?.textContent.includes('Nothing to review.')");
      await t.page.getByRole('button', { name: 'Leave the queue' }).click();
      await t.until(
        "!document.querySelector('.an-queue').checkVisibility() && document.querySelector('.an-bar').checkVisibility()",
      );
      await t.close();
      let broken = true;
      pages.fake.before = (m) => {
        if (broken && m === 'review/queue')
          throw { kind: 'store.io', message: 'The run cannot be read.', remedy: 'See the log.' };
      };
      const bad = await show({ input: queued });
      await bad.until("document.querySelector('.an-why')?.textContent === 'The run cannot be read. See the log.'");
      expect(await bad.axe(axe)).toEqual([]);
      broken = false;
      pages.fake.queue = {
        items: [{ row: pages.rich.row, priority: 1, why: 'w', reviewed: false }],
        total: 1,
        reviewed: 0,
      };
      await bad.page.getByRole('button', { name: 'Try again' }).click();
      await bad.until("document.querySelector('.an-queue strong').textContent === '1 of 1'");
    });
  });

  it('whose steps they are is said in header, filmstrip and detail, by word and shape; the source of a replay is one click away', async () => {
    const mixed: TrajectoryView = {
      ...pages.rich,
      row: {
        ...pages.rich.row,
        assisted: true,
        provenance: 'human',
        of: 'r-000099@3',
        annotated: { revision: 2, outcome: 'success', edited: true, reviewed: true },
      },
      steps: pages.rich.steps.map((s, i) =>
        i === 1 || i === 2
          ? { ...s, origin: 'human' as const, version: undefined, tokens: undefined }
          : i === 3
            ? { ...s, origin: 'oracle' as const, version: undefined }
            : s,
      ),
    };
    pages.fake = new FakeAnnotations().add(mixed);
    const t = await show({ input: { kind: 'inspector', run, rollout } }),
      p = t.page;
    await p.locator('.ds-shot.selected').waitFor();
    await expect.poll(() => p.locator('.ds-head').innerText()).toMatch(/assisted: 2 of 12 steps by a person/);
    await expect.poll(() => p.locator('.ds-head').innerText()).toMatch(/corrected to success, edited, reviewed/);
    await t.until(
      "[...document.querySelectorAll('.ds-version-name')].map((x) => x.textContent).join().startsWith('policy v12,a person,a script,policy v12')",
    );
    await p.keyboard.press('ArrowRight');
    await t.until(
      "document.querySelector('.ds-detail .ds-badges').textContent.includes('by a person') && document.querySelector('.ds-shot.selected').textContent.includes('by a person') && document.querySelector('.ds-shot.selected .codicon-person') !== null",
    );
    if (shots) await p.screenshot({ path: join(shots, 'annotate-origins.png') });
    expect(await t.axe(axe)).toEqual([]);
    await p.getByRole('button', { name: 'r-000099, revision 3' }).click();
    await expect.poll(() => t.actions.at(-1)).toEqual({ action: 'openTrajectory', run, rollout: 'r-000099' });
  });

  it('every key of annotate mode is in the dialog of shortcuts, and none is there twice', async () => {
    const t = await show(),
      p = await ready(t);
    await p.keyboard.press('?');
    await p.locator('dialog[open]').waitFor();
    const keys = await read<string[]>(
      t,
      "[...document.querySelectorAll('.ds-keys dt')].flatMap((x) => x.textContent.split(' or '))",
    );
    expect(new Set(keys).size).toBe(keys.length);
    for (const k of ['e', 'o', 'k', 'r', 'w', 'x', '<', '>', '/', 'Ctrl Z', 'Ctrl Shift Z', 'Enter', ']', '['])
      expect(keys).toContain(k);
    if (shots) await p.screenshot({ path: join(shots, 'annotate-keys.png') });
    expect(await t.axe(axe)).toEqual([]);
  });
});
