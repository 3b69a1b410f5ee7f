import type { Activity, Lane, Lanes } from '../../../../runtime/protocol/types.js';
import { random } from './course.js';

/**
 * Spans of six desktops, two replicas and the trainer in a window; shorter ones are merged as the daemon does when
 * pixels are few.
 */
export function makeLanes(
  start: number,
  trainFrom: number,
  end: number,
  from: number,
  to: number,
  width: number,
): Lanes {
  const r = random(11),
    pixel = (to - from) / Math.max(1, width),
    merged = pixel > 60,
    a = Math.max(from, start),
    b = Math.min(to, end);
  const make = (
    id: string,
    kind: Lane['kind'],
    fill: (add: (what: Activity, ms: number, rollout?: string, version?: number) => void, now: () => number) => void,
  ): Lane => {
    const what: Activity[] = [],
      at: number[] = [],
      ms: number[] = [],
      rollout: string[] = [],
      versions: number[] = [];
    let t = kind === 'trainer' ? trainFrom : Math.max(trainFrom, a - 3000);
    // A window's content does not depend on the window: time runs in slots of 4 s.
    t = trainFrom + Math.floor((t - trainFrom) / 4000) * 4000;
    fill(
      (w, d, id2 = '', v = -1) => {
        const len = Math.min(d, b - t);
        if (t + d > a && len > 0) {
          if (merged && what.at(-1) === w && w !== 'idle' && kind !== 'desktop')
            ms[ms.length - 1] = t + len - at.at(-1)!;
          else {
            what.push(w);
            at.push(t);
            ms.push(len);
            rollout.push(id2);
            versions.push(v);
          }
        }
        t += d;
      },
      () => t,
    );
    return { id, kind, what, start: at, ms, rollout, version: versions };
  };
  const versionAt = (t: number): number => Math.floor((t - trainFrom) / 8000) + 2;
  const lanes: Lane[] = [];
  for (let d = 1; d <= 6; d++)
    lanes.push(
      make(`desktop-${d}`, 'desktop', (add, now) => {
        let k = 0;
        while (now() < b) {
          if (merged && pixel > 400) {
            const w = (['act', 'settle', 'decide', 'reset', 'verify'] as const)[Math.floor(r() * 5)]!;
            add(w, pixel * (1 + 2 * r()));
            continue;
          }
          const id = `r${String(d * 1000 + (k++ % 900)).padStart(6, '0')}`,
            v = versionAt(now()),
            steps = 2 + Math.floor(r() * 3);
          add('reset', 60 + r() * 50, id, v);
          add('setup', 90 + r() * 70, id, v);
          for (let s = 0; s < steps; s++) {
            add('observe', 6 + r() * 5, id, v);
            add('decide', 22 + r() * 20, id, v);
            add('act', 18 + r() * 20, id, v);
            add('settle', 70 + r() * 130, id, v);
          }
          add('verify', 30 + r() * 40, id, v);
          if (r() < 0.5) add('idle', 40 + r() * 300);
        }
      }),
    );
  const syncs: { lane: string; start: number; ms: number; version: number }[] = [];
  for (let p = 0; p < 2; p++)
    lanes.push(
      make(`replica-${p}`, 'replica', (add, now) => {
        let sync = trainFrom + (Math.floor((now() - trainFrom) / 8000) + 1) * 8000 + p * 120;
        while (now() < b) {
          if (now() >= sync) {
            const d = 60 + r() * 80;
            if (now() + d > a && now() < b)
              syncs.push({ lane: `replica-${p}`, start: now(), ms: d, version: versionAt(now()) });
            add('sync', d, '', versionAt(now()));
            sync += 8000;
            continue;
          }
          if (merged && pixel > 400) {
            add('decide', pixel, '', versionAt(now()));
            add('idle', pixel * 3);
            continue;
          }
          add('decide', 14 + r() * 14, `r${String(1000 + Math.floor(r() * 5000)).padStart(6, '0')}`, versionAt(now()));
          add('idle', 20 + r() * 130);
        }
      }),
    );
  lanes.push(
    make('trainer', 'trainer', (add, now) => {
      while (now() < b) {
        const d = 5900 + r() * 900;
        add('update', d, '', versionAt(now()));
        add('idle', 8000 - d);
      }
    }),
  );
  return { from: a, to: b, lanes, syncs, merged };
}
