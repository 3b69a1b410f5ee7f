/**
 * The messages of a desktop's agent. They come from inside a sandbox: each line is checked before anything acts on it,
 * and an invalid one ends the connection to that desktop.
 */
import { isObject } from '../foreign/json.js';

/** Events that the agent (images/desk/overlay/opt/dart/agent.py) sends unprompted. */
export interface AgentExit {
  readonly event: 'exit';
  readonly pid: number;
  readonly name: string;
  readonly code: number | null;
  readonly signal: string | null;
}
export interface ResetReply {
  /** ms inside the desktop, until the window manager was started. */
  readonly ms: number;
  /** Pid of Xvfb in the desktop's own numbering. */
  readonly xpid: number;
  readonly doubleClickMs: number;
  /** Whether programs of the user can neither trace nor signal the X server and commands of the verifier. */
  readonly walled: boolean;
}
/** What the agent sees of its X server. */
export interface AgentState {
  /** State letter of its process as in /proc/PID/stat; null when there is none. */
  readonly x: string | null;
  /** Processor time that it has used, ms. */
  readonly xCpuMs: number;
}
export interface AgentSettle {
  readonly settled: boolean;
  readonly ms: number;
  readonly detector: 'exact' | 'hold';
  /** Agents of older images do not say it. */
  readonly starved?: number;
}

/** A line from inside the desktop that the agent never writes. */
export class BadLine extends Error {}

const KB = 1 << 10,
  MB = 1 << 20;
/** An answer of numbers and short texts, and every event: names of programs, of 255 bytes at most, with escapes. */
const SHORT = 4 * KB;
/** A refusal that says the name of a file (LONGEST_NAME), with escapes: six bytes for one. */
const NAMING = 64 * KB;
/** Bytes of the longest name of a file that Linux takes. Longer ones are refused before the desktop is asked. */
export const LONGEST_NAME = 4095;
/** OUTPUT_CAP of agent.py with the 256 KB it may read beyond, and READ_PART, as base64. */
const OUTPUT = base64Length(8 * MB + 256 * KB),
  PART = base64Length(4 * MB);
/** READ_CAP of agent.py: bytes of the largest file that is read. */
export const LARGEST_FILE = 128 * MB;

function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

/** The fields of each command's answer; `check` throws a BadLine when they are wrong. */
interface Answer<T> {
  /** Most bytes of the whole line. */
  readonly most: number;
  check(m: Fields): T;
}
type Fields = Readonly<Record<string, unknown>>;

const nothing = (): undefined => undefined;
export const ANSWERS = {
  ping: { most: SHORT, check: nothing },
  kill: { most: SHORT, check: nothing },
  write: { most: NAMING, check: nothing },
  freeze: { most: SHORT, check: nothing },
  thaw: { most: SHORT, check: nothing },
  relieve: { most: SHORT, check: nothing },
  forward: { most: NAMING, check: nothing },
  state: { most: SHORT, check: (m): AgentState => ({ x: xState(m), xCpuMs: number(m, 'xCpuMs') }) },
  spawn: { most: NAMING, check: (m) => ({ pid: pid(m, 'pid') }) },
  reset: {
    most: NAMING,
    check: (m): ResetReply => ({
      ms: number(m, 'ms'),
      xpid: pid(m, 'xpid'),
      doubleClickMs: number(m, 'doubleClickMs', 10_000),
      walled: boolean(m, 'walled'),
    }),
  },
  exec: {
    most: NAMING + 2 * OUTPUT,
    check: (m) => ({
      code: exitCode(m),
      stdout: bytes(m, 'stdout'),
      stderr: bytes(m, 'stderr'),
      timedOut: boolean(m, 'timedOut'),
      stopped: boolean(m, 'stopped'),
      disturbed: boolean(m, 'disturbed'),
    }),
  },
  read: { most: NAMING + PART, check: (m) => ({ data: bytes(m, 'data'), more: boolean(m, 'more') }) },
  settle: {
    most: SHORT,
    check: (m): AgentSettle => ({
      settled: boolean(m, 'settled'),
      ms: number(m, 'ms'),
      detector: detector(m),
      ...(m['starved'] === undefined ? {} : { starved: number(m, 'starved') }),
    }),
  },
} as const satisfies Record<string, Answer<unknown>>;
export type AgentCommand = keyof typeof ANSWERS;
export type AnswerOf<C extends AgentCommand> = ReturnType<(typeof ANSWERS)[C]['check']>;

/** Most bytes of a line while these commands are unanswered. */
export function longestLine(open: Iterable<AgentCommand>): number {
  let most = SHORT;
  for (const c of open) most = Math.max(most, ANSWERS[c].most);
  return most;
}

/** A command that the agent did not carry out. */
export interface Refusal {
  readonly error: string;
  /** Name of the error in C, e.g. ENOENT. */
  readonly code: string | undefined;
}
export type AgentLine =
  | { readonly kind: 'exit'; readonly exit: AgentExit }
  | { readonly kind: 'answer'; readonly id: number; readonly fields: Fields }
  | { readonly kind: 'refusal'; readonly id: number; readonly refusal: Refusal };

/** Strings of a line that is longer than NAMING, at most; `exec` has nine. */
const LONG_STRINGS = 16;
const QUOTE = 0x22,
  BACKSLASH = 0x5c;
/** The place of a string's content in a line. */
interface Span {
  readonly from: number;
  readonly to: number;
}
/**
 * A long line is a few base64 strings and little else, whatever it says. Anything else of megabytes, deeply nested or
 * with a million keys, would hold up the event loop while it is parsed. Returns its long strings; throws a BadLine.
 */
function longStrings(line: Buffer): Span[] {
  if (line.includes(BACKSLASH)) throw new BadLine('it is long and has escapes');
  const long: Span[] = [];
  let quotes = 0,
    outside = 0,
    from = 0;
  for (;;) {
    const at = line.indexOf(QUOTE, from),
      end = at < 0 ? line.length : at;
    if (quotes % 2 === 0) outside += end - from;
    else if (end - from > SHORT) long.push({ from, to: end });
    if (at < 0) break;
    if (++quotes > 2 * LONG_STRINGS) throw new BadLine('it is long and has too many strings');
    from = at + 1;
  }
  if (outside > NAMING) throw new BadLine('it is long, and little of it is strings');
  return long;
}

/**
 * A long line as JSON. Its long strings stay bytes: parsing megabytes only to copy them out again would take several
 * times as long as decoding them does. Such a field is the Buffer that its base64 stands for.
 */
function longJson(line: Buffer): unknown {
  const long = longStrings(line);
  let rest = '',
    at = 0;
  long.forEach(({ from, to }, i) => {
    // An escaped NUL: a long line has no escapes of its own.
    rest += `${line.toString('latin1', at, from)}\\u0000${i}`;
    at = to;
  });
  const m: unknown = JSON.parse(rest + line.toString('latin1', at));
  if (!isObject(m)) return m;
  return Object.fromEntries(
    Object.entries(m).map(([k, v]: [string, unknown]) => {
      const of = typeof v === 'string' && v.startsWith('\0') ? long[Number(v.slice(1))] : undefined;
      return [k, of ? Buffer.from(line.toString('latin1', of.from, of.to), 'base64') : v];
    }),
  );
}

/** Parses one line, without its line feed. Throws a BadLine. */
export function parseLine(line: Buffer): AgentLine {
  let m: unknown;
  try {
    m = line.length > NAMING ? longJson(line) : JSON.parse(line.toString('utf8'));
  } catch (e) {
    throw e instanceof BadLine ? e : new BadLine('it is not JSON');
  }
  if (!isObject(m)) throw new BadLine('it is not a JSON object');
  const fields: Fields = m;
  if (Object.hasOwn(fields, 'event') && line.length > SHORT) throw new BadLine('it is too long for an event');
  if (Object.hasOwn(fields, 'event')) return { kind: 'exit', exit: exitEvent(fields) };
  const id = fields['id'];
  if (typeof id !== 'number' || !Number.isSafeInteger(id)) throw new BadLine('it answers no question');
  if (boolean(fields, 'ok')) return { kind: 'answer', id, fields };
  const code = fields['code'];
  return {
    kind: 'refusal',
    id,
    refusal: {
      error: text(fields, 'error').slice(0, 1000),
      code: typeof code === 'string' && /^E[A-Z0-9]{1,30}$/.test(code) ? code : undefined,
    },
  };
}

function exitEvent(m: Fields): AgentExit {
  if (m['event'] !== 'exit') throw new BadLine('it reports an unknown event');
  const signal = m['signal'];
  if (signal !== null && (typeof signal !== 'string' || signal.length > 32)) throw unfit('signal');
  // The last part of a path: 255 bytes at most on Linux.
  const name = text(m, 'name');
  if (name.length > 255) throw unfit('name');
  return { event: 'exit', pid: pid(m, 'pid'), name, code: exitCode(m), signal };
}

const unfit = (name: string): BadLine => new BadLine(`its "${name}" does not fit`);

function number(m: Fields, name: string, most = 1e9): number {
  const v = m[name];
  if (typeof v !== 'number' || !(v >= 0 && v <= most)) throw unfit(name);
  return v;
}
function pid(m: Fields, name: string): number {
  const v = number(m, name);
  if (!Number.isInteger(v) || v < 1) throw unfit(name);
  return v;
}
function exitCode(m: Fields): number | null {
  const v = m['code'];
  if (v !== null && (typeof v !== 'number' || !Number.isInteger(v) || v < 0 || v > 255)) throw unfit('code');
  return v;
}
function boolean(m: Fields, name: string): boolean {
  const v = m[name];
  if (typeof v !== 'boolean') throw unfit(name);
  return v;
}
function text(m: Fields, name: string): string {
  const v = m[name];
  if (typeof v !== 'string') throw unfit(name);
  return v;
}
/** The bytes of a field; a short line still has them as base64. */
function bytes(m: Fields, name: string): Buffer {
  const v = m[name];
  return Buffer.isBuffer(v) ? v : Buffer.from(text(m, name), 'base64');
}
function xState(m: Fields): string | null {
  const v = m['x'];
  if (v !== null && (typeof v !== 'string' || !/^[A-Za-z]$/.test(v))) throw unfit('x');
  return v;
}
function detector(m: Fields): AgentSettle['detector'] {
  const v = m['detector'];
  if (v !== 'exact' && v !== 'hold') throw unfit('detector');
  return v;
}
