import { describe, expect, it } from 'vitest';
import { id, type FamilyId, type TaskId } from '../../../runtime/domain/index.js';
import type { AttemptRow } from '../../../runtime/run/collect/attempts.js';
import { resultsOf } from '../../../runtime/run/collect/results.js';
import { wilson } from '../../../runtime/domain/wilson.js';

const row = (task: string, o: Partial<AttemptRow>): AttemptRow => ({
  family: id<FamilyId>(task),
  task: id<TaskId>(task),
  seed: 0,
  domain: 'os',
  successes: 0,
  failures: 0,
  unsolved: 0,
  retried: 0,
  givenUp: false,
  ...o,
});

describe('what a policy did on tasks', () => {
  it('counts an episode that ended in an error, and gives it no score', () => {
    const r = resultsOf(
      [row('solved', { successes: 1 }), row('half', { failures: 1, domain: 'gimp' }), row('broken', { givenUp: true })],
      [
        { task: id<TaskId>('solved'), score: 1 },
        { task: id<TaskId>('half'), score: 0.5 },
      ],
      1,
    );
    expect(r).toMatchObject({ episodes: 3, successes: 1, errors: 1, score: 0.5, open: 0 });
    expect(r.domains).toMatchObject({
      gimp: { episodes: 1, successes: 0, errors: 0, score: 0.5 },
      os: { episodes: 2, successes: 1, errors: 1, score: 0.5 },
    });
    expect(r.low).toBeLessThan(1 / 3);
    expect(r.high).toBeGreaterThan(1 / 3);
  });

  it('sets tasks that cannot be done apart, and says what is still to come', () => {
    const r = resultsOf(
      [row('impossible', { infeasible: true, successes: 2 }), row('begun', { failures: 1 }), row('left', {})],
      [],
      2,
    );
    expect(r).toMatchObject({ episodes: 1, successes: 0, open: 3, infeasible: { episodes: 2, successes: 2 } });
    expect(resultsOf([], [], 1).score).toBeUndefined();
  });

  it('an episode whose time was up is not solved; errors that were tried again are told', () => {
    const r = resultsOf(
      [row('slow', { unsolved: 1, successes: 1, retried: 3 })],
      [{ task: id<TaskId>('slow'), score: 1 }],
      2,
    );
    expect(r).toMatchObject({ episodes: 2, successes: 1, errors: 1, score: 0.5, retried: 3, givenUp: 0, open: 0 });
  });

  it('attempts at one task are no independent episodes', () => {
    const rows = Array.from({ length: 10 }, (_, i) => row(`t${i}`, i < 5 ? { successes: 8 } : { failures: 8 })),
      many = resultsOf(rows, [], 8);
    // Ten tasks, not eighty.
    expect(many.high - many.low).toBeGreaterThan(0.5);
    expect(many.domains['os']).toMatchObject({ low: many.low, high: many.high });
    // That all ended alike is no certainty, and none is no number.
    const none = resultsOf(
      rows.map((r) => ({ ...r, successes: 0, failures: 8 })),
      [],
      8,
    );
    expect(none.high).toBeCloseTo(wilson(0, 10).high, 9);
    const impossible = resultsOf([row('no', { infeasible: true, successes: 1 })], [], 8);
    expect(impossible).toMatchObject({ low: 0, high: 1, infeasible: { episodes: 1 } });
  });

  it('of templates never trained on, the templates are the sample', () => {
    const rows = Array.from({ length: 120 }, (_, i) =>
      row(`t${i}`, { family: id<FamilyId>(`f${i % 6}`), ...(i % 6 === 0 ? { successes: 1 } : { failures: 1 }) }),
    );
    expect(resultsOf(rows, [], 1, 'fresh').high).toBeGreaterThan(0.4);
    expect(resultsOf(rows, [], 1, 'words').high).toBeLessThan(0.3);
  });
});
