import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { id, type DesktopId, type RolloutId, type Trajectory } from '../../../runtime/domain/index.js';
import { relabelled } from '../../../runtime/rollout/hindsight.js';
import { hindsightOf } from '../../../runtime/run/hindsight.js';
import { logicalTrajectory } from '../../../runtime/run/logicalTime.js';
import { RolloutRecorder } from '../../../runtime/run/recorder.js';
import { deskSuite, trainSeed } from '../../../runtime/tasks/suites/desk/index.js';
import { failure, familyIds, makeTrajectory, taskOf } from '../../helpers/data/manager.js';
import { order } from '../../helpers/rollout/fakes.js';

const suite = deskSuite();

describe('looking back in a run', () => {
  it('is off unless the run file says so, and where tasks have no siblings', () => {
    const on = { curation: { hindsight: { enabled: true } }, trainer: { replay: 4 } };
    expect(hindsightOf(parseRunFile({}), { source: suite })).toBeUndefined();
    expect(hindsightOf(parseRunFile(on), { source: { ...suite, siblings: undefined } })).toBeUndefined();
    expect(hindsightOf(parseRunFile(on), { source: suite })?.withinMs).toBe(3000);
    const exact = parseRunFile({ ...on, run: { deterministic: true }, budget: { updates: 1 } });
    expect(hindsightOf(exact, { source: suite })?.withinMs).toBe(Infinity);
  });

  it('asks for those that the verdict leaves', () => {
    const h = hindsightOf(parseRunFile({ curation: { hindsight: { enabled: true } }, trainer: { replay: 4 } }), {
        source: suite,
      })!,
      task = suite.task('desk/press-grid' as never, trainSeed(3)),
      [first] = suite.siblings!(task),
      wanted = (first!.evaluator.expected as { rules: { expected: string } }).rules.expected,
      report = { checks: [{ what: '', expected: '', found: wanted.replace('\n', ' ⏎ '), score: 0 }] };
    expect(h.siblings(task, report)).toEqual({ all: suite.siblings!(task).length, likely: [first] });
    expect(h.siblings(suite.task('desk/note-save' as never, trainSeed(1)), report)).toEqual({ all: 0, likely: [] });
  });
});

describe('a relabelled rollout is recorded', () => {
  const family = familyIds[0]!,
    trajectory: Trajectory = {
      ...makeTrajectory({ rollout: id<RolloutId>('r-000007'), family, task: taskOf(family, 1), cap: 9 }, failure),
      hindsight: { siblings: 3, asked: 1, held: true, ms: 12 },
    },
    second = relabelled(
      trajectory,
      { id: taskOf(family, 2), instruction: 'another' },
      { kind: 'success', reward: 1, truncated: false },
    );

  function recorded(deterministic: boolean): Trajectory[] {
    const out: Trajectory[] = [],
      added: Trajectory[] = [];
    const recorder = new RolloutRecorder({
      data: {
        record: (t: Trajectory) => {
          out.push(t);
          return Promise.resolve({ pool: { pooled: true } });
        },
      } as never,
      state: { version: 1 } as never,
      log: { mustSucceed: () => undefined } as never,
      successes: { add: (t: Trajectory) => added.push(t) } as never,
      replicas: undefined,
      instructionOf: () => '',
      deterministic,
    });
    const on = { kind: 'rollout' as const, order: order(7), versions: [], at: 1, desktop: id<DesktopId>('d') };
    recorder.onScheduler({ type: 'ended', ...on, trajectory, relabelled: second });
    // What is imitated of it comes from the pool, which has a say.
    expect(added).toEqual([]);
    return out;
  }

  it('before its rollout, which begins again where a crash comes between the two', () => {
    expect(recorded(false)).toEqual([second, trajectory]);
  });

  it('by the clock of a deterministic run, beside its rollout', () => {
    const [a, b] = recorded(true);
    expect(a!.startedAt).toBe(7 * 3_600_000);
    expect([a!.startedAt, a!.endedAt]).toEqual([b!.startedAt, b!.endedAt]);
    expect(b!.hindsight).toEqual({ siblings: 3, asked: 1, held: true, ms: 0 });
    expect(logicalTrajectory(second)).toEqual(a);
  });
});
