import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { StudioError, id, type RunId } from '../domain/index.js';
import { parseRunText, type RunConfig, type RunFile } from '../config/index.js';
import { thisBundle } from '../service/engines.js';
import { usedMinutes } from '../service/usedTime.js';
import {
  alertTargets,
  allowMachine,
  countOption,
  numberOption,
  refuseBeside,
  textOption,
  type Options,
} from './options.js';
import { withAlertsSent } from './alerts.js';
import { commitOf } from './checkout.js';
import { figuresFile } from './figuresFile.js';
import { mustTrain } from './mustTrain.js';
import { asCalled } from './called.js';
import { jsonReporter, terminalReporter, type Reporter } from '../run/reporter.js';
import { locate } from '../run/locate.js';
import { newRunId, runFolder, startedWith } from '../run/runFolders.js';
import { evaluationText, onTemplates } from '../domain/evaluationInterval.js';
import { percent, rateText } from '../domain/stats.js';
import { annotatedRollouts } from '../queries/annotated.js';
import { trainRun, type TrainResult } from '../run/trainRun.js';
import type { SessionPlan } from '../service/runSession.js';
import { onInterrupt } from './interrupt.js';
import { print, printJson, tell } from './output.js';

/** Trains in a daemon; `conclude` makes the exit code of the result. Resolves when windows can attach. */
export type TrainServed = (
  storage: string,
  plan: SessionPlan,
  o: { readonly alerts: ReturnType<typeof alertTargets>; conclude(r: TrainResult): Promise<number> },
) => Promise<void>;

/**
 * `train [run.json]`: a new run, or `--resume` of one; Ctrl-C ends it cleanly, a second Ctrl-C at once. `--serve`: in a
 * daemon, which is `served`'s.
 */
export async function train(file: string | undefined, o: Options, served: TrainServed): Promise<number> {
  allowMachine(o);
  const targets = alertTargets(o),
    deprecated: string[] = [],
    plan = await planOf(file, o, (note) => {
      deprecated.push(note);
    }),
    { config, dir, run } = plan,
    storage = textOption(o, 'serve'),
    figuresTo = await figuresFile(o),
    // Before the run: the checkout may move on while it trains.
    commit = o['figures'] === undefined ? undefined : await commitOf(thisBundle().file);
  const reporter = o['json'] ? jsonReporter(process.stdout) : terminalReporter(process.stderr, { words: asCalled });
  const begin = (): void => {
    for (const note of deprecated) reporter.note(note);
    reporter.note(`Run ${run} in ${dir}`);
  };
  if (storage !== undefined) {
    begin();
    const never = new AbortController().signal;
    await served(
      storage,
      { ...plan, reporter },
      { alerts: targets, conclude: (r) => concluded(plan, r, o, { reporter, commit, figuresTo, signal: never }) },
    );
    return 0;
  }
  const stop = onInterrupt('Stopping: running rollouts finish and a checkpoint is saved.', (text) =>
    reporter.note(text),
  );
  begin();
  try {
    const result = await withAlertsSent({ id: run, name: config.name }, { targets, reporter }, (told) =>
      trainRun({
        ...plan,
        entry: thisBundle(),
        reporter: told,
        signal: stop.signal,
        annotated: () => annotatedRollouts(dir),
      }),
    );
    return await concluded(plan, result, o, { reporter, commit, figuresTo, signal: stop.signal });
  } finally {
    stop.off();
  }
}

type Plan = Pick<SessionPlan, 'config' | 'dir' | 'run' | 'resume' | 'alone'>;
/** The run to train, and its folder. Throws `config.invalid`. */
async function planOf(file: string | undefined, o: Options, deprecated: (note: string) => void): Promise<Plan> {
  const over = overrides(o);
  let config: RunConfig, dir: string, run: RunId;
  const more = numberOption(o, 'moreMinutes', 0.01);
  if (more !== undefined && (o['resume'] === undefined || o['minutes'] !== undefined))
    throw new StudioError(
      'config.invalid',
      '--more-minutes needs --resume, and no --minutes beside it.',
      'Give a new run its time with --minutes.',
    );
  const resume = typeof o['resume'] === 'string';
  if (resume) {
    if (file)
      throw new StudioError(
        'config.invalid',
        'A run file and --resume cannot be used together.',
        'Leave the run file out: a resumed run continues with its own.',
      );
    refuseBeside(
      o,
      ['preset', 'seed'],
      '--resume',
      'A resumed run goes on with its own run file and seed: leave it out.',
    );
    dir = runFolder(String(o['runs'] ?? 'runs'), String(o['resume']));
    ({ config, run } = await startedWith(dir, over));
    await mustTrain(dir, config);
    if (more !== undefined) config = { ...config, budget: { minutes: more + (await usedMinutes(dir)) } };
  } else {
    const preset = (o['preset'] ?? (file ? undefined : 'quickstart')) as RunFile['preset'];
    const text =
      file === undefined
        ? '{}'
        : await readFile(file, 'utf8').catch((e: Error) => {
            throw new StudioError(
              'config.invalid',
              `${file} cannot be read: ${e.message}`,
              'Give an existing run file, or --preset quickstart.',
            );
          });
    config = parseRunText(text, file ?? 'the preset', { preset, ...over }, deprecated);
    run = id<RunId>(newRunId(config.store.dir, config.name, config.seed, new Date()));
    dir = resolve(config.store.dir, run);
    const beside = [...(file === undefined ? [] : [dirname(resolve(file))]), process.cwd()];
    config = locate(config, beside, resolve(config.store.dir));
  }
  return { config, dir, run, resume, alone: more !== undefined };
}

/** Says what came of a run, measures it where that was asked for, and gives the exit code. */
async function concluded(
  { config, dir, run }: Plan,
  result: TrainResult,
  o: Options,
  by: {
    readonly reporter: Reporter;
    readonly commit: string | undefined;
    /** Another file for the figures. */
    readonly figuresTo: string | undefined;
    readonly signal: AbortSignal;
  },
): Promise<number> {
  report(dir, run, result, { json: o['json'] === true, ofFolder: config.tasks.suite === 'folder' });
  if (o['figures'] !== undefined && result.stopped === 'budget' && result.version > 0)
    await figures({
      dir,
      run,
      config,
      result,
      o,
      commit: by.commit,
      to: by.figuresTo,
      note: (text) => by.reporter.note(text),
      signal: by.signal,
    });
  return result.stopped === 'signal' ? 130 : 0;
}

/** `--figures [FILE]`: measures the policy on everything held out; the run folder gets figures.json and report.html. */
async function figures(r: {
  readonly dir: string;
  readonly run: RunId;
  readonly config: RunConfig;
  readonly result: TrainResult;
  readonly o: Options;
  readonly commit: string | undefined;
  readonly to: string | undefined;
  readonly note: (text: string) => void;
  readonly signal: AbortSignal;
}): Promise<void> {
  const [{ measureRun, writeFigures }, { rowName }, { writeReport }] = await Promise.all([
      import('../run/figures.js'),
      import('../share/figures.js'),
      import('../service/sharedPages.js'),
    ]),
    entry = thisBundle();
  r.note(
    r.config.tasks.suite === 'folder'
      ? 'Measuring tasks that are trained (a folder has none held out), with a blank screen too.'
      : 'Measuring what is held out: arrangements, words, pairs, looks, near-duplicates, templates, each with a blank screen too, and a choice at random.',
  );
  const f = await measureRun({
    dir: r.dir,
    run: r.run,
    config: r.config,
    points: r.result.points,
    minutes: r.config.budget.minutes ?? 0,
    commit: r.commit,
    entry,
    signal: r.signal,
    onNote: r.note,
    provider: r.o['provider'] as 'auto' | undefined,
  });
  const text = await writeFigures(r.dir, f),
    page = await writeReport(r.dir, entry, f);
  if (r.to !== undefined) await writeFile(r.to, text);
  const shown = [
    '',
    'Success of the trained policy, with 95 % intervals',
    ...f.rows.map(
      (x) => `  ${rowName(x).padEnd(58)} ${evaluationText(x.split, x)} of ${x.episodes}${onTemplates(x.split, x)}`,
    ),
    ...(f.failures_removed_by_rl === null
      ? []
      : [`  failures of imitation that reinforcement learning removed: ${percent(f.failures_removed_by_rl)}`]),
    '',
    `report       ${page}`,
  ];
  (r.o['json'] === true ? tell : print)(`${shown.join('\n')}\n`);
}

function overrides(o: Options): RunFile {
  const seed = countOption(o, 'seed', 0),
    minutes = numberOption(o, 'minutes', 0.01),
    desktops = countOption(o, 'desktops');
  // Without an override its section must be absent: an empty one would hide a section of the wrong type in the file.
  return {
    seed,
    ...(minutes === undefined ? {} : { budget: { minutes } }),
    ...(o['provider'] || desktops
      ? {
          desktops: { provider: o['provider'] as 'auto' | undefined, count: desktops },
        }
      : {}),
    ...(typeof o['runs'] === 'string' ? { store: { dir: o['runs'] } } : {}),
  };
}

/** Prints what came of a run. */
export function report(
  dir: string,
  run: string,
  r: TrainResult,
  o: { readonly json: boolean; readonly ofFolder: boolean },
): void {
  if (o.json) {
    printJson({ type: 'result', run, dir, ...r }, 0);
    return;
  }
  // Commands that can be copied: with the folder when the run is not in the default place.
  const name = dirname(dir) === resolve('runs') ? run : dir;
  const on = o.ofFolder ? 'tasks that are trained (a folder has none held out)' : 'the evaluation tasks',
    out = r.points.length > 0 ? ['', `Success on ${on}, greedy, with 95 % intervals`] : [];
  for (const p of r.points)
    out.push(
      `  ${p.label.padEnd(14)} v${String(p.version).padEnd(5)} ${rateText(p.successes, p.episodes)} of ${p.episodes}`,
    );
  const [first, warm, last] = [
    r.points[0],
    r.points.find((p) => p.label === 'warm start'),
    r.points.findLast((p) => p.label === 'final'),
  ];
  // One evaluation alone says nothing of a gain.
  if (first && last && first !== last) {
    const points = (a: { successes: number; episodes: number }, b: { successes: number; episodes: number }): string =>
      `${Math.round(100 * (b.successes / b.episodes - a.successes / a.episodes))} points`;
    out.push(
      `  gained: ${points(first, last)} in all${warm ? `, ${points(warm, last)} of them by reinforcement learning` : ''}`,
    );
  }
  const families = Object.entries(last?.perFamily ?? {});
  if (families.length > 0) {
    out.push('', 'last evaluation by family');
    for (const [f, x] of families) out.push(`  ${f.padEnd(24)} ${rateText(x.successes, x.episodes)}`);
  }
  // A run stopped before its first lesson ended has no policy yet.
  const policy = join(dir, 'checkpoints', `v${String(r.version).padStart(6, '0')}`, 'policy.onnx');
  out.push(
    '',
    `run folder   ${dir}`,
    ...(existsSync(policy) ? [`policy       ${policy}`] : []),
    `look at it   dart-studio runs show ${name}`,
    r.stopped === 'signal'
      ? `go on        dart-studio train --resume ${name}`
      : `train longer dart-studio train --resume ${name} --more-minutes 40`,
  );
  print(asCalled(out.join('\n') + '\n'));
}
