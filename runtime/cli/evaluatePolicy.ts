import { mkdir, readdir, rm } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import type { RunConfig, RunFile } from '../config/index.js';
import { StudioError } from '../domain/index.js';
import { shellWord } from '../foreign/shellQuoted.js';
import { intervalText } from '../domain/stats.js';
import { backendOf } from '../run/backends/index.js';
import { blinded } from '../run/blindPolicy.js';
import type { AttemptRow } from '../run/collect/attempts.js';
import { measuredTasks } from '../run/collect/chosen.js';
import { collect } from '../run/collect/collect.js';
import { actorOf, type Actor } from '../run/collect/policy.js';
import { endedOf, type Tally } from '../run/collect/results.js';
import type { EvaluationSplit } from '../run/evaluateCheckpoint.js';
import { thisBundle } from '../service/engines.js';
import { giveAssets } from '../tasks/index.js';
import { actingOverrides } from './acting.js';
import { EPISODES, writeResults, type Report } from './evaluationResults.js';
import { allowMachine, countOption, numberOption, refuseBeside, textOption, type Options } from './options.js';
import { onInterrupt } from './interrupt.js';
import { print, printJson, statusLine, tell } from './output.js';
import { setOption, skipOption, splitOption } from './split.js';

/** A step of a large model on a busy server, with its thought, s. */
const STEP_S = 60;

/**
 * `evaluate --policy P --tasks T --out DIR`: what any model does on tasks, without a run. Ctrl-C stops, and the same
 * command goes on. Exit code 1 when tasks were given up.
 */
export async function evaluatePolicy(o: Options): Promise<number> {
  const json = o['json'] === true,
    split = splitOption(o),
    episodes = countOption(o, 'episodes') ?? 1,
    out = resolve(String(o['out'])),
    stop = onInterrupt('Stopping: what is measured is kept; the same command continues.'),
    line = statusLine(json);
  allowMachine(o);
  try {
    const actor = await actorOf(String(o['policy']), {
        model: textOption(o, 'model'),
        coordinates: textOption(o, 'coordinates'),
        version: countOption(o, 'checkpoint', 0),
        over: await overrides(o),
        entry: thisBundle(),
        signal: stop.signal,
      }),
      config = withTime(actor.config, numberOption(o, 'taskTimeout')),
      ofFolder = config.tasks.suite === 'folder',
      attempts = ofFolder ? episodes : 1;
    if (!ofFolder)
      refuseBeside(o, ['assets'], `tasks of the suite ${config.tasks.suite}`, 'They download no files: leave it out.');
    else refuseBeside(o, ['skip'], 'a folder of tasks', 'It has each task once: name those to be measured.');
    await mayWrite(out, config);
    const made = await collect({
      ...actor,
      config,
      policy: inWords(actor, o, ofFolder ? undefined : split),
      name: nameOf(actor, o['blind'] === true),
      dir: join(out, EPISODES),
      attempts,
      stopAfter: Infinity,
      choose: measuredTasks(ofFolder ? 'heldout' : split, episodes, setOption(o), skipOption(o)),
      measures: true,
      asked: textOption(o, 'families') !== undefined,
      greedy: o['sampled'] !== true,
      control: o['blind'] === true ? blinded : undefined,
      entry: thisBundle(),
      signal: stop.signal,
      onProgress: (rows) => line.show(progress(rows, attempts)),
      onNote: (note) => {
        line.clear();
        tell(`${note}\n`);
      },
    });
    line.clear();
    const report = await writeResults(out, made, attempts, actor.name, ofFolder ? undefined : split);
    if (json) printJson(report);
    else print(`${lines(report, config).join('\n')}\n`);
    return made.stopped ? 130 : report.givenUp > 0 ? 1 : 0;
  } finally {
    line.clear();
    stop.off();
  }
}

/** Rejects unless the folder may be replaced: it must be of this command, or empty. */
async function mayWrite(out: string, { tasks }: RunConfig): Promise<void> {
  if (tasks.dir !== undefined && `${out}${sep}`.startsWith(`${resolve(tasks.dir)}${sep}`))
    throw new StudioError(
      'config.invalid',
      `${out} is in the folder of the tasks, where results would be taken for tasks.`,
      'Name a folder elsewhere with --out.',
    );
  await mkdir(out, { recursive: true });
  const there = (await readdir(out)).filter((f) => !f.startsWith('.'));
  if (there.length > 0 && !there.includes(EPISODES))
    throw new StudioError(
      'config.invalid',
      `${out} is not empty, and holds no results of this command.`,
      'Name a folder that does not exist yet, or one that this command created.',
    );
  // A part that was killed while it wrote.
  for (const f of await readdir(out))
    if (f.startsWith('.writing')) await rm(join(out, f), { recursive: true, force: true });
}
async function overrides(o: Options): Promise<RunFile> {
  const over = await actingOverrides(o),
    assets = textOption(o, 'assets');
  // Tasks that cannot be done are part of a benchmark; they are counted apart.
  return {
    ...over,
    tasks: { ...over.tasks, infeasible: true, ...(assets === undefined ? {} : { assets: giveAssets(assets) }) },
  };
}
/** A time limit is for what hangs: it must not cut off a slow model. */
const withTime = (c: RunConfig, given: number | undefined): RunConfig => ({
  ...c,
  rollout: {
    ...c.rollout,
    taskTimeoutS: given ?? Math.max(c.rollout.taskTimeoutS, STEP_S * c.rollout.maxSteps),
  },
});
/** The policy and how it acts: results of another go into another folder. */
const inWords = (actor: Actor, o: Options, split: EvaluationSplit | undefined): string =>
  [
    actor.name,
    ...(o['sampled'] ? ['sampled'] : []),
    ...(o['blind'] ? ['screen blanked'] : []),
    ...(split ? [`split ${split}`] : []),
    ...(split && setOption(o) === 'dev' ? ['tasks for tuning'] : []),
    ...(split && skipOption(o) ? [`without the first ${skipOption(o)} tasks of a family`] : []),
  ].join(', ');
/** Names the folder of its results, as OSWorld names it by the model. */
export const nameOf = ({ config, name, checkpoint }: Actor, blind: boolean): string =>
  [
    // The name of a run's policy ends with its version already.
    backendOf(config.policy.kind).model?.(config) ?? (checkpoint ? name.replace(/ v\d+$/, '') : name),
    ...(checkpoint ? [`v${checkpoint.version}`] : []),
    ...(blind ? ['blind'] : []),
  ]
    .join('-')
    .replace(/[^\w.-]+/g, '-')
    .replace(/^[^\w]+/, '')
    .slice(0, 100) || 'model';

function progress(rows: readonly AttemptRow[], attempts: number): string {
  const ended = rows.map((r) => endedOf(r, attempts)),
    made = ended.reduce((n, e) => n + e.episodes, 0),
    open = ended.reduce((n, e) => n + e.open, 0);
  return `${made} of ${made + open} episodes · ${rows.reduce((n, r) => n + r.successes, 0)} successes`;
}

/** Asks about the very folder, image and files that this command had. */
export const checkCommand = ({ tasks, desktops }: Pick<RunConfig, 'tasks' | 'desktops'>): string =>
  [
    'dart-studio tasks check',
    ...[
      tasks.dir ?? 'DIR',
      '--image',
      desktops.image,
      ...(tasks.assets === undefined ? [] : ['--assets', tasks.assets]),
    ].map(shellWord),
  ].join(' ');

function lines(r: Report, config: RunConfig): string[] {
  const width = Math.max(11, ...Object.keys(r.domains).map((d) => d.length)),
    errors = (n: number): string => (n > 0 ? `; ${n} ended in errors and count as not solved` : ''),
    row = (name: string, t: Tally): string =>
      `  ${name.padEnd(width)} ${t.episodes > 0 ? intervalText(t.successes / t.episodes, t.low, t.high) : 'no episodes'} of ${t.episodes}, mean score ${(t.score ?? 0).toFixed(2)}${errors(t.errors)}`;
  return [
    r.episodes === 0
      ? 'No episode has ended.'
      : `success ${intervalText(r.successes / r.episodes, r.low, r.high)} of ${r.episodes} episodes, mean score ${r.score!.toFixed(2)}${errors(r.errors)}`,
    ...Object.entries(r.domains).map(([name, t]) => row(name, t)),
    ...(r.infeasible.episodes > 0 ? [row('infeasible', r.infeasible)] : []),
    ...(r.retried > 0 ? [`${r.retried} episodes were cut short by an error of the environment and tried again.`] : []),
    ...(r.givenUp > 0
      ? [`${r.givenUp} tasks were given up: see the errors above. The same command tries them again.`]
      : []),
    ...(r.leftOut > 0
      ? [`${r.leftOut} task files cannot run here: \`${checkCommand(config)}\` says what they need.`]
      : []),
    ...r.notes,
    '',
    ...(r.results === undefined ? [] : [`In OSWorld's layout: ${r.results}`]),
    `To look at: ${join(r.out, EPISODES)}`,
    ...(r.stopped ? [`Stopped with ${r.open} episodes left. Run the same command to continue.`] : []),
  ];
}
