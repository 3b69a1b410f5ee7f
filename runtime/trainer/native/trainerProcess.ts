import { join } from 'node:path';
import {
  id,
  StudioError,
  toRunError,
  type EncodedState,
  type RolloutId,
  type StepSample,
  type TrainBatch,
} from '../../domain/index.js';
import type { ReadingScreen } from '../types.js';
import { Learner } from './learner.js';
import type { Command, FromTrainer, Reply, ToTrainer, WireBatch, WireSample } from './messages.js';
import { exportTheta, loadCheckpoint, saveCheckpoint } from './persistence.js';

/** Progress messages are at least this far apart; a figure per optimizer step would flood the channel. */
const PROGRESS_MS = 250;

/**
 * The trainer process (role `__trainer`): one Learner, commands one at a time in the order they came. ONNX Runtime
 * blocks this process's loop while it computes, so messages are handled between micro-batches. Ends by `close` or when
 * the parent is gone, always releasing the sessions first: exiting with a live session aborts the process.
 */
export async function runTrainerProcess(): Promise<void> {
  const send = (m: FromTrainer): void => {
    if (process.connected)
      process.send?.(m, undefined, undefined, () => {
        /* the parent left: 'disconnect' follows */
      });
  };
  let learner: Learner | undefined,
    dir = '.',
    exportDir = '.';
  let states = new Map<string, EncodedState>(),
    samples: WireSample[] = [],
    screens: ReadingScreen[] = [],
    last = 0;

  const need = (): Learner => {
    if (!learner)
      throw new StudioError('internal', 'The trainer was used before it was started.', 'Report this with the log.');
    return learner;
  };
  const takeBatch = (batch: WireBatch): TrainBatch => {
    const from = samples.map((s): StepSample => {
      const state = states.get(s.stateKey);
      if (!state)
        throw new StudioError(
          'trainer.invalid',
          `A sample names the state '${s.stateKey}', which was not sent.`,
          'Report this with the log.',
        );
      return { ...s, state, rollout: id<RolloutId>(''), step: 0 };
    });
    states = new Map();
    samples = [];
    return { ...batch, samples: from };
  };
  const progress = (p: Parameters<NonNullable<Parameters<Learner['update']>[1]>>[0]): void => {
    const now = performance.now();
    if (now - last < PROGRESS_MS && p.step !== p.steps) return;
    last = now;
    send({ kind: 'progress', progress: p });
  };
  const perform = async (c: Command): Promise<Reply> => {
    switch (c.kind) {
      case 'start':
        learner = await Learner.create(c.spec, c.options, c.seed);
        dir = c.dir;
        exportDir = c.options.exportDir ?? join(c.dir, 'weights');
        return { parameters: learner.model.layout.total };
      case 'update':
        return need().update(takeBatch(c.batch), progress);
      case 'imitate':
        return need().imitate(takeBatch(c.batch), c.options, progress);
      case 'read': {
        const lessons = screens;
        screens = [];
        return need().read(lessons, c.options, progress);
      }
      case 'checkpoint':
        return saveCheckpoint(dir, need().model, need().state());
      case 'restore': {
        const l = need();
        const s = await loadCheckpoint(c.dir, l.model);
        l.load(s);
        return { version: s.version, dir: c.dir };
      }
      case 'export': {
        const s = need().state();
        return exportTheta(exportDir, s.version, s.theta);
      }
      case 'close':
        await learner?.release();
        learner = undefined;
        return null;
    }
  };

  let work = Promise.resolve(),
    ended = false;
  await new Promise<void>((resolve) => {
    process.on('message', (m: ToTrainer) => {
      if (m.kind === 'command') {
        const { id: n, command } = m;
        work = work.then(async () => {
          try {
            send({ kind: 'done', id: n, value: await perform(command) });
          } catch (e) {
            states = new Map();
            samples = [];
            screens = [];
            send({ kind: 'failed', id: n, error: toRunError(e) });
          }
          if (command.kind === 'close') {
            ended = true;
            process.disconnect?.();
          }
        });
      } else if (m.kind === 'states') for (const s of m.states) states.set(s.key, s.state);
      else if (m.kind === 'interrupt') learner?.interrupt();
      else if (m.kind === 'screens') screens.push(...m.screens);
      else samples.push(...m.samples);
    });
    process.on('disconnect', () => {
      if (ended) resolve();
      else void work.then(() => learner?.release()).then(() => resolve());
    });
    // Ctrl-C reaches the whole process group: the parent decides when we stop.
    process.on('SIGINT', () => {
      /* see above */
    });
  });
  process.removeAllListeners('SIGINT');
}
