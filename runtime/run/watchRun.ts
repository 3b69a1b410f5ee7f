import type { RunConfig } from '../config/index.js';
import type { DataManager } from '../data/dataManager.js';
import type { NoteEvent } from '../data/events.js';
import { freeBytes } from '../files/freeSpace.js';
import { Watchdog, type Alert } from './watchdog.js';

const LOOK_MS = 5000;

/**
 * Watches a run and raises alerts. `end` is called, after the alert, for conditions on which the run file ends the run.
 * Returns a function that stops watching.
 */
export function watchRun(o: {
  readonly config: RunConfig;
  readonly dir: string;
  readonly data: Pick<DataManager, 'noted' | 'recorded'>;
  readonly now: () => number;
  /** Whether rollouts and updates are to be expected now, and the policy's version. */
  readonly status: () => { readonly training: boolean; readonly version: number };
  readonly alert: (a: Alert) => void;
  readonly end: (a: Alert) => void;
}): () => void {
  const dog = new Watchdog(o.config.watch);
  let evaluations = 0,
    looking = false;
  const tell = (alerts: readonly Alert[]): void => {
    for (const a of alerts) {
      o.alert(a);
      if (dog.ends(a.kind)) o.end(a);
    }
  };
  const off = o.data.noted.add((e: NoteEvent) => {
    if (e.type === 'metrics' && e.source === 'update') tell(dog.update(e.values));
    else if (e.type === 'eval') {
      evaluations++;
      tell(dog.evaluation(e));
    }
  });
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    const free = await freeBytes(o.dir),
      { training, version } = o.status();
    looking = false;
    tell(
      dog.look({
        at: o.now(),
        training,
        progress: `${o.data.recorded} ${version} ${evaluations}`,
        freeBytes: free,
      }),
    );
  };
  // Looks at once: the disk may be full from the start, and a short run may end before the first interval.
  void look();
  const timer = setInterval(() => void look(), LOOK_MS);
  timer.unref();
  return () => {
    off();
    clearInterval(timer);
  };
}
