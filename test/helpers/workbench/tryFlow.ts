import { expect } from 'vitest';
import type { Cockpit } from './cockpit.js';
import { Hand } from './hand.js';
import type { Frame, Locator } from './playwright.js';
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
  const hand = await stepThrough(c, page);
  await pictures(page);
  await c.picture('try-asks');
  // A proposal has to be looked at for a moment before it can be accepted; one is.
  const left = (): Promise<string> => page.locator('.live-task').innerText(),
    before = await left();
  await accept(page, async () => (await left()) !== before);
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

/**
 * Try Policy… on a desktop without a task: a person's own instruction, a version of several; each step shows what the
 * policy considered, on the screen too. Ends with nothing kept.
 */
export async function tryWithOwnWords(c: Cockpit, run: string, instruction: string): Promise<void> {
  await c.ui.palette('DART Studio: Try Policy');
  const page = await c.ui.webview('try'),
    select = (nth: number): Locator => page.locator('.try-field select').nth(nth);
  await until(
    async () => (await select(0).locator('option', { hasText: run }).count()) > 0,
    'the run is offered',
    60_000,
  );
  await select(0).selectOption({ label: run });
  await until(async () => (await select(1).locator('option').count()) > 2, 'its checkpoints are offered', 60_000);
  const version = (await select(1).locator('option').last().getAttribute('value'))!;
  await select(1).selectOption(version);
  expect(version).toMatch(/^\d+$/);
  await select(4).selectOption({ label: 'Sampled' });
  await page.locator('.try-field input[maxlength]').fill(instruction);
  const hand = await stepThrough(c, page);
  expect(await page.locator('.live-panel .live-instruction').innerText()).toContain(instruction);
  // What it proposes comes with what else it considered, as words and where it would have acted.
  await page.locator('.try-detail .ds-alternatives').first().waitFor({ timeout: 30_000 });
  const cells = page.locator('.heat rect'),
    heat = page.getByRole('button', { name: /^Click heat map/ });
  // What a policy of a few minutes proposes may have no place ("finished"): then something else is done, and it asks again.
  await until(
    async () => {
      if ((await cells.count()) > 0) return true;
      const before = await page.locator('.live-task').innerText();
      await page
        .getByRole('button', { name: /^Wait/ })
        .first()
        .click({ timeout: 2000 })
        .catch(() => undefined);
      await until(async () => (await page.locator('.live-task').innerText()) !== before, 'a step is made', 5000).catch(
        () => undefined,
      );
      await hand.waits(/The policy asks/);
      return (await cells.count()) > 0;
    },
    'the screen shows where it would act',
    90_000,
  );
  await heat.click();
  await until(async () => (await cells.count()) === 0, 'and no more when it is turned off');
  await heat.click();
  await until(async () => (await cells.count()) > 0, 'and again');
  await c.picture('try-own-words');
  await stop(page, hand);
}

/** Try Policy… with a model that a run file names: it proposes, a person accepts. Ends with nothing kept. */
export async function tryServedModel(c: Cockpit, model: string): Promise<void> {
  await c.ui.palette('DART Studio: Try Policy');
  const page = await c.ui.webview('try'),
    choice = page.locator('.try-field select').first(),
    offered = choice.locator('option', { hasText: `Model ${model}` });
  await until(async () => (await offered.count()) === 1, 'the model is offered', 60_000);
  await choice.selectOption((await offered.getAttribute('value'))!);
  await page.locator('.try-field input[maxlength]').fill('Press the button Continue');
  const hand = await stepThrough(c, page);
  await pictures(page);
  await c.picture('try-served');
  const steps = page.locator('.try-steps');
  await accept(page, async () => /click/i.test(await steps.innerText()));
  await stop(page, hand);
}

/** Begins what was chosen; resolves when the policy asks for consent to its first step. */
async function stepThrough(c: Cockpit, page: Frame): Promise<Hand> {
  await page
    .getByRole('button', { name: /^Step Through/ })
    .first()
    .click();
  const hand = new Hand(c.w.page, page);
  await hand.waits(/The policy asks/, 180_000);
  return hand;
}

/** Accepts what is proposed, as soon as that is taken. */
const accept = (page: Frame, made: () => Promise<boolean>): Promise<void> =>
  until(async () => {
    if (await made()) return true;
    await page
      .getByRole('button', { name: /^Accept/ })
      .click({ timeout: 2000 })
      .catch(() => undefined);
    return false;
  }, 'the step is made');

async function stop(page: Frame, hand: Hand): Promise<void> {
  await page.getByRole('button', { name: /^Stop/ }).first().click();
  await until(async () => !/asks/.test(await hand.word()), 'it is over, and nothing is kept', 30_000);
}
