import type { PolicyVersion } from '../domain/index.js';
import type { PoolConfig } from '../data/config.js';
import { unusable } from '../data/curation/poolInjection.js';
import type { RunReader } from '../data/store/runStore.js';
import type { PoolEntryRow, PoolFamily, PoolSource, PoolView } from '../protocol/types.js';
import { outcomes } from './outcomes.js';
import type { RunFacts } from './facts.js';

export interface PoolQuery {
  readonly facts: RunFacts;
  readonly config: PoolConfig;
  /** Newest weights, where the caller knows better than the index. */
  readonly version?: PolicyVersion | undefined;
  readonly active: boolean;
}

/**
 * The experience pool by task family, families the policy never solved first; those among them that the pool has
 * nothing for too.
 */
export async function poolView(run: RunReader, q: PoolQuery): Promise<PoolView> {
  const [entries, [newest], [injections], won] = await Promise.all([
    run.index.query(
      `SELECT p.*, r.origin AS origin, r.instruction AS instruction, (SELECT COUNT(*) FROM injections i WHERE i.rollout = p.rollout AND i.seq > p.seq) AS uses FROM pool p LEFT JOIN rollouts r ON r.id = p.rollout ORDER BY p.seq`,
      [],
    ),
    run.index.query(
      "SELECT MAX(v) AS v FROM (SELECT MAX(trained_version) AS v FROM batches UNION ALL SELECT MAX(version) AS v FROM metrics WHERE name = 'warm-start.loss')",
      [],
    ),
    run.index.query('SELECT COUNT(*) AS c FROM injections', []),
    outcomes(run),
  ]);
  const version = q.version ?? Number(newest?.['v'] ?? 0),
    rows = new Map<string, PoolEntryRow[]>(),
    record = new Map<string, { n: number; won: number }>();
  for (const e of entries) {
    const family = String(e['family']),
      mine = rows.get(family),
      row = entryRow(e, version, q.config);
    if (mine) mine.push(row);
    else rows.set(family, [row]);
  }
  won.family.forEach((place, i) => {
    const f = won.families[place]!,
      r = record.get(f) ?? { n: 0, won: 0 };
    record.set(f, { n: r.n + 1, won: r.won + won.success[i]! });
  });
  const families = [...new Set([...rows.keys(), ...[...record].flatMap(([f, r]) => (r.won === 0 ? [f] : []))])].map(
    (family): PoolFamily => {
      const mine = rows.get(family) ?? [],
        { n, won: wins } = record.get(family) ?? { n: 0, won: 0 },
        title = q.facts.families.get(family)?.title,
        added = mine.flatMap((e) => (e.addedAt === undefined ? [] : [e.addedAt]));
      return {
        family,
        title: title || undefined,
        entries: mine,
        successes: mine.filter((e) => e.override === undefined).length,
        uses: mine.reduce((s, e) => s + e.uses, 0),
        rollouts: n,
        neverSolved: n > 0 && wins === 0,
        shortest: mine.length > 0 ? Math.min(...mine.map((e) => e.steps)) : undefined,
        newest: added.length > 0 ? Math.max(...added) : undefined,
        rate: n > 0 ? wins / n : undefined,
      };
    },
  );
  const unsolved = families.filter((f) => f.neverSolved);
  return {
    families: families.sort((a, b) => Number(b.neverSolved) - Number(a.neverSolved) || (a.family < b.family ? -1 : 1)),
    entries: entries.length,
    injections: Number(injections?.['c'] ?? 0),
    neverSolved: unsolved.length,
    // Relabelled entries are never injected.
    covered: unsolved.filter((f) => f.entries.some((e) => e.enabled && e.source !== 'hindsight')).length,
    active: q.active,
  };
}

function entryRow(e: Readonly<Record<string, unknown>>, version: PolicyVersion, c: PoolConfig): PoolEntryRow {
  const source = String(e['provenance']) as PoolSource,
    made = typeof e['version'] === 'number' ? e['version'] : undefined,
    uses = Number(e['uses']),
    enabled = e['enabled'] === 1;
  const why = unusable({ enabled, uses, version: made, provenance: source }, version, c);
  return {
    rollout: String(e['rollout']),
    task: String(e['task']),
    steps: Number(e['steps']),
    source,
    from: (source === 'imported' || source === 'hindsight') && e['origin'] ? String(e['origin']) : undefined,
    ...(source === 'hindsight' ? { instruction: String(e['instruction']) } : {}),
    version: made,
    addedAt: Number(e['at']),
    uses,
    enabled,
    usable: why === undefined,
    why: why || undefined,
    override: typeof e['override'] === 'string' ? e['override'] : undefined,
  };
}
