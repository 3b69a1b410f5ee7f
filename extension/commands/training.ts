/** Commands that change an active run, resume an ended one, or evaluate one. */
import * as methods from '../../runtime/protocol/methods.js';
import type { Params } from '../../runtime/protocol/requests.js';
import type { EvalPoint, RunPath } from '../../runtime/protocol/types.js';
import { commands } from '../ids.js';
import { isListed } from '../model/roots.js';
import type { ListedRun } from '../model/savedRuns.js';
import { isActive } from '../model/studioModel.js';
import { settings } from '../settings.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage } from '../toasts.js';
import { nodeOf } from '../views/nodes.js';
import { percent, t } from '../words.js';
import type { Actions } from './action.js';
import { choose, pickRun, runOf, working } from './ask.js';
import { duplicateRun, newRunFile, openRunFile } from './runFile.js';
import { keepListed, underWay } from './startTraining.js';

type Ids =
  | typeof commands.stopTraining
  | typeof commands.pause
  | typeof commands.resume
  | typeof commands.resumeRun
  | typeof commands.newRunFile
  | typeof commands.openRunFile
  | typeof commands.duplicateRun
  | typeof commands.evaluate;

export const trainingCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.stopTraining]: { doing: t('stop training'), run: (arg) => stop(s, arg) },
  [commands.pause]: {
    doing: t('pause training'),
    run: async (arg) => {
      const run = await activeRun(s, arg);
      if (run !== undefined) await s.client.request(methods.pauseRun, { run });
    },
  },
  [commands.resume]: {
    doing: t('resume training'),
    run: async (arg) => {
      const run = await activeRun(s, arg);
      if (run !== undefined) await s.client.request(methods.unpauseRun, { run });
    },
  },
  [commands.resumeRun]: { doing: t('resume the run'), run: (arg) => resumeRun(s, arg) },
  [commands.newRunFile]: {
    doing: t('make a run file'),
    run: async () => {
      s.requireTraining();
      await newRunFile(s);
    },
  },
  [commands.openRunFile]: { doing: t('open the run file'), run: (arg) => openRunFile(s, arg) },
  [commands.duplicateRun]: { doing: t('duplicate the run'), run: (arg) => duplicateRun(s, arg) },
  [commands.evaluate]: { doing: t('evaluate the checkpoint'), run: (arg) => evaluate(s, arg) },
});

/** The active run; tells the user when there is none. */
async function activeRun(s: StudioContext, arg: unknown): Promise<RunPath | undefined> {
  s.requireTrust();
  await s.attach();
  await s.model.loading;
  const named = runOf(arg),
    run = named !== undefined && s.model.runs.some((r) => r.run === named && isActive(r)) ? named : s.model.active?.run;
  if (run === undefined) void showInformationMessage(t('No run is active.'));
  return run;
}

/** A second stop does not wait for the rollouts that are running. */
async function stop(s: StudioContext, arg: unknown): Promise<void> {
  const run = await activeRun(s, arg);
  if (run === undefined) return;
  const now = s.model.summary(run)?.state === 'stopping' || s.stopping.has(run);
  const end = (): Promise<unknown> => s.client.request(methods.stopRun, { run, now: now || undefined });
  if (now) {
    await end();
    return;
  }
  s.stopping.add(run);
  try {
    await working(
      t('Stopping training'),
      async (say) => {
        say.report({ message: t('rollouts end, a checkpoint is written') });
        return end();
      },
      { cancellable: false, log: false },
    );
  } finally {
    s.stopping.delete(run);
  }
}

/** Collections, and runs whose checkpoints are gone, have no policy that could go on or be evaluated. */
function refuseWithoutPolicy(s: StudioContext, run: RunPath): boolean {
  const { collection, weightless } = s.model.summary(run) ?? {};
  if (collection)
    void showInformationMessage(
      t('This is a collection of trajectories: nothing was trained in it, so there is nothing to resume or evaluate.'),
    );
  else if (weightless)
    void showInformationMessage(
      t('None of the checkpoints of this run is left, so it cannot be resumed or evaluated.'),
    );
  return Boolean(collection || weightless);
}
const hasPolicy = (r: ListedRun): boolean => !r.damaged && !r.collection && !r.weightless;
async function resumeRun(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTraining();
  const run =
    runOf(arg) ??
    (await pickRun(
      s,
      t('Resume Run'),
      (r) => !isActive(r) && r.state !== 'elsewhere' && hasPolicy(r),
      t('No run to resume.'),
    ));
  if (run === undefined || refuseWithoutPolicy(s, run)) return;
  // A run that used its budget has no rest.
  const rest = s.model.summary(run)?.state !== 'finished';
  const more = await choose(
    t('Resume Run'),
    [
      ...(rest ? [{ label: t('The rest of its budget'), detail: t('As set in its run file'), value: 0 }] : []),
      ...[10, 20, 60, 240].map((value) => ({
        label: t('{0} more minutes', value),
        detail: t('From now on, regardless of what it has used'),
        value,
      })),
    ],
    t('For how long?'),
  );
  if (more === undefined) return;
  await working(t('Resuming the run'), async (say, signal) => {
    await s.ensureRuntime(signal);
    const r = await s.client.request(methods.resumeRun, { run, more: more > 0 ? more : undefined });
    // Alone: its folder may be that of another workspace.
    if (!isListed(s.roots(), r.run)) await keepListed(s, r.run);
    await s.model.started(r.run);
    if (settings.openDashboardOnStart && !signal.aborted) s.panels.show({ kind: 'dashboard', run: r.run });
    await underWay(s, r.run, (message) => say.report({ message }), signal);
  });
}

async function evaluate(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTraining();
  const node = nodeOf(arg, 'checkpoint'),
    run =
      runOf(arg) ??
      (await pickRun(
        s,
        t('Evaluate Checkpoint'),
        (r) => !isActive(r) && hasPolicy(r),
        t('No run to evaluate. Active runs are evaluated automatically.'),
      ));
  if (run === undefined || refuseWithoutPolicy(s, run)) return;
  await s.ensureRuntime();
  const version = node?.version ?? (await pickCheckpoint(s, run));
  if (version === undefined) return;
  const split = await pickSplit(version);
  if (split === undefined) return;
  const point = await evaluated(s, run, version, split);
  await s.model.reload();
  const open = t('Open Dashboard');
  void showInformationMessage(evalWords(version, point), open).then((picked) => {
    if (picked === open) s.panels.show({ kind: 'dashboard', run });
  });
}
type EvaluationSplit = NonNullable<Params<'run/evaluate'>['split']>;
/** The tasks that it is evaluated on. */
const pickSplit = (version: number): Promise<EvaluationSplit | undefined> =>
  choose(t('Evaluate Checkpoint {0}', version), [
    {
      label: t('Other arrangements'),
      detail: t('Training words on other screens'),
      value: 'heldout',
    },
    {
      label: t('Unseen words and numbers'),
      detail: t('Training templates with words that no training task has'),
      value: 'words',
    },
    {
      label: t('Unseen pairs of words'),
      detail: t('Training words in pairs that no training task has'),
      value: 'pairs',
    },
    {
      label: t('Other looks'),
      detail: t('Themes, fonts and window positions that training does not have'),
      value: 'looks',
    },
    {
      label: t('Near-duplicates'),
      detail: t('Unseen words among others that differ by one letter'),
      value: 'near',
    },
    {
      label: t('Held-out templates'),
      detail: t('Task templates that were never trained on'),
      value: 'templates',
    },
    {
      label: t('Fresh templates'),
      detail: t('Held-out templates that were not considered when the training templates were chosen'),
      value: 'fresh',
    },
    { label: t('Training seeds'), value: 'train' },
  ]);
/** Says how far it is while it goes on. */
function evaluated(s: StudioContext, run: string, version: number, split: EvaluationSplit): Promise<EvalPoint> {
  const { provider } = s.settings(run);
  return working(t('Evaluating checkpoint {0}', version), async (say, signal) => {
    let share = 0;
    const off = s.client.on(methods.evaluateProgress, (p) => {
      if (p.run !== run) return;
      say.report({
        message: p.diskFull
          ? t('The disk is full: episodes wait until space is available')
          : t('{0} of {1} episodes, {2} succeeded', p.done, p.episodes, p.successes),
        increment: 100 * (p.done / Math.max(1, p.episodes) - share),
      });
      share = p.done / Math.max(1, p.episodes);
    });
    try {
      return await s.client.request(
        methods.evaluate,
        { run, version, split, provider: provider === 'auto' ? undefined : provider },
        signal,
      );
    } finally {
      off();
    }
  });
}
const evalWords = (version: number, p: EvalPoint): string =>
  p.episodes === 0
    ? t('Checkpoint {0}: no episode could be judged.', version)
    : t(
        'Checkpoint {0}: {1} of {2} episodes succeeded ({3}, 95 % interval {4} to {5}).',
        version,
        p.successes,
        p.episodes,
        percent(p.successes / p.episodes),
        percent(p.low),
        percent(p.high),
      );

async function pickCheckpoint(s: StudioContext, run: RunPath): Promise<number | undefined> {
  const { checkpoints } = await s.client.request(methods.getRun, { run });
  if (checkpoints.length === 0) {
    void showInformationMessage(t('This run has no checkpoint.'));
    return undefined;
  }
  return choose(
    t('Evaluate Checkpoint'),
    [...checkpoints]
      .sort((a, b) => b.version - a.version)
      .map((c, i) => ({
        label: t('Checkpoint {0}', c.version),
        description: i === 0 ? t('newest') : '',
        detail: c.path,
        value: c.version,
      })),
  );
}
