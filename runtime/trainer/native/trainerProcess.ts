import { join } from 'node:path';
import { BEAT_MS } from '../../concurrency/pulse.js';
import {
  id,
  StudioError,
  toRunError,
  type EncodedState,
  type RolloutId,
  type EmbeddedSample,
  type EmbeddedBatch,
  internalError,
} from '../../domain/index.js';
import type { ReadingScreen } from '../types.js';
import type { LearnerProgress } from './learner.js';
import { Learner } from './learner.js';
import type { Command, FromTrainer, Reply, ToTrainer, WireBatch, WireSample } from './messages.js';
import { exportTheta, loadCheckpoint, saveCheckpoint } from './persistence.js';

/** Progress messages are at least this far apart; one per optimizer step would flood the channel. */
const PROGRESS_MS = 250;

/**
 * The trainer process (role `__trainer`): one Learner, commands run one at a time in the order they arrive. ONNX
 * Runtime blocks this process's loop while it computes, so messages are handled between micro-batches. It exits on
 * `close` or when the parent is gone, always releasing the sessions first: exiting with a live session aborts the
 * process.
 */
export async function runTrainerProcess(): Promise<void> {
  const trainer = new TrainerServer();
  setInterval(() => send({ kind: 'alive' }), BEAT_MS).unref();
  await new Promise<void>((resolve) => {
    process.on('message', (m: ToTrainer) => trainer.receive(m));
    process.on('disconnect', () => void trainer.end().then(resolve));
    // Ctrl-C reaches the whole process group, but the parent decides when the trainer stops.
    process.on('SIGINT', () => {
      /* see above */
    });
  });
  process.removeAllListeners('SIGINT');
}

class TrainerServer {
  #learner: Learner | undefined;
  #dir = '.';
  #exportDir = '.';
  readonly #inbox = new Inbox();
  #lastProgress = 0;
  #work = Promise.resolve();
  #closed = false;
  #alone = false;

  receive(m: ToTrainer): void {
    switch (m.kind) {
      case 'command':
        this.#work = this.#work.then(() => this.#answer(m.id, m.command));
        return;
      case 'interrupt':
        this.#learner?.interrupt();
        return;
      default:
        this.#inbox.take(m);
    }
  }

  /**
   * Called when the parent is gone; resolves when the sessions are released. Lessons of hours end after their present
   * step, and what waits is not begun.
   */
  async end(): Promise<void> {
    if (this.#closed) return;
    this.#alone = true;
    this.#learner?.interrupt();
    await this.#work;
    await this.#learner?.release();
  }

  async #answer(n: number, command: Command): Promise<void> {
    if (this.#alone) return;
    try {
      send({ kind: 'done', id: n, value: await this.#perform(command) });
    } catch (e) {
      this.#inbox.clear();
      send({ kind: 'failed', id: n, error: toRunError(e) });
    }
    if (command.kind === 'close') {
      this.#closed = true;
      process.disconnect?.();
    }
  }

  async #perform(c: Command): Promise<Reply> {
    const progress = (p: LearnerProgress): void => {
      // A lesson that had not quite begun has forgotten that it was interrupted.
      if (this.#alone) this.#learner?.interrupt();
      this.#progress(p);
    };
    switch (c.kind) {
      case 'start':
        this.#learner = await Learner.create(c.spec, c.options, c.seed, {
          entry: { file: process.argv[1]! },
          onNote: (text) => send({ kind: 'note', text }),
        });
        if (c.version !== undefined) this.#learner.load({ ...this.#learner.state(), version: c.version });
        this.#dir = c.dir;
        this.#exportDir = c.options.exportDir ?? join(c.dir, 'weights');
        return { parameters: this.#learner.model.layout.total };
      case 'update':
        return this.#started().update(this.#inbox.batch(c.batch), progress);
      case 'imitate':
        return this.#started().imitate(this.#inbox.batch(c.batch), c.options, progress);
      case 'read':
        return this.#started().read(this.#inbox.screens(), c.options, progress);
      case 'checkpoint':
        return saveCheckpoint(this.#dir, this.#started().model, this.#started().state());
      case 'restore': {
        const l = this.#started();
        l.load({ ...(await loadCheckpoint(c.dir, l.model)), version: c.version });
        return null;
      }
      case 'export': {
        const s = this.#started().state();
        return exportTheta(this.#exportDir, s.version, s.theta);
      }
      case 'close':
        await this.#learner?.release();
        this.#learner = undefined;
        return null;
    }
  }

  #started(): Learner {
    if (!this.#learner) throw internalError('The trainer was used before it was started.');
    return this.#learner;
  }

  #progress(p: LearnerProgress): void {
    const now = performance.now();
    if (now - this.#lastProgress < PROGRESS_MS && p.step !== p.steps) return;
    this.#lastProgress = now;
    send({ kind: 'progress', progress: p });
  }
}

/** Collects what the parent sends ahead of a command, in parts small enough for the channel. */
class Inbox {
  #states = new Map<string, EncodedState>();
  #samples: WireSample[] = [];
  #screens: ReadingScreen[] = [];

  take(m: Exclude<ToTrainer, { kind: 'command' | 'interrupt' }>): void {
    switch (m.kind) {
      case 'states':
        for (const s of m.states) this.#states.set(s.key, s.state);
        return;
      case 'screens':
        this.#screens.push(...m.screens);
        return;
      case 'samples':
        this.#samples.push(...m.samples);
    }
  }

  /** Takes the collected samples out, as the samples of this batch. */
  batch(batch: WireBatch): EmbeddedBatch {
    const samples = this.#samples.map((s): EmbeddedSample => {
      const state = this.#states.get(s.stateKey);
      if (!state)
        throw new StudioError(
          'trainer.invalid',
          `A sample names the state '${s.stateKey}', which was not sent.`,
          'Report this with the log.',
        );
      return { ...s, state, rollout: id<RolloutId>(''), step: 0 };
    });
    this.#states = new Map();
    this.#samples = [];
    return { ...batch, samples };
  }

  screens(): ReadingScreen[] {
    const screens = this.#screens;
    this.#screens = [];
    return screens;
  }

  clear(): void {
    this.#states = new Map();
    this.#samples = [];
    this.#screens = [];
  }
}

function send(m: FromTrainer): void {
  if (process.connected)
    process.send?.(m, undefined, undefined, () => {
      /* the parent left: 'disconnect' follows */
    });
}
