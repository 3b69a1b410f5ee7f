import { storedEvent, type Followed } from '../data/store/follow.js';
import type { StoredEvent } from '../data/events.js';
import type { RunEvent } from '../protocol/types.js';
import { rowsOf } from '../queries/rows.js';
import { nextSeq } from '../queries/trajectory.js';
import { interpreterOf } from './interpreter.js';
import { concerns, eventTypes, rowsNeeded, toRunEvent } from './mapEvents.js';
import type { OpenRun, Studio } from './studio.js';
import type { EventBatch, EventQuery } from './types.js';

export const BATCH = 200;

/** Next sequence number of a run. */
export const head = (studio: Studio, run: string): Promise<number> =>
  studio.read(run, async (r) => (r.session ? r.session.store.nextSeq : nextSeq(r.reader)));

/**
 * Events of a run since a sequence number, then live. It reads the journal as fast as batches are taken, so a slow
 * consumer holds nothing in memory and misses nothing.
 */
export async function* events(
  studio: Studio,
  q: EventQuery,
  signal: AbortSignal,
): AsyncGenerator<EventBatch, void, undefined> {
  // Held open for as long as somebody listens.
  let done!: () => void;
  const held = new Promise<void>((r) => {
    done = r;
  });
  try {
    const run = await new Promise<OpenRun>((resolve, reject) => {
      studio
        .read(q.run, (r) => {
          resolve(r);
          return held;
        })
        .catch(reject);
    });
    const wanted = new Set<string>(
      Object.entries(eventTypes).flatMap(([from, to]) => (!q.types || q.types.includes(to) ? [from] : [])),
    );
    let next = q.sinceSeq,
      live = false;
    for await (const f of run.reader.follow(q.sinceSeq, signal)) {
      for (const part of chunks(pick(f, wanted, q.rollout), BATCH)) {
        const mapped = await map(studio, q.run, part);
        if (signal.aborted) return;
        next = part.at(-1)!.seq + 1;
        if (mapped.length > 0) yield { events: mapped, nextSeq: next, live };
      }
      next = Math.max(next, (f.entries.at(-1)?.seq ?? -1) + 1);
      if (f.caughtUp && !live) {
        live = true;
        yield { events: [], nextSeq: next, live };
      }
    }
    if (!signal.aborted) yield { events: [], nextSeq: next, live: true, ended: true };
  } finally {
    done();
  }
}

/** Records a subscriber may want; others are not even parsed. */
function* pick(f: Followed, wanted: ReadonlySet<string>, rollout: string | undefined): Generator<StoredEvent> {
  for (const entry of f.entries) {
    if (!wanted.has(entry.type())) continue;
    const e = storedEvent(entry);
    if (rollout === undefined || concerns(e, rollout)) yield e;
  }
}
function* chunks<T>(xs: Iterable<T>, n: number): Generator<T[]> {
  let part: T[] = [];
  for (const x of xs) {
    part.push(x);
    if (part.length === n) {
      yield part;
      part = [];
    }
  }
  if (part.length > 0) yield part;
}

/** The run is asked for anew: an active one may have ended since the batch before. */
function map(studio: Studio, run: string, part: readonly StoredEvent[]): Promise<RunEvent[]> {
  const ids = [...new Set(part.flatMap(rowsNeeded))];
  return studio.read(run, async (r) => {
    const rows = ids.length > 0 ? await rowsOf(r.reader, ids, r.alive) : new Map<string, never>(),
      interpreter = interpreterOf(r.facts);
    return part.flatMap((e) => toRunEvent(e, rows, interpreter) ?? []);
  });
}
