import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { RunFile } from '../config/index.js';
import { StudioError, isRunName } from '../domain/index.js';
import { rateText } from '../domain/stats.js';
import type { AttemptRow } from '../run/collect/attempts.js';
import { trainingTasks } from '../run/collect/chosen.js';
import { collect, type CollectReport } from '../run/collect/collect.js';
import { actorOf } from '../run/collect/policy.js';
import { thisBundle } from '../service/engines.js';
import { actingOverrides } from './acting.js';
import { countOption, textOption, type Options } from './options.js';
import { onInterrupt } from './interrupt.js';
import { print, printJson, statusLine, tell } from './output.js';

/** `collect --policy P --into NAME`: attempts of a model at tasks; Ctrl-C stops, and the same command goes on. */
export async function collectAttempts(o: Options): Promise<number> {
  const json = o['json'] === true,
    name = String(o['into']),
    stop = onInterrupt('Stopping: what is recorded is kept; the same command continues.'),
    line = statusLine(json),
    attempts = countOption(o, 'attempts') ?? 1,
    stopAfter = countOption(o, 'stopAfter') ?? attempts;
  if (!isRunName(name))
    throw new StudioError(
      'config.invalid',
      `--into ${name}: a name is letters, digits, spaces, '.', '_' and '-'`,
      'Choose another name.',
    );
  try {
    const actor = await actorOf(String(o['policy']), {
      model: textOption(o, 'model'),
      coordinates: textOption(o, 'coordinates'),
      version: countOption(o, 'checkpoint', 0),
      over: { ...(await actingOverrides(o)), ...poolOf(stopAfter) },
      chat: { maxTokens: countOption(o, 'maxTokens'), images: countOption(o, 'images') },
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
      choose: trainingTasks(countOption(o, 'seeds') ?? 1),
      measures: false,
      entry: thisBundle(),
      signal: stop.signal,
      onProgress: (rows) => line.show(progress(rows, attempts)),
      onNote: (note) => {
        line.clear();
        tell(`${note}\n`);
      },
    });
    line.clear();
    if (json) printJson(report);
    else print(`${lines(report).join('\n')}\n`);
    return report.stopped ? 130 : 0;
  } finally {
    line.clear();
    stop.off();
  }
}

/** Every success may join; of those that act alike one does. */
const poolOf = (stopAfter: number): RunFile => ({
  curation: { pool: { enabled: true, addSuccesses: true, maxPerFamily: Math.max(16, stopAfter), from: [] } },
});
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
    `${r.attempts} attempts, ${r.successes} successes; ${r.pooled} ${r.pooled === 1 ? 'success is' : 'successes are'} in the pool of ${r.dir}, without those that act alike.`,
    r.stopped
      ? 'Stopped. Run the same command to continue.'
      : 'In a run file: "curation": { "pool": { "from": ["…"] } } with this folder.',
  ];
}
