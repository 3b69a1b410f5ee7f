import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../../runtime/protocol/types.js';
import type { PageInput } from '../../webview/protocol.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import { themes, type Answer, type TestPage } from '../helpers/pages/page.js';
import { PageSession } from '../helpers/pages/session.js';
import { TableData } from '../helpers/pages/tableData.js';
import { failuresOn, stripOn } from '../helpers/pages/failureData.js';
import { richPlans, type Plan } from '../helpers/pages/trajectories.js';

const found = await openBrowser();
if ('why' in found) console.warn(`table page tests skipped: ${found.why}`);
const shots = process.env['DART_STUDIO_SHOTS'];

describe.skipIf('why' in found)('trajectory table', () => {
  const { axe } = found as RealBrowser,
    run = '/runs/demo',
    input: PageInput = { kind: 'table', run };
  let hashes: string[], plans: Plan[], data: TableData;
  const answer: Answer = (method, p) => {
    switch (method) {
      case 'trajectory/columns':
        return data.part(p as { limit: number });
      case 'trajectory/frames':
        return {
          frames: Object.fromEntries(
            (p['rollouts'] as string[]).map((r) => [r, hashes[Number(r.slice(2)) % hashes.length]]),
          ),
        };
      case 'frame/thumbnails':
        return session.frames.answer(p);
      case 'run/failures':
        return failuresOn(plans, p['family'] as string | undefined);
      case 'trajectory/strips':
        return { strips: (p['rollouts'] as string[]).map((r, i) => stripOn(r, plans, i + 2)) };
      default:
        throw { kind: 'not.found', message: `No ${method}.`, remedy: '' };
    }
  };
  const session = new PageSession(
    found as RealBrowser,
    'table',
    () => ({ input, answer }),
    async (s) => {
      plans = await richPlans(s.frames);
      hashes = plans.map((x) => x.frame.hash);
      data = new TableData(1200);
    },
  );
  const show = session.show.bind(session);
  const counted = (t: TestPage, words: string): Promise<void> =>
    t.until(`document.querySelector('.tb-top [role=status]')?.textContent === ${JSON.stringify(words)}`);
  /** Texts of a column's cells in view, top first. */
  const column = (t: TestPage, name: string): Promise<string[]> =>
    t.page.evaluate<string[]>(
      `[...document.querySelectorAll('.tb-body .tb-row:not([hidden])')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((r) => r.querySelector('.tb-cell.tb-${name}').firstElementChild?.nextElementSibling?.textContent ?? r.querySelector('.tb-cell.tb-${name}').textContent)`,
    );
  const active = (t: TestPage): Promise<string> =>
    t.page.evaluate<string>("document.querySelector('.tb-row.active')?.ariaRowIndex ?? ''");

  it.each(themes)('%s: rows, pictures and the ledger; nothing that axe finds', async (theme) => {
    const t = await show({ theme });
    await counted(t, '1,200 trajectories');
    await t.until("document.querySelectorAll('img.tb-picture[src]').length > 10");
    await t.until("[...document.querySelectorAll('img.tb-picture[src]')].every((i) => i.complete)");
    if (shots) await t.page.screenshot({ path: join(shots, `table-${theme}.png`) });
    expect(await t.axe(axe)).toEqual([]);
    await t.page.locator('.tb-filter').first().click();
    await t.page.locator('.tb-popover').waitFor();
    if (shots) await t.page.screenshot({ path: join(shots, `table-menu-${theme}.png`) });
    expect(await t.axe(axe)).toEqual([]);
  });

  it('a partial score is said with the outcome, also where there is no room for it', async () => {
    const partly: Answer = (method, p) => {
      const given = answer(method, p) as ReturnType<TableData['part']>;
      if (method !== 'trajectory/columns') return given;
      const { columns } = given;
      return { ...given, columns: { ...columns, reward: columns.reward.map((x) => (x === 0 ? 0.25 : x)) } };
    };
    const t = await show({ answer: partly });
    await counted(t, '1,200 trajectories');
    const words = new Set(await column(t, 'outcome'));
    expect(words).toContain('Failure, 0.25');
    expect(words).toContain('Success');
    if (shots) await t.page.screenshot({ path: join(shots, 'table-partial.png') });
    const cut = t.page.getByRole('gridcell', { name: 'Failure, 0.25, step limit' }).first();
    await cut.hover();
    await expect.poll(() => cut.getAttribute('title')).toBe('Failure, 0.25, step limit');
  });

  it('sorts by a column, and the other way; rows without the number come last', async () => {
    const t = await show();
    await counted(t, '1,200 trajectories');
    const head = t.page.getByRole('columnheader', { name: /^Advantage/ });
    await head.getByRole('button', { name: 'Advantage', exact: true }).click();
    expect(await head.getAttribute('aria-sort')).toBe('descending');
    const values = (await column(t, 'advantage')).map((x) => Number(x.replace('−', '-')));
    expect(values.length).toBeGreaterThan(10);
    expect(values).toEqual([...values].sort((a, b) => b - a));
    await head.getByRole('button', { name: 'Advantage', exact: true }).click();
    expect((await column(t, 'advantage'))[0]).toMatch(/^−/);
    await t.page.getByRole('grid').press('Control+End');
    await t.until("document.querySelector('.tb-row.active')?.ariaRowIndex === '1201'");
    expect((await column(t, 'advantage')).at(-1)).toBe('');
  });

  it('every sign of the head is whole, whatever the list is sorted by', async () => {
    const t = await show();
    await counted(t, '1,200 trajectories');
    const heads = await t.page.locator('.tb-head .tb-cell.number .tb-sort').all(),
      cut = (): Promise<string[]> =>
        t.page.evaluate<string[]>(
          "[...document.querySelectorAll('.tb-head .tb-cell')].flatMap((c) => [...c.querySelectorAll('button, .codicon')].filter((e) => e.clientWidth > 0 && e.getBoundingClientRect().left < c.getBoundingClientRect().left + 1).map(() => c.textContent))",
        );
    expect(heads).toHaveLength(6);
    expect(await cut()).toEqual([]);
    for (const h of heads) {
      await h.click();
      await t.page.mouse.move(600, 700);
      expect(await cut()).toEqual([]);
    }
  });

  it('filters by what is ticked, by a range and by the ledger; each filter can be taken back', async () => {
    const t = await show();
    await counted(t, '1,200 trajectories');
    await t.page.getByRole('button', { name: 'Filter by Outcome' }).click();
    await t.page.getByRole('checkbox', { name: /^Failure/ }).click();
    await t.until("!document.querySelector('.tb-top [role=status]').textContent.startsWith('1,200')");
    expect(new Set(await column(t, 'outcome'))).toEqual(new Set(['Failure', 'Failure, step limit']));
    // It is told whole, and the tools above have room.
    expect(
      await t.page.evaluate<string[]>(
        "[...document.querySelectorAll('.tb-body .tb-row:not([hidden]) .tb-outcome span')].filter((s) => s.scrollWidth > s.clientWidth + 1 || s.getBoundingClientRect().right > s.closest('.tb-cell').getBoundingClientRect().right).map((s) => s.textContent)",
      ),
    ).toEqual([]);
    expect((await t.page.getByRole('toolbar').first().boundingBox())!.height).toBeGreaterThanOrEqual(16);
    await t.page.keyboard.press('Escape');
    await t.page.getByRole('button', { name: 'Filter by Steps' }).click();
    await t.page.getByLabel('At least').fill('25');
    await t.until("document.querySelectorAll('.tb-chip').length === 2");
    expect((await column(t, 'steps')).every((x) => Number(x) >= 25)).toBe(true);
    await t.page.keyboard.press('Escape');
    await t.page.locator('.tb-place', { hasText: 'trained' }).click();
    await t.until("document.querySelectorAll('.tb-chip').length === 3");
    expect(new Set(await column(t, 'ledger'))).toEqual(new Set(['trained']));
    expect(await t.page.locator('.tb-place[aria-pressed=true]').count()).toBe(1);
    await t.page.getByRole('button', { name: 'Remove filter: Outcome: Failure' }).click();
    await t.until("document.querySelectorAll('.tb-chip').length === 2");
    expect(new Set(await column(t, 'outcome')).size).toBeGreaterThan(1);
    await t.page.getByRole('button', { name: 'Clear filters' }).click();
    await counted(t, '1,200 trajectories');
    expect(t.saved).toMatchObject({ input: { kind: 'table', run: '/runs/demo', filter: {} } });
  });

  it('of a run that is over nothing is said to wait, and of one that goes on it is', async () => {
    const waiting = (t: TestPage): Promise<string> => t.page.locator('.tb-place.flight').first().innerText();
    const over = new TableData(200, false),
      t = await show({
        answer: (m, p) => (m === 'trajectory/columns' ? over.part(p as { limit: number }) : answer(m, p)),
      });
    await counted(t, '200 trajectories');
    expect(await waiting(t)).toContain('untrained when the run ended');
    const live = await show();
    await counted(live, '1,200 trajectories');
    expect(await waiting(live)).toContain('waiting for a batch');
  });

  it('by keyboard alone: rows and cells, typing searches, Enter opens, Esc shows all again', async () => {
    const t = await show(),
      k = t.page.keyboard;
    await counted(t, '1,200 trajectories');
    await t.until("document.activeElement?.getAttribute('role') === 'grid'");
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp', 'PageDown', 'ArrowRight']) await k.press(key);
    expect(Number(await active(t))).toBeGreaterThan(10);
    const pointed =
      "document.getElementById(document.querySelector('[role=grid]').getAttribute('aria-activedescendant'))";
    expect(await t.page.evaluate(`${pointed}.closest('.tb-row').classList.contains('active')`)).toBe(true);
    await k.press('Control+Home');
    expect(await active(t)).toBe('2');
    await k.press('Enter');
    await k.press('Control+Enter');
    await expect
      .poll(() => t.actions)
      .toEqual([
        { action: 'openTrajectory', run: '/runs/demo', rollout: 'r-001199' },
        { action: 'openTrajectory', run: '/runs/demo', rollout: 'r-001199', beside: true },
      ]);
    await k.type('calc 164');
    await t.until(
      "[...document.querySelectorAll('.tb-body .tb-row:not([hidden]) .tb-task > .tb-task')].every((x) => x.textContent === 'calc-sum#164')",
    );
    expect((await column(t, 'task')).length).toBeGreaterThan(0);
    await k.press('Shift+Tab');
    await t.page.getByRole('grid').focus();
    await k.press('Escape');
    await counted(t, '1,200 trajectories');
  });

  it('the active trajectory is exported and linked to, by button', async () => {
    const t = await show();
    await counted(t, '1,200 trajectories');
    await t.page.locator('.tb-grid').focus();
    await t.page.keyboard.press('ArrowDown');
    const title = await t.page.evaluate<string>(
      `(() => { const row = document.querySelector('.tb-row.active'); row.dispatchEvent(new Event('pointerenter'));
        return [...row.children].map((c) => c.title).find((x) => x.includes('\\n')); })()`,
    );
    await t.page.getByRole('button', { name: 'Export the active trajectory as HTML…' }).click();
    await t.page.getByRole('button', { name: 'Copy a link to the active trajectory' }).click();
    const rollout = title.split('\n').at(-1)!;
    expect(rollout).toMatch(/^r-/);
    await expect
      .poll(() => t.actions)
      .toEqual([
        { action: 'exportPage', run, rollout },
        { action: 'copyLink', run, rollout },
      ]);
  });

  it('the active trajectory is shared where it is seen, and there is one', async () => {
    const t = await show(),
      share = t.page.locator('.tb-tools');
    await counted(t, '1,200 trajectories');
    expect(await share.locator('[disabled]').count()).toBe(0);
    await t.page.getByRole('tab', { name: 'Failures' }).click();
    await share.waitFor({ state: 'hidden' });
    await t.page.getByRole('tab', { name: 'List' }).click();
    await share.waitFor({ state: 'visible' });
    await t.page.getByRole('grid').focus();
    await t.page.keyboard.type('nothing is called this');
    await t.until("document.querySelectorAll('.tb-tools [disabled]').length === 2");
  });

  it('versions of four digits are whole', async () => {
    const late: Answer = (method, p) => {
      const given = answer(method, p) as ReturnType<TableData['part']>;
      if (method !== 'trajectory/columns') return given;
      const { columns } = given,
        all = (v: number): number[] => columns.rollout.map(() => v);
      return { ...given, columns: { ...columns, versionMin: all(2499), versionMax: all(2500) } };
    };
    const t = await show({ answer: late });
    await counted(t, '1,200 trajectories');
    expect((await column(t, 'version'))[0]).toBe('v2499–2500');
    expect(
      await t.page.evaluate<string[]>(
        "[...document.querySelectorAll('.tb-body .tb-row:not([hidden]) .tb-cell.number')].filter((c) => c.scrollWidth > c.clientWidth).map((c) => c.textContent)",
      ),
    ).toEqual([]);
    // Where there is no room after all the end is cut, not the beginning.
    expect(await t.page.evaluate("getComputedStyle(document.querySelector('.tb-body .tb-version')).textOverflow")).toBe(
      'ellipsis',
    );
  });

  it('a filter is saved by name, kept by the editor, and chosen again', async () => {
    const t = await show({ input: { ...input, filter: { outcome: ['error'] } } });
    await t.until("document.querySelectorAll('.tb-chip').length === 1");
    await t.page.getByRole('button', { name: 'Saved filters' }).click();
    await t.page.getByLabel('Name of the filter').fill('Faults');
    await t.page.keyboard.press('Enter');
    const faults = { name: 'Faults', filter: { outcome: ['error'] } } as const,
      first = { name: 'First', filter: {} };
    await expect.poll(() => t.actions).toEqual([{ action: 'keepFilter', filter: faults }]);
    // Another table saved one, too.
    await t.post({ type: 'savedFilters', saved: [first, faults] });
    await t.page.getByRole('button', { name: 'Clear filters' }).click();
    await counted(t, '1,200 trajectories');
    await t.page.getByRole('button', { name: 'Saved filters' }).click();
    await t.page.locator('.tb-saved-name', { hasText: 'Faults' }).click();
    await t.until("document.querySelectorAll('.tb-chip').length === 1");
    await t.page.getByRole('button', { name: 'Saved filters' }).click();
    await t.page.getByRole('button', { name: 'Delete filter Faults' }).click();
    await expect.poll(() => t.actions.at(-1)).toEqual({ action: 'dropFilter', name: 'Faults' });
  });

  it('hidden and shown again: filter, view, order and active row are as they were', async () => {
    const t = await show();
    await counted(t, '1,200 trajectories');
    await t.page.getByRole('grid').focus();
    await t.page.keyboard.type('calc');
    await t.until("document.querySelectorAll('.tb-body .tb-row:not([hidden])').length > 3");
    await t.until("!document.querySelector('.tb-top [role=status]').textContent.startsWith('1,200')");
    const words = await t.page.locator('.tb-top [role=status]').innerText();
    await t.page.getByRole('grid').press('ArrowDown');
    await t.page.getByRole('grid').press('ArrowDown');
    const row = await active(t);
    expect(row).toBe('4');
    await expect.poll(() => t.saved).toMatchObject({ active: expect.stringMatching(/^r-/) as string });
    await t.page.reload();
    await counted(t, words);
    await t.until(`document.querySelector('.tb-row.active')?.ariaRowIndex === '${row}'`);
    expect(await t.page.evaluate("document.querySelector('.tb-search').value")).toBe('calc');
    await t.page.getByRole('tab', { name: 'Failures' }).click();
    await expect.poll(() => t.saved).toMatchObject({ input: { view: 'failures' } });
    await t.page.reload();
    await t.until("document.querySelector('#tb-tab-failures')?.ariaSelected === 'true'");
  });

  it('follows a run that goes on, and keeps its place', async () => {
    const t = await show();
    await counted(t, '1,200 trajectories');
    await expect.poll(() => t.subscriptions.at(-1)).toMatchObject({ run, sinceSeq: 10 });
    await t.page.getByRole('grid').press('ArrowDown');
    const row = {
      rollout: 'r-new',
      task: 'desk/form-one#7',
      family: 'desk/form-one',
      instruction: 'Fill it in',
      outcome: 'running',
      provenance: 'rollout',
      state: 'running',
      steps: 0,
      cap: 30,
      startedAt: Date.UTC(2027, 0, 1),
    } as const;
    const post = (seq: number, events: readonly object[]): Promise<void> =>
      t.post({
        type: 'events',
        run,
        events: events.map((e, i) => ({ seq: seq + i, at: 1, ...e })) as never,
        nextSeq: 99,
        live: true,
      });
    await post(10, [{ type: 'started', row }]);
    await counted(t, '1,201 trajectories');
    await expect.poll(async () => (await column(t, 'outcome'))[0]).toBe('Running');
    expect(await active(t)).toBe('4');
    await post(11, [
      {
        type: 'ended',
        row: { ...row, outcome: 'success', state: 'recorded', reward: 1, steps: 4, endedAt: Date.UTC(2027, 0, 1) + 1 },
      },
      { type: 'trained', batch: 'b', version: 31, rollouts: ['r-new'] },
    ]);
    await expect.poll(async () => (await column(t, 'ledger'))[0]).toBe('trained');
    expect((await column(t, 'outcome'))[0]).toBe('Success');
  });

  it('read again after the runtime was away it keeps the place of its reader, and shows what is new', async () => {
    let reads = 0;
    const t = await show({
        answer: (method, p) => {
          const given = answer(method, p) as ReturnType<TableData['part']>;
          if (method !== 'trajectory/columns' || p['before'] !== undefined || reads++ === 0) return given;
          const { columns } = given;
          return { ...given, columns: { ...columns, reward: columns.reward.map(() => 0.75) } };
        },
      }),
      top = 'document.querySelector("[role=grid]").scrollTop';
    await counted(t, '1,200 trajectories');
    await t.page.getByRole('grid').focus();
    await t.page.keyboard.press('Control+End');
    await t.until("document.querySelector('.tb-row.active')?.ariaRowIndex === '1201'");
    const before = await t.page.evaluate<number>(top);
    expect(before).toBeGreaterThan(40_000);
    await t.post({ type: 'daemon', state: 'reconnecting' });
    await t.until("document.querySelector('.ds-banner')");
    await t.post({ type: 'daemon', state: 'ready' });
    await t.until("!document.querySelector('.ds-banner')");
    // The first part is another one than before, and the last one came, too.
    await expect
      .poll(() => t.requests.filter((r) => r.method === 'trajectory/columns').map((r) => r.params['before']))
      .toEqual([undefined, 700, undefined, 700]);
    expect([await t.page.evaluate(top), await active(t)]).toEqual([before, '1201']);
    expect(await t.page.evaluate("document.activeElement.getAttribute('role')")).toBe('grid');
    await t.page.keyboard.press('Control+Home');
    await expect.poll(async () => (await column(t, 'reward'))[0]).toBe('0.75');
  });

  it('says what is wrong, and what to do', async () => {
    const t = await show({
      answer: () => {
        throw { kind: 'not.found', message: 'There is no run in /runs/demo.', remedy: 'Choose another one.' };
      },
    });
    await t.until("document.body.textContent.includes('There is no run in /runs/demo.')");
    expect(await t.axe(axe)).toEqual([]);
    const off = await show({ daemon: 'stopped' });
    await off.page.getByRole('button', { name: 'Start Runtime' }).click();
    await expect.poll(() => off.actions).toEqual([{ action: 'command', command: 'startRuntime' }]);
  });

  it.each(themes)(
    '%s: failures in clusters with exemplars, and where a task was clicked; nothing that axe finds',
    async (theme) => {
      const t = await show({ theme, input: { ...input, view: 'failures' } }),
        pictures = "[...document.querySelectorAll('.tb-thumb img')].every((i) => i.src && i.complete)";
      await t.until("document.querySelectorAll('.tb-cluster').length === 3");
      await t.until(pictures);
      if (shots) await t.page.screenshot({ path: join(shots, `failures-${theme}.png`) });
      expect(await t.axe(axe)).toEqual([]);
      await t.page.locator('vscode-dropdown').click();
      await t.page.locator('vscode-option', { hasText: 'form-one' }).last().click();
      await t.until("document.querySelector('.tb-scatter .tb-mark')");
      await t.until(pictures);
      if (shots) await t.page.screenshot({ path: join(shots, `scatter-${theme}.png`) });
      expect(await t.axe(axe)).toEqual([]);
    },
  );

  it('pictures that were asked for while the runtime was away come when it is back', async () => {
    let away = true;
    const t = await show({
      input: { ...input, view: 'failures' },
      answer: (m, p) => {
        if (away && m === 'frame/thumbnails') throw { kind: 'connection.lost', message: 'Lost.', remedy: '' };
        return answer(m, p);
      },
    });
    await t.until("document.querySelector('.tb-thumb img')?.title.length > 0");
    away = false;
    await t.post({ type: 'daemon', state: 'reconnecting' });
    await t.post({ type: 'daemon', state: 'ready' });
    await t.until(
      "((all) => all.length > 2 && all.every((i) => i.complete && i.naturalWidth > 0 && i.title === ''))([...document.querySelectorAll('.tb-thumb img')])",
    );
  });

  it('a cluster says what most did, and opens an exemplar, a comparison, and its list', async () => {
    const t = await show({ input: { ...input, view: 'failures' } });
    await t.until("document.querySelectorAll('.tb-cluster').length === 3");
    expect(await t.page.locator('.tb-cluster h2').allInnerTexts()).toEqual([
      '38 typed without clicking first',
      '12 clicked 38 px below the right place',
      '5 hit the step limit before clicking',
    ]);
    const first = t.page.locator('.tb-cluster').first();
    await first.locator('.tb-exemplar').first().click();
    await first.getByRole('button', { name: 'Compare' }).click();
    await expect
      .poll(() => t.actions)
      .toEqual([
        { action: 'openTrajectory', run, rollout: 'r-000061', step: 0 },
        { action: 'compare', run, left: 'r-000061', right: expect.stringMatching(/^r-0000[01]\d$/) as string },
      ]);
    await t.page.getByLabel('from').fill('5');
    await t.page.keyboard.press('Tab');
    await expect
      .poll(() => t.requests.at(-1))
      .toMatchObject({ method: 'run/failures', params: { version: { min: 5 } } });
    await t.page.locator('.tb-cluster').first().getByRole('button', { name: 'List' }).click();
    await counted(t, '38 of 1,200 trajectories');
    expect(t.saved).toMatchObject({ input: { view: 'list', filter: { rollouts: expect.any(Array) as string[] } } });
  });

  it.each(themes)(
    '%s: what changed from version to version, with the first difference; nothing that axe finds',
    async (theme) => {
      const t = await show({ theme, input: { ...input, view: 'changes' } });
      await t.until("document.querySelectorAll('.tb-strip').length >= 2");
      await t.until("[...document.querySelectorAll('.tb-thumb img')].every((i) => i.src && i.complete)");
      if (shots) await t.page.screenshot({ path: join(shots, `changes-${theme}.png`) });
      expect(await t.axe(axe)).toEqual([]);
      if (theme !== 'dark') return;
      const second = t.page.locator('.tb-strip').nth(1);
      expect(await second.locator('.tb-shot.differs').count()).toBe(1);
      expect(await second.innerText()).toContain('differs from step 3');
      await second.locator('.tb-shot.differs').click();
      await second.getByRole('button', { name: 'Compare' }).click();
      const ids = t.requests.findLast((r) => r.method === 'trajectory/strips')!.params['rollouts'] as string[];
      await expect
        .poll(() => t.actions)
        .toEqual([
          { action: 'openTrajectory', run, rollout: ids[1], step: 2 },
          { action: 'compare', run, left: ids[0], right: ids[1] },
        ]);
      await t.page.keyboard.press('Escape');
      await t.page.locator('.tb-history').nth(1).click();
      await expect.poll(() => t.requests.filter((r) => r.method === 'trajectory/strips').length).toBe(2);
    },
  );

  it('what changed keeps the focus on its task while the run goes on', async () => {
    const t = await show({ input: { ...input, view: 'changes' } }),
      focused = (): Promise<Record<string, string>> =>
        t.page.evaluate<Record<string, string>>('({ ...document.activeElement.dataset })'),
      row = (rollout: string, more: object): object => ({
        rollout,
        family: 'desk/form-one',
        task: 'desk/form-one#7',
        instruction: 'Fill it in',
        outcome: 'running',
        provenance: 'rollout',
        steps: 0,
        cap: 30,
        startedAt: Date.UTC(2027, 0, 1),
        ...more,
      }),
      post = (seq: number, e: object): Promise<void> =>
        t.post({
          type: 'events',
          run,
          events: [{ seq, at: 1, ...e } as RunEvent],
          nextSeq: seq + 1,
          live: true,
        });
    await t.until("document.querySelectorAll('.tb-strip').length >= 2");
    await t.page.locator('.tb-history').nth(2).focus();
    const { task } = await focused();
    await t.page.evaluate("document.activeElement.dataset.mine = ''");
    await post(10, { type: 'started', row: row('r-new', {}) });
    await t.until("document.querySelector('.tb-top [role=status]').textContent.includes('1,201')");
    expect(await focused()).toEqual({ task, mine: '' });
    const dots = (): Promise<number> =>
        t.page.evaluate<number>(
          `document.querySelector('.tb-history[data-task="${task}"] .tb-dots').childElementCount`,
        ),
      before = await dots();
    await post(11, {
      type: 'ended',
      row: row('probe-new', {
        task,
        family: task!.split('#')[0],
        provenance: 'probe',
        outcome: 'success',
        reward: 1,
        versions: [999, 999],
        endedAt: Date.UTC(2027, 0, 1) + 1,
      }),
    });
    await expect.poll(dots).toBe(before + 1);
    expect(await focused()).toEqual({ task });
  });
});
