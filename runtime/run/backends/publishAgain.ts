import { StudioError, cancelled, toRunError, type RunError } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { growingMs, pause, type Patience } from '../../concurrency/pause.js';
import type { AdapterWeights } from '../../policy/remote/endpointReplica.js';
import { abortable } from '../../rollout/clock.js';

export interface PublishAgainOptions<T> {
  /** To all replicas; rejects with `policy.remote`, and the version before stays in use, where a server refuses. */
  readonly publish: (w: AdapterWeights) => Promise<T>;
  /** There is no version before: the run starts with this one. */
  readonly first?: boolean;
  /** The same weights as new files; undefined where the trainer has newer ones by now. */
  readonly exportAnew: (w: AdapterWeights) => Promise<AdapterWeights | undefined>;
  /** Deletes refused files that no server has loaded. */
  readonly forget: (w: AdapterWeights) => void;
  readonly onNote: (text: string) => void;
  /** The run ends: rejects with `cancelled` at once, unless a server is being asked. */
  readonly signal: AbortSignal;
  /** `attempts`: how often it is published again. */
  readonly patience?: Patience;
  readonly wait?: typeof pause;
}
/** A shared folder has time to catch up, and a server to be started again with other settings. */
const PATIENCE: Patience = { attempts: 3, baseMs: 5000, maxMs: 60_000 };
/** A person who has started a run with wrong settings of a server should know soon. */
const FIRST_PATIENCE: Patience = { ...PATIENCE, attempts: 2 };
const WHAT = 'Publishing weights';

/**
 * Publishes weights; files that a server refuses are exported anew after a growing pause and published again, for they
 * may not have been whole where the server looked. The trainer may have gone on meanwhile: then the files that there are
 * are offered again. Rejects with `policy.remote` when that did not help.
 */
export async function publishAgain<T>(exported: AdapterWeights, o: PublishAgainOptions<T>): Promise<T> {
  const { first = false, wait = pause, signal } = o,
    { patience = first ? FIRST_PATIENCE : PATIENCE } = o,
    { version } = exported;
  let weights = exported,
    waitedMs = 0;
  for (let before = 0; ; before++)
    try {
      const report = await o.publish(weights);
      if (before > 0) o.onNote(`Version ${version} is published, at attempt ${before + 1}.`);
      return report;
    } catch (e) {
      const error = toRunError(e);
      if (error.kind !== 'policy.remote') throw e;
      if (before === patience.attempts) {
        o.forget(weights);
        throw refusedForGood(error, e, { version, times: before + 1, waitedMs, first });
      }
      const ms = growingMs(patience, before);
      waitedMs += ms;
      o.onNote(
        `Version ${version} was refused by a model server and is published again in ${seconds(ms)}, as new files if the trainer still has it (attempt ${before + 2} of ${patience.attempts + 1}); ${first ? 'rollouts begin once it is taken' : 'rollouts go on with the version before'}. ${error.message} ${error.remedy}`,
      );
      await wait(ms, signal, () => cancelled(WHAT));
      const asked = orUndefined(o.exportAnew(weights), 'a trainer that is away says so at the next update'),
        anew = await abortable(asked, signal, WHAT);
      if (anew) {
        o.forget(weights);
        weights = anew;
      }
    }
}

function refusedForGood(
  { message, remedy, details }: RunError,
  cause: unknown,
  o: { readonly version: number; readonly times: number; readonly waitedMs: number; readonly first: boolean },
): StudioError {
  return new StudioError(
    'policy.remote',
    `Version ${o.version} was published ${o.times} times, with ${seconds(o.waitedMs)} of pauses and as new files where the trainer still had it, and a model server refused it each time: ${message}`,
    `${remedy} Then ${o.first ? 'start or resume the run again' : 'resume the run: it goes on from its last checkpoint, and nothing that was rolled out is lost'}.`,
    { cause, ...(details ? { details } : {}) },
  );
}
const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;
