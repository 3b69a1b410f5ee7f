import { writeFile } from 'node:fs/promises';
import { StudioError } from '../domain/index.js';
import { RunReader } from '../data/store/runStore.js';
import { listRunFolders, runFolder } from '../data/runFolders.js';
import { rateText, sparkline } from '../domain/stats.js';
import type { Options } from './options.js';

type Row = Readonly<Record<string, unknown>>;
const n = (v: unknown): number => (typeof v === 'number' ? v : Number(v ?? 0));

interface Summary {
  readonly id: string;
  readonly dir: string;
  readonly createdAt: number;
  readonly name: string;
  readonly rollouts: number;
  readonly states: Readonly<Record<string, number>>;
  readonly retired: Readonly<Record<string, number>>;
  readonly evals: readonly {
    readonly label: string;
    readonly version: number;
    readonly episodes: number;
    readonly successes: number;
    readonly errors: number;
    readonly at: number;
  }[];
  readonly families: readonly {
    readonly family: string;
    readonly rollouts: number;
    readonly successes: number;
    readonly meanSteps: number;
  }[];
}

/** Counts, evaluations and success per family of one run; opens it read-only, beside a running writer too. */
export async function summarise(dir: string): Promise<Summary> {
  const run = await RunReader.open(dir, { index: 'local' });
  try {
    const q = (sql: string): Promise<readonly Row[]> => run.index.query(sql, []);
    const states = Object.fromEntries(
      (await q("SELECT state, count(*) AS c FROM rollouts WHERE provenance = 'rollout' GROUP BY state")).map((r) => [
        String(r['state']),
        n(r['c']),
      ]),
    );
    const retired = Object.fromEntries(
      (
        await q(
          "SELECT reason, count(*) AS c FROM rollouts WHERE provenance = 'rollout' AND state = 'retired' GROUP BY reason",
        )
      ).map((r) => [String(r['reason']), n(r['c'])]),
    );
    const evals = (await q('SELECT label, version, episodes, successes, errors, at FROM evals ORDER BY seq')).map(
      (r) => ({
        label: String(r['label'] ?? ''),
        version: n(r['version']),
        episodes: n(r['episodes']),
        successes: n(r['successes']),
        errors: n(r['errors']),
        at: n(r['at']),
      }),
    );
    const families = (
      await q(
        "SELECT family, count(*) AS c, sum(outcome = 'success') AS s, avg(steps) AS m FROM rollouts WHERE provenance = 'rollout' AND outcome IN ('success', 'failure') GROUP BY family ORDER BY family",
      )
    ).map((r) => ({ family: String(r['family']), rollouts: n(r['c']), successes: n(r['s']), meanSteps: n(r['m']) }));
    return {
      id: run.meta.id,
      dir,
      createdAt: run.meta.createdAt,
      name: run.meta.name ?? '',
      rollouts: Object.values(states).reduce((a, b) => a + b, 0),
      states,
      retired,
      evals,
      families,
    };
  } finally {
    await run.close();
  }
}

export async function list(dir: string, o: Options): Promise<number> {
  const runs = await Promise.all((await listRunFolders(dir)).map((d) => summarise(d).catch(() => undefined)));
  const rows = runs.filter((r) => r !== undefined);
  if (o['json']) process.stdout.write(JSON.stringify(rows, null, 2) + '\n');
  else if (rows.length === 0)
    process.stdout.write(`No runs in ${dir}. Start one: dart-studio train --preset quickstart\n`);
  else
    for (const r of rows) {
      const last = r.evals.at(-1);
      process.stdout.write(
        `${r.id.padEnd(36)} ${String(r.rollouts).padStart(6)} rollouts  ${last ? `${rateText(last.successes, last.episodes)} at v${last.version}` : 'not evaluated'}  ${sparkline(r.evals.map((e) => e.successes / Math.max(1, e.episodes)))}\n`,
      );
    }
  return 0;
}

export async function show(dir: string, run: string, o: Options): Promise<number> {
  const s = await summarise(runFolder(dir, run));
  if (o['json']) {
    process.stdout.write(JSON.stringify(s, null, 2) + '\n');
    return 0;
  }
  const inFlight = Object.entries(s.states)
    .filter(([k]) => k !== 'trained' && k !== 'retired')
    .reduce((a, [, v]) => a + v, 0);
  const lines = [
    `${s.id}  ${s.dir}`,
    `started ${new Date(s.createdAt).toISOString()}`,
    '',
    `rollouts  ${s.rollouts} generated = ${s.states['trained'] ?? 0} trained + ${inFlight} in flight + ${s.states['retired'] ?? 0} retired${
      Object.keys(s.retired).length
        ? ` (${Object.entries(s.retired)
            .map(([k, v]) => `${v} ${k}`)
            .join(', ')})`
        : ''
    }`,
    '',
    'evaluations (held-out seeds, greedy)',
    ...s.evals.map(
      (e) =>
        `  ${e.label.padEnd(18)} v${String(e.version).padEnd(5)} ${rateText(e.successes, e.episodes)} of ${e.episodes}${e.errors ? `, ${e.errors} errors` : ''}`,
    ),
    '',
    'training rollouts by family',
    ...s.families.map(
      (f) =>
        `  ${f.family.padEnd(28)} ${String(f.rollouts).padStart(5)}  ${rateText(f.successes, f.rollouts).padEnd(18)} ${f.meanSteps.toFixed(1)} steps`,
    ),
  ];
  process.stdout.write(lines.join('\n') + '\n');
  return 0;
}

/** All metrics of a run, long form: name, time, version, value. */
export async function exportMetrics(dir: string, run: string, file: string): Promise<number> {
  if (!/\.(csv|json)$/.test(file))
    throw new StudioError(
      'config.invalid',
      `${file}: the name must end in .csv or .json`,
      "Choose one of the two formats by the file's ending.",
    );
  const r = await RunReader.open(runFolder(dir, run), { index: 'local' });
  try {
    const rows = (await r.index.query(
      'SELECT name, at, version, value FROM metrics ORDER BY seq, name',
      [],
    )) as readonly Row[];
    const text = file.endsWith('.json')
      ? JSON.stringify(rows, null, 1)
      : [
          'name,at,version,value',
          ...rows.map(
            (x) => `${String(x['name'])},${String(x['at'])},${String(x['version'] ?? '')},${String(x['value'])}`,
          ),
        ].join('\n');
    await writeFile(file, text + '\n');
    process.stdout.write(`${rows.length} rows written to ${file}\n`);
  } finally {
    await r.close();
  }
  return 0;
}
