import type { RunReader } from '../data/store/runStore.js';
import type { CurationView, Histogram, Series } from '../protocol/types.js';
import { downsample, histogram, pick } from './downsample.js';
import type { RunFacts } from './facts.js';

const nums = (xs: readonly unknown[] | undefined): number[] => (xs ?? []).map(Number);
const MAX_POINTS = 1000,
  ENTROPY_ROLLOUTS = 200,
  TIS_UPDATES = 8,
  STALENESS_BATCHES = 200;

/** What adaptive curation did so far (runtime/data/README.md#curation). */
export async function curationView(run: RunReader, facts: RunFacts): Promise<CurationView> {
  const [groups, entropies, [threshold], kept, injected, tis, staleness] = await Promise.all([
    run.index.columns('SELECT family, opened_at, size, cap FROM groups ORDER BY family, opened_at'),
    run.index.columns(
      `SELECT s.entropy FROM steps s WHERE s.entropy IS NOT NULL AND s.rollout IN (SELECT id FROM rollouts WHERE provenance = 'rollout' AND outcome IS NOT NULL ORDER BY ended_at DESC LIMIT ${ENTROPY_ROLLOUTS})`,
    ),
    run.index.query('SELECT threshold FROM groups WHERE threshold IS NOT NULL ORDER BY closed_at DESC LIMIT 1', []),
    run.index.columns(
      'SELECT g.closed_at, SUM(r.kept), SUM(r.steps) FROM rollouts r JOIN groups g ON g.id = r.grp WHERE r.kept IS NOT NULL GROUP BY g.id ORDER BY g.closed_at',
    ),
    run.index.columns('SELECT closed_at, injected FROM groups WHERE injected > 0 ORDER BY closed_at'),
    tisHistogram(run, facts.config?.trainer.tis.cap ?? 1),
    lags(run),
  ]);
  const keptOf = nums(kept[1]),
    seen = nums(kept[2]),
    total = seen.reduce((a, b) => a + b, 0);
  let sum = 0;
  const cumulated = nums(injected[1]).map((n) => (sum += n));
  return {
    groups: byFamily(groups),
    entropy: histogram(nums(entropies[0]), 40),
    ...(typeof threshold?.['threshold'] === 'number' ? { threshold: threshold['threshold'] } : {}),
    ...(total > 0 ? { keptShare: keptOf.reduce((a, b) => a + b, 0) / total } : {}),
    keptSeries: thin(
      'curation.keptShare',
      nums(kept[0]),
      keptOf.map((k, i) => k / Math.max(1, seen[i]!)),
    ),
    injections: thin('curation.injections', nums(injected[0]), cumulated),
    ...(tis ? { tis } : {}),
    staleness,
  };
}

function thin(name: string, at: readonly number[], value: readonly number[]): Series {
  const keep = downsample(value, MAX_POINTS);
  return { name, at: pick(at, keep), value: pick(value, keep) };
}

function byFamily([family, at, size, cap]: readonly (readonly unknown[])[]): CurationView['groups'] {
  const out = new Map<string, { at: number[]; size: number[]; cap: number[] }>();
  (family ?? []).forEach((f, i) => {
    const g = out.get(String(f)) ?? { at: [], size: [], cap: [] };
    out.set(String(f), g);
    g.at.push(Number(at![i]));
    g.size.push(Number(size![i]));
    g.cap.push(Number(cap![i]));
  });
  return [...out].map(([name, g]) => {
    const keep = [...new Set([...downsample(g.size, MAX_POINTS / 2), ...downsample(g.cap, MAX_POINTS / 2)])].sort(
      (a, b) => a - b,
    );
    return { family: name, at: pick(g.at, keep), size: pick(g.size, keep), cap: pick(g.cap, keep) };
  });
}

/** Truncated importance weights of the newest updates, over [0, C]. */
async function tisHistogram(run: RunReader, cap: number): Promise<Histogram | undefined> {
  const rows = await run.index.query(
    `SELECT e.position FROM events e JOIN metrics m ON m.seq = e.seq AND m.name = 'update.loss' WHERE e.type = 'metrics' ORDER BY e.seq DESC LIMIT ${TIS_UPDATES}`,
    [],
  );
  const lists = (await Promise.all(rows.map((r) => run.at(Number(r['position']))))).flatMap((e) =>
    e?.type === 'metrics' && e.lists?.['tisHistogram'] ? [e.lists['tisHistogram']] : [],
  );
  const n = lists[0]?.length ?? 0;
  if (n === 0) return undefined;
  return {
    edges: Array.from({ length: n + 1 }, (_, i) => (i * cap) / n),
    counts: Array.from({ length: n }, (_, i) => lists.reduce((a, l) => a + (l[i] ?? 0), 0)),
  };
}

/** Updates by which trained rollouts lagged, in the newest batches. */
async function lags(run: RunReader): Promise<CurationView['staleness']> {
  const rows = await run.index.query(
      `SELECT position FROM events WHERE type = 'batch.claimed' ORDER BY seq DESC LIMIT ${STALENESS_BATCHES}`,
      [],
    ),
    by = new Map<number, number>();
  for (const e of await Promise.all(rows.map((r) => run.at(Number(r['position'])))))
    if (e?.type === 'batch.claimed') for (const lag of e.lags) by.set(lag, (by.get(lag) ?? 0) + 1);
  return [...by].sort((a, b) => a[0] - b[0]).map(([lag, rollouts]) => ({ lag, rollouts }));
}
