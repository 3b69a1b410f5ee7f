import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { StudioError, type TaskId } from '../domain/index.js';
import { rateText } from '../domain/stats.js';
import { RunReader } from '../data/store/runStore.js';
import { exportRun } from '../interchange/exporter.js';
import { onInterrupt, progressLine } from '../interchange/terminal.js';
import { blinded } from '../run/blindPolicy.js';
import type { AttemptRow } from '../run/collect/attempts.js';
import { measuredTasks } from '../run/collect/chosen.js';
import { collect, type CollectReport } from '../run/collect/collect.js';
import { actorOf, type Actor } from '../run/collect/policy.js';
import { resultsOf, type Results, type Tally } from '../run/collect/results.js';
import { thisBundle } from '../service/engines.js';
import { recordedView } from '../service/recordedView.js';
import { EVALUATION_SPLITS, type EvaluationSplit } from '../tasks/open.js';
import { actingOverrides } from './acting.js';
import { allowCluster, numberOption, textOption, type Options } from './options.js';

/** In the folder of results: the episodes as a run folder, and OSWorld's layout. */
const EPISODES = 'episodes',
  LAYOUT = 'pyautogui';

interface Report extends Results {
  readonly policy: string;
  readonly out: string;
  /** Folder of OSWorld's layout, which its tools read; undefined while there is no verdict. */
  readonly results: string | undefined;
  /** Task files that cannot run here. */
  readonly leftOut: number;
  readonly stopped: boolean;
  readonly tasks: readonly AttemptRow[];
}

/**
 * `evaluate --policy P --tasks T --out DIR`: what any model does on tasks, without a run. Ctrl-C stops, and the same
 * command goes on.
 */
export async function evaluatePolicy(o: Options): Promise<number> {
  const json = o['json'] === true,
    split = splitOf(o),
    episodes = numberOption(o, 'episodes') ?? 1,
    out = resolve(String(o['out'])),
    stop = onInterrupt('Stopping: what is measured stays. The same command goes on. Ctrl-C again to leave at once.'),
    line = progressLine(json);
  allowCluster(o);
  try {
    const actor = await actorOf(String(o['policy']), {
      model: textOption(o, 'model'),
      coordinates: textOption(o, 'coordinates'),
      version: numberOption(o, 'checkpoint', 0),
      over: await overrides(o),
      entry: thisBundle(),
      signal: stop.signal,
    });
    const ofFolder = actor.config.tasks.suite === 'folder',
      attempts = ofFolder ? episodes : 1;
    await mkdir(out, { recursive: true });
    const made = await collect({
      ...actor,
      policy: [actor.name, ...(o['sampled'] ? ['sampled'] : []), ...(o['blind'] ? ['screen blanked'] : [])].join(', '),
      name: nameOf(actor, o['blind'] === true),
      dir: join(out, EPISODES),
      attempts,
      stopAfter: Infinity,
      choose: measuredTasks(ofFolder ? 'heldout' : split, episodes),
      pooled: false,
      greedy: o['sampled'] !== true,
      control: o['blind'] === true ? blinded : undefined,
      entry: thisBundle(),
      signal: stop.signal,
      onProgress: (rows) => line.show(progress(rows, attempts)),
      onNote: (note) => {
        line.clear();
        process.stderr.write(`${note}\n`);
      },
    });
    line.clear();
    const report = await written(out, made, attempts, actor);
    process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : `${lines(report, o).join('\n')}\n`);
    return made.stopped ? 130 : 0;
  } finally {
    line.clear();
    stop.off();
  }
}

function splitOf(o: Options): EvaluationSplit {
  const wanted = String(o['split'] ?? 'heldout'),
    split = EVALUATION_SPLITS.find((s) => s === wanted);
  if (split) return split;
  throw new StudioError('config.invalid', `--split ${wanted}: unknown`, `Use ${EVALUATION_SPLITS.join(', ')}.`);
}
async function overrides(o: Options): Promise<Awaited<ReturnType<typeof actingOverrides>>> {
  const over = await actingOverrides(o),
    assets = textOption(o, 'assets');
  // Tasks that cannot be done are part of a benchmark; they are counted apart.
  return {
    ...over,
    tasks: { ...over.tasks, infeasible: true, ...(assets === undefined ? {} : { assets: resolve(assets) }) },
  };
}
/** Names the folder of its results, as OSWorld names it by the model. */
const nameOf = ({ config: { policy }, name, checkpoint }: Actor, blind: boolean): string =>
  [
    policy.vlm?.model ?? policy.openai?.model ?? name,
    ...(checkpoint ? [`v${checkpoint.version}`] : []),
    ...(blind ? ['blind'] : []),
  ]
    .join('-')
    .replace(/[^\w.-]+/g, '-')
    .replace(/^[^\w]+/, '')
    .slice(0, 100);

function progress(rows: readonly AttemptRow[], attempts: number): string {
  const { episodes, successes, open, infeasible } = resultsOf(rows, [], attempts);
  return `${episodes + infeasible.episodes} of ${episodes + infeasible.episodes + open} episodes · ${successes + infeasible.successes} successes`;
}

/** Writes what was measured in OSWorld's layout, and its sums; what stood there of an earlier part is replaced. */
async function written(out: string, made: CollectReport, attempts: number, actor: Actor): Promise<Report> {
  const run = await RunReader.open(made.dir, { index: thisBundle() }),
    rows = await run.index
      .query("SELECT task, reward, ended_at FROM rollouts WHERE outcome IN ('success', 'failure') ORDER BY born", [])
      .finally(() => run.close());
  const judged = rows.map((r) => ({
      task: String(r['task']) as TaskId,
      score: Number(r['reward'] ?? 0),
      at: Number(r['ended_at'] ?? 0),
    })),
    domains = new Map(made.tasks.map((t) => [t.task, t.domain])),
    layout = judged.length > 0 ? join(out, LAYOUT) : undefined;
  if (layout !== undefined) {
    const part = join(out, '.writing');
    await rm(part, { recursive: true, force: true });
    await exportRun(
      {
        run: made.dir,
        to: part,
        format: 'osworld',
        index: thisBundle(),
        options: { coordinates: 'qwen25' },
        domainOf: ({ task }) => domains.get(task),
      },
      recordedView,
    );
    await rm(layout, { recursive: true, force: true });
    await rename(join(part, LAYOUT), layout);
    await rm(part, { recursive: true, force: true });
  }
  const report: Report = {
    policy: actor.name,
    out,
    results: layout,
    ...resultsOf(made.tasks, judged, attempts),
    leftOut: made.leftOut,
    stopped: made.stopped,
    tasks: made.tasks,
  };
  await mkdir(join(out, 'summary'), { recursive: true });
  await writeFile(join(out, 'summary', 'results.json'), `${JSON.stringify(asOsworld(report, judged), null, 2)}\n`);
  await writeFile(join(out, 'results.json'), `${JSON.stringify(report, null, 2)}\n`);
  return report;
}
/** OSWorld's list of results. A task that was given up has no score. */
const asOsworld = (
  { tasks }: Report,
  judged: readonly { readonly task: TaskId; readonly score: number; readonly at: number }[],
): unknown[] =>
  tasks.flatMap((t) => [
    ...judged
      .filter((j) => j.task === t.task)
      .map((j) => ({
        application: t.domain,
        task_id: t.task,
        status: 'success',
        score: j.score,
        timestamp: new Date(j.at).toISOString().slice(0, 19).replace('T', ' '),
      })),
    ...(t.givenUp ? [{ application: t.domain, task_id: t.task, status: 'error' }] : []),
  ]);

function lines(r: Report, o: Options): string[] {
  const width = Math.max(11, ...Object.keys(r.domains).map((d) => d.length)),
    row = (name: string, t: Tally): string =>
      `  ${name.padEnd(width)} ${rateText(t.successes, t.episodes)} of ${t.episodes}, mean score ${(t.score ?? 0).toFixed(2)}${t.errors > 0 ? `, ${t.errors} errors` : ''}`;
  return [
    r.episodes === 0
      ? 'No episode has ended.'
      : `success ${rateText(r.successes, r.episodes)} of ${r.episodes} episodes, mean score ${r.score!.toFixed(2)}${r.errors > 0 ? `; ${r.errors} ended in errors and count as not solved` : ''}`,
    ...Object.entries(r.domains).map(([name, t]) => row(name, t)),
    ...(r.infeasible.episodes > 0 ? [row('infeasible', r.infeasible)] : []),
    ...(r.leftOut > 0
      ? [
          `${r.leftOut} task files cannot run here: \`dart-studio tasks check ${String(o['tasks'])}\` says what they need.`,
        ]
      : []),
    '',
    ...(r.results === undefined ? [] : [`In OSWorld's layout: ${r.results}`]),
    `To look at: ${join(r.out, EPISODES)}`,
    ...(r.stopped ? [`Stopped with ${r.open} episodes to come. The same command goes on.`] : []),
  ];
}
