/** What one attached window makes the daemon do: rows of desktops that changed, and the run's events, as JSON. */
import type { DataManager } from '../../../runtime/data/dataManager.js';
import { ignoreFailure } from '../../../runtime/concurrency/failures.js';
import type { DesktopRegistry } from '../../../runtime/rollout/desktopRegistry.js';
import { coalesce } from '../../../runtime/service/desktops.js';
import { events } from '../../../runtime/service/events.js';
import type { OpenRun, Studio } from '../../../runtime/service/studio.js';

/** As the service waits between two rows of one desktop. */
const CHANGED_MS = 100;

export function watchAsWindow(data: DataManager, desktops: DesktopRegistry): () => void {
  const stop = new AbortController();
  // What a socket would be given.
  const send = (x: unknown): Buffer => Buffer.from(JSON.stringify(x));
  const tell = coalesce<unknown>(CHANGED_MS, (desktop, row) =>
    send({ method: 'desktop/changed', params: { desktop, row } }),
  );
  const off = desktops.onChange((desktop, row) => tell(desktop, row));
  const run = { reader: data.store, session: { store: data.store }, alive: new Set(), facts: [] } as unknown as OpenRun,
    studio = { read: (_: string, f: (r: OpenRun) => unknown) => Promise.resolve(f(run)) } as unknown as Studio;
  const follow = async (): Promise<void> => {
    for await (const batch of events(studio, { run: 'scale', sinceSeq: 0 }, stop.signal)) send(batch);
  };
  ignoreFailure(follow(), 'the run has been closed');
  return () => {
    off();
    stop.abort();
  };
}
