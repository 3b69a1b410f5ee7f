import { watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { JournalEvent, StoredEvent } from '../events.js';
import { positionOf, segmentName, segments } from './journalReader.js';
import type { JournalEntry, JournalPosition, ReadOptions } from './journalReader.js';
import { checkRecord } from './recordChecks.js';

/** A batch of records; `caughtUp`: there was nothing more when it was read. A batch may be empty. */
export interface Followed {
  readonly entries: readonly JournalEntry[];
  readonly caughtUp: boolean;
}

export interface FollowSource {
  read(o: Pick<ReadOptions, 'from' | 'fromSeq'>): AsyncIterable<readonly JournalEntry[]>;
  /** Whether the journal has ended. */
  ended(): boolean;
  /** Calls back after every growth, and when it has ended. */
  onGrowth(grown: () => void): () => void;
}

/** A journal grows with every step of every desktop; each look at it opens a file. */
const LOOKS_APART_MS = 50;

/**
 * Reads a growing journal without gaps, and without buffering for a slow reader. Ends with the source, or when the
 * signal fires.
 */
export async function* follow(
  source: FollowSource,
  sinceSeq: number,
  signal?: AbortSignal,
): AsyncGenerator<Followed, void, undefined> {
  let next = sinceSeq,
    from: JournalPosition | undefined,
    woken = false,
    resume: (() => void) | undefined;
  const wake = (): void => {
    woken = true;
    resume?.();
  };
  const off = source.onGrowth(wake);
  signal?.addEventListener('abort', wake);
  try {
    while (!signal?.aborted) {
      // Checked before reading, so that the last records are still read after the end.
      const last = source.ended(),
        looked = performance.now();
      woken = false;
      for await (const entries of source.read(from === undefined ? { fromSeq: next } : { from, fromSeq: next })) {
        if (signal?.aborted) return;
        const end = entries.at(-1)!;
        next = end.seq + 1;
        from = end.next;
        yield { entries, caughtUp: false };
      }
      if (signal?.aborted) return;
      yield { entries: [], caughtUp: true };
      if (last) return;
      if (!woken && !signal?.aborted)
        await new Promise<void>((r) => {
          resume = r;
        });
      const early = LOOKS_APART_MS - (performance.now() - looked),
        over = (): boolean => source.ended() || signal?.aborted === true;
      if (early > 0 && !over())
        await new Promise<void>((r) => {
          const timer = setTimeout(r, early);
          resume = () => {
            if (!over()) return;
            clearTimeout(timer);
            r();
          };
        });
    }
  } finally {
    off();
    signal?.removeEventListener('abort', wake);
  }
}

/** Throws `store.damaged` for a record that no run has written. */
export function storedEvent(entry: JournalEntry): StoredEvent {
  const e = { ...(entry.event() as JournalEvent & { at: number }), seq: entry.seq } as StoredEvent;
  checkRecord(e);
  return e;
}

/** End of what another process has written so far; a half-written record is not read yet. */
export async function journalEnd(dir: string): Promise<JournalPosition> {
  const last = (await segments(dir)).at(-1);
  return last === undefined ? 0 : positionOf(last, (await stat(join(dir, segmentName(last)))).size);
}

/**
 * Calls back when another process writes to the journal folder: by file system events, or once a second when the system
 * has no more watches.
 */
export function watchJournal(dir: string, grown: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const poll = (): void => {
    timer ??= setInterval(grown, 1000).unref();
  };
  try {
    const w = watch(dir, () => {
      grown();
    });
    w.on('error', () => {
      w.close();
      poll();
    });
    return () => {
      w.close();
      clearInterval(timer);
    };
  } catch {
    poll();
    return () => {
      clearInterval(timer);
    };
  }
}
