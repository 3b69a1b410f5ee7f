import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  StudioError,
  id,
  messageOf,
  toRunError,
  type FrameRef,
  type Provenance,
  type RolloutId,
  type Trajectory,
  unsampled,
} from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import type { RunConfig } from '../config/index.js';
import type { DataManager } from '../data/dataManager.js';
import { PngFrameStore } from '../data/store/frames.js';
import { RunReader, readMeta, runPaths, type RunMeta } from '../data/store/runStore.js';
import { ContentHash } from '../data/content.js';
import { JUDGED } from '../data/store/totals.js';

/** Frames copied at once: as many as Node has threads for files. */
const COPIES = 4;

/** The entries that the pools of other folders add to a new run. */
export interface PoolIntake {
  readonly entries: readonly {
    readonly trajectory: Trajectory;
    readonly override?: string;
    /** The run folder that has its frames. */
    readonly from: string;
  }[];
  /** Number of entries left out because this run does not train their family, by family. */
  readonly otherFamilies: ReadonlyMap<string, number>;
  /** Number of entries left out because another has the same content. */
  readonly duplicates: number;
  /** Successes and failures that collections saw of this run's families, over all their attempts. */
  readonly rates: ReadonlyMap<string, { readonly successes: number; readonly failures: number }>;
}

/**
 * The run file with `curation.pool.from` as absolute paths. A relative one is looked up in each of `dirs`; the first
 * that has a run of that name wins.
 */
export function locatePools(c: RunConfig, dirs: readonly string[]): RunConfig {
  if (c.curation.pool.from.length === 0) return c;
  const from = c.curation.pool.from.map((f) => {
    const tries = dirs.map((p) => resolve(p, f));
    return tries.find((d) => existsSync(join(d, 'run.json'))) ?? tries[0] ?? resolve(f);
  });
  return { ...c, curation: { ...c.curation, pool: { ...c.curation.pool, from } } };
}

/**
 * Reads the pools that are to join. Rejects with `config.invalid` naming the folder that is missing or damaged; nothing
 * has been written by then.
 */
export async function readPools(c: RunConfig, families: ReadonlySet<string>, index: ProcessEntry): Promise<PoolIntake> {
  const entries: PoolIntake['entries'][number][] = [],
    otherFamilies = new Map<string, number>(),
    seen = new Set<string>(),
    rates = new Map<string, { successes: number; failures: number }>();
  let duplicates = 0;
  for (const dir of new Set(c.curation.pool.from)) {
    const unusable = (why: string): StudioError =>
      new StudioError(
        'config.invalid',
        `curation.pool.from: ${dir}: ${why}`,
        'List only intact run folders or collections in curation.pool.from, or leave this one out.',
      );
    const meta = await readMeta(dir).catch((e: unknown) => {
      throw unusable(existsSync(dir) ? toRunError(e).message : 'there is no such folder');
    });
    const reader = await RunReader.open(dir, { index });
    try {
      if (meta.collected) await addRates(reader, families, rates);
      for (const row of await reader.index.query(
        'SELECT rollout, family, override FROM pool WHERE enabled = 1 ORDER BY seq',
        [],
      )) {
        const family = String(row['family']);
        if (!families.has(family)) {
          otherFamilies.set(family, (otherFamilies.get(family) ?? 0) + 1);
          continue;
        }
        const t = await reader.readTrajectory(id<RolloutId>(String(row['rollout'])), { times: true });
        if (!t) throw unusable(`its pool names ${String(row['rollout'])}, which is not there`);
        const trajectory = externalTrajectory(t, meta);
        if (seen.has(trajectory.id)) {
          duplicates++;
          continue;
        }
        seen.add(trajectory.id);
        for (const f of framesOf(t))
          if ((await reader.frames.bytesOf(f.hash)) === undefined)
            throw unusable(`frame ${f.hash.slice(0, 12)} of ${t.id} is missing`);
        entries.push({
          trajectory,
          from: dir,
          override: typeof row['override'] === 'string' ? row['override'] : undefined,
        });
      }
    } catch (e) {
      throw e instanceof StudioError && e.kind === 'config.invalid' ? e : unusable(toRunError(e).message);
    } finally {
      await reader.close();
    }
  }
  return { entries, otherFamilies, duplicates, rates };
}

async function addRates(
  reader: RunReader,
  families: ReadonlySet<string>,
  rates: Map<string, { successes: number; failures: number }>,
): Promise<void> {
  const rows = await reader.index.query(JUDGED, []);
  for (const row of rows) {
    const family = String(row['family']);
    if (!families.has(family)) continue;
    const r = rates.get(family) ?? { successes: 0, failures: 0 };
    rates.set(family, r);
    r[row['outcome'] === 'success' ? 'successes' : 'failures'] += Number(row['c']);
  }
}

/**
 * Records them in the new run, frames first. Entries that an interrupted earlier start already recorded are skipped.
 * Returns a note on what joined, and why some did not.
 */
export async function joinPools(data: DataManager, intake: PoolIntake): Promise<string> {
  const there = new Set(
      (await data.store.index.query("SELECT id FROM rollouts WHERE id LIKE 'import/%'", [])).map((r) =>
        String(r['id']),
      ),
    ),
    refused = new Map<string, number>(),
    sources = new Map<string, PngFrameStore>();
  let joined = 0;
  for (const { trajectory: t, override, from } of intake.entries) {
    if (there.has(t.id)) {
      joined++;
      continue;
    }
    const source = sources.get(from) ?? new PngFrameStore(runPaths(from).frames);
    sources.set(from, source);
    await copyFrames(framesOf(t), { from, source }, data);
    const { pool } = await data.record(t, override === undefined ? 'auto' : { override });
    if (pool.pooled) joined++;
    else refused.set(pool.why ?? '', (refused.get(pool.why ?? '') ?? 0) + 1);
  }
  const otherFamilies = [...intake.otherFamilies.values()].reduce((a, b) => a + b, 0);
  if (intake.rates.size > 0) await seedRates(data, intake);
  // This event marks that all of them have joined.
  await data.note({
    type: 'metrics',
    source: 'pool-from',
    values: { entries: intake.entries.length, joined, otherFamilies, duplicates: intake.duplicates },
  });
  return [
    `Pool: ${joined} of ${intake.entries.length + otherFamilies} successes of other folders joined.`,
    ...(intake.duplicates > 0 ? [`${intake.duplicates} more were the same as others.`] : []),
    ...(intake.rates.size > 0
      ? [`Success rates of ${intake.rates.size} families are known from collected attempts.`]
      : []),
    ...[...refused].map(([why, n]) => `${n} stayed out: ${why}.`),
    ...(otherFamilies > 0
      ? [
          `${otherFamilies} are of task families this run does not train (${[...intake.otherFamilies.keys()].slice(0, 5).join(', ')}${intake.otherFamilies.size > 5 ? ', …' : ''}) and were left out.`,
        ]
      : []),
  ].join(' ');
}

/** Once: an interrupted earlier start may have done it. */
async function seedRates(data: DataManager, { rates }: PoolIntake): Promise<void> {
  const [there] = await data.store.index.query("SELECT 1 FROM events WHERE type = 'rates.seeded' LIMIT 1", []);
  if (!there) await data.note({ type: 'rates.seeded', families: Object.fromEntries(rates) });
}

const framesOf = (t: Trajectory): FrameRef[] => [
  ...new Map([...t.steps.map((s) => s.frame), ...(t.last ? [t.last] : [])].map((f) => [f.hash, f])).values(),
];

/**
 * The trajectory as this run stores it: its id is a hash of its content, and log-probs and versions of the other run's
 * policy are removed.
 */
function externalTrajectory({ group: _g, branch: _b, hindsight: _h, ...t }: Trajectory, meta: RunMeta): Trajectory {
  const steps = t.steps.map(unsampled),
    hash = new ContentHash();
  for (const s of steps) hash.step(s);
  const provenance: Provenance =
    t.provenance.kind === 'rollout' || t.provenance.kind === 'probe'
      ? { kind: 'imported', from: `run ${meta.id} ${t.id}` }
      : t.provenance;
  return { ...t, steps, provenance, id: id<RolloutId>(`import/${hash.end(t).slice(0, 20)}`) };
}

async function copyFrames(
  refs: readonly FrameRef[],
  { from, source }: { readonly from: string; readonly source: PngFrameStore },
  data: DataManager,
): Promise<void> {
  const todo = [...refs];
  const worker = async (): Promise<void> => {
    for (let f = todo.pop(); f; f = todo.pop()) {
      try {
        await data.store.frames.copyIn(f, source);
      } catch (e) {
        throw new StudioError(
          'store.io',
          `A frame could not be copied from ${from}: ${messageOf(e)}.`,
          'Free some space, check permissions, or leave the folder out of curation.pool.from; then resume the run.',
          { cause: e },
        );
      }
    }
  };
  await Promise.all(Array.from({ length: COPIES }, worker));
}
