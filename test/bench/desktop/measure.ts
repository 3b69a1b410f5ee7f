import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Desktop } from '../../../runtime/cluster/types.js';
import type { Point } from '../../../runtime/domain/index.js';

export const now = (): number => performance.now();
export const ms = async (f: () => Promise<unknown>): Promise<number> => {
  const t = now();
  await f();
  return now() - t;
};
export const sleep = (t: number): Promise<void> =>
  new Promise((r) => {
    setTimeout(r, t);
  });
export const round = (x: number): number => Math.round(x * 100) / 100;

/** Small seeded generator (mulberry32): the same actions in every run. */
export function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * Runs `step` over and over on every item at once for `forMs`; steps finished per second, in sum. Steps under way at
 * the end are waited for, and counted with their time.
 */
export async function rate<T>(
  items: readonly T[],
  forMs: number,
  step: (item: T, k: number) => Promise<void>,
): Promise<{ perSecond: number; steps: number; times: number[] }> {
  const began = now();
  const times: number[] = [];
  await Promise.all(
    items.map(async (item) => {
      for (let k = 0; now() - began < forMs; k++) {
        const t = now();
        await step(item, k);
        times.push(now() - t);
      }
    }),
  );
  return { perSecond: times.length / ((now() - began) / 1000), steps: times.length, times };
}

/** Proportional set size of all processes of the desktop in MB: shared pages are divided among their users. */
export function pssMb(pidInside: number): number {
  const ns = readlinkSync(`/proc/${pidInside}/ns/pid`);
  let kb = 0;
  for (const p of readdirSync('/proc')) {
    if (!/^\d+$/.test(p)) continue;
    try {
      if (readlinkSync(`/proc/${p}/ns/pid`) !== ns) continue;
      kb += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${p}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {
      /* ended */
    }
  }
  return kb / 1024;
}

export const availableMb = (): number =>
  Number(/^MemAvailable:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))![1]) / 1024;

/** Where the inside of the window with this name is, on the screen (wmctrl counts jwm's frame twice). */
async function windowAt(
  d: Desktop,
  name: string,
): Promise<{ x: number; y: number; width: number; height: number } | undefined> {
  const text = (await d.exec(['xwininfo', '-name', name])).stdout.toString();
  const field = (label: string): number => Number(new RegExp(`${label}:\\s+(-?\\d+)`).exec(text)?.[1]);
  const w = {
    x: field('Absolute upper-left X'),
    y: field('Absolute upper-left Y'),
    width: field('Width'),
    height: field('Height'),
  };
  return Number.isNaN(w.x) ? undefined : w;
}

export interface Calculator {
  readonly desktop: Desktop;
  readonly digits: readonly Point[];
}

/** A calculator, and where its digits 1 to 9 are: in a grid of 5 columns whose rows are the last four of the window. */
export async function openCalculator(d: Desktop): Promise<Calculator> {
  await d.spawn(['galculator']);
  // A program that waits for another one while it starts looks idle: asked again until its window is there.
  let w: Awaited<ReturnType<typeof windowAt>>;
  for (const until = now() + 20_000; !w;) {
    const s = await d.settle({ horizonMs: 250, maxMs: 20_000 });
    w = await windowAt(d, 'galculator');
    if (!w && now() > until) throw new Error(`the calculator did not open (settled: ${s.settled})`);
  }
  await d.settle({ horizonMs: 250, maxMs: 5000 });
  const digits: Point[] = [];
  for (const row of [1, 2, 3])
    for (const column of [0, 1, 2]) digits.push({ x: w.x + 35 + column * 65, y: w.y + w.height - 24 - row * 40 });
  // A click that misses its button would make every figure after it worthless: each must change the number that is
  // shown.
  const shown = async (): Promise<Buffer> => {
    const f = await d.observe();
    const rows: Buffer[] = [];
    for (let y = w.y + 35; y < w.y + 80; y++)
      rows.push(f.data.subarray((y * f.width + w.x + 10) * 4, (y * f.width + w.x + 320) * 4));
    return Buffer.concat(rows);
  };
  let before = await shown();
  for (const at of digits) {
    await d.perform({ type: 'click', at });
    await d.settle();
    const after = await shown();
    if (after.equals(before)) throw new Error(`a click on the calculator at ${at.x},${at.y} showed no digit`);
    before = after;
  }
  return { desktop: d, digits };
}

/** PSS of a desktop of ours: its processes are found by the nonce that a short-lived program of it carries. */
export async function pssOf(d: Desktop, find: (entry: string) => number | undefined): Promise<number> {
  const entry = `BENCH_PSS=${d.id}`;
  await d.spawn(['sleep', '30'], { env: { BENCH_PSS: d.id } });
  const pid = find(entry);
  if (pid === undefined) return NaN;
  return pssMb(pid);
}
