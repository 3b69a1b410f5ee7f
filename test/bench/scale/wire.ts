/** What the processes of the benchmark say to one another, over Node's own channel between parent and child. */
import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Size } from '../../../runtime/domain/index.js';

/** What a model of 7 B takes for an answer, ms: drawn evenly between them. */
export const ANSWER_MS = [2000, 6000] as const;
/** Until a desktop is at rest after an action, and until it is made as new: as measured on real ones. */
export const SETTLE_MS = [8, 24] as const,
  RESET_MS = [80, 150] as const;

export interface HarnessRequest {
  readonly role: 'desktops' | 'models';
  readonly screen: Size;
  readonly socket: string;
  readonly seed: number;
  /** Answers come sooner by this factor for so long after the first request: episodes are under way when it is measured. */
  readonly hurry: { readonly factor: number; readonly ms: number };
  /** All answers take so many times as long. */
  readonly slow: number;
}
export interface DaemonRequest {
  readonly role: 'daemon';
  readonly dir: string;
  readonly desktops: number;
  readonly screen: Size;
  /** Unix sockets of processes with desktops; desktops take them in turn. */
  readonly sockets: readonly string[];
  readonly models: readonly string[];
  readonly warmMs: number;
  readonly windowMs: number;
}
/** The same work by a program that does nothing else. */
export type BareRequest = Omit<DaemonRequest, 'role'> & { readonly role: 'bare' };
/** Screens of desktops on this machine; nothing else runs beside it. */
export interface LocalRequest {
  readonly role: 'local';
  readonly screen: Size;
}
export type Request = HarnessRequest | DaemonRequest | BareRequest | LocalRequest;

/** What a process used so far, ms. */
export interface Used {
  readonly drawnMs: number;
  readonly cpuMs: number;
  readonly detail: Readonly<Record<string, number>>;
}
export type Reply =
  | { readonly ready: string }
  | { readonly used: Used }
  | { readonly window: 'begins' | 'ended' }
  | { readonly result: DaemonResult }
  | { readonly local: LocalResult }
  | { readonly failed: string };

export interface DaemonResult {
  readonly windowMs: number;
  readonly steps: number;
  readonly rollouts: number;
  readonly errors: number;
  readonly cpuMs: number;
  readonly mainMs: number;
  readonly loopP99: number;
  readonly loopLongest: number;
  readonly rssMb: number;
  readonly heapMb: number;
  readonly journalKb: number;
  readonly framesMb: number;
  /** Share of screens that no desktop had shown: others are not stored again. */
  readonly newScreens: number;
  readonly startMs: number;
}

/** Processor time a screen, ms: of the main thread and of all threads; and how long it was waited for. */
export type LocalResult = Readonly<
  Record<'threads' | 'here', { readonly main: number; readonly all: number; readonly reading: number }>
>;

/** Processor time of the main thread alone, ms. */
export const mainThreadMs = (): number =>
  Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;

export const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/**
 * The time that waits were meant to take, up to now: a wait counts while it lasts and never more than was drawn, so that
 * what a busy machine adds is not counted.
 */
export class DrawnTime {
  #ended = 0;
  readonly #open = new Map<number, { readonly since: number; readonly ms: number }>();
  #next = 0;

  wait(ms: number, then: () => void): void {
    const n = this.#next++,
      w = { since: performance.now(), ms };
    this.#open.set(n, w);
    setTimeout(() => {
      this.#open.delete(n);
      this.#ended += w.ms;
      then();
    }, ms);
  }
  total(): number {
    const now = performance.now();
    let ms = this.#ended;
    for (const w of this.#open.values()) ms += Math.min(w.ms, now - w.since);
    return ms;
  }
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function drawing(seed: number): () => number {
  let s = seed >>> 0;
  return () => {
    s = (s + 0x6d2b79f5) >>> 0;
    let t = Math.imul(s ^ (s >>> 15), 1 | s);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
export const between = (draw: () => number, [from, to]: readonly [number, number]): number =>
  from + draw() * (to - from);

/** What this process uses from now on: asked once, at the end of a window. */
export function usedFromNow(): () => Pick<DaemonResult, 'windowMs' | 'cpuMs' | 'mainMs' | 'loopP99' | 'loopLongest'> {
  const loop = monitorEventLoopDelay({ resolution: LOOP_MS }),
    at = { cpu: cpuMs(), main: mainThreadMs(), now: performance.now() };
  loop.enable();
  // The histogram counts from one timer to the next: its own time is no delay.
  const delay = (ns: number): number => Math.max(0, ns / 1e6 - LOOP_MS);
  return () => {
    loop.disable();
    return {
      windowMs: performance.now() - at.now,
      cpuMs: cpuMs() - at.cpu,
      mainMs: mainThreadMs() - at.main,
      loopP99: delay(loop.percentile(99)),
      loopLongest: delay(loop.max),
    };
  };
}
const LOOP_MS = 5;
