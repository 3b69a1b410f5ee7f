import { describe, expect, it } from 'vitest';
import type { Ledger, RunDetail, RunEvent, RunState } from '../../../runtime/protocol/types.js';
import { bannersOf } from '../../../webview/dashboard/banners.js';
import {
  emptyModel,
  evaluationOnly,
  firstWindowMs,
  isLive,
  reduce,
  rolloutsBegun,
  staleAfter,
  wholeRun,
  type Message,
  type Model,
} from '../../../webview/dashboard/model.js';
import { makeRun } from '../../helpers/pages/dashboard/run.js';

const r = makeRun();
const after = (m: Model, ...ms: readonly Message[]): Model => ms.reduce(reduce, m);
const opened = (run = r): Model =>
  after(
    emptyModel(),
    { type: 'open', run: run.run, daemon: 'ready' },
    { type: 'series', series: run.series },
    { type: 'curves', curves: run.curves, evals: run.detail.evals },
    { type: 'curation', curation: run.curation },
    { type: 'detail', detail: run.detail },
  );
const metrics = (at: number, values: Record<string, number>): RunEvent => ({
  seq: 1,
  at,
  type: 'metrics',
  source: 'update',
  version: 80,
  values,
});

describe('what the dashboard knows', () => {
  it('answers may come in any order', () => {
    const m = opened(),
      other = after(
        emptyModel(),
        { type: 'open', run: r.run, daemon: 'ready' },
        { type: 'detail', detail: r.detail },
        { type: 'curation', curation: r.curation },
        { type: 'curves', curves: r.curves, evals: r.detail.evals },
        { type: 'series', series: r.series },
      );
    expect(other).toEqual(m);
    expect(m.loading).toBe(false);
    expect(isLive(m)).toBe(true);
    expect(wholeRun(m)).toEqual({ from: r.createdAt, to: r.now });
  });
  it('another run begins empty', () => {
    const m = reduce(opened(), { type: 'open', run: '/other', daemon: 'ready' });
    expect(m).toEqual({ ...emptyModel('/other', 'ready') });
    expect(m.loading).toBe(true);
  });
  it('metrics go on the series they name, once, and leave the others alone', () => {
    const m = opened(),
      n = m.series.get('update.loss')!.at.length,
      e = metrics(r.now + 100, { loss: 0.5, somethingElse: 1, entropy: NaN });
    const next = after(m, { type: 'events', events: [e, e] });
    expect(next.series.get('update.loss')!.at.length).toBe(n + 1);
    expect(next.series.get('update.loss')!.value.at(-1)).toBe(0.5);
    expect(next.series.get('update.entropy')).toBe(m.series.get('update.entropy'));
    expect(next.series.has('update.somethingElse')).toBe(false);
    expect(next.now).toBe(r.now + 100);
  });
  it('series stay bounded however long the run lives', () => {
    let m = opened();
    for (let i = 1; i <= 6000; i++)
      m = reduce(m, { type: 'events', events: [metrics(r.now + i, { gradNorm: i === 3000 ? 99 : 2 })] });
    const s = m.series.get('update.gradNorm')!;
    expect(s.at.length).toBeLessThanOrEqual(4000);
    expect(s.value.length).toBe(s.at.length);
    expect(Math.max(...s.value)).toBe(99);
    expect(s.at.at(-1)).toBe(r.now + 6000);
  });
  it('an answer wider than what has happened does not move the clock', () => {
    const m = opened(),
      lanes = { ...r.lanes(r.now - 5000, r.now, 1000), to: r.now + 60_000 };
    expect(after(m, { type: 'lanes', lanes }).now).toBe(r.now);
  });
  it('an evaluation is added once, also when it was already in the answer', () => {
    const point = { ...r.detail.evals.at(-1)!, at: r.now + 5, version: 81 },
      e: RunEvent = { seq: 9, at: r.now + 5, type: 'eval', point };
    const m = after(opened(), { type: 'events', events: [e] }, { type: 'events', events: [e] });
    expect(m.evals.length).toBe(r.detail.evals.length + 1);
    expect(after(m, { type: 'curves', curves: r.curves, evals: r.detail.evals }).evals).toEqual(m.evals);
    // An answer that was under way when the event came does not take it back.
    expect(after(m, { type: 'detail', detail: r.detail }).evals).toEqual(m.evals);
  });
  it('spans are kept only where lanes were asked for, and go on behind an answer', () => {
    const events = r.events(r.now, 1000, 50);
    expect(after(opened(), { type: 'events', events }).lanes).toBeUndefined();
    const answer = r.lanes(r.now - 20_000, r.now, 3000),
      m = after(opened(), { type: 'lanes', lanes: answer }, { type: 'events', events });
    expect(m.lanes!.to).toBeGreaterThan(r.now);
    for (const l of m.lanes!.lanes) expect([...l.start]).toEqual([...l.start].sort((a, b) => a - b));
    // An older answer that arrives late does not lose what came since.
    expect(after(m, { type: 'lanes', lanes: answer }).lanes!.to).toBe(m.lanes!.to);
  });
  it('a status sets the state everywhere', () => {
    const m = after(opened(), { type: 'status', status: { ...r.status, state: 'paused' }, ledger: r.ledger });
    expect(m.detail!.summary.state).toBe('paused');
    expect(isLive(reduce(m, { type: 'daemon', state: 'reconnecting' }))).toBe(false);
  });
  it('the end of a run is not hidden by its last status', () => {
    const m = reduce(opened(), {
      type: 'detail',
      detail: { ...r.detail, summary: { ...r.detail.summary, state: 'finished', status: undefined } },
    });
    expect(m.status!.state).toBe('finished');
    expect(isLive(m)).toBe(false);
  });
  it('events tell what to ask again', () => {
    expect([...staleAfter(r.events(r.now, 500, 1))].sort()).toEqual(['curves', 'tasks']);
    expect([...staleAfter([metrics(1, {})])]).toEqual([]);
    expect([...staleAfter([{ seq: 1, at: 1, type: 'closed', reason: 'stopped' }])]).toEqual(['detail']);
  });
  it('the first window of the lanes shows a few rollouts, short or long ones', () => {
    const m = opened();
    expect(firstWindowMs(m)).toBeGreaterThanOrEqual(12_000);
    expect(firstWindowMs(m)).toBeLessThan(30_000);
    expect(firstWindowMs({ ...m, status: { ...r.status, running: 38, rolloutsPerHour: 480 } })).toBe(3.6e6);
  });
});

describe('banners', () => {
  const keys = (m: Model): string[] => bannersOf(m).map((b) => b.key.split(' ')[0]!);
  it('a run in good order has none', () => {
    expect(bannersOf(opened())).toEqual([]);
    const unread = { kind: 'task.invalid', message: '/tasks is not there.', remedy: 'Restore it.' } as const,
      nameless = reduce(opened(), { type: 'detail', detail: { ...r.detail, tasksUnread: unread } });
    expect(bannersOf(nameless).map((b) => b.words)).toEqual([
      'The tasks of this run cannot be read, so they have no names here. /tasks is not there. Restore it.',
    ]);
  });
  it('each state that needs attention says what to do', () => {
    for (const state of ['stopped', 'starting', 'attaching', 'reconnecting', 'incompatible', 'failed'] as const)
      expect(keys(reduce(opened(), { type: 'daemon', state }))).toEqual(['daemon']);
    expect(bannersOf(reduce(opened(), { type: 'daemon', state: 'stopped' }))[0]!.actions[0]!.command).toBe(
      'startRuntime',
    );
    const failed = after(opened(), {
      type: 'status',
      status: {
        ...r.status,
        state: 'failed',
        error: {
          kind: 'desktop.unavailable',
          message: 'No desktop could be started.',
          remedy: 'Run Check This Machine.',
        },
      },
      ledger: r.ledger,
    });
    expect(bannersOf(failed)[0]!.words).toBe('No desktop could be started. Run Check This Machine.');
    expect(bannersOf(failed)[0]!.actions.map((a) => a.command)).toEqual(['resume', 'showLog']);
    expect(
      keys(after(opened(), { type: 'status', status: { ...r.status, state: 'interrupted' }, ledger: r.ledger })),
    ).toEqual(['interrupted']);
  });
  it('a part that could not be read is said until it could be, and nothing that the run warned of goes with it', () => {
    const error = { kind: 'store.io', message: 'a', remedy: 'b' },
      words = (m: Model): string[] => bannersOf(m).map((b) => b.words),
      both = after(
        opened(),
        { type: 'events', events: [{ seq: 1, at: 1, type: 'note', level: 'warn', message: 'slow' }] },
        { type: 'lacks', method: 'run/curves', error },
        { type: 'lacks', method: 'task/list', error },
      );
    expect(words(both)).toEqual(['slow', 'a b']);
    const one = after(both, { type: 'lacks', method: 'run/curves' });
    expect(words(one)).toEqual(['slow', 'a b']);
    expect(words(after(one, { type: 'lacks', method: 'task/list' }))).toEqual(['slow']);
  });
  it('a run that was only evaluated says so', () => {
    const nothing: Ledger = { generated: 0, trained: 0, inFlight: 0, byState: {}, retired: {}, closes: true },
      of = (state: RunState, phases: RunDetail['timeline']['phases']): Model =>
        after(
          opened(),
          { type: 'detail', detail: { ...r.detail, ledger: nothing, timeline: { phases, outages: [] } } },
          { type: 'status', status: { ...r.status, state }, ledger: nothing },
        );
    const m = of('finished', []);
    expect(evaluationOnly(m)).toBe(true);
    expect(keys(m)).toEqual(['evaluation']);
    // In its lessons and warm start it has an evaluation and no rollout either: they are still to come.
    expect(evaluationOnly(of('running', []))).toBe(false);
    expect(evaluationOnly(of('paused', [{ phase: 'warm start', from: 1 }]))).toBe(false);
    // Nor was a run that ended in its warm start only evaluated.
    expect(evaluationOnly(of('stopped', [{ phase: 'warm start', from: 1 }]))).toBe(false);
  });
  it('one number of rollouts stands everywhere: those that began', () => {
    const status = { ...r.status, rollouts: 6253 },
      ledger: Ledger = { ...r.ledger, begun: 6255 };
    expect(rolloutsBegun(after(opened(), { type: 'status', status, ledger }))).toBe(6253);
    // The last status of a run came before its last rollout.
    expect(rolloutsBegun(after(opened(), { type: 'status', status: { ...status, state: 'finished' }, ledger }))).toBe(
      6255,
    );
  });
});
