import { jsonOrNothing } from '../../foreign/json.js';

export type Stage = 'result' | 'expected' | 'metric';
export type BridgeEnd =
  | {
      readonly kind: 'done';
      readonly score: number;
      readonly found: string;
      readonly expected: string;
    }
  /** The evaluator raised: by itself no fault of ours. */
  | { readonly kind: 'raised'; readonly stage: Stage; readonly type: string; readonly text: string }
  | { readonly kind: 'timeout'; readonly stage: Stage }
  /** The process ended, or wrote an unreadable line. `text` follows "they" in a sentence. */
  | { readonly kind: 'lost'; readonly stage: Stage; readonly text: string };

export type Message = Readonly<Record<string, unknown>>;
/** A message of a worker that judges. */
export type Said =
  | { readonly kind: 'ask'; readonly name: string; readonly what: Message }
  /** The metric begins. */
  | { readonly kind: 'metric' }
  /** Something of ours failed. */
  | { readonly kind: 'fault'; readonly text: string }
  | { readonly kind: 'end'; readonly end: BridgeEnd }
  /** The line cannot be read. */
  | { readonly kind: 'lost'; readonly text: string };

/** Bounds of a message: a question with its command or the browser's steps, an end with its faults. */
const BOUNDS = { depth: 16, values: 10_000 };
/** Most characters of a line while a file of the policy is executed: an end has a few hundred. */
const MOST_EXECUTED = 1 << 16;

export const UNREADABLE = 'gave no answer that can be read';
const lost = (text: string): Said => ({ kind: 'lost', text });

/**
 * Reads one line of a worker. `executing`: a metric that executes a file of the policy is at work, so the line may be
 * that file's own; then only the end is taken. Never throws.
 */
export function understood(line: string, stage: Stage, executing: boolean): Said {
  if (executing && line.length > MOST_EXECUTED) return lost('gave an answer that is too long');
  const m = messageIn(line);
  if (m === undefined) return lost(UNREADABLE);
  // Getters ask; what a metric executes has nothing to ask.
  if ('ask' in m) {
    const name = m['ask'];
    return executing || typeof name !== 'string' ? lost('asked out of turn') : { kind: 'ask', name, what: m };
  }
  // Said only once, so that no job has more lines than answers.
  if ('stage' in m) return stage === 'metric' || m['stage'] !== 'metric' ? lost(UNREADABLE) : { kind: 'metric' };
  const faults = m['faults'];
  if (Array.isArray(faults) && faults.length > 0) {
    const text = wordsOf(faults[0], 300);
    // Executed code may do what is a fault elsewhere: ask the network, say.
    return executing ? { kind: 'end', end: { kind: 'raised', stage, type: 'Fault', text } } : { kind: 'fault', text };
  }
  const end = endOf(m);
  if (!end) return lost(UNREADABLE);
  return { kind: 'end', end: end.kind === 'raised' && executing ? { ...end, stage } : end };
}

/** A line's object; undefined where it is none, or holds more than any message of a worker. */
export function messageIn(line: string): Message | undefined {
  const v = jsonOrNothing(line, BOUNDS);
  return typeof v === 'object' && v !== null ? (v as Message) : undefined;
}

/** Never by way of an object's own `toString`, which another program may have written. */
export function wordsOf(x: unknown, most: number): string {
  if (typeof x === 'number') return String(x);
  return typeof x === 'string' ? x.slice(0, most) : 'something that is no text';
}

const stageOf = (x: unknown): Stage => (x === 'expected' || x === 'metric' ? x : 'result');
const textOf = (x: unknown, most: number): string => (typeof x === 'string' ? x.slice(0, most) : '');

/** Checked field by field: a metric that executes what the policy left behind may have written the line itself. */
function endOf(m: Message): BridgeEnd | undefined {
  const { done: d, raised: r } = m as Readonly<Record<string, Message | null | undefined>>;
  if (d && typeof d === 'object')
    return typeof d['score'] === 'number' && Number.isFinite(d['score'])
      ? {
          kind: 'done',
          score: d['score'],
          found: textOf(d['found'], 300),
          expected: textOf(d['expected'], 300),
        }
      : undefined;
  return r && typeof r === 'object'
    ? { kind: 'raised', stage: stageOf(r['stage']), type: textOf(r['type'], 100), text: textOf(r['text'], 600) }
    : undefined;
}
