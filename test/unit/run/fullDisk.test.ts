import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { DiskRoom } from '../../../runtime/data/store/room.js';
import { id, StudioError, type RolloutId } from '../../../runtime/domain/index.js';
import type { Learner } from '../../../runtime/run/backends/types.js';
import { warmStart } from '../../../runtime/run/lessons.js';
import type { RunParts } from '../../../runtime/run/parts.js';
import { trainLoop } from '../../../runtime/run/trainLoop.js';
import { makeTrajectory, success, taskOf, familyIds } from '../../helpers/data/manager.js';

const full = (): StudioError =>
  new StudioError(
    'trainer.remote',
    'The training server could not do save_weights: [Errno 28] No space left on device',
    '',
  );
const shown = makeTrajectory(
  { rollout: id<RolloutId>('demo'), family: familyIds[0]!, task: taskOf(familyIds[0]!, 1), cap: 9 },
  success,
  { steps: 2, provenance: { kind: 'oracle' } },
);

/** A run whose learner finds the disk full twice; `said`: what happened, in order. */
function run(ending = new AbortController()) {
  const said: string[] = [],
    room = new DiskRoom();
  room.onChange((is) => said.push(is ? 'full' : 'room'));
  let tries = 0;
  const learn = (what: string): Promise<never> => {
    said.push(what);
    if (++tries <= 2) return Promise.reject(full());
    return Promise.resolve({ version: 1, optimizerSteps: 9, skippedNonFinite: 0, ms: 1, imitationLoss: 1 } as never);
  };
  const learner: Learner = {
    expressible: () => true,
    update: () => learn('update'),
    imitate: () => learn('imitate'),
    snapshot: () =>
      Promise.resolve({ version: 1, publish: () => Promise.resolve({ version: 1, replicas: [], failed: 0 } as never) }),
    checkpoint: () => Promise.resolve({ version: 1, dir: 'v000001' }),
    interrupt: () => said.push('interrupt'),
  };
  const nothing = (): undefined => undefined,
    batch = { id: 'b1', groups: [], version: 0, steps: 0, lags: [] };
  const parts = {
    config: parseRunFile({ warmStart: { steps: 9 }, trainer: { replay: 0 } }),
    dir: '/nowhere',
    clock: { now: () => 0 },
    data: {
      room,
      note: (e: { type: string }) => Promise.resolve(said.push(e.type)),
      trained: () => Promise.resolve(said.push('trained')),
      claimBatch: () => Promise.resolve(said.includes('trained') ? undefined : batch),
      release: () => Promise.resolve(said.push('released')),
      onChange: () => nothing,
      stats: () => ({ families: [] }),
    },
    engine: { learner },
    successes: { imitable: () => [shown] },
    monitor: {
      spans: { trainerBegins: nothing, trainerEnds: nothing },
      meters: { trainer: nothing, trained: nothing },
      noteProgress: () => Promise.resolve(),
    },
    budget: {
      used: 0,
      get spent() {
        return said.includes('trained');
      },
    },
    scheduler: { wake: nothing },
    progress: { imitationSteps: 0 },
    state: { version: 0, warmStartVersion: undefined, phase: '' },
    log: { note: nothing, mustSucceed: nothing },
    ending: ending.signal,
  } as unknown as RunParts;
  return { parts, learner, said, ending };
}

describe('a run whose training server finds the disk full', () => {
  it('makes its update when there is room', async () => {
    const { parts, learner, said } = run();
    await trainLoop(
      parts,
      { learner, replicas: { oldest: 0 } as never },
      {
        orders: { fill: () => undefined, wake: () => undefined } as never,
        gate: { regime: 'rollout' } as never,
        between: { hold: () => Promise.resolve(), onDue: () => () => undefined },
      },
    );
    expect(said.slice(0, 6)).toEqual(['update', 'full', 'update', 'update', 'room', 'trained']);
    expect(said).not.toContain('released');
  });

  it('goes on with its warm start, and ends it early where the run ends meanwhile', async () => {
    const one = run();
    await warmStart(one.parts);
    expect(one.said.slice(0, 6)).toEqual(['imitate', 'full', 'imitate', 'imitate', 'room', 'checkpoint']);
    const two = run();
    const off = two.parts.data.room.onChange((is) => {
      if (is) two.ending.abort();
    });
    await warmStart(two.parts);
    off();
    // It was told when it waited, and is told again as it goes on.
    expect(two.said.slice(0, 5)).toEqual(['imitate', 'full', 'interrupt', 'imitate', 'interrupt']);
  });
});
