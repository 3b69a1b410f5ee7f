import type { Cockpit } from './cockpit.js';
import { Hand } from './hand.js';
import { pictures } from './ui.js';
import { until } from './workbench.js';

/**
 * Try Policy… from the palette, with the run `untaught`: it asks, one step is accepted, the person does the rest by
 * pointer and keys, and it is kept and opened.
 */
export async function tryTakeOverAndKeep(c: Cockpit): Promise<void> {
  await c.ui.palette('DART Studio: Try Policy');
  const page = await c.ui.webview('try'),
    choose = (nth: number, label: string): Promise<unknown> =>
      page.locator('.try-field select').nth(nth).selectOption({ label });
  await until(
    async () => (await page.locator('.try-field select').nth(3).locator('option').count()) > 1,
    'the tasks of the policy are offered',
    60_000,
  );
  await choose(0, 'untaught');
  await choose(3, 'desk/term-touch');
  await page
    .getByRole('button', { name: /^Step Through/ })
    .first()
    .click();
  const hand = new Hand(c.w.page, page);
  await hand.waits(/The policy asks/, 180_000);
  await pictures(page);
  await c.picture('try-asks');
  // A proposal has to be looked at for a moment before it can be accepted; one is.
  const left = (): Promise<string> => page.locator('.live-task').innerText(),
    before = await left();
  await until(async () => {
    if ((await left()) !== before) return true;
    await page
      .getByRole('button', { name: /^Accept/ })
      .click({ timeout: 2000 })
      .catch(() => undefined);
    return false;
  }, 'the step is made');
  await until(
    async () => /H \d/.test((await page.locator('.try-steps').innerText()) || ''),
    'the step says how much the policy hesitated',
  );
  const [, line] = /"(.*)"/.exec(await page.locator('.live-panel .live-instruction').innerText())!;
  await page.getByRole('button', { name: /^Act Yourself/ }).click();
  await hand.waits(/in control/);
  await hand.click(600, 390);
  await hand.type(line!);
  await hand.press('Enter');
  await until(
    async () => (await page.locator('.try-steps').innerText()).includes(line!),
    'what was typed is a step',
    30_000,
  );
  await page.getByRole('button', { name: /^Finish/ }).click();
  await hand.waits(/Success/);
  await page.getByRole('button', { name: 'Keep' }).click();
  await until(
    async () => /experience pool/.test(await page.locator('.live-now').innerText()),
    'it is said that it joined the pool',
  );
  await c.picture('try-kept');
  await until(
    async () => (await c.ui.section('Runs').locator('.monaco-list-row', { hasText: 'tries' }).count()) === 1,
    'its collection is listed',
    30_000,
  );
  await page.getByRole('button', { name: /^Open Trajectory/ }).click();
  const inspector = await c.ui.webview('inspector');
  await inspector.locator('.ds-shot').nth(2).waitFor();
}
