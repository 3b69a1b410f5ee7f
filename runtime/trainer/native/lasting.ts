import { StudioError, toRunError, type EmbeddedBatch, type PolicyVersion } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import type {
  CheckpointRef,
  EmbeddedTrainer,
  ImitateOptions,
  ReadingScreen,
  ReadOptions,
  ReadReport,
  UpdateReport,
  WeightsFile,
} from '../types.js';

/** A process lost so often over the same work is not started again. */
const TRIES = 3;

export interface LastingOptions {
  /** Starts a process, whose untaught weights count as `version`. Rejects with `trainer.lost` when it dies meanwhile. */
  readonly start: (version: PolicyVersion) => Promise<EmbeddedTrainer>;
  /** Version of the untaught weights; default 0. */
  readonly version?: PolicyVersion | undefined;
  /** The screens of the reading lessons, for a new process; undefined when there are none any more. */
  readonly screens?: () => Promise<readonly ReadingScreen[] | undefined>;
  /** Tells people of a process that was lost and started again. */
  readonly note?: (text: string) => void;
}

export interface OutlivingTrainer extends EmbeddedTrainer {
  /**
   * Forgets everything and goes on from a checkpoint, or as untaught weights of `version`: the way out of a call that
   * rejected because the last checkpoint is damaged (`lostCheckpoint`).
   */
  startOver(version: PolicyVersion, from?: CheckpointRef): Promise<void>;
}

/** Starts the first process; rejects when it cannot start. */
export async function lastingTrainer(o: LastingOptions): Promise<OutlivingTrainer> {
  const trainer = new LastingTrainer(o);
  await trainer.begin();
  return trainer;
}

/** A lesson since the last checkpoint, which a new process repeats. Resolves with the version it makes. */
type Lesson = (t: EmbeddedTrainer) => Promise<PolicyVersion>;

/**
 * A trainer that outlives its process. When the process dies or hangs another is started from the last checkpoint; what
 * was learned since is learned again, from the same random state and so to the same bit, and the call under way is
 * made again: callers see a slow call. The same call lost three times in a row rejects with `trainer.lost`; one that
 * finds the last checkpoint damaged rejects with an error that `lostCheckpoint` knows.
 */
class LastingTrainer implements OutlivingTrainer {
  readonly #o: LastingOptions;
  #process: EmbeddedTrainer | undefined;
  #saved: CheckpointRef | undefined;
  /** Version of weights that no checkpoint holds. */
  #untaught: PolicyVersion;
  #since: Lesson[] = [];
  /** The screens that are mixed into later steps: which lesson brought them. */
  #mixed: ReadOptions | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #interrupted = false;
  #closing: Promise<void> | undefined;
  /** A process that learns what the last one knew. */
  #relearning: EmbeddedTrainer | undefined;

  constructor(o: LastingOptions) {
    this.#o = o;
    this.#untaught = o.version ?? 0;
  }
  begin(): Promise<void> {
    return this.#do('starting', () => Promise.resolve());
  }

  update(b: EmbeddedBatch): Promise<UpdateReport> {
    return this.#do(`batch ${b.id}`, async (t) => {
      const report = await t.update(b);
      this.#since.push(async (again) => (await again.update(b)).version);
      return report;
    });
  }
  imitate(b: EmbeddedBatch, o: ImitateOptions): Promise<UpdateReport> {
    this.#interrupted = false;
    return this.#do('the warm start', async (t) => {
      const report = await t.imitate(b, this.#unlessInterrupted(o)),
        until = (o.from ?? 0) + report.optimizerSteps + report.skippedNonFinite;
      this.#since.push(async (again) => (await again.imitate(b, { ...o, until })).version);
      return report;
    });
  }
  read(screens: readonly ReadingScreen[], o: ReadOptions): Promise<ReadReport> {
    this.#interrupted = false;
    return this.#do('the reading lessons', async (t) => {
      const report = await t.read(screens, this.#unlessInterrupted(o));
      this.#mixed = { ...o, steps: 0 };
      if (report.steps > 0)
        this.#since.push(
          async (again) =>
            (await again.read(await this.#screens(), { ...o, until: (o.from ?? 0) + report.steps })).version,
        );
      return report;
    });
  }
  interrupt(): void {
    this.#interrupted = true;
    this.#process?.interrupt();
  }
  checkpoint(): Promise<CheckpointRef> {
    return this.#do('a checkpoint', async (t) => {
      const saved = (this.#saved = await t.checkpoint());
      this.#since = [];
      return saved;
    });
  }
  restore(c: CheckpointRef): Promise<void> {
    return this.#do(`checkpoint v${c.version}`, async (t) => {
      await t.restore(c);
      this.#saved = c;
      this.#since = [];
    });
  }
  startOver(version: PolicyVersion, from?: CheckpointRef): Promise<void> {
    return this.#serial(async () => {
      const old = this.#process;
      this.#process = undefined;
      this.#saved = from;
      this.#untaught = version;
      this.#since = [];
      this.#mixed = undefined;
      if (old) await orUndefined(old.close(), 'what it knew is given up');
      await this.#lasting('starting over', () => Promise.resolve());
    });
  }
  exportWeights(): Promise<WeightsFile> {
    return this.#do('its weights', (t) => t.exportWeights());
  }
  close(): Promise<void> {
    this.#closing ??= (async () => {
      await Promise.all([this.#process?.close(), this.#relearning?.close()]);
    })();
    return this.#closing;
  }

  /** Runs one call at a time, each until a process has answered it. */
  #do<T>(what: string, work: (t: EmbeddedTrainer) => Promise<T>): Promise<T> {
    return this.#serial(() => this.#lasting(what, work));
  }
  #serial<T>(f: () => Promise<T>): Promise<T> {
    const run = this.#queue.then(f);
    this.#queue = orUndefined(run, 'its caller hears of it; the next call has its turn all the same');
    return run;
  }
  async #lasting<T>(what: string, work: (t: EmbeddedTrainer) => Promise<T>): Promise<T> {
    for (let lost = 1; ; lost++) {
      try {
        return await work((this.#process ??= await this.#again()));
      } catch (e) {
        if (toRunError(e).kind !== 'trainer.lost' || this.#closing) throw e;
        this.#process = undefined;
        if (lost >= TRIES) throw gaveUp(what, e);
        this.#o.note?.(`${toRunError(e).message} It is started again${this.#from()}.`);
      }
    }
  }

  /** A process that knows what the last one knew. */
  async #again(): Promise<EmbeddedTrainer> {
    const t = await this.#o.start(this.#untaught),
      saved = this.#saved;
    this.#relearning = t;
    try {
      if (this.#closing) throw closed();
      if (saved)
        await t.restore(saved).catch((e: unknown) => {
          throw damaged(saved, e);
        });
      if (this.#mixed) await t.read(await this.#screens(), this.#mixed);
      for (const lesson of this.#since) await lesson(t);
      if (this.#closing) throw closed();
      return t;
    } catch (e) {
      await orUndefined(t.close(), 'why it cannot go on is reported');
      throw e;
    } finally {
      this.#relearning = undefined;
    }
  }
  async #screens(): Promise<readonly ReadingScreen[]> {
    return (await this.#o.screens?.()) ?? [];
  }
  #from(): string {
    const { version } = this.#saved ?? {};
    return version === undefined ? '' : ` from the checkpoint of version ${version}`;
  }
  /** A lesson that was interrupted and then lost is not begun again: the run is ending. */
  #unlessInterrupted<O extends { readonly steps: number }>(o: O): O {
    return this.#interrupted ? { ...o, steps: 0 } : o;
  }
}

const closed = (): StudioError =>
  new StudioError('trainer.lost', 'The trainer is closed.', 'Resume the run to train on.');

/** The version whose checkpoint a trainer that was lost could not be started again from; undefined for other errors. */
export function lostCheckpoint(e: unknown): PolicyVersion | undefined {
  const { kind, details } = toRunError(e),
    version = details?.['checkpoint'];
  return kind === 'trainer.invalid' && typeof version === 'number' ? version : undefined;
}
function damaged({ version }: CheckpointRef, e: unknown): unknown {
  const { kind, message, remedy, details } = toRunError(e);
  return kind === 'trainer.invalid'
    ? new StudioError(kind, message, remedy, { cause: e, details: { ...details, checkpoint: version } })
    : e;
}

const gaveUp = (what: string, e: unknown): StudioError => {
  const { message, details } = toRunError(e);
  return new StudioError(
    'trainer.lost',
    `The trainer was lost ${TRIES} times in a row over ${what}; the last time: ${message}`,
    'Check its last output in the details and the free memory, then resume the run: it continues from its last checkpoint.',
    { cause: e, details: { ...details } },
  );
};
