import { readFileSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { readRecords, segmentsOf } from './journal.js';
import { processes } from './processes.js';
import type { Tail } from './tail.js';

/** What faults are made on: the daemon, its run, and what belongs to them. */
export interface Patient {
  readonly pid: number;
  readonly alive: boolean;
  /** The run folder. */
  readonly folder: string;
  /** The file system it is on, of its own where `mounted`. */
  readonly disk: string;
  readonly mounted: boolean;
  readonly tail: Tail;
  /** Numbers of records that were damaged on purpose. */
  readonly damaged: Set<number>;
  random(): number;
  startDaemon(): Promise<void>;
  killDaemon(): Promise<void>;
  /** Another connection in place of the one there is. */
  connect(): Promise<void>;
  /** Processes under the daemon whose command line has this word. */
  children(word: string): number[];
  /** Arms a place of the runtime; false when nobody comes there in time. */
  at(place: string): Promise<boolean>;
  command(text: string): Promise<boolean>;
  until(so: () => boolean, ms: number, what: string): Promise<void>;
}

/** Resolves when the fault has ended or was detected; false when it could not be made now. */
export type Fault = (c: Patient) => Promise<boolean>;

/** A stopped process is found after 5 to 6 s by its own clock; more than this on a busy machine is too late. */
const DETECTED_MS = 30_000;

const signal = (pid: number, name: NodeJS.Signals): boolean => {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
};
const kill =
  (word: string): Fault =>
  async (c) => {
    const [pid] = c.children(word);
    return pid !== undefined && signal(pid, 'SIGKILL');
  };
/** Stopped for good: ends when the daemon has found it and killed it. */
const hang =
  (word: string): Fault =>
  async (c) => {
    const [pid] = c.children(word);
    if (pid === undefined || !signal(pid, 'SIGSTOP')) return false;
    await c.until(() => !processes().some((p) => p.pid === pid), DETECTED_MS, `a stopped ${word} was found`);
    return true;
  };
const restarted: Fault = async (c) => {
  await c.killDaemon();
  await c.startDaemon();
  return true;
};
/** A kill at a place of the runtime: of the daemon, which is then started again, or of a child. */
const at =
  (place: string, dies: 'daemon' | 'child' = 'daemon'): Fault =>
  async (c) => {
    if (!(await c.at(place))) return false;
    if (dies === 'child') return true;
    await c.until(() => !c.alive, DETECTED_MS, 'a daemon that was killed had ended');
    await c.startDaemon();
    return true;
  };
/** Everything of one sandbox. */
function sandbox(c: Patient): { readonly pid: number; readonly what: string }[] {
  const all = processes(),
    [top] = c.children('bwrap');
  if (top === undefined) return [];
  const out = all.filter((p) => p.pid === top);
  for (let i = 0; i < out.length; i++) out.push(...all.filter((p) => p.parent === out[i]!.pid));
  return out;
}
const inSandbox =
  (fits: (what: string) => boolean, name: NodeJS.Signals, ms = 0): Fault =>
  async (c) => {
    const hit = sandbox(c).filter((p) => fits(p.what));
    for (const p of hit) signal(p.pid, name);
    if (ms > 0) {
      await after(ms);
      for (const p of hit) signal(p.pid, 'SIGCONT');
    }
    return hit.length > 0;
  };

export const liveFaults: Readonly<Record<string, Fault>> = {
  'kill-daemon': restarted,
  'stop-daemon': async (c) => {
    signal(c.pid, 'SIGSTOP');
    await after(2500);
    return signal(c.pid, 'SIGCONT');
  },
  'kill-trainer': kill('__trainer'),
  'stop-trainer': hang('__trainer'),
  'kill-replica': kill('__replica'),
  'stop-replica': hang('__replica'),
  'end-index': (c) => c.command('end-index'),
  'at-journal-write': at('journal-write'),
  'at-journal-index': at('journal-index'),
  'at-snapshot': at('snapshot'),
  'at-claim': at('claim'),
  'at-trained': at('trained'),
  'at-checkpoint': at('checkpoint', 'child'),
  'at-checkpoint-unsaid': at('checkpoint-unsaid'),
  'at-update': at('update', 'child'),
  'at-sync': at('sync'),
  'at-sync-replica': at('sync-replica', 'child'),
  'cut-connection': async (c) => {
    await c.connect();
    return true;
  },
  'kill-sandbox': kill('bwrap'),
  'stop-sandbox': inSandbox(() => true, 'SIGSTOP', 2000),
  'kill-x': inSandbox((w) => /\bXvfb\b/.test(w), 'SIGKILL'),
  'hang-application': inSandbox((w) => !/bwrap|agent\.py|Xvfb|jwm|prlimit/.test(w), 'SIGSTOP', 2000),
  'clock-forward': (c) => c.command('3600000'),
  'clock-back': (c) => c.command('-5400000'),
  'full-disk': async (c) => {
    if (!c.mounted) return false;
    const filler = join(c.disk, 'filler');
    const block = Buffer.alloc(1 << 20, 1);
    try {
      for (;;) writeFileSync(filler, block, { flag: 'a' });
    } catch {
      /* now it is full */
    }
    await after(2500);
    rmSync(filler, { force: true });
    return true;
  },
};

/** What is damaged while nobody writes; the records hit are known to the audit. */
const damage =
  (how: (c: Patient) => void): Fault =>
  async (c) => {
    c.tail.poll();
    await c.killDaemon();
    c.tail.poll();
    how(c);
    await c.startDaemon();
    return true;
  };
function flip(file: string, byte: number, bit = 0): void {
  const b = readFileSync(file);
  b[byte]! ^= 1 << bit;
  writeFileSync(file, b);
}
const journalEnd = (c: Patient) => readRecords(c.folder).records.at(-1)!;

export const damageFaults: Readonly<Record<string, Fault>> = {
  'cut-journal-tail': damage((c) => {
    const last = journalEnd(c);
    c.damaged.add(last.seq);
    truncateSync(last.file, last.to - 1 - Math.floor(c.random() * (last.to - last.from - 2)));
  }),
  'flip-journal-tail': damage((c) => {
    const last = journalEnd(c);
    c.damaged.add(last.seq);
    flip(last.file, last.from + 24 + Math.floor(c.random() * 8));
  }),
  'flip-journal-record': damage((c) => {
    const all = readRecords(c.folder).records,
      hit = all[Math.floor(c.random() * (all.length - 1))]!;
    c.damaged.add(hit.seq);
    flip(hit.file, hit.from + 4 + Math.floor(c.random() * (hit.to - hit.from - 4)), Math.floor(c.random() * 8));
  }),
  'flip-journal-header': damage((c) => {
    flip(segmentsOf(c.folder).at(-1)!, Math.floor(c.random() * 16), Math.floor(c.random() * 8));
  }),
  'flip-index': damage((c) => {
    const file = join(c.folder, 'index.sqlite');
    try {
      flip(file, Math.floor(c.random() * statSync(file).size));
    } catch {
      /* there is none yet, which is as bad */
    }
  }),
  'flip-frame': damage((c) => {
    const dir = join(c.folder, 'frames'),
      frames = readdirSync(dir, { recursive: true, withFileTypes: true }).filter(
        (e) => e.isFile() && e.name.endsWith('.png'),
      ),
      hit = frames[Math.floor(c.random() * frames.length)]!,
      file = join(hit.parentPath, hit.name);
    flip(file, Math.floor(statSync(file).size / 2));
  }),
};
