import { describe, expect, it } from 'vitest';
import { id, type FamilyId, type TaskId } from '../../../runtime/domain/index.js';
import { SuccessStats } from '../../../runtime/data/curation/successStats.js';
import { Attempts, type AttemptEnd } from '../../../runtime/run/collect/attempts.js';
import { Earlier } from '../../../runtime/run/collect/collect.js';
import type { StoredEvent } from '../../../runtime/data/events.js';

const task = (name: string) => ({ family: id<FamilyId>('f'), task: id<TaskId>(name), seed: 0 });
const limits = { attempts: 4, stopAfter: 2, errors: 3, remember: true };

describe('attempts of a collection', () => {
  it('go round the tasks, and a task is left when it has its verdicts or its successes', () => {
    const a = new Attempts([task('easy'), task('hard')], limits),
      seen: string[] = [];
    for (let t = a.next(); t; t = a.next()) {
      seen.push(t.task);
      a.ended(t.task, t.task === 'easy' ? 'success' : 'failure');
    }
    expect(seen).toEqual(['easy', 'hard', 'easy', 'hard', 'hard', 'hard']);
    expect(a.done).toBe(true);
    expect(a.rows().map((r) => [r.successes, r.failures])).toEqual([
      [2, 0],
      [0, 4],
    ]);
  });

  it('have numbers that no earlier one has, also where the journal lost that those were begun', () => {
    const earlier = new Earlier(new Attempts([task('t')], limits), { measures: false }),
      see = (e: object): void => earlier.see(e as StoredEvent);
    see({ type: 'rollout.queued', order: { rollout: 'c000001', group: 'collect/t' } });
    expect(earlier.begun).toBe(1);
    see({ type: 'rollout.started', rollout: 'c000004', version: 0 });
    see({ type: 'rollout.queued', order: { rollout: 'c000003', group: 'collect/t' } });
    expect(earlier.begun).toBe(4);
    see({ type: 'trajectory.recorded', head: { id: 'c000006', task: 't', outcome: { kind: 'failure' } } });
    see({ type: 'pool.added', entry: { id: 'brought-by-a-person-7' } });
    expect(earlier.begun).toBe(6);
  });

  it('are no more at once than are wanted, and what was stopped is begun again', () => {
    const a = new Attempts([task('t')], { ...limits, attempts: 2, stopAfter: 9 });
    expect([a.next(), a.next(), a.next()].filter(Boolean)).toHaveLength(2);
    expect([a.open, a.done]).toEqual([0, false]);
    a.ended(id<TaskId>('t'), 'stopped');
    expect(a.open).toBe(1);
  });

  it('give a task up after errors in a row, which are no verdicts', () => {
    const a = new Attempts([task('t')], limits),
      ends: AttemptEnd[] = ['error', 'error', 'failure', 'error', 'error', 'error'];
    for (const how of ends) a.ended(a.next()!.task, how);
    expect([a.open, a.done]).toEqual([0, true]);
    expect(a.rows()[0]).toMatchObject({ failures: 1, givenUp: true });
  });

  it('are no reason to give a task up on the next start where the engine of the policy was away', () => {
    const before = new Attempts([task('t')], limits);
    for (let i = 0; i < 3; i++) before.ended(before.next()!.task, 'away');
    expect(before.rows()[0]).toMatchObject({ givenUp: true, retried: 3 });
    const a = new Attempts([task('t')], limits),
      earlier = new Earlier(a, { measures: false }),
      error = (kind: string): void => {
        const order = { rollout: 'c000001', group: 'collect/t' },
          outcome = { kind: 'error', error: { kind } };
        earlier.see({ type: 'rollout.queued', order } as StoredEvent);
        earlier.see({ type: 'trajectory.recorded', head: { id: 'c000001', task: 't', outcome } } as StoredEvent);
      };
    error('task.setup');
    for (let i = 0; i < 5; i++) error('policy.lost');
    expect(a.rows()[0]).toMatchObject({ givenUp: false, retried: 6 });
    error('task.setup');
    expect(a.open).toBe(1);
    error('desktop.lost');
    expect(a.rows()[0]).toMatchObject({ givenUp: true });
  });

  it('go on from what was seen before', () => {
    const a = new Attempts([task('t')], limits);
    a.seen(id<TaskId>('t'), 'success');
    a.seen(id<TaskId>('gone'), 'success');
    a.ended(a.next()!.task, 'success');
    expect(a.next()).toBeUndefined();
  });
});

describe('success rates of another policy', () => {
  const f = id<FamilyId>('f');
  it('fill the window with their share of successes, spread evenly, and are not in the total', () => {
    const s = new SuccessStats(8);
    s.seed(f, { successes: 8, failures: 24 });
    expect(s.of(f)).toMatchObject({ n: 8, successes: 2, rate: 0.25, total: 0 });
    // Half of them have gone when half the window has.
    for (let i = 0; i < 4; i++) s.add(f, false);
    expect(s.of(f)).toMatchObject({ n: 8, successes: 1, total: 4 });
  });
  it('are all there when the window has room', () => {
    const s = new SuccessStats(32);
    s.seed(f, { successes: 2, failures: 3 });
    expect(s.of(f)).toMatchObject({ n: 5, successes: 2 });
    s.seed(id<FamilyId>('none'), { successes: 0, failures: 0 });
    expect(s.of(id<FamilyId>('none')).n).toBe(0);
  });

  it('of an earlier part of a measurement errors are not held against a task, and what ran out of time is not repeated', () => {
    const a = new Attempts([task('t'), task('slow')], { ...limits, attempts: 1, remember: false });
    for (let i = 0; i < 3; i++) a.seen(id<TaskId>('t'), 'error');
    a.seen(id<TaskId>('slow'), 'unsolved');
    expect(a.next()?.task).toBe('t');
    expect(a.open).toBe(0);
    a.ended(id<TaskId>('t'), 'success');
    expect(a.done).toBe(true);
    expect(a.rows()).toMatchObject([
      { successes: 1, retried: 3, unsolved: 0, givenUp: false },
      { successes: 0, retried: 0, unsolved: 1, givenUp: false },
    ]);
  });
});
