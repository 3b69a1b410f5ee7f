import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { toRunError, type PolicyVersion, type TrainBatch } from '../../domain/index.js';
import { ignoreFailure, orUndefined, settled } from '../../concurrency/failures.js';
import { isFull } from '../../files/diskFull.js';
import type { CheckpointRef, ImitateOptions, UpdateReport } from '../types.js';
import type { ModelOptions } from './client.js';
import { Connection, type Handle } from './connection.js';
import { prepared, type Prepared } from './datums.js';
import { scoreOf } from './gradient.js';
import { callCancelled } from './http.js';
import { asImitation, lessonPicks } from './lesson.js';
import { OwnWeights } from './ownWeights.js';
import { imitatePart, updatePasses, type Job } from './passes.js';
import { blamed, isRefusal, RefusedData, TooMuch } from './refusals.js';
import { RemoteReport } from './report.js';
import type { RemoteWeights, TokenSample, TokenSequence } from './sample.js';
import { readState, writeState } from './savedState.js';
import type { RemoteTrainerEngine, RemoteTrainerOptions } from './types.js';
import type { Datum } from './wire/index.js';

export type { RemoteTrainerEngine, RemoteTrainerOptions } from './types.js';

/** A trainer that lives on a server: TrainerEngine over the Tinker protocol. */

const IMITATE_SAMPLES = 8;
/** Steps of a lesson after which its weights are saved: what a lost server costs at most. */
const LESSON_PART = 50;
/** The same work is started so often before its failure is the caller's. */
const ATTEMPTS = 3;

/** Connects and makes a model. Throws `trainer.remote` when the server is away, `config.invalid` on what it cannot do. */
export async function createRemoteTrainer(o: RemoteTrainerOptions): Promise<RemoteTrainerEngine> {
  const t = new RemoteTrainer(o);
  try {
    await mkdir(o.dir, { recursive: true });
    await t.open();
  } catch (e) {
    await t.close();
    throw e;
  }
  return t;
}

interface Lesson {
  readonly id: string;
  readonly from: number;
  /** How far it has got. */
  step: number;
  readonly report: { readonly early: RemoteReport; readonly late: RemoteReport };
}

class RemoteTrainer implements RemoteTrainerEngine {
  readonly #o: RemoteTrainerOptions;
  #model: ModelOptions;
  readonly #closed = new AbortController();
  #queue: Promise<unknown> = Promise.resolve();
  #connection: Connection | undefined;
  #version: PolicyVersion = 0;
  #updateSteps = 0;
  /** The server's path of the present weights; absent until they were saved once. */
  #handle: Handle | undefined;
  #trained: { readonly batch: string; readonly report: UpdateReport } | undefined;
  /** A lesson that is not over. Its parts are in the weights: asked for again after a failure, it goes on. */
  #lesson: Lesson | undefined;
  #exported: RemoteWeights | undefined;
  /** Most targets of a request, once more were too much for the server. */
  #mostTargets: number | undefined;
  #interrupted = false;
  readonly #own: OwnWeights;

  constructor(o: RemoteTrainerOptions) {
    this.#o = o;
    this.#model = o.model;
    this.#own = new OwnWeights(o.dir);
    this.#version = o.version ?? 0;
  }
  /** Makes the model, so that what a server cannot do is said before anything is rolled out. */
  open(): Promise<void> {
    return this.#serial(async () => {
      await this.#own.read();
      await this.#connected();
    });
  }

  update(b: TrainBatch<TokenSample>): Promise<UpdateReport> {
    return this.#serial(async () => {
      // The same batch again is the same update: its caller has not heard of it.
      if (this.#trained?.batch === b.id) return this.#trained.report;
      const start = performance.now();
      return this.#blaming(
        () => prepared(b.samples),
        async (c, samples) => {
          const report = new RemoteReport(this.#o.objective),
            job = this.#job(c, report),
            { epochs, planned, trained } = await updatePasses(job, samples, b, this.#updateSteps),
            version = this.#version + (report.steps > 0 ? 1 : 0),
            handle = report.steps > 0 ? await this.#saved(c, version, this.#handle?.reference ?? null) : this.#handle,
            ms = performance.now() - start,
            built = await report.build({ version, ms, samples: trained, epochs, planned, batch: b.samples.length });
          this.#version = version;
          this.#handle = handle;
          this.#updateSteps += report.steps;
          this.#trained = { batch: b.id, report: built };
          return built;
        },
      );
    });
  }

  /** Supervised steps on demonstrations; what they end with is the reference of the KL term. */
  imitate(b: TrainBatch<TokenSample>, i: ImitateOptions): Promise<UpdateReport> {
    this.#interrupted = false;
    return this.#serial(async () => {
      const start = performance.now(),
        samples = prepared(b.samples).map(asImitation),
        from = i.from ?? 0,
        lesson = (this.#lesson = this.#begun(b.id, from)),
        { report } = lesson;
      while (samples.length > 0 && lesson.step < i.steps && !this.#interrupted) {
        const part = await this.#unlessInterrupted((enough) =>
          this.#blaming(
            () => samples,
            (c) => this.#lessonPart(c, b, samples, i, lesson.step),
            enough,
          ),
        );
        if (!part) break;
        lesson.step = part.end;
        for (const made of part.steps) (made.index >= i.steps - part.reported ? report.late : report.early).step(made);
        this.#handle = part.handle;
        // Deletes the weights of the part before.
        await this.#forgetSurplus(part.handle);
      }
      this.#lesson = undefined;
      if (lesson.step > from) await this.#lessonEnds();
      const built = await (report.late.steps > 0 ? report.late : report.early).build({
        version: this.#version,
        ms: performance.now() - start,
        samples,
        epochs: 1,
      });
      return { ...built, optimizerSteps: report.early.steps + report.late.steps - built.skippedNonFinite };
    });
  }
  /** Undefined: interrupted where some samples are refused, it ends with what was learned before. */
  async #unlessInterrupted<T>(part: (enough: () => boolean) => Promise<T>): Promise<T | undefined> {
    try {
      return await part(() => this.#interrupted);
    } catch (e) {
      if (this.#interrupted && isRefusal(e)) return undefined;
      throw e;
    }
  }
  #begun(id: string, from: number): Lesson {
    const there = this.#lesson;
    if (there?.id === id && there.from === from) return there;
    const { objective } = this.#o;
    return { id, from, step: from, report: { early: new RemoteReport(objective), late: new RemoteReport(objective) } };
  }
  async #lessonPart(
    c: Connection,
    b: TrainBatch<TokenSample>,
    samples: readonly Prepared[],
    i: ImitateOptions,
    from: number,
  ): Promise<Awaited<ReturnType<typeof imitatePart>> & { readonly handle: Handle }> {
    const picks = lessonPicks(samples, this.#o.imitateSamples ?? IMITATE_SAMPLES, this.#o.seed, b.id),
      part = await imitatePart(
        this.#job(c, new RemoteReport(this.#o.objective)),
        picks,
        { ...i, from, to: Math.min(i.steps, from + LESSON_PART) },
        () => this.#interrupted,
      );
    return { ...part, handle: await this.#saved(c, this.#version + 1, this.#handle?.reference ?? null) };
  }
  async #lessonEnds(): Promise<void> {
    const handle = this.#handle!;
    this.#version++;
    this.#handle = { ...handle, reference: handle.uri };
    await this.#surviving(async (c) => {
      await c.reference?.load(handle.uri, false, this.#closed.signal);
    });
  }

  checkpoint(): Promise<CheckpointRef> {
    return this.#serial(() =>
      this.#surviving(async (c) => {
        const ref = await writeState(this.#o.dir, this.#model, {
          version: this.#version,
          updateSteps: this.#updateSteps,
          weights: this.#handle!.uri,
          reference: this.#handle!.reference,
          model: c.model.id,
          session: c.client.session,
          seq: c.model.seq,
          trained: this.#trained,
        });
        await this.#forgetSurplus(this.#handle!);
        return ref;
      }),
    );
  }
  /** Does not wait for the server. */
  async #forgetSurplus({ uri, reference }: Handle): Promise<void> {
    for (const gone of await this.#own.surplus([uri, reference]))
      ignoreFailure(this.#forgotten(gone), 'a server that keeps them needs more disk');
  }
  async #forgotten(uri: string): Promise<void> {
    if (await this.#connection?.client.forget(uri, this.#closed.signal)) await this.#own.forgotten(uri);
  }
  async forget(path: string): Promise<void> {
    await orUndefined(
      this.#serial(() => this.#forgotten(path)),
      'a server that keeps them needs more disk',
    );
  }
  async forgetEarlier(): Promise<void> {
    for (const path of this.#own.earlierExports) await this.forget(path);
  }
  async forgetSaved(): Promise<void> {
    for (const uri of await this.#own.surplus([])) await this.forget(uri);
  }
  restore(from: CheckpointRef): Promise<void> {
    return this.#serial(async () => {
      const s = await readState(from.dir, this.#o.model);
      await this.#own.startsFrom(from.dir);
      this.#drop();
      // Weights go on with the layers that they have, whoever acts now.
      this.#model = { ...this.#o.model, head: s.head ?? true };
      this.#version = from.version;
      this.#updateSteps = s.updateSteps;
      this.#handle = { uri: s.weights, reference: s.reference };
      // Weights restored as another version are not the result of that batch.
      this.#trained = from.version === s.version ? s.trained : undefined;
      this.#exported = undefined;
      this.#lesson = undefined;
      await this.#surviving(() => Promise.resolve());
    });
  }
  exportWeights(): Promise<RemoteWeights> {
    return this.#serial(() =>
      this.#surviving(async (c) =>
        this.#exported?.version === this.#version ? this.#exported : this.#exportPresent(c),
      ),
    );
  }
  exportAnew(version: PolicyVersion): Promise<RemoteWeights | undefined> {
    return this.#serial(async () =>
      version === this.#version ? this.#surviving((c) => this.#exportPresent(c)) : undefined,
    );
  }
  async #exportPresent(c: Connection): Promise<RemoteWeights> {
    const path = await c.model.saveForSampler(this.#name(this.#version), this.#closed.signal);
    await this.#own.exported(path);
    return (this.#exported = { version: this.#version, path });
  }

  score(s: TokenSequence): Promise<Float32Array> {
    return this.#serial(() =>
      this.#blaming(
        () => [],
        (c) => scoreOf(c.model, s, this.#closed.signal),
      ),
    );
  }

  interrupt(): void {
    this.#interrupted = true;
  }
  async close(): Promise<void> {
    this.#closed.abort();
    await settled(this.#queue);
    await this.#own.end();
    this.#drop();
  }

  #job(connection: Connection, report: RemoteReport): Job {
    const { carriage, loss, objective, adam, minibatch, targetKl = 0, seed, onProgress } = this.#o;
    return {
      connection,
      report,
      carriage,
      loss,
      objective,
      adam,
      minibatch,
      targetKl,
      seed,
      onProgress,
      signal: this.#closed.signal,
    };
  }
  /**
   * Work on samples, which are made anew for each attempt. Where the server does not take some of them, the error names
   * their rollouts. A refusal counts when a fresh model repeats it: a server that was started anew may refuse whatever
   * it is asked for a model that it has lost. `enough` ends the search for what is refused.
   */
  async #blaming<T>(
    make: () => readonly Prepared[],
    work: (c: Connection, samples: readonly Prepared[]) => Promise<T>,
    enough: () => boolean = () => false,
  ): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      let samples: readonly Prepared[] = [];
      try {
        return await this.#surviving((c) => work(c, (samples = make())));
      } catch (e) {
        if (!(e instanceof RefusedData)) throw e;
        const { pass } = e,
          told = await blamed(e, samples, { takes: (some) => this.#takes(some, pass), enough });
        if (told || attempt === ATTEMPTS) throw told ?? e;
        this.#o.onRestart?.(e.message);
      }
    }
  }
  /** Whether the server makes the pass over these. A gradient that it leaves dies with its model. */
  async #takes(some: readonly Datum[], { lossFn, lossFnConfig, forwardOnly }: RefusedData['pass']): Promise<boolean> {
    const loss = { name: lossFn, config: lossFnConfig },
      { signal } = this.#closed;
    try {
      await this.#surviving(async ({ model }) => {
        await (forwardOnly ? model.forward(some, signal) : model.forwardBackward(some, loss, signal));
      });
      return true;
    } catch (e) {
      if (!(e instanceof RefusedData)) throw e;
      return false;
    } finally {
      if (!forwardOnly) this.#drop();
    }
  }
  /**
   * Does work that changes nothing here before it is done, on a model with exactly the weights last saved; when the
   * server fails, all of it again on a new one from these weights, in smaller requests where one was too much for it.
   */
  async #surviving<T>(work: (c: Connection) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++)
      try {
        const c = await this.#connected();
        this.#handle ??= await this.#saved(c, this.#version, null);
        return await work(c);
      } catch (e) {
        this.#drop();
        if (this.#closed.signal.aborted) throw callCancelled(e);
        const { kind, message } = toRunError(e);
        if (e instanceof TooMuch && e.targets !== undefined) {
          this.#mostTargets = e.targets;
          this.#o.onRestart?.(`${message} Its requests have at most ${e.targets} tokens from now on.`);
          // What comes is another attempt than those before. Each has smaller requests, down to one sequence in each.
          attempt = 0;
          continue;
        }
        // Whoever has asked waits for room on the disk, and asks again.
        if ((kind !== 'trainer.lost' && kind !== 'trainer.remote') || attempt === ATTEMPTS || isFull(e)) throw e;
        this.#o.onRestart?.(message);
      }
  }
  async #connected(): Promise<Connection> {
    this.#connection ??= await Connection.open(
      {
        server: { ...this.#o.server, mostTargets: this.#mostTargets },
        model: this.#model,
        reference: this.#o.objective.klBeta > 0,
        leaveModels: this.#o.leaveModels ?? false,
      },
      this.#handle,
      this.#closed.signal,
    );
    return this.#connection;
  }
  #drop(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }
  async #saved(c: Connection, version: PolicyVersion, reference: string | null): Promise<Handle> {
    const uri = await c.model.saveWeights(this.#name(version), this.#closed.signal);
    await this.#own.saved(uri);
    return { uri, reference };
  }
  /** A new name for every save: a server may refuse a name, or keep something under it, that was used before. */
  #name(version: PolicyVersion): string {
    return `v${String(version).padStart(6, '0')}-${randomBytes(4).toString('hex')}`;
  }
  /** Runs one call at a time, in their order. */
  #serial<T>(f: () => Promise<T>): Promise<T> {
    const run = this.#queue.then(() => {
      if (this.#closed.signal.aborted) throw callCancelled();
      return f();
    });
    this.#queue = orUndefined(run, 'its caller hears of it; the next call has its turn all the same');
    return run;
  }
}
