import { toRunError, type PolicyVersion } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import type { ClaimedBatch } from '../data/claims.js';
import type { DataManager } from '../data/dataManager.js';
import type { RegimeGate } from '../rollout/regime.js';

export interface UpdateLoopDeps<W> {
  readonly data: Pick<DataManager, 'claimBatch' | 'release' | 'onChange'>;
  readonly gate: RegimeGate;
  /** Groups per update. */
  readonly batchGroups: number;
  /** Weights of the trainer. */
  readonly version: () => PolicyVersion;
  /** Oldest version a replica still answers with. */
  readonly behavior: () => PolicyVersion;
  /** Trains the batch, records that in the ledger, and returns the weights to publish. */
  readonly train: (batch: ClaimedBatch) => Promise<W>;
  readonly publish: (weights: W) => Promise<void>;
  /**
   * Releases a batch that could not be trained, without the groups that are to blame; false when that does not help.
   */
  readonly spare?: (batch: ClaimedBatch, error: unknown) => Promise<boolean>;
  /** Called when more may be rolled out: weights are published, or the regime's barrier was lifted. */
  readonly onGenerate: () => void;
  /** The budget of updates is used up. */
  readonly done?: () => boolean;
  readonly between?: BetweenUpdates;
}
/** Work during which the weights must not change: an evaluation. */
export interface BetweenUpdates {
  /**
   * Awaited before each update, unless weights wait to be published after the next one. `published` resolves when none is
   * being published any more: with false when that failed.
   */
  readonly hold: (published: Promise<boolean>) => Promise<void>;
  /**
   * `ring` is called when `hold` has work to do, which then comes before the next update. Returns a function that
   * unsubscribes.
   */
  readonly onDue: (ring: () => void) => () => void;
}

/**
 * The trainer's side of a run: claim a batch as soon as there is one, update, publish, again.
 *
 * Regimes `rollout` and `task`: rollouts continue meanwhile, and the next update begins while the weights of the last
 * one are still being published; it never gets further ahead than that. Regime `batch`: updates begin when all rollouts
 * of the batch have ended, take whatever survived curation, and the weights are published once, after the last of them;
 * then the next batch is rolled out.
 */
export async function updateLoop<W>(d: UpdateLoopDeps<W>, signal: AbortSignal): Promise<void> {
  const changed = changes(d, signal);
  const coupled = d.gate.regime === 'batch';
  let publishing: Promise<void> = Promise.resolve();
  let unpublished: { readonly weights: W } | undefined;
  let fault: { readonly error: unknown } | undefined;
  const publish = async (weights: W): Promise<void> => {
    await publishing;
    publishing = d.publish(weights).then(d.onGenerate, (error: unknown) => {
      fault ??= { error };
      changed.ring();
    });
  };
  try {
    while (!signal.aborted) {
      if (!unpublished) await d.between?.hold(publishing.then(() => fault === undefined));
      if (fault) throw fault.error;
      if (signal.aborted || d.done?.()) break;
      if (coupled && !d.gate.training) {
        await changed.next();
        continue;
      }
      const batch = await d.data.claimBatch({
        version: d.version(),
        behavior: d.behavior(),
        minGroups: coupled ? 1 : d.batchGroups,
        maxGroups: coupled ? d.batchGroups : undefined,
      });
      if (!batch) {
        if (!coupled) {
          await changed.next();
          continue;
        }
        if (unpublished) {
          await publish(unpublished.weights);
          await publishing;
          unpublished = undefined;
          continue;
        }
        d.gate.synced();
        d.onGenerate();
        continue;
      }
      let weights: W;
      try {
        weights = await d.train(batch);
      } catch (e) {
        if (await d.spare?.(batch, e)) continue;
        await orUndefined(d.data.release(batch.id, toRunError(e).message), 'a resume releases what is still claimed');
        throw e;
      }
      if (coupled) unpublished = { weights };
      else await publish(weights);
    }
    if (unpublished) await publish(unpublished.weights);
  } finally {
    await publishing;
    changed.off();
  }
  if (fault) throw fault.error;
}

/** Turns "something changed" callbacks into a promise to await, without losing a change in between. */
function changes(
  { data, between }: Pick<UpdateLoopDeps<never>, 'data' | 'between'>,
  signal: AbortSignal,
): { next(): Promise<void>; ring(): void; off(): void } {
  let pending = false;
  let wake: (() => void) | undefined;
  const ring = (): void => {
    pending = true;
    wake?.();
  };
  const offs = [data.onChange(ring), between?.onDue(ring)];
  signal.addEventListener('abort', ring, { once: true });
  return {
    ring,
    off: () => {
      for (const off of offs) off?.();
      signal.removeEventListener('abort', ring);
    },
    async next() {
      if (!pending)
        await new Promise<void>((r) => {
          wake = r;
        });
      pending = false;
      wake = undefined;
    },
  };
}
