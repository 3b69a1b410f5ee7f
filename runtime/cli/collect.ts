import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { RunFile } from '../config/index.js';
import { StudioError, isRunName } from '../domain/index.js';
import { rateText } from '../domain/stats.js';
import { onInterrupt, progressLine } from '../interchange/terminal.js';
import type { AttemptRow } from '../run/collect/attempts.js';
import { collect, type CollectReport } from '../run/collect/collect.js';
import { actorOf } from '../run/collect/policy.js';
import { thisBundle } from '../service/engines.js';
import { numberOption, type Options } from './options.js';

/** `collect --policy P --into NAME`: attempts of a model at tasks; Ctrl-C stops, and the same command goes on. */
export async function collectAttempts(o: Options): Promise<number> {
  const json = o['json'] === true,
    name = String(o['into']),
    stop = onInterrupt('Stopping: what is recorded stays. The same command goes on. Ctrl-C again to leave at once.'),
    line = progressLine(json),
    attempts = numberOption(o, 'attempts') ?? 1,
    stopAfter = numberOption(o, 'stopAfter') ?? attempts;
  if (!isRunName(name))
    throw new StudioError(
      'config.invalid',
      `--into ${name}: a name is letters, digits, spaces, '.', '_' and '-'`,
      'Choose another name.',
    );
  try {
    const actor = await actorOf(String(o['policy']), {
      model: text(o['model']),
      coordinates: text(o['coordinates']),
      version: numberOption(o, 'checkpoint', 0),
      over: overrides(o, stopAfter),
      entry: thisBundle(),
      signal: stop.signal,
    });
    const runs = resolve(String(o['runs'] ?? 'runs'));
    await mkdir(runs, { recursive: true });
    const report = await collect({
      ...actor,
      policy: actor.name,
      name,
      dir: resolve(runs, name),
      attempts,
      stopAfter,
      seeds: numberOption(o, 'seeds') ?? 1,
      entry: thisBundle(),
      signal: stop.signal,
      onProgress: (rows) => line.show(progress(rows, attempts)),
      onNote: (note) => {
        line.clear();
        process.stderr.write(`${note}\n`);
      },
    });
    line.clear();
    process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : `${lines(report).join('\n')}\n`);
    return report.stopped ? 130 : 0;
  } finally {
    line.clear();
    stop.off();
  }
}
const text = (v: Options[string]): string | undefined => (typeof v === 'string' ? v : undefined);

function overrides(o: Options, stopAfter: number): RunFile {
  const tasks = text(o['tasks']),
    families = text(o['families'])?.split(','),
    count = numberOption(o, 'desktops'),
    provider = o['provider'] as 'auto' | undefined,
    temperature = numberOption(o, 'temperature', 0.01),
    maxSteps = numberOption(o, 'maxSteps'),
    seed = numberOption(o, 'seed', 0);
  // Without an override its section must be absent: an empty one would hide a section of the wrong type in the file.
  return {
    ...(seed === undefined ? {} : { seed }),
    ...(tasks === undefined && families === undefined ? {} : { tasks: { ...sourceOf(tasks), families } }),
    ...(provider || count ? { desktops: { provider, count } } : {}),
    ...(temperature === undefined ? {} : { policy: { temperature } }),
    ...(maxSteps === undefined ? {} : { rollout: { maxSteps } }),
    // Every success may join; of those that act alike one does.
    curation: { pool: { enabled: true, addSuccesses: true, maxPerFamily: Math.max(16, stopAfter), from: [] } },
  };
}
function sourceOf(tasks: string | undefined): RunFile['tasks'] {
  if (tasks === undefined) return {};
  if (tasks === 'desk') return { suite: 'desk' };
  if (existsSync(tasks)) return { suite: 'folder', dir: resolve(tasks) };
  throw new StudioError(
    'config.invalid',
    `--tasks ${tasks}: there is no such folder, and no suite of that name.`,
    'Give a folder of OSWorld task files, or desk.',
  );
}

function progress(rows: readonly AttemptRow[], attempts: number): string {
  const verdicts = rows.reduce((n, t) => n + t.successes + t.failures, 0),
    solved = rows.filter((t) => t.successes > 0).length;
  return `${verdicts} attempts of at most ${rows.length * attempts} · ${solved} of ${rows.length} tasks solved`;
}

function lines(r: CollectReport): string[] {
  const width = Math.max(...r.tasks.map((t) => t.task.length)),
    row = (t: AttemptRow): string => {
      const n = t.successes + t.failures,
        said = n === 0 ? 'no verdict' : `${rateText(t.successes, n)} of ${n}`;
      return `  ${t.task.padEnd(width)} ${said}${t.givenUp ? ', given up: see the errors above' : ''}`;
    };
  return [
    ...r.tasks.map(row),
    '',
    `${r.attempts} attempts, ${r.successes} successes; ${r.pooled} unlike successes are in the pool of ${r.dir}.`,
    r.stopped
      ? 'Stopped. The same command goes on.'
      : 'In a run file: "curation": { "pool": { "from": ["…"] } } with this folder.',
  ];
}
