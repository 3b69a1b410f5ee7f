import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { Listeners } from '../../../runtime/data/listeners.js';
import type { NoteEvent } from '../../../runtime/data/events.js';
import { Watchdog, type Alert } from '../../../runtime/run/watchdog.js';
import { watchRun } from '../../../runtime/run/watchRun.js';

const dog = (watch: object = {}): Watchdog => new Watchdog(parseRunFile({ watch }).watch);
const kinds = (alerts: readonly Alert[]): string[] => alerts.map((a) => a.kind);
const seen = (minutes: number, o: object = {}): Parameters<Watchdog['look']>[0] => ({
  at: minutes * 60_000,
  training: true,
  progress: 'same',
  ...o,
});

describe('a run is watched', () => {
  it('for entropy that collapses and KL that leaps: three updates in a row, told once until it was well again', () => {
    const d = dog({ entropyBelow: 0.1, klAbove: 2 });
    const tells = (...updates: (readonly [number, number])[]): string[] =>
      updates.flatMap(([entropy, klK3]) => kinds(d.update({ entropy, klK3 })));
    // Single leaps are no news.
    expect(tells([0.05, 9], [0.5, 0.1], [0.05, 9], [0.05, 9])).toEqual([]);
    expect(tells([0.05, 9])).toEqual(['entropy', 'kl']);
    expect(tells([0.05, 9], [0.05, 9])).toEqual([]);
    expect(tells([0.5, 0.1], [0.05, 0.1], [0.05, 0.1], [0.05, 0.1])).toEqual(['entropy']);
    // What could not be measured is no recovery.
    expect(tells([NaN, NaN], [0.05, 0.1])).toEqual([]);
    // What an update did not measure says nothing.
    expect(kinds(dog().update({ loss: 1 }))).toEqual([]);
  });
  it('for standing still: only while something is to be expected, from the last progress on', () => {
    const d = dog({ stalledMinutes: 10 });
    expect(kinds(d.look(seen(0)))).toEqual([]);
    expect(kinds(d.look(seen(9.9)))).toEqual([]);
    expect(kinds(d.look(seen(10)))).toEqual(['stalled']);
    expect(kinds(d.look(seen(30)))).toEqual([]);
    expect(kinds(d.look(seen(31, { progress: 'one more' })))).toEqual([]);
    // A pause, a warm start, an evaluation.
    expect(kinds(d.look(seen(60, { progress: 'one more', training: false })))).toEqual([]);
    expect(kinds(d.look(seen(69, { progress: 'one more' })))).toEqual([]);
    expect(kinds(d.look(seen(70, { progress: 'one more' })))).toEqual(['stalled']);
  });
  it('for a disk that fills; a little room does not make it news again', () => {
    const d = dog({ diskBelowGb: 2 }),
      free = (gb: number): string[] => kinds(d.look(seen(0, { freeBytes: gb * 1e9 })));
    expect([3, 1.9, 1.5, 2.5, 1.9, 3.5, 1.9].map(free)).toEqual([[], ['disk'], [], [], [], [], ['disk']]);
    expect(kinds(d.look(seen(0)))).toEqual([]);
  });
  it('raises an alert once when its target is reached', () => {
    const d = dog({ target: 0.9 });
    expect([8, 9, 10, 5, 10].map((successes) => kinds(d.evaluation({ episodes: 10, successes })))).toEqual([
      [],
      ['target'],
      [],
      [],
      [],
    ]);
    expect(dog({ target: 0 }).evaluation({ episodes: 0, successes: 0 })).toEqual([]);
    expect(dog().evaluation({ episodes: 1, successes: 1 })).toEqual([]);
  });
  it('and ends for what its run file names, and for nothing else', () => {
    const noted = new Listeners<NoteEvent>(),
      told: string[] = [],
      ended: string[] = [],
      off = watchRun({
        config: parseRunFile({ watch: { target: 0.5, entropyBelow: 1, stop: ['target'] } }),
        dir: '/nowhere',
        data: { noted, recorded: 0 },
        now: () => 0,
        status: () => ({ training: true, version: 1 }),
        alert: (a) => told.push(a.kind),
        end: (a) => ended.push(a.kind),
      }),
      update = (): void => noted.tell({ type: 'metrics', source: 'update', version: 1, values: { entropy: 0.1 } });
    for (let i = 0; i < 3; i++) update();
    const point = { type: 'eval', version: 1, episodes: 4, successes: 4, errors: 0, low: 0.5, high: 1 } as const;
    noted.tell(point as NoteEvent);
    expect(told).toEqual(['entropy', 'target']);
    expect(ended).toEqual(['target']);
    off();
    noted.tell(point as NoteEvent);
    expect(told).toHaveLength(2);
  });
  it('looks at the disk at once: a short run is over before the next look', async () => {
    const told = await new Promise<string>((resolve) => {
      const off = watchRun({
        config: parseRunFile({ watch: { diskBelowGb: 1e9 } }),
        dir: '/',
        data: { noted: new Listeners<NoteEvent>(), recorded: 0 },
        now: () => 0,
        status: () => ({ training: false, version: 0 }),
        alert: (a) => {
          off();
          resolve(a.kind);
        },
        end: () => undefined,
      });
    });
    expect(told).toBe('disk');
  });
});
