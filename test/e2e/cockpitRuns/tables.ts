/** Flows through the table of trajectories, failures and what changed, and what opens lists in it. */
import { expect } from 'vitest';
import type { Frame, Locator } from '../../helpers/workbench/playwright.js';
import { trained } from '../../helpers/workbench/runEpisodes.js';
import { pictures, when } from '../../helpers/workbench/ui.js';
import { until } from '../../helpers/workbench/workbench.js';
import { counted, goTo, textOf, type Flow, type RunsWindow } from './window.js';

/** 40 rollouts, 12 episodes of evaluations, 2 demonstrations. */
const all = 54;
type Row = Readonly<Record<string, string>>;

/** Every row of the list in its order, each column as it is shown; the list is scrolled through. */
const rowsOf = (page: Frame): Promise<readonly Row[]> =>
  page.evaluate<Row[]>(`(async () => {
    const grid = document.querySelector('.tb-grid'), rows = new Map(), n = Number(grid.getAttribute('aria-rowcount')) - 1;
    for (let top = 0; rows.size < n && top <= grid.scrollHeight; top += Math.max(200, grid.clientHeight - 100)) {
      grid.scrollTop = top;
      for (let i = 0; i < 2; i++) await new Promise((r) => requestAnimationFrame(r));
      for (const r of grid.querySelectorAll('.tb-body .tb-row:not([hidden])'))
        rows.set(Number(r.ariaRowIndex), Object.fromEntries([...r.querySelectorAll('.tb-cell')].map((c) => {
          const key = [...c.classList].find((x) => /^tb-(?!cell)/.test(x)).slice(3);
          return [key, (c.querySelector('.tb-task') ?? c).textContent];
        })));
    }
    grid.scrollTop = 0;
    return [...rows].sort((a, b) => a[0] - b[0]).map(([, r]) => r);
  })()`);
const chips = (page: Frame): Promise<readonly string[]> => page.locator('.tb-chip').allInnerTexts();

/** Columns by their titles, and how they are compared. Words are told by those that come first. */
const numbers: readonly (readonly [string, string])[] = [
  ['Steps', 'steps'],
  ['Reward', 'reward'],
  ['Entropy', 'entropy'],
  ['Advantage', 'advantage'],
  ['Weight', 'weight'],
  ['Version', 'version'],
  ['Ended', 'time'],
];
const words: readonly (readonly [string, string, readonly string[] | undefined])[] = [
  ['Outcome', 'outcome', ['Failure', 'Success']],
  ['Task', 'task', undefined],
  ['Origin', 'origin', ['scripted', 'evaluation', 'rollout']],
  ['Ledger', 'ledger', undefined],
];
const numberOf = (key: string, text: string): number =>
  key === 'time' ? Date.parse(text.replace(',', ' 2026,')) : Number(text.replace('−', '-').replace(/^v(\d+–)?/, ''));
const wordOf = (key: string, text: string): string => (key === 'outcome' ? text.split(',')[0]! : text);

export function flowsOfTables(flow: Flow, w: () => RunsWindow): void {
  flow(
    'the table of trajectories: a part of the ledger opens it, its words are searched, and the filter is saved',
    async () => {
      const on = w(),
        { c } = on;
      await on.listed();
      const before = await on.dashboard('trained-3');
      await goTo(before, 'ledger', '.ledger-part');
      await before.locator('.ledger-part', { hasText: 'trained' }).first().click();
      const page = await c.ui.webview('table', { timeoutMs: 60_000 });
      await page.locator('.tb-row').first().waitFor();
      await until(
        async () => (await chips(page)).some((x) => /Ledger: trained/.test(x)),
        'it lists what was behind it',
      );
      expect(await textOf(page, '.tb-top [role=status]')).toBe(`16 of ${all} trajectories`);
      await page.getByRole('button', { name: 'Clear filters' }).click();
      await counted(page, `${all} trajectories`);
      await when(
        page,
        "[...document.querySelectorAll('img.tb-picture[src]')].filter((i) => i.complete && i.naturalWidth > 0).length > 5",
      );
      await c.picture('table');
      await page.locator('.tb-search').click();
      await c.w.page.keyboard.type('press');
      await until(
        async () => (await rowsOf(page)).every((r) => r['task']!.includes('press-button')),
        'what was typed filters it',
      );
      const [n] = /^\d+/.exec(await textOf(page, '.tb-top [role=status]')) ?? [];
      await page.getByRole('button', { name: 'Saved filters' }).click();
      await page.getByLabel('Name of the filter').fill('Presses');
      await c.w.page.keyboard.press('Enter');
      await c.closeEditors();
      // It is kept with the workspace, not with the page.
      await c.w.reload();
      await on.listed();
      const again = await on.table('trained-4');
      await again.getByRole('button', { name: 'Saved filters' }).click();
      await again.locator('.tb-saved-name', { hasText: 'Presses' }).click();
      await counted(again, `${n} of ${all} trajectories`);
      await again.locator('.tb-body .tb-row').first().dblclick();
      await (await c.ui.webview('inspector')).locator('.ds-shot').first().waitFor();
    },
  );

  flow('every column of the table sorts by itself, both ways', async () => {
    const on = w();
    await on.listed();
    const page = await on.table('trained-3');
    await counted(page, `${all} trajectories`);
    const titles = (await page.locator('.tb-head .tb-sort').allInnerTexts()).map((x) => x.trim());
    expect([...titles].sort()).toEqual([...numbers, ...words].map(([title]) => title).sort());
    for (const [title, key] of numbers) {
      const [up, down] = await bothWays(page, title, key);
      for (const [sorted, sign] of [
        [up, 1],
        [down, -1],
      ] as const) {
        const known = sorted.filter((x) => x !== '').map((x) => numberOf(key, x));
        expect(known, title).toEqual([...known].sort((a, b) => sign * (a - b)));
        expect(new Set(known).size, title).toBeGreaterThan(1);
        // What has none comes last.
        expect(sorted.slice(known.length).join(''), title).toBe('');
      }
    }
    for (const [title, key, order] of words) {
      const [up, down] = (await bothWays(page, title, key)).map((list) =>
        list
          .map((x) => wordOf(key, x))
          .filter((x) => x !== '')
          .filter((x, i, l) => x !== l[i - 1]),
      ) as [string[], string[]];
      expect(new Set(up).size, title).toBe(up.length);
      expect(up.length, title).toBeGreaterThan(1);
      expect([...down].reverse(), title).toEqual(up);
      if (order) expect(up, title).toEqual(order);
    }
  });

  flow('every filter of the table leaves what fits it, and nothing else', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    const page = await on.table('trained-3');
    await counted(page, `${all} trajectories`);
    const rows = await rowsOf(page);
    expect(rows).toHaveLength(all);
    for (const [title, key] of words) await oneValue(page, title, key, rows);
    for (const [title, key] of numbers) await bothEnds(page, title, key, rows);
    for (const [column, flag, yes] of [
      ['Outcome', 'hit the step limit', trained.truncated],
      ['Origin', 'a person acted', 0],
      ['Origin', 'used again from the experience pool', 0],
      ['Origin', 'annotated', 0],
      ['Origin', 'reviewed', 0],
    ] as const) {
      await page.getByRole('button', { name: `Filter by ${column}` }).click();
      const choice = page.locator('.tb-popover .tb-choice', { hasText: flag }).last().locator('select');
      await choice.selectOption('no');
      await counted(page, yes === 0 ? `${all} trajectories` : `${all - yes} of ${all} trajectories`);
      await choice.selectOption('yes');
      await counted(page, `${yes} of ${all} trajectories`);
      if (yes === 0) expect(await page.locator('.tb-none').innerText()).toBe('No matches');
      else for (const r of await rowsOf(page)) expect(r['outcome']).toBe('Failure, step limit');
      await clear(page);
    }
    await c.picture('table-filtered');
  });

  flow('a point of a curve, a bar and a part of the ribbon open the list behind them, by keyboard too', async () => {
    const on = w(),
      { c } = on;
    await on.listed();
    let page = await on.dashboard('trained-3');
    const slider = (name: string): Locator => page.locator(`[role=slider][aria-label="${name}: cursor"]`),
      behind = async (name: string, key: string): Promise<Frame> => {
        await slider(name).focus();
        await slider(name).press(key);
        await slider(name).press('Enter');
        const table = await c.ui.webview('table', { timeoutMs: 60_000 });
        await table.locator('.tb-row').first().waitFor();
        return table;
      };
    // The newest evaluation: its six episodes that are kept.
    const list = await behind('All tasks', 'End');
    await counted(list, `6 of ${all} trajectories`);
    expect((await chips(list)).map((x) => x.trim())).toEqual(['Origin: evaluation', 'Version: v5']);
    page = await on.dashboard('trained-3');
    await goTo(page, 'curation', '[role=slider][aria-label="Staleness: cursor"]');
    await slider('Staleness').focus();
    await when(page, 'document.querySelector(\'#curation [aria-label="Staleness: cursor"] canvas\')');
    await slider('Staleness').focus();
    await slider('Staleness').press('End');
    expect(await slider('Staleness').getAttribute('aria-valuetext')).toMatch(new RegExp(`^1: .* ${trained.behind}$`));
    await behind('Staleness', 'End');
    const bar = await c.ui.webview('table');
    await counted(bar, `${trained.behind} of ${all} trajectories`);
    expect((await chips(bar)).map((x) => x.trim())).toEqual(['Updates behind when trained: 1']);
    // A point of a curve of the trainer: what that update was trained on.
    page = await on.dashboard('trained-3');
    await goTo(page, 'trainer', '.uplot canvas');
    await behind('Loss', 'Home');
    await counted(await c.ui.webview('table'), `4 of ${all} trajectories`);
    const table = await c.ui.webview('table');
    await clear(table);
    const part = table.locator('.tb-place.trained');
    await part.focus();
    await part.press('Enter');
    await counted(table, `16 of ${all} trajectories`);
    expect((await chips(table)).map((x) => x.trim())).toEqual(['Ledger: trained']);
    // The bar itself takes the mouse.
    await table.locator('.tb-ribbon-part.trained').click();
    await counted(table, `${all} trajectories`);
  });

  flow(
    'failures in clusters open an exemplar; clicks follow the versions; what changed is shown version by version',
    async () => {
      const on = w(),
        { c } = on;
      await on.listed();
      const page = await on.table('trained-3');
      await page.locator('#tb-tab-failures').click();
      await page.locator('.tb-cluster').first().waitFor();
      expect((await page.locator('.tb-cluster h2').allInnerTexts())[0]).toMatch(/^\d+ typed without clicking first$/);
      await pictures(page);
      await c.picture('clusters');
      // form-one failed 3 times before training, 4 times in its first group and once at the end.
      const task = page.getByRole('combobox', { name: 'Task' }),
        marks = (): Promise<number> =>
          page.evaluate<number>("document.querySelectorAll('.tb-scatter-screen [data-at]').length"),
        said = (): Promise<string> => textOf(page, '.tb-scatter figcaption p');
      await task.click();
      await page.getByRole('option', { name: 'form-one: 8 failures' }).click();
      await when(page, "/, 8 of failures/.test(document.querySelector('.tb-scatter figcaption p')?.textContent ?? '')");
      const before = await marks();
      expect(before).toBe(8 + Number(/^\d+/.exec(await said())![0]));
      expect(before).toBeGreaterThan(8);
      const from = page.getByLabel('from');
      await from.fill('5');
      await from.press('Enter');
      await when(page, "/, 1 of failures/.test(document.querySelector('.tb-scatter figcaption p')?.textContent ?? '')");
      expect(await marks()).toBe(1 + Number(/^\d+/.exec(await said())![0]));
      expect(await marks()).toBeLessThan(before);
      expect(await page.locator('.tb-failures [role=status]').innerText()).toBe('1 failure');
      // The field is still the one that is written in.
      expect(await page.evaluate<string>('document.activeElement.getAttribute("aria-label")')).toBe('from');
      await pictures(page);
      await c.picture('clicks');
      await page.locator('#tb-tab-changes').click();
      await when(page, "document.querySelectorAll('.tb-strip').length === 2");
      expect(await page.locator('.tb-strip').nth(1).innerText()).toContain('differs from step 1');
      // The same task and seed, before training and after it.
      const [untrained, final] = await page.evaluate<(readonly string[])[]>(
        "[...document.querySelectorAll('.tb-strip')].map((s) => /^probe\\/(.*?)\\/v\\d+\\/(.*)$/.exec(s.dataset.rollout).slice(1))",
      );
      expect([untrained?.[0], final?.[0]]).toEqual(['untrained', 'final']);
      expect(final?.[1]).toBe(untrained?.[1]);
      await pictures(page);
      await c.picture('changes');
      await page.locator('#tb-tab-failures').click();
      await page.locator('.tb-exemplar').first().click();
      await (await c.ui.webview('inspector')).locator('.ds-shot').first().waitFor();
    },
  );
}

/** A column in both orders, ascending first. */
async function bothWays(
  page: Frame,
  title: string,
  key: string,
): Promise<readonly [readonly string[], readonly string[]]> {
  const head = page.locator('.tb-head [role=columnheader]', { hasText: title }).first(),
    found: Record<string, readonly string[]> = {};
  for (let i = 0; i < 2; i++) {
    await head.locator('.tb-sort').click();
    const order = (await head.getAttribute('aria-sort'))!;
    found[order] = (await rowsOf(page)).map((r) => r[key]!);
    expect(found[order], title).toHaveLength(all);
  }
  expect(Object.keys(found).sort(), title).toEqual(['ascending', 'descending']);
  return [found['ascending']!, found['descending']!];
}
const clear = async (page: Frame): Promise<void> => {
  await page.locator('.tb-top h1').click();
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await counted(page, `${all} trajectories`);
};
/** The first value that a column offers: as many as it says, and all of them have it. */
async function oneValue(page: Frame, title: string, key: string, rows: readonly Row[]): Promise<void> {
  await page.getByRole('button', { name: `Filter by ${title}` }).click();
  const choice = page.locator('.tb-popover li .tb-choice').last(),
    value = await choice.locator('.tb-choice-words').innerText(),
    n = Number(await choice.locator('.number').innerText()),
    has = (r: Row): boolean =>
      key === 'task'
        ? r[key]!.startsWith(value)
        : wordOf(key, r[key]!) === (value === 'not in the ledger' ? '' : value);
  expect(n, title).toBe(rows.filter(has).length);
  expect(n, title).toBeGreaterThan(0);
  expect(n, title).toBeLessThan(all);
  await choice.locator('input').click();
  await counted(page, `${n} of ${all} trajectories`);
  expect((await rowsOf(page)).every(has), title).toBe(true);
  await clear(page);
}
/** A number between two of the column's: what lies above and what lies below, without what has none. */
async function bothEnds(page: Frame, title: string, key: string, rows: readonly Row[]): Promise<void> {
  const known = rows.filter((r) => r[key] !== '').map((r) => numberOf(key, r[key]!)),
    distinct = [...new Set(known)].sort((a, b) => a - b),
    [below, above] = distinct.slice(Math.floor(distinct.length / 2) - 1) as [number, number],
    between = (below + above) / 2;
  for (const [end, fits] of [
    [0, known.filter((x) => x > between).length],
    [1, known.filter((x) => x < between).length],
  ] as const) {
    await page.getByRole('button', { name: `Filter by ${title}` }).click();
    await page
      .locator('.tb-popover input')
      .nth(end)
      .fill(key === 'time' ? localMinute(above) : String(between));
    expect(fits, title).toBeGreaterThan(0);
    await counted(page, `${fits} of ${all} trajectories`);
    const left = (await rowsOf(page)).map((r) => numberOf(key, r[key]!));
    expect(left, title).toHaveLength(fits);
    expect(
      left.every((x) => (end === 0 ? x > between : x < between)),
      title,
    ).toBe(true);
    await clear(page);
  }
}
/** As an input for a moment takes it; times of the table are to the minute. */
const localMinute = (ms: number): string => {
  const d = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return d.toISOString().slice(0, 16);
};
