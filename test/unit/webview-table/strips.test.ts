import { describe, expect, it } from 'vitest';
import type { EpisodeStrip, TrajectoryRow } from '../../../runtime/protocol/types.js';
import { clusterFacts, clusterWords } from '../../../webview/table/clusterWords.js';
import { Rows } from '../../../webview/table/rows.js';
import { firstDifference, histories, sameHistories, shownAttempts } from '../../../webview/table/strips.js';

let at = 0;
const probe = (task: string, version: number, outcome: TrajectoryRow['outcome'], o: Partial<TrajectoryRow> = {}) => ({
  rollout: `probe/${++at}`,
  task,
  family: task.split('#')[0]!,
  instruction: 'Do it',
  outcome,
  provenance: 'probe' as const,
  steps: 3,
  cap: 9,
  versions: [version, version] as const,
  endedAt: at,
  ...o,
});

describe('the same task at successive versions', () => {
  it('takes the evaluations of a task, newest of a version, oldest version first; what changed comes first', () => {
    const rows = new Rows();
    for (const r of [
      probe('desk/a#1', 9, 'success'),
      probe('desk/a#1', 2, 'failure'),
      probe('desk/a#1', 9, 'failure', { rollout: 'again' }),
      probe('desk/b#1', 2, 'failure'),
      probe('desk/b#1', 5, 'success'),
      probe('desk/b#1', 9, 'failure'),
      probe('desk/once#1', 2, 'success'),
      probe('desk/b#1', 11, 'running'),
      probe('desk/b#1', 12, 'success', { provenance: 'rollout' }),
    ])
      rows.put(r);
    const [b, a, ...none] = histories(rows);
    expect(none).toEqual([]);
    expect(b).toMatchObject({ task: 'desk/b#1', turns: 2 });
    expect(b!.attempts.map((x) => `v${x.version} ${x.outcome}`)).toEqual(['v2 failure', 'v5 success', 'v9 failure']);
    expect(a).toMatchObject({ task: 'desk/a#1', turns: 0 });
    expect(a!.attempts.at(-1)).toMatchObject({ version: 9, rollout: 'again', outcome: 'failure' });
    expect(histories(new Rows())).toEqual([]);
  });
  it('says the same however a rollout goes on, and another thing after an evaluation', () => {
    const rows = new Rows();
    for (const v of [2, 5]) rows.put(probe('desk/a#1', v, 'failure'));
    const was = histories(rows);
    rows.put(probe('desk/a#2', 6, 'running', { rollout: 'r', provenance: 'rollout' }));
    rows.stepped('r', 4);
    expect(sameHistories(was, histories(rows))).toBe(true);
    rows.put(probe('desk/a#1', 5, 'failure', { rollout: 'again' }));
    const again = histories(rows);
    expect(sameHistories(was, again)).toBe(false);
    rows.put(probe('desk/a#1', 9, 'success'));
    expect(sameHistories(again, histories(rows))).toBe(false);
  });
  it('of many versions the first and the newest are shown', () => {
    const rows = new Rows();
    for (let v = 0; v < 30; v++) rows.put(probe('desk/a#1', v, 'success'));
    expect(shownAttempts(histories(rows)[0]!, 5).map((a) => a.version)).toEqual([0, 26, 27, 28, 29]);
  });
  it('the first difference is the first step with other actions, or the end of the shorter one', () => {
    const strip = (...xs: readonly number[]): EpisodeStrip => ({
      rollout: 'r',
      steps: xs.map((x) => ({
        frame: { hash: 'a', width: 1, height: 1 },
        actions: [{ type: 'click' as const, at: { x, y: 1 } }],
      })),
    });
    expect(firstDifference(strip(1, 2, 3), strip(1, 5, 3))).toBe(1);
    expect(firstDifference(strip(1, 2), strip(1, 2, 3))).toBe(2);
    expect(firstDifference(strip(1, 2), strip(1, 2))).toBeUndefined();
  });
});

it('describes clusters of failures in words', () => {
  const base = { family: 'desk/a', ended: 'finished', step: 1, rollouts: ['r'], exemplars: [] } as const;
  expect(clusterWords({ ...base, kind: 'instead', did: 'hotkey', expected: 'drag' })).toBe(
    'pressed keys instead of dragging',
  );
  expect(clusterWords({ ...base, kind: 'beside', did: 'click', expected: 'click', side: 'left', distance: 20 })).toBe(
    'clicked 20 px to the left of the right place',
  );
  expect(clusterWords({ ...base, kind: 'elsewhere', did: 'drag', expected: 'drag', distance: 200 })).toBe(
    'dragged somewhere else, 200 px away',
  );
  expect(clusterWords({ ...base, kind: 'early', expected: 'type', ended: 'gave up' })).toBe('gave up before typing');
  expect(clusterWords({ ...base, kind: 'alone' })).toBe('said it was done; no success to compare with');
  expect(clusterFacts({ ...base, kind: 'late', versions: [3, 3] })).toBe(
    'usually at step 2 · v3 · then said it was done',
  );
});
