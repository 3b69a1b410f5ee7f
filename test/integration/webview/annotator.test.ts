import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { AnnotationOp, TrajectoryView } from '../../../runtime/protocol/types.js';
import type { PageInput } from '../../../webview/protocol.js';
import type { Page } from '../../e2e/support/playwright.js';
import { FakeAnnotations } from '../../webview/lib/annotations.js';
import { openBrowser, type RealBrowser } from '../../webview/lib/browser.js';
import { themes, type Answer, type TestPage } from '../../webview/lib/page.js';
import { PageSession } from '../../webview/lib/session.js';
import { richPlans, view, type Plan } from '../../webview/lib/trajectories.js';

const found = await openBrowser();
if ('why' in found) console.warn(`annotator tests skipped: ${found.why}`);
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('annotate mode', () => {
  const { axe } = found as RealBrowser;
  const run = '/runs/demo', rollout = 'r-000102', input: PageInput = { kind: 'inspector', run, rollout, annotate: true };
  let plans: Plan[], rich: TrajectoryView, fake: FakeAnnotations;
  const pictures: Answer = (method, p) => {
    if (method === 'frame/thumbnails') return { paths: Object.fromEntries((p['hashes'] as string[]).map((x) => [x, session.frames.thumb(x)])) };
    throw { kind: 'not.found', message: `No ${method}.`, remedy: '' };
  };
  const session = new PageSession(found as RealBrowser, 'inspector', () => ({ input, answer: fake.answer(pictures) }), async (s) => { plans = await richPlans(s.frames); rich = view(plans, s.dir, { outcome: 'failure' }); });
  const show = session.show.bind(session);
  const ready = async (t: TestPage): Promise<Page> => { await t.page.locator('.ds-shot.selected').waitFor(); await t.page.locator('.an-tools').waitFor(); await t.until("document.querySelector('.ds-surface img')?.complete && document.querySelector('.an-state')?.textContent.length > 0"); return t.page; };
  const read = <R>(t: TestPage, code: string): Promise<R> => t.page.evaluate<R>(code);
  const on = (t: TestPage, n: number): Promise<void> => t.until(`document.querySelector('.ds-detail h2')?.textContent.startsWith('Step ${n} ') && document.querySelector('.ds-shot.selected .ds-shot-number')?.textContent === '${n}'`);
  const saved = (t: TestPage, n: number): Promise<void> => t.until(`document.querySelector('.an-state')?.textContent === 'Saved, revision ${n}'`);
  const says = (t: TestPage, words: string): Promise<void> => t.until(`[...document.querySelectorAll('[role=status].sr-only')].some((x) => x.textContent.includes(${JSON.stringify(words)}))`);
  const ops = (): AnnotationOp[] => fake.ops(rollout);
  const goTo = async (t: TestPage, n: number): Promise<void> => { await t.page.locator('[role=listbox]').first().focus(); await t.page.keyboard.press('Home'); for (let i = 1; i < n; i++) await t.page.keyboard.press('ArrowRight'); await on(t, n); };
  /** A gate that answers wait at. */
  const gate = (): { readonly wait: Promise<void>; open(): void } => { let open = (): void => undefined; const wait = new Promise<void>((r) => { open = r; }); return { wait, open: () => open() }; };

  beforeEach(() => { fake = new FakeAnnotations().add(rich); fake.known = ['loops', 'misread screen', 'popup']; });

  describe('looks', () => {
    it.each(themes)('%s: nothing that axe finds, in every part of annotate mode', async (theme) => {
      fake.edit(rollout, 0, [{ op: 'outcome', value: 'success', reason: 'The verifier looked before the dialog had closed.' }, { op: 'tags', tags: ['misread screen', 'popup'] }, { op: 'note', text: 'Ask for a later check.' }]);
      fake.edit(rollout, 1, [{ op: 'mark', step: 0, mark: 'key', on: true }, { op: 'mark', step: 1, mark: 'redundant', on: true }, { op: 'mark', step: 2, mark: 'wrong', on: true }, { op: 'mark', step: 2, mark: 'redundant', on: true }, { op: 'delete', steps: [3] }, { op: 'thought', step: 4, text: 'The code, then the city.' }, { op: 'action', step: 4, action: 0, value: { type: 'type', text: 'K7-204\tLisboa\n' } }]);
      fake.replay = (_r, revision) => ({ revision, at: 0, rollout: 'r-000200', outcome: 'failure', reward: 0, report: { checks: [{ what: 'field City', expected: 'Lisbon', found: 'Lisboa', score: 0 }, { what: 'field Code', expected: 'K7-204', found: 'K7-204', score: 1 }] }, pooled: false, why: 'no success' });
      fake.queue = { items: [{ row: rich.row, priority: 3, why: 'desk/choose-fruit: 1 of 40 succeeded', reviewed: false }], total: 41, reviewed: 12 };
      const t = await show({ theme, input: { ...input, queue: true } }), p = await ready(t);
      await p.keyboard.press('v');
      await p.locator('.an-verdict .ds-outcome').waitFor();
      await goTo(t, 5);
      await t.until("[...document.querySelectorAll('.ds-thumb img')].every((i) => i.complete)");
      if (shots) await p.screenshot({ path: join(shots, `annotate-${theme}.png`) });
      expect(await t.axe(axe)).toEqual([]);
      await p.locator('.an-replays summary').click();
      await goTo(t, 8);
      await p.locator('.an-handle').first().focus();
      await p.keyboard.press('Shift+ArrowDown');
      if (shots) await p.screenshot({ path: join(shots, `annotate-${theme}-replays.png`) });
      expect(await t.axe(axe)).toEqual([]);
      await p.keyboard.press('Escape');
      await p.keyboard.press('Escape');
      await p.keyboard.press('g');
      await p.locator('.ds-options [role=option]').first().waitFor();
      expect(await t.axe(axe)).toEqual([]);
      await p.keyboard.press('Escape');
      await p.keyboard.press(']');
      await p.locator('.an-end').waitFor();
      expect(await t.axe(axe)).toEqual([]);
    });

    it.each([{ width: 560, height: 900 }, { width: 1280, height: 560 }, { width: 820, height: 800 }])('beside another editor and in a low panel nothing is cut off: $width x $height', async (size) => {
      fake.edit(rollout, 0, [{ op: 'outcome', value: 'success', reason: 'The verifier looked before the dialog had closed.' }, { op: 'tags', tags: ['misread screen', 'popup'] }, { op: 'mark', step: 0, mark: 'key', on: true }]);
      const t = await show({ ...size }), p = await ready(t);
      await t.until("[...document.querySelectorAll('.ds-thumb img')].every((i) => i.complete)");
      if (shots) await p.screenshot({ path: join(shots, `annotate-${size.width}x${size.height}.png`) });
      await expect.poll(() => read(t, 'document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      await expect.poll(() => read(t, "document.querySelector('.ds-box').getBoundingClientRect().height")).toBeGreaterThanOrEqual(120);
      expect(await t.axe(axe)).toEqual([]);
    });
  });

  describe('edits', () => {
    it('by keyboard: marks, delete and restore, trim, split, thought, text; each is one revision', async () => {
      const t = await show(), p = await ready(t), k = p.keyboard;
      await k.press('k'); await saved(t, 1);
      await t.until("document.querySelector('.ds-shot.selected .ds-chip.key')?.textContent === 'key'");
      await k.press('ArrowRight'); await on(t, 2);
      await k.press('r'); await k.press('w'); await saved(t, 3);
      await t.until("[...document.querySelectorAll('.ds-shot.selected .ds-chip')].map((x) => x.textContent).join() === 'redundant,wrong'");
      await t.until("document.querySelectorAll('.ds-time-bars .ds-time-notes path').length === 3");
      await expect.poll(() => p.getByRole('slider').getAttribute('aria-valuetext')).toContain('marked redundant and wrong');
      await k.press('w'); await saved(t, 4);
      await k.press('x'); await saved(t, 5);
      await t.until("document.querySelector('.ds-shot.selected').classList.contains('deleted') && document.querySelector('.ds-shot.selected').textContent.includes('deleted')");
      await on(t, 2);
      await k.press('x'); await saved(t, 6);
      await k.press('i'); await k.press('Control+A'); await k.type('Look again.'); await k.press('Control+Enter');
      await saved(t, 7);
      await goTo(t, 5);
      await k.press('a'); await k.press('Control+A'); await k.type('K7'); await k.press('Control+Enter');
      await saved(t, 8);
      await k.press('ArrowRight'); await k.press('ArrowRight'); await on(t, 7);
      await k.press('a'); await k.press('Control+A'); await k.type('ctrl + shift+End'); await k.press('Enter');
      await saved(t, 9);
      await k.press('<'); await saved(t, 10);
      await goTo(t, 10); await k.press('>'); await saved(t, 11);
      await goTo(t, 9); await k.press('/'); await saved(t, 12);
      await t.until("document.querySelector('.ds-shot').getAttribute('aria-setsize') === '8'");
      expect(ops()).toEqual([
        { op: 'mark', step: 0, mark: 'key', on: true }, { op: 'mark', step: 1, mark: 'redundant', on: true }, { op: 'mark', step: 1, mark: 'wrong', on: true }, { op: 'mark', step: 1, mark: 'wrong', on: false },
        { op: 'delete', steps: [1] }, { op: 'restore', steps: [1] }, { op: 'thought', step: 1, text: 'Look again.' }, { op: 'action', step: 4, action: 0, value: { type: 'type', text: 'K7' } },
        { op: 'action', step: 6, action: 0, value: { type: 'hotkey', keys: ['ctrl', 'shift', 'end'] } }, { op: 'delete', steps: [0, 1, 2, 3, 4, 5] }, { op: 'delete', steps: [10, 11] }, { op: 'split', step: 8 },
      ]);
      await p.getByRole('button', { name: /r-000102\/b/ }).click();
      await expect.poll(() => t.actions.at(-1)).toEqual({ action: 'openTrajectory', run, rollout: 'r-000102/b' });
    });

    it('by pointer: outcome with its reason beside the verdict, tags with completion, note, marks, delete, trim', async () => {
      const t = await show(), p = await ready(t);
      await p.getByRole('button', { name: 'Success', exact: true }).click();
      await t.until("document.querySelector('.an-state').textContent === 'As recorded'");
      const reason = p.getByRole('textbox', { name: 'Reason for the corrected outcome' });
      await reason.fill('It was done.');
      await p.locator('.ds-detail h2').click();
      await saved(t, 1);
      await expect.poll(() => p.locator('.ds-badge-slot').innerText()).toMatch(/Success[^]*by a person; verifier: failure/);
      await p.getByRole('combobox', { name: 'Add a tag' }).fill('screen');
      await p.getByRole('option', { name: 'misread screen' }).click();
      await saved(t, 2);
      await p.getByRole('combobox', { name: 'Add a tag' }).fill('new one');
      await p.keyboard.press('Enter');
      await saved(t, 3);
      await p.getByRole('button', { name: 'Remove tag misread screen' }).click();
      await saved(t, 4);
      await p.getByRole('textbox', { name: 'Note' }).fill('Worth a look.');
      await p.locator('.ds-detail h2').click();
      await saved(t, 5);
      await p.getByRole('button', { name: 'Wrong' }).click(); await saved(t, 6);
      await p.getByRole('button', { name: 'All after' }).click(); await saved(t, 7);
      await p.locator('.ds-shot').nth(2).click(); await on(t, 3);
      await p.getByRole('button', { name: 'Restore' }).click(); await saved(t, 8);
      await p.getByRole('button', { name: /^As verified/ }).click(); await saved(t, 9);
      await expect.poll(() => p.locator('.ds-badge-slot').innerText()).toBe('Failure');
      expect(ops()).toEqual([
        { op: 'outcome', value: 'success', reason: 'It was done.' }, { op: 'tags', tags: ['misread screen'] }, { op: 'tags', tags: ['misread screen', 'new one'] }, { op: 'tags', tags: ['new one'] }, { op: 'note', text: 'Worth a look.' },
        { op: 'mark', step: 0, mark: 'wrong', on: true }, { op: 'delete', steps: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] }, { op: 'restore', steps: [2] }, { op: 'outcome', value: null, reason: '' },
      ]);
    });

    it('a text that makes no action is refused with words, and is not lost; Escape puts the saved one back', async () => {
      const t = await show(), p = await ready(t);
      await goTo(t, 7);
      const keys = p.getByRole('textbox', { name: 'Keys' });
      await keys.fill('ctrl++');
      await p.keyboard.press('Enter');
      await t.until("document.querySelector('.an-action .ds-field-trouble').textContent.includes('joined by +')");
      await expect.poll(() => keys.inputValue()).toBe('ctrl++');
      expect(await t.axe(axe)).toEqual([]);
      await keys.focus();
      await p.keyboard.press('Escape');
      await expect.poll(() => keys.inputValue()).toBe('ctrl+a');
      expect(ops()).toEqual([]);
    });

    it('typing that rests is saved without leaving the field', async () => {
      const t = await show(), p = await ready(t);
      await p.getByRole('textbox', { name: 'Thought' }).fill('First the list.');
      await saved(t, 1);
      await expect.poll(() => read(t, 'document.activeElement.tagName')).toBe('TEXTAREA');
      expect(ops()).toEqual([{ op: 'thought', step: 0, text: 'First the list.' }]);
    });
  });

  describe('points', () => {
    /** Presses on a handle and moves by picture pixels at the zoom there is. */
    const drag = async (t: TestPage, handle: number, dx: number, dy: number): Promise<void> => {
      const b = (await t.page.locator('.an-handle').nth(handle).boundingBox())!, scale = await read<number>(t, "new DOMMatrix(getComputedStyle(document.querySelector('.ds-surface')).transform).a"), m = t.page.mouse;
      const x = b.x + b.width / 2, y = b.y + b.height / 2;
      await m.move(x + 3, y - 2); await m.down(); await m.move(x + 3 + (dx * scale) / 2, y - 2 + dy * scale, { steps: 3 }); await m.move(x + 3 + dx * scale, y - 2 + dy * scale);
    };
    it('dragged at several zooms, the point lands on the true pixel', async () => {
      const t = await show(), p = await ready(t), k = p.keyboard;
      let at = { x: 194, y: 154 }, n = 0;
      for (const [zoom, dx, dy] of [['0', 37, -21], ['1', -11, 48], ['+', 13, 9], ['+', -5, -7]] as const) {
        await p.locator('[role=listbox]').first().focus();
        const scale = await read<string>(t, "document.querySelector('.ds-scale').textContent");
        await k.press(zoom);
        if (zoom === '+') await t.until(`document.querySelector('.ds-scale').textContent !== ${JSON.stringify(scale)}`);
        if (zoom === '1') await t.until("document.querySelector('.ds-scale').textContent === '100 %'");
        await drag(t, 0, dx, dy);
        at = { x: at.x + dx, y: at.y + dy };
        await t.until(`document.querySelector('.an-handle').getAttribute('aria-label').startsWith('Click at ${at.x}, ${at.y}.')`);
        expect(fake.revision(rollout)).toBe(n);
        await p.mouse.up();
        await saved(t, ++n);
        expect(ops().at(-1)).toEqual({ op: 'action', step: 0, action: 0, value: { type: 'click', at } });
      }
    });
    it('by the keyboard; the edges hold; Escape cancels, also a drag', async () => {
      const t = await show(), p = await ready(t), k = p.keyboard;
      await goTo(t, 8);
      await k.press('a');
      await t.until("document.activeElement.getAttribute('aria-label')?.startsWith('Start of the drag at 158, 147')");
      for (let i = 0; i < 20; i++) await k.press('Shift+ArrowLeft');
      await k.press('ArrowDown');
      await t.until("document.activeElement.getAttribute('aria-label').startsWith('Start of the drag at 0, 148')");
      await k.press('Escape');
      await t.until("document.activeElement.getAttribute('aria-label').startsWith('Start of the drag at 158, 147')");
      await k.press('Tab');
      await k.press('ArrowUp'); await k.press('Shift+ArrowRight'); await k.press('Enter');
      await saved(t, 1);
      expect(ops()).toEqual([{ op: 'action', step: 7, action: 0, value: { type: 'drag', from: { x: 158, y: 147 }, to: { x: 260, y: 148 } } }]);
      await t.until("document.activeElement.getAttribute('role') === 'listbox'");
      await drag(t, 0, 40, 40);
      await k.press('Escape');
      await p.mouse.up();
      await t.until("document.querySelector('.an-handle').getAttribute('aria-label').startsWith('Start of the drag at 158, 147')");
      expect(fake.revision(rollout)).toBe(1);
      await p.locator('[role=listbox]').first().focus();
      await k.press('b');
      await t.until("document.querySelectorAll('.an-handle').length === 0");
    });
  });

  describe('autosave', () => {
    it('under slow answers edits show at once, go out one by one and in order, and undo takes the unsent one first', async () => {
      const g = gate();
      fake.before = (m) => (m === 'annotation/edit' ? g.wait : undefined);
      const t = await show(), p = await ready(t), k = p.keyboard;
      await k.press('k'); await k.press('ArrowRight'); await on(t, 2); await k.press('w'); await k.press('ArrowRight'); await on(t, 3); await k.press('r');
      await t.until("document.querySelectorAll('.ds-chip').length === 3 && document.querySelector('.an-state').textContent === 'Saving…'");
      expect(t.requests.filter((r) => r.method === 'annotation/edit').length).toBe(1);
      await k.press('Control+z');
      await t.until("document.querySelectorAll('.ds-chip').length === 2");
      g.open();
      await saved(t, 2);
      expect(t.requests.filter((r) => r.method === 'annotation/edit').map((r) => [r.params['base'], (r.params['ops'] as AnnotationOp[])[0]])).toEqual([[0, { op: 'mark', step: 0, mark: 'key', on: true }], [1, { op: 'mark', step: 1, mark: 'wrong', on: true }]]);
      expect(t.requests.some((r) => r.method === 'annotation/undo')).toBe(false);
      await k.press('Control+Shift+Z');
      await saved(t, 3);
      expect(ops().at(-1)).toEqual({ op: 'mark', step: 2, mark: 'redundant', on: true });
    });

    it('undo and redo over revisions, also after a reload', async () => {
      const t = await show(), p = await ready(t), k = p.keyboard;
      await k.press('k'); await saved(t, 1); await k.press('x'); await saved(t, 2);
      await k.press('Control+z'); await saved(t, 1);
      await t.until("!document.querySelector('.ds-shot.selected').classList.contains('deleted')");
      await p.reload();
      await ready(t); await saved(t, 1);
      await p.keyboard.press('Control+y'); await saved(t, 2);
      await p.keyboard.press('Control+z'); await p.keyboard.press('Control+z');
      await t.until("document.querySelector('.an-state').textContent === 'As recorded'");
      await p.keyboard.press('Control+z');
      await says(t, 'Nothing to undo');
      expect(ops()).toEqual([]);
    });

    it('a save that fails loses nothing: it is said, kept over a reload, and sent again when the runtime is back', async () => {
      let down = true;
      fake.before = (m) => { if (down && m.startsWith('annotation/edit')) throw { kind: 'daemon.lost', message: 'The runtime does not answer.', remedy: 'It is being started again.' }; };
      const t = await show(), p = await ready(t);
      await p.getByRole('textbox', { name: 'Note' }).fill('Do not lose this.');
      await p.locator('.ds-detail h2').click();
      await t.until("document.querySelector('.an-state').textContent === 'Not saved'");
      await expect.poll(() => p.locator('.an-banners').innerText()).toContain('It is being started again. What you did is kept here');
      expect(await t.axe(axe)).toEqual([]);
      await p.getByRole('button', { name: 'Wrong' }).click();
      await t.until("document.querySelectorAll('.ds-chip.wrong').length === 1");
      await p.reload();
      await ready(t);
      await t.until("document.querySelector('.an-state').textContent === 'Not saved' && document.querySelectorAll('.ds-chip.wrong').length === 1");
      await expect.poll(() => p.getByRole('textbox', { name: 'Note' }).inputValue()).toBe('Do not lose this.');
      expect(ops()).toEqual([]);
      down = false;
      await t.post({ type: 'daemon', state: 'reconnecting' });
      await t.post({ type: 'daemon', state: 'ready' });
      await saved(t, 2);
      expect(ops()).toEqual([{ op: 'note', text: 'Do not lose this.' }, { op: 'mark', step: 0, mark: 'wrong', on: true }]);
      await expect.poll(() => JSON.stringify(t.saved)).not.toContain('Do not lose this.');
    });

    it('an answer that was lost is not an edit made twice', async () => {
      let lost = true;
      const t = await show({ answer: async (m, p) => { const a = await fake.answer(pictures)(m, p); if (lost && m === 'annotation/edit') { lost = false; throw { kind: 'daemon.lost', message: 'The connection was lost.', remedy: '' }; } return a; } }), p = await ready(t);
      await p.keyboard.press('k');
      await p.getByRole('button', { name: 'Try again' }).click();
      await saved(t, 1);
      expect(ops()).toEqual([{ op: 'mark', step: 0, mark: 'key', on: true }]);
    });

    it('typed and not yet saved when the page goes: it is there again', async () => {
      const t = await show(), p = await ready(t);
      await p.getByRole('textbox', { name: 'Note' }).fill('Half a sent');
      await p.reload();
      await ready(t); await saved(t, 1);
      expect(ops()).toEqual([{ op: 'note', text: 'Half a sent' }]);
    });

    it('a page that goes keeps what was typed in every state it leaves behind: any may be its last', async () => {
      const t = await show(), p = await ready(t), before = t.kept.length;
      await p.getByRole('textbox', { name: 'Note' }).fill('Half a sent');
      await t.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide'))");
      await saved(t, 1);
      const kept = t.kept.slice(before).map((x) => JSON.stringify(x)), last = kept.findLastIndex((x) => x.includes('Half a sent'));
      expect(last).toBeGreaterThan(0);
      expect(kept.slice(0, last).filter((x) => !x.includes('Half a sent'))).toEqual([]);
    });

    it('another window was faster: its revision is shown, mine waits on it until it is put on top or discarded', async () => {
      const t = await show(), p = await ready(t);
      fake.before = (m) => { if (m === 'annotation/edit' && fake.revision(rollout) === 0) fake.edit(rollout, 0, [{ op: 'tags', tags: ['theirs'] }]); };
      await p.keyboard.press('k');
      await t.until("document.querySelector('.an-state').textContent === 'Your edit waits'");
      await expect.poll(() => p.locator('.an-banners').innerText()).toContain('Another window made revision 1');
      await t.until("document.querySelector('.ds-tag span')?.textContent === 'theirs' && document.querySelectorAll('.ds-chip.key').length === 1");
      expect(await t.axe(axe)).toEqual([]);
      await p.getByRole('button', { name: 'Put mine on top' }).click();
      await saved(t, 2);
      expect(ops()).toEqual([{ op: 'tags', tags: ['theirs'] }, { op: 'mark', step: 0, mark: 'key', on: true }]);
      fake.before = (m) => { if (m === 'annotation/edit' && fake.revision(rollout) === 2) fake.edit(rollout, 2, [{ op: 'note', text: 'theirs' }]); };
      await p.keyboard.press('w');
      await p.getByRole('button', { name: 'Discard mine' }).click();
      await saved(t, 3);
      await t.until("document.querySelectorAll('.ds-chip.wrong').length === 0");
    });

    it('another window’s edit appears; our own, told of again, asks nothing', async () => {
      const t = await show(), p = await ready(t);
      await p.keyboard.press('k'); await saved(t, 1);
      const asked = t.requests.filter((r) => r.method === 'annotation/get').length;
      await t.post({ type: 'annotation', run, rollout, revision: 1 });
      fake.edit(rollout, 1, [{ op: 'note', text: 'From the other window.' }]);
      await t.post({ type: 'annotation', run, rollout, revision: 2 });
      await saved(t, 2);
      await expect.poll(() => p.getByRole('textbox', { name: 'Note' }).inputValue()).toBe('From the other window.');
      expect(t.requests.filter((r) => r.method === 'annotation/get').length).toBe(asked + 1);
      fake.verdict(rollout, { revision: 2, at: 0, outcome: 'failure', reward: 0 });
      await t.post({ type: 'annotation', run, rollout, revision: 2 });
      await t.until("document.querySelector('.an-verdict')?.textContent.includes('reward 0')");
    });
  });

  describe('where nothing can be edited', () => {
    it('a locked trajectory says why and takes no edit', async () => {
      fake = new FakeAnnotations().add(rich, { locked: { message: 'Another process writes this run.', remedy: 'Annotate it when that has ended.' } });
      const t = await show(), p = await ready(t);
      await expect.poll(() => p.locator('.an-banners').innerText()).toContain('Annotate it when that has ended.');
      for (const k of ['k', 'x', '<', 'o', 'v', 'Control+z']) await p.keyboard.press(k);
      await says(t, 'Another process writes this run.');
      expect(await t.axe(axe)).toEqual([]);
      expect(t.requests.filter((r) => !/get$|list$|thumbnails$/.test(r.method))).toEqual([]);
    });
    it('a file and a live rollout say why not; when it ends, the tools come', async () => {
      const file = await show({ daemon: 'stopped', input: { kind: 'inspector', rollout, document: { ...rich, live: false } } });
      await file.page.locator('.ds-shot.selected').waitFor();
      await file.page.keyboard.press('e');
      await expect.poll(() => file.page.locator('.an-banners').innerText()).toContain('opened from a file');
      expect(await file.axe(axe)).toEqual([]);
      expect(file.requests).toEqual([]);
      await file.close();
      const live = view(plans.slice(0, 3), session.dir, { outcome: 'running', formed: false });
      let now: TrajectoryView = live;
      const t = await show({ answer: (m, p) => (m === 'trajectory/get' ? now : fake.answer(pictures)(m, p)) });
      await expect.poll(() => t.page.locator('.an-banners').innerText()).toContain('still runs');
      now = rich;
      await t.post({ type: 'events', run, events: [{ seq: 6100, at: 0, type: 'ended', row: rich.row }], nextSeq: 6101, live: true, ended: true });
      await t.page.getByRole('button', { name: 'Wrong' }).waitFor();
      await t.page.keyboard.press('k'); await saved(t, 1);
    });
    it('annotations that cannot be read are said, and trying again works', async () => {
      let broken = true;
      fake.before = (m) => { if (broken && m === 'annotation/get') throw { kind: 'store.damaged', message: 'The annotations are damaged.', remedy: 'See the log.' }; };
      const t = await show();
      await t.until("document.querySelector('.an-state')?.textContent === 'Cannot be read'");
      expect(await t.axe(axe)).toEqual([]);
      broken = false;
      await t.page.getByRole('button', { name: 'Try again' }).click();
      await t.until("document.querySelector('.an-state').textContent === 'As recorded'");
    });
    it('annotate mode off shows the recording; on again, the revision', async () => {
      fake.edit(rollout, 0, [{ op: 'delete', steps: [0] }, { op: 'mark', step: 1, mark: 'key', on: true }]);
      const t = await show({ input: { kind: 'inspector', run, rollout } }), p = t.page;
      await p.locator('.ds-shot.selected').waitFor();
      await p.getByRole('button', { name: 'Annotate', exact: true }).click();
      await t.until("document.querySelectorAll('.ds-shot.deleted').length === 1");
      await p.keyboard.press('e');
      await t.until("document.querySelectorAll('.ds-shot.deleted, .ds-chip, .an-handle').length === 0 && !document.querySelector('.an-bar').checkVisibility()");
      await expect.poll(() => p.locator('.ds-detail').innerText()).toContain("click(start_box='(194,154)')");
      await expect.poll(() => t.saved).toMatchObject({ input: { annotate: false } });
    });
  });

  describe('replay and pool', () => {
    it('a replay shows its progress, can be watched and cancelled; the verdict comes with the verifier’s report', async () => {
      const g = gate();
      fake.replay = async (_r, revision) => { await g.wait; return { revision, at: 0, rollout: 'r-000200', outcome: 'success', reward: 1, report: { checks: [{ what: 'field City', expected: 'Lisbon', found: 'Lisbon', score: 1 }] }, pooled: true }; };
      const t = await show(), p = await ready(t);
      await p.keyboard.press('x'); await saved(t, 1);
      await p.keyboard.press('v');
      await t.until("document.querySelector('.an-progress')?.textContent.includes('a fresh desktop is set up')");
      await t.post({ type: 'annotation', run, rollout, replay: { step: 3, of: 11, desktop: 'desk-9' } });
      await t.until("document.querySelector('.an-progress').textContent.includes('Replaying step 3 of 11') && document.querySelector('.an-progress progress').value === 3");
      expect(await t.axe(axe)).toEqual([]);
      await p.getByRole('button', { name: 'Watch' }).click();
      await expect.poll(() => t.actions.at(-1)).toEqual({ action: 'command', command: 'watchDesktop', argument: 'desk-9' });
      g.open();
      await t.until("document.querySelector('.an-verdict')?.textContent.includes('reward 1 · 1 of 1 checks passed · in the experience pool')");
      await t.until("!document.querySelector('.an-progress').checkVisibility()");
      await p.locator('.an-replays summary').click();
      await expect.poll(() => p.locator('.an-replays').innerText()).toMatch(/Revision 1[^]*field City/);
      await p.getByRole('button', { name: 'Open the recorded replay' }).click();
      await expect.poll(() => t.actions.at(-1)).toEqual({ action: 'openTrajectory', run, rollout: 'r-000200' });
      await p.keyboard.press('ArrowRight'); await on(t, 2); await p.keyboard.press('k'); await saved(t, 2);
      await t.until("document.querySelector('.an-verdict').textContent === 'This revision was not replayed yet.'");
    });
    it('cancelled, it says so; failed, it says why; another window’s replay is seen', async () => {
      const cancelled = gate();
      fake.replay = async () => { await cancelled.wait; throw { kind: 'cancelled', message: 'Cancelled.', remedy: '' }; };
      const t = await show(), p = await ready(t);
      await p.getByRole('button', { name: 'Replay and verify' }).click();
      await p.getByRole('button', { name: 'Cancel' }).click();
      await expect.poll(() => t.cancelled.length).toBe(1);
      cancelled.open();
      await p.getByRole('button', { name: 'Replay and verify' }).waitFor();
      await says(t, 'Replay cancelled');
      fake.replay = () => { throw { kind: 'desktop.start', message: 'No desktop came up.', remedy: 'Check this machine.' }; };
      await p.getByRole('button', { name: 'Replay and verify' }).click();
      await t.until("document.querySelector('.an-trouble').textContent.includes('No desktop came up. Check this machine.')");
      expect(await t.axe(axe)).toEqual([]);
      await t.post({ type: 'annotation', run, rollout, replay: { step: 1, of: 12 } });
      await t.until("document.querySelector('.an-progress').textContent.includes('Replaying step 1 of 12') && ![...document.querySelectorAll('.an-progress vscode-button')].some((b) => b.checkVisibility())");
      await t.post({ type: 'annotation', run, rollout });
      await p.getByRole('button', { name: 'Replay and verify' }).waitFor();
    });
    it('a failure joins the pool only with a reason, a success at once', async () => {
      const t = await show(), p = await ready(t);
      await p.keyboard.press('l');
      await p.keyboard.press('Enter');
      await t.until("document.querySelector('.an-verify .ds-field-trouble').textContent.includes('only with a reason') && document.activeElement.placeholder.startsWith('Why, without')");
      expect(await t.axe(axe)).toEqual([]);
      expect(t.requests.some((r) => r.method === 'pool/add')).toBe(false);
      await p.keyboard.type('The check is wrong.');
      await p.keyboard.press('Enter');
      await p.getByRole('button', { name: 'In the pool' }).waitFor();
      expect(t.requests.find((r) => r.method === 'pool/add')?.params).toEqual({ run, rollout, override: 'The check is wrong.' });
      await t.close();
      fake = new FakeAnnotations().add(view(plans, session.dir));
      const good = await show();
      await ready(good);
      await good.page.getByRole('button', { name: 'Add to pool' }).click();
      await good.page.getByRole('button', { name: 'In the pool' }).waitFor();
      expect(good.requests.find((r) => r.method === 'pool/add')?.params).toEqual({ run, rollout });
    });
  });

  describe('review queue', () => {
    const names = ['r-000102', 'r-000101', 'r-000105'];
    const others = (): TrajectoryView[] => names.map((r, i) => (i ? view(plans.slice(0, 4 + i), session.dir, { rollout: r, outcome: 'failure' }) : rich));
    beforeEach(() => {
      fake = new FakeAnnotations();
      for (const v of others()) fake.add(v);
      fake.queue = { items: others().map((v, i) => ({ row: v.row, priority: 9 - i, why: `Nobody has solved this task yet: ${40 - i} failures.`, reviewed: false })), total: 5, reviewed: 2 };
    });
    const queued: PageInput = { kind: 'inspector', run, rollout: names[0]!, annotate: true, queue: true };
    const at = (t: TestPage, n: number, name: string): Promise<void> => t.until(`document.querySelector('.an-queue strong').textContent === '${n} of 3' && document.querySelector('.ds-head').dataset.rollout === '${name}'`);

    it('from first to last by the keyboard alone: the outcome in one key and its reason, a tag, reviewed and on', async () => {
      const t = await show({ input: queued }), p = await ready(t), k = p.keyboard;
      await at(t, 1, names[0]!);
      await expect.poll(() => p.locator('.an-why').innerText()).toBe('Nobody has solved this task yet: 40 failures.');
      await k.press('o'); await k.type('It worked.'); await k.press('Enter');
      await saved(t, 1);
      await k.press('g'); await k.type('popup'); await k.press('Enter'); await k.press('Escape');
      await saved(t, 2);
      await k.press('Enter');
      await at(t, 2, names[1]!);
      await expect.poll(() => t.actions).toEqual([{ action: 'annotate', run, rollout: names[1], queue: true }]);
      // The host follows; the page is there already.
      await t.post({ type: 'show', input: { ...queued, rollout: names[1]! }, roots: [{ path: session.dir, uri: await read<string>(t, 'location.origin') + `/root${session.dir}` }] });
      await ready(t);
      await k.press(']'); await at(t, 3, names[2]!);
      await k.press('['); await at(t, 2, names[1]!);
      await k.press('w');
      await saved(t, 1);
      await k.press('.'); await at(t, 3, names[2]!);
      await t.until("document.querySelector('.an-state').textContent === 'As recorded'");
      await k.press('Enter');
      await t.until("document.querySelector('.an-end').checkVisibility() && document.querySelector('.an-end').textContent.includes('That was the last one. 2 were reviewed in this walk, 4 in all. One was passed by.')");
      await expect.poll(() => names.map((n) => fake.ops(n))).toEqual([
        [{ op: 'outcome', value: 'success', reason: 'It worked.' }, { op: 'tags', tags: ['popup'] }, { op: 'reviewed', value: true }], [{ op: 'mark', step: 0, mark: 'wrong', on: true }], [{ op: 'reviewed', value: true }],
      ]);
      await expect.poll(() => t.saved).toMatchObject({ input: { rollout: names[2], annotate: true, queue: true } });
      expect(await t.axe(axe)).toEqual([]);
      await p.getByRole('button', { name: 'Go through those' }).click();
      await t.until(`document.querySelector('.ds-head').dataset.rollout === '${names[1]}'`);
      await p.getByRole('button', { name: 'Next', exact: true }).waitFor();
    });
    it('the next one is read ahead: it shows while the runtime takes its time', async () => {
      const t = await show({ input: queued }), p = await ready(t);
      await at(t, 1, names[0]!);
      await expect.poll(() => t.requests.some((r) => r.method === 'trajectory/get' && r.params['rollout'] === names[1])).toBe(true);
      await expect.poll(() => t.requests.some((r) => r.method === 'annotation/get' && r.params['rollout'] === names[1])).toBe(true);
      await t.page.evaluate('new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))');
      const g = gate();
      fake.before = () => g.wait;
      await p.keyboard.press(']');
      await at(t, 2, names[1]!);
      await t.until("document.querySelector('.ds-shot').getAttribute('aria-setsize') === '5' && document.querySelector('.an-tools').checkVisibility()");
      g.open();
    });
    it('an edit that cannot be saved goes along and is said, and is saved when the runtime is back', async () => {
      let down = true;
      fake.before = (m) => { if (down && m === 'annotation/edit') throw { kind: 'daemon.lost', message: 'The runtime does not answer.', remedy: '' }; };
      const t = await show({ input: queued }), p = await ready(t);
      await at(t, 1, names[0]!);
      await p.keyboard.press('k');
      await t.until("document.querySelector('.an-state').textContent === 'Not saved'");
      await p.keyboard.press(']');
      await at(t, 2, names[1]!);
      await t.until("document.querySelector('.an-banners').textContent.includes('1 edit of other trajectories is not saved yet')");
      down = false;
      await t.post({ type: 'daemon', state: 'ready' });
      await expect.poll(() => fake.ops(names[0]!)).toEqual([{ op: 'mark', step: 0, mark: 'key', on: true }]);
      await t.until("document.querySelector('.an-banners').childElementCount === 0");
    });
    it('an empty queue and one that cannot be read have words', async () => {
      fake.queue = { items: [], total: 3, reviewed: 3 };
      const t = await show({ input: queued });
      await t.until("document.querySelector('.an-end')?.textContent.includes('Nothing waits for a review.')");
      await t.page.getByRole('button', { name: 'Leave the queue' }).click();
      await t.until("!document.querySelector('.an-queue').checkVisibility() && document.querySelector('.an-bar').checkVisibility()");
      await t.close();
      let broken = true;
      fake.before = (m) => { if (broken && m === 'review/queue') throw { kind: 'store.io', message: 'The run cannot be read.', remedy: 'See the log.' }; };
      const bad = await show({ input: queued });
      await bad.until("document.querySelector('.an-why')?.textContent === 'The run cannot be read. See the log.'");
      expect(await bad.axe(axe)).toEqual([]);
      broken = false;
      fake.queue = { items: [{ row: rich.row, priority: 1, why: 'w', reviewed: false }], total: 1, reviewed: 0 };
      await bad.page.getByRole('button', { name: 'Try again' }).click();
      await bad.until("document.querySelector('.an-queue strong').textContent === '1 of 1'");
    });
  });

  it('whose steps they are is said in header, filmstrip and detail, by word and shape; the source of a replay is one click away', async () => {
    const mixed: TrajectoryView = { ...rich, row: { ...rich.row, assisted: true, provenance: 'human', of: 'r-000099@3', annotated: { revision: 2, outcome: 'success', edited: true, reviewed: true } }, steps: rich.steps.map((s, i) => (i === 1 || i === 2 ? { ...s, origin: 'human' as const, version: undefined, tokens: undefined } : i === 3 ? { ...s, origin: 'oracle' as const, version: undefined } : s)) };
    fake = new FakeAnnotations().add(mixed);
    const t = await show({ input: { kind: 'inspector', run, rollout } }), p = t.page;
    await p.locator('.ds-shot.selected').waitFor();
    await expect.poll(() => p.locator('.ds-head').innerText()).toMatch(/assisted: 2 of 12 steps by a person/);
    await expect.poll(() => p.locator('.ds-head').innerText()).toMatch(/corrected to success, edited, reviewed/);
    await t.until("[...document.querySelectorAll('.ds-version-name')].map((x) => x.textContent).join().startsWith('policy v12,a person,the oracle,policy v12')");
    await p.keyboard.press('ArrowRight');
    await t.until("document.querySelector('.ds-detail .ds-badges').textContent.includes('by a person') && document.querySelector('.ds-shot.selected').textContent.includes('by a person') && document.querySelector('.ds-shot.selected .codicon-person') !== null");
    if (shots) await p.screenshot({ path: join(shots, 'annotate-origins.png') });
    expect(await t.axe(axe)).toEqual([]);
    await p.getByRole('button', { name: 'r-000099, revision 3' }).click();
    await expect.poll(() => t.actions.at(-1)).toEqual({ action: 'openTrajectory', run, rollout: 'r-000099' });
  });

  it('every key of annotate mode is in the dialog of shortcuts, and none is there twice', async () => {
    const t = await show(), p = await ready(t);
    await p.keyboard.press('?');
    await p.locator('dialog[open]').waitFor();
    const keys = await read<string[]>(t, "[...document.querySelectorAll('.ds-keys dt')].flatMap((x) => x.textContent.split(' or '))");
    expect(new Set(keys).size).toBe(keys.length);
    for (const k of ['e', 'o', 'k', 'r', 'w', 'x', '<', '>', '/', 'Ctrl Z', 'Ctrl Shift Z', 'Enter', ']', '[']) expect(keys).toContain(k);
    if (shots) await p.screenshot({ path: join(shots, 'annotate-keys.png') });
    expect(await t.axe(axe)).toEqual([]);
  });
});
