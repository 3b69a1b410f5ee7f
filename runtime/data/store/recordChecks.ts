/** What a record must be to be read at all: a checksum says nothing of who wrote it. */
import { StudioError } from '../../domain/index.js';
import { isObject } from '../../foreign/json.js';
import type { EventOf, JournalEvent } from '../events.js';

/** The last time that a date can name, ms. */
const LAST_MS = 8.64e15;
/**
 * A record has a few dozen spans of a few seconds, and what goes on is written every three. Only a machine that slept, or
 * whose clock was set, makes one long.
 */
export const MOST_SPAN_MS = 400 * 86_400_000;
const MOST_SPANS = 4096,
  MOST_ROLLOUTS = 255,
  /** Of all spans of a record: each minute is a row. */
  MOST_MINUTES = 1_000_000;

/** Throws `store.damaged` for a record that no run has written and that would cost time or memory without end. */
export function checkRecord(e: JournalEvent): void {
  if (e.type === 'spans' && !areSpans(e)) throw damaged('tells of work at times that cannot be');
  if (e.type === 'rollout.step' && !isStep(e.step)) throw damaged('holds a step that is none');
  if (e.type === 'batch.trained' && !areTrained(e.trajectories)) throw damaged('tells of training that cannot be');
}
const damaged = (what: string): StudioError =>
  new StudioError(
    'store.damaged',
    `A record of the journal ${what}.`,
    'Restore the journal folder from a copy, or leave this run folder alone: DART Studio did not write it.',
  );

const within = (x: unknown, least: number, most: number): boolean => typeof x === 'number' && x >= least && x <= most;

/** A time without end would be counted minute by minute. */
function areSpans(e: EventOf<'spans'>): boolean {
  const { what, start, ms, of, rollouts } = e as { readonly [K in keyof typeof e]: unknown };
  if (!(what instanceof Uint8Array && of instanceof Uint8Array)) return false;
  if (!(start instanceof Float32Array && ms instanceof Float32Array)) return false;
  if (what.length > MOST_SPANS || [start, ms, of].some((c) => c.length !== what.length)) return false;
  if (!Array.isArray(rollouts) || rollouts.length > MOST_ROLLOUTS) return false;
  if (!within(e.t0, 0, LAST_MS) || !start.every((s) => within(s, 0, MOST_SPAN_MS))) return false;
  // A clock that was set back has left spans of less than nothing, which count as nothing.
  if (!ms.every((x) => within(x, -MOST_SPAN_MS, MOST_SPAN_MS))) return false;
  return ms.reduce((minutes, x) => minutes + Math.max(0, x) / 60_000 + 1, 0) <= MOST_MINUTES;
}

const isWhole = (x: unknown): boolean => Number.isSafeInteger(x) && (x as number) >= 0;
/** An object may say that it has any length. */
const isList = (x: unknown): boolean => Array.isArray(x) || (ArrayBuffer.isView(x) && !(x instanceof DataView));
const orNone = (x: unknown, is: (x: unknown) => boolean): boolean => x === undefined || x === null || is(x);
const areTrained = (all: unknown): boolean =>
  orNone(
    all,
    (ts) =>
      Array.isArray(ts) &&
      ts.every((t) => isObject(t) && isList(t['steps']) && isList(t['weights']) && orNone(t['advantages'], isList)),
  );
/** JSON may hold 1e999, which is read as infinite. */
function isStep(step: unknown): boolean {
  if (!isObject(step) || !isWhole(step['index']) || !Array.isArray(step['actions'])) return false;
  return orNone(step['version'], Number.isSafeInteger) && orNone(step['tokens'], isTrace);
}
const isTrace = (t: unknown): boolean =>
  isObject(t) && ['logprobs', 'entropies', 'ids', 'choices'].every((column) => orNone(t[column], isList));
