import * as m from '../protocol/methods.js';
import { curationView } from '../queries/curation.js';
import { series, successCurves } from '../queries/curves.js';
import { outcomes } from '../queries/outcomes.js';
import { failuresView } from '../queries/failures.js';
import { lanes } from '../queries/lanes.js';
import { evalPoints } from '../queries/overview.js';
import { schemas, type Handlers } from './params.js';
import type { OpenRun, Studio } from './studio.js';

/** Answers kept of a run that nobody writes, by its reader: a run that is written again gets another one. */
const KEEP = 12;
const kept = new WeakMap<object, Map<string, Promise<unknown>>>();
async function once<T>(r: OpenRun, what: string, params: unknown, answer: () => Promise<T>): Promise<T> {
  if (r.alive) return answer();
  let all = kept.get(r.reader);
  if (!all) kept.set(r.reader, (all = new Map()));
  const key = `${what} ${JSON.stringify(params)}`,
    known = all.get(key) as Promise<T> | undefined,
    now = known ?? answer();
  all.delete(key);
  all.set(key, now);
  for (const oldest of all.keys()) {
    if (all.size <= KEEP) break;
    all.delete(oldest);
  }
  try {
    return await now;
  } catch (e) {
    all.delete(key);
    throw e;
  }
}

/** Handlers of the dashboard's charts. */
export function metricHandlers(h: Handlers, s: Studio): void {
  h.on(m.getSeries, schemas.series, (p) =>
    s.read(p.run, (r) => once(r, 'series', p, async () => ({ series: await series(r.reader, p.names, p.maxPoints) }))),
  );
  h.on(m.getCurves, schemas.curves, (p) =>
    s.read(p.run, (r) =>
      once(r, 'curves', p, async () => {
        const [o, evals] = await Promise.all([outcomes(r.reader), evalPoints(r.reader)]);
        const curves = await successCurves(o, {
          window: p.window ?? 64,
          maxPoints: p.maxPoints ?? 500,
          infeasible: (f) => r.facts.families.get(f)?.infeasible ?? false,
        });
        return { curves, evals };
      }),
    ),
  );
  h.on(m.getLanes, schemas.lanes, (p) => s.read(p.run, (r) => once(r, 'lanes', p, () => lanes(r.reader, p))));
  h.on(m.getFailures, schemas.failures, (p) =>
    s.read(p.run, (r) => once(r, 'failures', p, () => failuresView(r.reader, p))),
  );
  h.on(m.getCuration, schemas.run, (p) =>
    s.read(p.run, (r) => once(r, 'curation', p, () => curationView(r.reader, r.facts))),
  );
}
