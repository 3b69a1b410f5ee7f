import { fork, type ChildProcess } from 'node:child_process';
import {
  CLASSES,
  gridOf,
  instructionLength,
  headSizes,
  HEADS,
  StudioError,
  type EmbeddedPolicySpec,
  type EmbeddedSample,
  type EmbeddedBatch,
} from '../../domain/index.js';
import { inRole, type ProcessEntry, type ProcessRole } from '../../concurrency/process.js';
import { ignoreFailure, orUndefined, settled } from '../../concurrency/failures.js';
import { Pulse, type WorkOf } from '../../concurrency/pulse.js';
import type {
  CheckpointRef,
  ImitateOptions,
  ReadingScreen,
  ReadOptions,
  ReadReport,
  EmbeddedTrainer,
  UpdateReport,
  WeightsFile,
} from '../types.js';

import type { Command, FromTrainer, Replies, Reply, ToTrainer, WireBatch } from './messages.js';
import type { LearnerProgress } from './learner.js';
import { TRAINER_CONSTANTS, type RunFileOptions, type TrainerConstants } from './options.js';

/** States per message: four screens serialise in well under a millisecond each. */
const STATES_PER_MESSAGE = 4;
const SAMPLES_PER_MESSAGE = 128;
/** A process that has not finished its work, released its sessions and exited so long after `close` is killed. */
const CLOSE_MS = 10_000;
/** A process that neither answers a command nor reports progress for so long is killed: its loop turns, its work does not. */
const STUCK_MS = 15 * 60_000;
const ROLE: ProcessRole = '__trainer';

export interface TrainerSetup {
  readonly entry: ProcessEntry;
  readonly spec: EmbeddedPolicySpec;
  readonly options: RunFileOptions & Partial<TrainerConstants>;
  /** Checkpoints are folders in here, `v000012` and so on. */
  readonly dir: string;
  readonly seed: number;
  /** Version of the untaught weights; default 0. */
  readonly version?: number | undefined;
  readonly onProgress?: (p: LearnerProgress) => void;
  /** Adds a note to the run's log. */
  readonly onNote?: (text: string) => void;
  /** Tells a process that hangs from one that computes; without it silence alone counts. */
  readonly workOf?: WorkOf;
}

/**
 * Starts the trainer process and waits until it is ready. Throws engine.unavailable without ONNX Runtime, trainer.lost
 * when the process dies.
 */
export async function createTrainer(setup: TrainerSetup): Promise<EmbeddedTrainer> {
  const engine = new NativeTrainer(setup);
  try {
    await engine.start();
  } catch (e) {
    await engine.close();
    throw e;
  }
  return engine;
}

interface Waiting {
  resolve(v: Reply): void;
  reject(e: unknown): void;
}

class NativeTrainer implements EmbeddedTrainer {
  readonly #setup: TrainerSetup;
  /** The process; public so that tests can end it. */
  readonly child: ChildProcess;
  readonly #exited: Promise<void>;
  readonly #waiting = new Map<number, Waiting>();
  /** Callbacks of messages on their way: one to a process that was killed may never be called back. */
  readonly #sending = new Set<(e: unknown) => void>();
  #queue: Promise<unknown> = Promise.resolve();
  #next = 1;
  #interrupted = false;
  #lost: StudioError | undefined;
  #closing: Promise<void> | undefined;
  #stderr = '';
  readonly #pulse: Pulse;
  /** Why it was killed, where it was. */
  #hung: string | undefined;
  #stuck: NodeJS.Timeout | undefined;

  constructor(setup: TrainerSetup) {
    this.#setup = setup;
    const { args, detached } = inRole(setup.entry, ROLE, process.platform);
    this.child = fork(setup.entry.file, args, {
      detached,
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#pulse = new Pulse({ pid: this.child.pid, workOf: setup.workOf, hung: (why) => this.#kill(why) });
    this.child.stderr?.on('data', (b: Buffer) => {
      this.#stderr = (this.#stderr + b.toString()).slice(-4000);
    });
    this.child.on('message', (m) => {
      this.#receive(m as FromTrainer);
    });
    this.#exited = new Promise((resolve) => {
      const end = (why: string): void => {
        this.#pulse.stop();
        clearTimeout(this.#stuck);
        this.#lost ??= new StudioError(
          'trainer.lost',
          `The trainer process ended (${this.#hung ?? why}).`,
          'The run can be resumed from its last checkpoint.',
          { details: { stderr: this.#stderr } },
        );
        for (const w of this.#waiting.values()) w.reject(this.#lost);
        for (const reject of this.#sending) reject(this.#lost);
        this.#waiting.clear();
        this.#sending.clear();
        resolve();
      };
      this.child.once('error', (e) => {
        end(e.message);
      });
      this.child.once('exit', (code, signal) => {
        end(signal ? `signal ${signal}` : `exit code ${code}`);
      });
    });
  }

  async start(): Promise<void> {
    const { spec, dir, seed, version, options } = this.#setup;
    await this.#serial(() =>
      this.#command({ kind: 'start', spec, dir, seed, version, options: { ...TRAINER_CONSTANTS, ...options } }),
    );
  }
  async update(b: EmbeddedBatch): Promise<UpdateReport> {
    const report = await this.#withBatch(b, (batch) => ({ kind: 'update', batch }));
    // Masked samples were not sent: back to the batch's own order.
    const sent = report.sampleWeights,
      all = new Float32Array(b.samples.length).fill(NaN);
    let next = 0;
    for (const [i, s] of b.samples.entries()) if (s.weight !== 0) all[i] = sent?.[next++] ?? NaN;
    return { ...report, sampleWeights: all };
  }
  imitate(b: EmbeddedBatch, o: ImitateOptions): Promise<UpdateReport> {
    this.#interrupted = false;
    return this.#withBatch(b, (batch) => ({ kind: 'imitate', batch, options: this.#unlessInterrupted(o) }));
  }
  read(screens: readonly ReadingScreen[], o: ReadOptions): Promise<ReadReport> {
    this.#interrupted = false;
    return this.#serial(async () => {
      for (let i = 0; i < screens.length; i += STATES_PER_MESSAGE)
        await this.#send({ kind: 'screens', screens: screens.slice(i, i + STATES_PER_MESSAGE) });
      return this.#command({ kind: 'read', options: this.#unlessInterrupted(o) });
    });
  }
  interrupt(): void {
    this.#interrupted = true;
    ignoreFailure(this.#send({ kind: 'interrupt' }), 'a trainer that is gone trains no longer');
  }
  checkpoint(): Promise<CheckpointRef> {
    return this.#serial(() => this.#command({ kind: 'checkpoint' }));
  }
  async restore(c: CheckpointRef): Promise<void> {
    await this.#serial(() => this.#command({ kind: 'restore', dir: c.dir, version: c.version }));
  }
  exportWeights(): Promise<WeightsFile> {
    return this.#serial(() => this.#command({ kind: 'export' }));
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      const timer = setTimeout(() => this.#kill(`it did not end within ${CLOSE_MS / 1000} s`), CLOSE_MS);
      // Earlier calls are still answered first.
      await settled(this.#queue);
      if (!this.#lost)
        await orUndefined(this.#command({ kind: 'close' }), 'it is killed when it does not exit in time');
      await this.#exited;
      clearTimeout(timer);
    })();
    return this.#closing;
  }

  /** A lesson that is interrupted while its batch is being sent begins with no steps left. */
  #unlessInterrupted<O extends { readonly steps: number }>(o: O): O {
    return this.#interrupted ? { ...o, steps: 0 } : o;
  }
  async #withBatch(
    { samples, ...batch }: EmbeddedBatch,
    command: (batch: WireBatch) => Extract<Command, { kind: 'update' | 'imitate' }>,
  ): Promise<UpdateReport> {
    for (const s of samples) checkSample(this.#setup.spec, s);
    return this.#serial(async () => {
      await this.#sendBatch(samples);
      return this.#command(command(batch));
    });
  }
  async #sendBatch(samples: readonly EmbeddedSample[]): Promise<void> {
    const states = [
      ...new Map(
        samples.filter((s) => s.weight !== 0).map((s) => [s.stateKey, { key: s.stateKey, state: s.state }]),
      ).values(),
    ];
    for (let i = 0; i < states.length; i += STATES_PER_MESSAGE)
      await this.#send({ kind: 'states', states: states.slice(i, i + STATES_PER_MESSAGE) });
    const wire = samples.filter((s) => s.weight !== 0).map(({ state: _s, rollout: _r, step: _i, ...s }) => s);
    for (let i = 0; i < wire.length; i += SAMPLES_PER_MESSAGE)
      await this.#send({ kind: 'samples', samples: wire.slice(i, i + SAMPLES_PER_MESSAGE) });
  }

  /** Runs one call at a time: a batch and its command must not be interleaved with another's. */
  #serial<T>(f: () => Promise<T>): Promise<T> {
    const run = this.#queue.then(f);
    this.#queue = orUndefined(run, 'its caller hears of it; the next call has its turn all the same');
    return run;
  }
  #command<K extends Command['kind']>(command: Extract<Command, { kind: K }>): Promise<Replies[K]> {
    const id = this.#next++;
    return new Promise<Replies[K]>((resolve, reject) => {
      this.#waiting.set(id, { resolve: (reply) => resolve(reply as Replies[K]), reject });
      this.#moved();
      this.#send({ kind: 'command', id, command }).catch((e: unknown) => {
        this.#waiting.delete(id);
        reject(e);
      });
    });
  }
  /**
   * Resolves when the message has been handed to the operating system, so that a large batch does not pile up in
   * memory.
   */
  #send(m: ToTrainer): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#lost) {
        reject(this.#lost);
        return;
      }
      this.#sending.add(reject);
      this.child.send(m, (e) => {
        // After an error 'exit' follows, and says why.
        if (e) return;
        this.#sending.delete(reject);
        resolve();
      });
    });
  }
  /** A stopped process does not hear a polite signal. */
  #kill(why: string): void {
    this.#hung ??= why;
    this.child.kill('SIGKILL');
  }
  /** Starts the time limit of the commands under way anew, or ends it with the last of them. */
  #moved(): void {
    clearTimeout(this.#stuck);
    this.#stuck = undefined;
    if (this.#waiting.size === 0 || this.#lost) return;
    this.#stuck = setTimeout(() => this.#kill(`it got no further for ${STUCK_MS / 60_000} minutes`), STUCK_MS);
    this.#stuck.unref();
  }
  #receive(m: FromTrainer): void {
    this.#pulse.beat();
    if (m.kind === 'alive') return;
    if (m.kind === 'note') {
      this.#setup.onNote?.(m.text);
      return;
    }
    if (m.kind === 'progress') {
      this.#moved();
      this.#setup.onProgress?.(m.progress);
      return;
    }
    const w = this.#waiting.get(m.id);
    if (!w) return;
    this.#waiting.delete(m.id);
    this.#moved();
    if (m.kind === 'done') w.resolve(m.value);
    else
      w.reject(
        new StudioError(
          m.error.kind,
          m.error.message,
          m.error.remedy,
          m.error.details ? { details: { ...m.error.details } } : {},
        ),
      );
  }
}

/** Rejects a sample that the trainer cannot use, rather than let it give a wrong gradient. */
function checkSample(spec: EmbeddedPolicySpec, s: EmbeddedSample): void {
  const bad = (what: string): never => {
    throw new StudioError(
      'trainer.invalid',
      `Step ${s.step} of rollout ${s.rollout} ${what}.`,
      'This is a fault in the code that made the batch: please report it with the log.',
    );
  };
  const n = headSizes(spec),
    total = HEADS.reduce((a, h) => a + n[h], 0),
    { obs, instruction, history } = s.state;
  if (s.choices.length < 1 || s.choices.length > 3) bad(`has ${s.choices.length} choices instead of 1 to 3`);
  if (s.choices.some((c) => c < 0 || c >= total)) bad(`has a choice outside 0 to ${total - 1}`);
  if (s.rolloutLogprobs && s.rolloutLogprobs.length !== s.choices.length)
    bad(`has ${s.rolloutLogprobs.length} log-probs for ${s.choices.length} choices`);
  if (s.rolloutLogprobs?.some((x) => !Number.isFinite(x))) bad('has a log-prob that is not a number');
  if (!Number.isFinite(s.advantage) || !(s.weight >= 0) || !((s.coefficient ?? 0) >= 0))
    bad('has an advantage or weight that is not usable');
  if (
    obs.length !== spec.obs.width * spec.obs.height ||
    instruction.length !== instructionLength(spec) ||
    history.length !== spec.history.length * 4 + 1
  )
    bad(`has a state that does not fit policy '${spec.id}' (${gridOf(spec).cols} x ${gridOf(spec).rows} cells)`);
  const { cols, rows } = gridOf(spec),
    limits = [spec.types.length, rows, cols, Math.max(n.text, n.key)],
    last = history.length - 1;
  const { maxTokens, buckets, classes } = spec.instruction,
    below = (i: number): number => (i >= 2 * maxTokens ? CLASSES : i % 2 === 0 ? buckets : classes);
  if (instruction.some((x, i) => x < 0 || x >= below(i))) bad("has an instruction token outside the policy's tables");
  if (history.some((x, i) => x < 0 || x > (i === last ? spec.history.maxSteps : limits[i % 4]!)))
    bad("has a history entry outside the policy's tables");
}
