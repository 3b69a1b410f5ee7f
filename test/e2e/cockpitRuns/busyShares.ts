/** How busy desktops, replicas and trainer are, as a dashboard says it in two places. */
import type { Frame } from '../../helpers/workbench/playwright.js';
import { when } from '../../helpers/workbench/ui.js';
import { until } from '../../helpers/workbench/workbench.js';
import { goTo } from './window.js';

type Shares = Readonly<Record<string, number>>;

/** Brings the lanes into view; resolves when they say how busy each part is. */
export async function openLanes(page: Frame): Promise<void> {
  await goTo(page, 'lanes', 'canvas.lanes-canvas');
  await when(page, "/desktops busy/i.test(document.getElementById('lanes-summary').textContent)");
}
/** Percent by part, of the lanes and of the card, at one moment. */
export async function busyShares(page: Frame): Promise<{ readonly lanes: Shares; readonly cards: Shares }> {
  const [lanes, cards] = await page.evaluate<readonly [string, string]>(`(() => {
    const card = [...document.querySelectorAll('.tile')].find((x) => x.textContent.includes('Utilisation'));
    return [document.getElementById('lanes-summary').textContent, card.getAttribute('aria-label') ?? card.innerText];
  })()`);
  return { lanes: shares(lanes), cards: shares(cards) };
}
/** Resolves when the lanes say of the time that the card is about what the card says, within so many percent. */
export async function sharesAgree(page: Frame, within: number): Promise<void> {
  let said = '';
  await until(
    async () => {
      await page.getByRole('button', { name: 'RL', exact: true }).click();
      const { lanes, cards } = await busyShares(page),
        parts = Object.entries(cards);
      said = JSON.stringify({ lanes, cards });
      return parts.length === 3 && parts.every(([part, share]) => Math.abs(lanes[part]! - share) <= within);
    },
    `lanes and cards agree within ${within} %`,
    60_000,
  ).catch((e: unknown) => {
    throw new Error(`${String(e)}: ${said}`);
  });
}
const shares = (text: string): Shares =>
  Object.fromEntries(
    [...text.matchAll(/(desktops|replicas|trainer)\D*?(\d+) ?%/gi)].map((x) => [x[1]!.toLowerCase(), Number(x[2])]),
  );
