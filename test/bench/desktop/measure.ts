import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Desktop } from '../../../runtime/cluster/types.js';
import type { Point } from '../../../runtime/domain/index.js';

export const now = (): number => performance.now();
export const ms = async (f: () => Promise<unknown>): Promise<number> => { const t = now(); await f(); return now() - t; };
export const sleep = (t: number): Promise<void> => new Promise((r) => { setTimeout(r, t); });
export const round = (x: number): number => Math.round(x * 100) / 100;

/** Small seeded generator (mulberry32): the same actions in every run. */
export function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => { a = (a + 0x6d2b79f5) | 0; let t = Math.imul(a ^ (a >>> 15), 1 | a); t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t; return ((t ^ (t >>> 14)) >>> 0) / 4294967296; };
}

/** Runs `step` over and over on every item at once for `forMs`; steps finished per second, in sum. Steps under way at the end are waited for, and counted with their time. */
export async function rate<T>(items: readonly T[], forMs: number, step: (item: T, k: number) => Promise<void>): Promise<{ perSecond: number; steps: number; times: number[] }> {
  const began = now();
  const times: number[] = [];
  await Promise.all(items.map(async (item) => {
    for (let k = 0; now() - began < forMs; k++) { const t = now(); await step(item, k); times.push(now() - t); }
  }));
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
    } catch { /* ended */ }
  }
  return kb / 1024;
}

export const availableMb = (): number => Number(/^MemAvailable:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))![1]) / 1024;

/** Where a window of this title is, from the window manager's list. */
export async function windowAt(d: Desktop, title: RegExp): Promise<{ x: number; y: number; width: number; height: number } | undefined> {
  const r = await d.exec(['wmctrl', '-lG']);
  for (const l of r.stdout.toString().split('\n')) {
    const m = /^\S+\s+\S+\s+(-?\d+)\s+(-?\d+)\s+(\d+)\s+(\d+)\s+\S+\s+(.*)$/.exec(l);
    if (m && title.test(m[5]!)) return { x: Number(m[1]), y: Number(m[2]), width: Number(m[3]), height: Number(m[4]) };
  }
  return undefined;
}

export interface Calculator { readonly desktop: Desktop; readonly digits: readonly Point[] }

/** A calculator, and where its digits 1 to 9 are: in a grid of 5 columns whose rows are the last four of the window. */
export async function openCalculator(d: Desktop): Promise<Calculator> {
  await d.spawn(['galculator']);
  const s = await d.settle({ horizonMs: 250, maxMs: 10_000 });
  const w = await windowAt(d, /galculator/);
  if (!s.settled || !w) throw new Error('the calculator did not open');
  const row = (k: number): number => Math.round(w.y + w.height - 23 - k * 40), column = (k: number): number => Math.round(w.x + 35 + k * 65);
  const digits: Point[] = [];
  for (const r of [1, 2, 3]) for (const c of [0, 1, 2]) digits.push({ x: column(c), y: row(r) });
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
