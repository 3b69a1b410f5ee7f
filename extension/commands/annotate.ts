/**
 * Annotations of a trajectory: Annotate, Replay and Verify, Review Trajectories…. The inspector and the runtime do the
 * work.
 */
import * as methods from '../../runtime/protocol/methods.js';
import type { Replay, RunPath } from '../../runtime/protocol/types.js';
import { commands } from '../ids.js';
import { outcomeWord } from '../model/filter.js';
import { Refused } from '../refused.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage, showWarningMessage } from '../toasts.js';
import { trajectoriesOf } from '../views/nodes.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { pickRun, pickTrajectory, runOf, working } from './ask.js';

type Ids = typeof commands.annotate | typeof commands.replay | typeof commands.reviewQueue;
export interface OneTrajectory {
  readonly run: RunPath;
  readonly rollout: string;
}

export const annotateCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.annotate]: { doing: t('annotate the trajectory'), run: (arg) => annotate(s, arg) },
  [commands.replay]: { doing: t('replay the trajectory'), run: (arg) => replay(s, arg) },
  [commands.reviewQueue]: { doing: t('review the trajectories'), run: (arg) => review(s, arg) },
});

/**
 * The trajectory that was clicked, the one shown, or a choice. One that is only a file cannot be annotated, because it
 * has no run to store annotations.
 */
export async function oneTrajectory(s: StudioContext, arg: unknown, title: string): Promise<OneTrajectory | undefined> {
  const [clicked] = trajectoriesOf(arg);
  if (clicked) return clicked;
  const shown = s.activeHost?.input;
  if (shown?.kind === 'inspector') {
    if (shown.run !== undefined) return { run: shown.run, rollout: shown.rollout };
    throw new Refused(
      'virtual',
      t('This trajectory is a file and belongs to no run.'),
      t('Use Import Trajectories… to make a run from such files; it can be annotated there.'),
    );
  }
  await s.ensureRuntime();
  const run = s.model.selected ?? (await pickRun(s, title));
  const row =
    run === undefined ? undefined : await pickTrajectory(s, run, title, { fits: (r) => r.outcome !== 'running' });
  return run === undefined || !row || row === 'file' ? undefined : { run, rollout: row.rollout };
}

async function annotate(s: StudioContext, arg: unknown): Promise<void> {
  s.requireEditing();
  const one = await oneTrajectory(s, arg, t('Annotate Trajectory'));
  if (one) s.panels.show({ kind: 'inspector', ...one, annotate: true });
}

async function replay(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTraining();
  const one = await oneTrajectory(s, arg, t('Replay and Verify'));
  if (!one) return;
  const { provider } = s.settings(one.run);
  const view = await working(t('Replaying {0}', one.rollout), async (say, signal) => {
    await s.ensureRuntime(signal);
    say.report({ message: t('starting a desktop and setting up the task') });
    let share = 0;
    const off = s.client.on(methods.replayProgress, (p) => {
      if (p.run !== one.run || p.rollout !== one.rollout) return;
      const now = p.step / Math.max(1, p.of);
      say.report({
        message: p.step >= p.of ? t('the verifier judges') : t('step {0} of {1}', p.step + 1, p.of),
        increment: 100 * Math.max(0, now - share),
      });
      share = Math.max(share, now);
    });
    try {
      return await s.client.request(
        methods.replayTrajectory,
        { ...one, provider: provider === 'auto' ? undefined : provider },
        signal,
      );
    } finally {
      off();
    }
  });
  const last = view.replays.at(-1);
  if (!last) return;
  const open = t('Open Replay'),
    buttons = last.rollout === undefined ? [] : [open];
  const picked = await (last.error
    ? showWarningMessage(replayWords(last), ...buttons)
    : showInformationMessage(replayWords(last), ...buttons));
  if (picked === open && last.rollout !== undefined)
    s.panels.show({ kind: 'inspector', run: one.run, rollout: last.rollout }, { beside: true });
}
export function replayWords(r: Replay): string {
  if (r.error) return t('The replay could not be judged. {0} {1}', r.error.message, r.error.remedy).trim();
  const verdict = t('Replayed: {0}.', r.outcome === undefined ? t('no verdict') : outcomeWord(r.outcome));
  return r.pooled
    ? `${verdict} ${t('It was added to the experience pool.')}`
    : r.why === undefined
      ? verdict
      : `${verdict} ${t('Not in the experience pool: {0}.', r.why.replace(/\.$/, ''))}`;
}

/** Opens the first trajectory of the queue; the page then continues with the next ones. */
async function review(s: StudioContext, arg: unknown): Promise<void> {
  s.requireEditing();
  await s.ensureRuntime();
  await s.model.loading;
  const run = runOf(arg) ?? s.model.selected ?? (await pickRun(s, t('Review Trajectories')));
  if (run === undefined) return;
  const queue = await s.client.request(methods.reviewQueue, { run, limit: 1 });
  s.reviewing(run, queue);
  const next = queue.items.find((i) => !i.reviewed);
  if (next) s.panels.show({ kind: 'inspector', run, rollout: next.row.rollout, annotate: true, queue: true });
  else
    void showInformationMessage(
      queue.reviewed > 0
        ? t('Everything is reviewed: {0} trajectories.', queue.reviewed)
        : t('No finished trajectory to review yet.'),
    );
}
