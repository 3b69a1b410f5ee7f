import { writeFile } from 'node:fs/promises';
import { StudioError, orUndefined } from '../domain/index.js';
import { metricRows, runReport } from '../queries/runReport.js';
import { listRunFolders, runFolder } from '../run/runFolders.js';
import { rateText, sparkline } from '../domain/stats.js';
import type { Options } from './options.js';

export async function list(dir: string, o: Options): Promise<number> {
  const runs = await Promise.all(
    (await listRunFolders(dir)).map((d) => orUndefined(runReport(d), 'a folder that cannot be read is not listed')),
  );
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
  const s = await runReport(runFolder(dir, run));
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
  const rows = await metricRows(runFolder(dir, run)),
    text = file.endsWith('.json')
      ? JSON.stringify(rows, null, 1)
      : [
          'name,at,version,value',
          ...rows.map((x) => `${x.name},${String(x.at)},${String(x.version ?? '')},${String(x.value)}`),
        ].join('\n');
  await writeFile(file, text + '\n');
  process.stdout.write(`${rows.length} rows written to ${file}\n`);
  return 0;
}
