import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync, watch } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { StoredEvent } from '../../../runtime/data/events.js';
import { ledgerMoves } from '../../../runtime/data/events.js';
import type { LedgerCounts } from '../../../runtime/data/types.js';
import { Ledger } from '../../../runtime/data/ledger.js';
import { follow, storedEvent } from '../../../runtime/data/store/follow.js';
import { readJournal } from '../../../runtime/data/store/journalReader.js';
import { runPaths } from '../../../runtime/data/store/runMeta.js';

/** The command line as its users have it: the bundle in a process of its own. */
const BUNDLE = resolve('dist/runtime.js');

const newest = (dir: string): number =>
  Math.max(
    ...readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((e) => e.isFile())
      .map((e) => statSync(join(e.parentPath, e.name)).mtimeMs),
  );
/** Builds the bundle when a source is newer. */
export function ensureBundle(): void {
  if (
    existsSync(BUNDLE) &&
    statSync(BUNDLE).mtimeMs > Math.max(newest('runtime'), statSync('scripts/build.mjs').mtimeMs)
  )
    return;
  execFileSync(process.execPath, ['scripts/build.mjs'], { stdio: ['ignore', 'inherit', 'inherit'] });
}

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}
export interface Command {
  readonly pid: number;
  /** Lines of standard output so far that are JSON. */
  readonly said: readonly Record<string, unknown>[];
  readonly ended: Promise<Ended>;
  hear(fits: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>;
  /** To the whole process group, as a terminal does. */
  signal(name: 'SIGINT' | 'SIGKILL', whole?: boolean): void;
}

const running = new Set<Command>();
/** Ends what a failed test left running. */
export async function endAll(): Promise<void> {
  for (const c of running) c.signal('SIGKILL', true);
  await Promise.all([...running].map((c) => c.ended));
}

/** Starts a command in a process group of its own. */
export const start = (...args: string[]): Command => startWith({}, ...args);
/** The same with further environment variables. */
export function startWith(env: Readonly<Record<string, string>>, ...args: string[]): Command {
  // Without --enable-source-maps: reading a map of 7 MB takes each of its processes longer than all else that starts it.
  const behind = process.env['DART_STUDIO_BEHIND'],
    [program, ...first] =
      behind === undefined ? [process.execPath] : ['scripts/lib/behind.sh', behind, process.execPath];
  const child = spawn(program!, [...first, BUNDLE, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: { ...process.env, ...env },
  });
  const said: Record<string, unknown>[] = [],
    listeners = new Set<() => void>();
  let stdout = '',
    stderr = '';
  createInterface({ input: child.stdout }).on('line', (l) => {
    stdout += l + '\n';
    if (!l.startsWith('{"')) return;
    said.push(JSON.parse(l) as Record<string, unknown>);
    for (const f of listeners) f();
  });
  child.stderr.on('data', (d: Buffer) => {
    stderr += d.toString();
  });
  const ended = new Promise<Ended>((done, fail) => {
    child.once('error', fail);
    child.once('close', (code, signal) => {
      running.delete(command);
      done({ code, signal, stdout, stderr });
    });
  });
  const command: Command = {
    pid: child.pid!,
    said,
    ended,
    hear: (fits) =>
      new Promise((done, fail) => {
        const look = (): void => {
          const l = said.find(fits);
          if (l) {
            listeners.delete(look);
            done(l);
          }
        };
        listeners.add(look);
        look();
        void ended.then((e) => {
          if (listeners.delete(look))
            fail(
              new Error(
                `it ended (code ${e.code}, signal ${e.signal}) before it said so:\n${e.stderr}\n${e.stdout.slice(-2000)}`,
              ),
            );
        });
      }),
    signal: (name, whole = true) => {
      try {
        process.kill(whole ? -child.pid! : child.pid!, name);
      } catch {
        /* it has ended */
      }
    },
  };
  running.add(command);
  return command;
}
export const cli = (...args: string[]): Promise<Ended> => start(...args).ended;
export async function cliJson<T>(...args: string[]): Promise<T> {
  const r = await cli(...args);
  if (r.code !== 0) throw new Error(`${args.join(' ')}: exit code ${r.code}\n${r.stderr}`);
  return JSON.parse(r.stdout) as T;
}

/** The run folder, once `train --json` has said where it is. */
export async function folderOf(c: Command): Promise<string> {
  const line = await c.hear((l) => typeof l['text'] === 'string' && /^Run \S+ in /.test(l['text']));
  return /^Run \S+ in (.+)$/.exec(String(line['text']))![1]!;
}

/** A run's journal from its first event, through the ledger's rules, which throw when a move is not allowed. */
export interface Replay {
  readonly events: readonly StoredEvent[];
  readonly counts: LedgerCounts;
  /** Damaged stretches. */
  readonly damage: number;
  of<T extends StoredEvent['type']>(type: T): readonly Extract<StoredEvent, { type: T }>[];
}
export async function replay(dir: string): Promise<Replay> {
  const r = new Replaying();
  for await (const entries of readJournal(runPaths(dir).journal, { fromSeq: 0, onDamage: () => r.damage++ }))
    for (const e of entries) r.add(storedEvent(e));
  return r;
}

class Replaying implements Replay {
  readonly events: StoredEvent[] = [];
  damage = 0;
  readonly #ledger = new Ledger();

  get counts(): LedgerCounts {
    return this.#ledger.counts();
  }
  add(e: StoredEvent): void {
    this.events.push(e);
    this.#ledger.moveAll(ledgerMoves(e));
  }
  readonly of = <T extends StoredEvent['type']>(type: T): readonly Extract<StoredEvent, { type: T }>[] =>
    this.events.filter((e): e is Extract<StoredEvent, { type: T }> => e.type === type);
}

/** Whoever writes a run's journal. */
export type JournalWriter = Pick<Command, 'hear' | 'ended'>;
/** Reads a growing journal as it grows, until it is so. Rejects when the writer ends first. */
export async function journalWhen(dir: string, writer: JournalWriter, so: (r: Replay) => boolean): Promise<Replay> {
  const { journal } = runPaths(dir),
    r = new Replaying();
  let ended = undefined as Ended | undefined;
  await writer.hear((l) => l['type'] === 'status'); // by then there is a journal
  const watcher = watch(journal);
  try {
    const growing = follow(
      {
        read: (o) => readJournal(journal, { ...o, onDamage: () => r.damage++ }),
        ended: () => ended !== undefined,
        onGrowth: (grown) => {
          watcher.on('change', grown);
          void writer.ended.then((e) => {
            ended = e;
            grown();
          });
          return () => watcher.off('change', grown);
        },
      },
      0,
    );
    for await (const { entries, caughtUp } of growing) {
      for (const e of entries) r.add(storedEvent(e));
      if (caughtUp && so(r)) return r;
    }
  } finally {
    watcher.close();
  }
  throw new Error(`the run ended first (code ${ended?.code}, signal ${ended?.signal}):\n${ended?.stderr}`);
}

/** `try` of a checkpoint in a terminal, two steps at most, with its lines. */
export async function tryInTerminal(
  checkpoint: string,
): Promise<{ readonly ended: Ended; readonly lines: readonly Record<string, unknown>[] }> {
  const how = ['--task', 'term-touch', '--max-steps', '2', '--provider', 'local'],
    command = start('try', '--policy', checkpoint, ...how),
    ended = await command.ended;
  return { ended, lines: command.said };
}
