import { describe, expect, it } from 'vitest';
import type { TrajectoryRow } from '../../../runtime/protocol/types.js';
import { verdictLower, verdictWords } from '../../../webview/inspector/verdict.js';
import { columnOf } from '../../../webview/table/columns.js';
import { Rows } from '../../../webview/table/rows.js';

const row = (rollout: string, outcome: TrajectoryRow['outcome'], reward?: number): TrajectoryRow => ({
  rollout,
  task: 't',
  family: 't',
  instruction: 'Do it',
  outcome,
  provenance: 'probe',
  steps: 3,
  cap: 9,
  ...(reward === undefined ? {} : { reward }),
});

describe('the outcome in words', () => {
  it('says a partial score; what is 0 or 1 needs none', () => {
    expect([verdictWords('failure', 0.7), verdictLower('failure', 0.7)]).toEqual([
      'Failure, score 0.7',
      'failure, score 0.7',
    ]);
    expect([verdictWords('failure', 0), verdictWords('success', 1), verdictWords('error', undefined)]).toEqual([
      'Failure',
      'Success',
      'Error',
    ]);
  });
  it('is brief in the table of trajectories, which has a column of rewards', () => {
    const rows = new Rows();
    [row('a', 'failure', 0.25), row('b', 'failure', 0), row('c', 'success', 1), row('d', 'running')].forEach((r) => {
      rows.put(r);
    });
    expect([0, 1, 2, 3].map((i) => columnOf('outcome').text(rows, i))).toEqual([
      'Failure, 0.25',
      'Failure',
      'Success',
      'Running',
    ]);
  });
});
