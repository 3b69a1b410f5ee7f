import type { RunEvent } from '../../../runtime/protocol/types.js';
import { type EventBatch, type StudioService } from '../../../runtime/service/index.js';
/** Follows a run from the start, and waits for what it tells. */
export function follow(
  s: StudioService,
  run: string,
): {
  readonly events: RunEvent[];
  readonly batches: EventBatch[];
  readonly ended: Promise<void>;
  when(fits: (e: RunEvent) => boolean): Promise<RunEvent>;
} {
  const events: RunEvent[] = [],
    batches: EventBatch[] = [],
    waiting = new Set<() => void>();
  const ended = (async () => {
    for await (const b of s.events({ run, sinceSeq: 0 }, new AbortController().signal)) {
      batches.push(b);
      events.push(...b.events);
      for (const w of [...waiting]) w();
    }
  })();
  return {
    events,
    batches,
    ended,
    when: (fits) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const e = events.find(fits);
          if (e) {
            waiting.delete(look);
            resolve(e);
          }
        };
        waiting.add(look);
        look();
        ended.then(() => {
          look();
          reject(
            new Error(
              `the run ended first: ${events
                .map((e) => e.type)
                .slice(-20)
                .join(' ')}`,
            ),
          );
        }, reject);
      }),
  };
}
