import type { Action } from '../../../runtime/domain/index.js';
import type { Desktop } from '../../../runtime/cluster/types.js';
import { now, random, sleep } from './measure.js';

export interface SettleSample {
  readonly app: string;
  readonly action: string;
  /** From the start of the action to the verdict. */
  readonly ms: number;
  readonly changed: boolean;
  readonly settled: boolean;
  readonly stale: boolean;
  readonly detector: string;
}

/** The five applications of runtime/cluster/README.md#settle, each with something in it. */
export const APPS: readonly { name: string; command: readonly string[] }[] = [
  { name: 'mousepad', command: ['mousepad', '/home/user/Documents/text.txt'] },
  { name: 'galculator', command: ['galculator'] },
  { name: 'pcmanfm', command: ['pcmanfm', '/home/user'] },
  { name: 'gnumeric', command: ['gnumeric'] },
  {
    name: 'yad',
    command: [
      'yad',
      '--form',
      '--width=400',
      '--field=Name',
      '--field=Colour:CB',
      '--field=Count:NUM',
      '--field=Agree:CHK',
      '',
      'red!green!blue',
      '3',
      'FALSE',
    ],
  },
];

/**
 * After this long with no input the frame is taken as final: longer than any reaction, shorter than GTK's tooltips (500
 * ms).
 */
const LATER_MS = 430;

/**
 * Random clicks, keys and menus in one application. After each, the frame at "settled" is compared with the one 430 ms
 * later:
 * `stale` when they differ. An application that was closed is started again, which is not measured.
 */
export async function settleAccuracy(
  d: Desktop,
  app: (typeof APPS)[number],
  n: number,
  seed: number,
): Promise<SettleSample[]> {
  const rand = random(seed);
  const { width, height } = d.screen;
  let running = 0;
  const off = d.onEvent((e) => {
    if (e.type === 'exit' && e.pid === running) running = 0;
  });
  const out: SettleSample[] = [];
  await d.writeFile(
    '/home/user/Documents/text.txt',
    Buffer.from(Array.from({ length: 30 }, (_, i) => `line ${i + 1} of a text`).join('\n')),
  );
  try {
    while (out.length < n) {
      if (running === 0) {
        running = await d.spawn(app.command);
        await d.settle({ horizonMs: 250, maxMs: 5000 });
        await sleep(300);
      }
      const a = pick(rand, width, height);
      const before = await d.observe();
      const began = now();
      await d.perform(a);
      const r = await d.settle();
      const took = now() - began;
      const frame = await d.observe();
      await sleep(LATER_MS);
      const later = await d.observe();
      out.push({
        app: app.name,
        action: a.type,
        ms: took,
        changed: !before.data.equals(later.data),
        settled: r.settled,
        stale: !frame.data.equals(later.data),
        detector: r.detector,
      });
    }
  } finally {
    off();
  }
  return out;
}

/**
 * Clicks mostly where windows are (the upper left: they are placed there), keys that do something, and Escape to leave
 * menus.
 */
function pick(rand: () => number, width: number, height: number): Action {
  const at = { x: Math.floor(rand() * Math.min(width, 560)), y: Math.floor(rand() * Math.min(height - 30, 400)) };
  const k = rand();
  if (k < 0.4) return { type: 'click', at };
  if (k < 0.5) return { type: 'right_single', at };
  if (k < 0.6) return { type: 'click', at: { x: Math.floor(10 + rand() * 250), y: 38 } }; // menu bar
  if (k < 0.7) return { type: 'hotkey', keys: ['esc'] };
  if (k < 0.78)
    return { type: 'hotkey', keys: [['tab', 'down', 'up', 'right', 'left', 'pagedown'][Math.floor(rand() * 6)]!] };
  if (k < 0.86) return { type: 'scroll', at, direction: rand() < 0.5 ? 'down' : 'up', amount: 3 };
  return { type: 'type', text: ['a', '7', 'hello', '12+', 'Z x'][Math.floor(rand() * 5)]! };
}
