/** Commands of the Experience Pool. */
import { commands as vscodeCommands } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import type { RunPath } from '../../runtime/protocol/types.js';
import type { HostError } from '../../webview/protocol.js';
import { wireError } from '../errorWords.js';
import { commands, views } from '../ids.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage, showInputBox, showWarningMessage } from '../toasts.js';
import { trajectoriesOf } from '../views/nodes.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { oneTrajectory } from './annotate.js';

type Ids =
  | typeof commands.openPool
  | typeof commands.addToPool
  | typeof commands.removeFromPool
  | typeof commands.enableInPool
  | typeof commands.disableInPool;

export const poolCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.openPool]: {
    doing: t('show the experience pool'),
    run: async () => {
      await vscodeCommands.executeCommand(`${views.pool}.focus`);
    },
  },
  [commands.addToPool]: { doing: t('add to the experience pool'), run: (arg, selected) => add(s, arg, selected) },
  [commands.removeFromPool]: {
    doing: t('remove from the experience pool'),
    run: (arg, selected) => remove(s, arg, selected),
  },
  [commands.enableInPool]: {
    doing: t('change the experience pool'),
    run: (arg, selected) => turn(s, arg, selected, true),
  },
  [commands.disableInPool]: {
    doing: t('change the experience pool'),
    run: (arg, selected) => turn(s, arg, selected, false),
  },
});

interface Chosen {
  readonly run: RunPath;
  readonly rollouts: readonly string[];
}
/** The trajectories that were clicked or selected, of one run; else the one shown, or a choice. */
async function chosen(s: StudioContext, arg: unknown, selected: unknown, title: string): Promise<Chosen | undefined> {
  s.requireEditing();
  await s.ensureRuntime();
  const many = trajectoriesOf(arg, selected),
    run = many[0]?.run;
  if (run !== undefined) return { run, rollouts: many.filter((x) => x.run === run).map((x) => x.rollout) };
  const inPool = s.trees.pool.view.selection.filter((n) => n.kind === 'poolEntry');
  if (inPool[0] && !s.activeHost) return { run: inPool[0].run, rollouts: inPool.map((n) => n.entry.rollout) };
  const one = await oneTrajectory(s, arg, title);
  return one && { run: one.run, rollouts: [one.rollout] };
}

/** A trajectory that the verifier did not confirm joins only with a reason, which is stored with the entry. */
async function add(s: StudioContext, arg: unknown, selected: unknown): Promise<void> {
  const c = await chosen(s, arg, selected, t('Add to Experience Pool'));
  if (!c) return;
  const unverified = await unverifiedOf(s, c);
  const override = unverified.size > 0 ? await askOverride(unverified.size) : undefined;
  if (unverified.size > 0 && override === undefined) return;
  const refused = await join(s, c, (rollout) => (unverified.has(rollout) ? override?.trim() : undefined));
  for (const r of refused) s.log.warn(`${r.message} ${r.remedy}`);
  const show = t('Show Pool'),
    words = joinedWords(c.rollouts, refused);
  const shown = refused.length === 0 ? showInformationMessage(words, show) : showWarningMessage(words, show);
  void shown.then((picked) => {
    if (picked === show) s.run(commands.openPool);
  });
}
async function unverifiedOf(s: StudioContext, c: Chosen): Promise<ReadonlySet<string>> {
  const unverified = new Set<string>();
  for (const rollout of c.rollouts) {
    const { row } = await s.client.request(methods.getTrajectory, { run: c.run, rollout });
    if (row.outcome !== 'success') unverified.add(rollout);
  }
  return unverified;
}
/** The reason for `count` trajectories that are no verified successes; undefined when it was dismissed. */
const askOverride = async (count: number): Promise<string | undefined> =>
  showInputBox({
    title: t('Add to Experience Pool'),
    prompt:
      count === 1
        ? t('The verifier did not confirm it as a success. Why does it belong in the pool?')
        : t('The verifier did not confirm {0} of them as successes. Why do they belong in the pool?', count),
    placeHolder: t('The reason is kept with the entry'),
    validateInput: (v) => (v.trim() === '' ? t('Enter a reason; policies will imitate this trajectory.') : undefined),
    ignoreFocusOut: true,
  });
/** Adds them one by one; returns why some may not join. */
async function join(
  s: StudioContext,
  { run, rollouts }: Chosen,
  overrideOf: (rollout: string) => string | undefined,
): Promise<readonly HostError[]> {
  const refused: HostError[] = [];
  for (const rollout of rollouts) {
    try {
      s.pool.take(run, await s.client.request(methods.addToPool, { run, rollout, override: overrideOf(rollout) }));
    } catch (e) {
      const why = wireError(e);
      // A refused trajectory does not stop the others; any other error does.
      if (why.kind !== 'params.invalid' || rollouts.length === 1) throw e;
      refused.push(why);
    }
  }
  return refused;
}
function joinedWords(rollouts: readonly string[], refused: readonly HostError[]): string {
  const joined = rollouts.length - refused.length,
    [first] = refused;
  if (rollouts.length === 1) return t('{0} is in the experience pool.', rollouts[0]!);
  return first
    ? t(
        '{0} of {1} trajectories are in the experience pool. {2} stayed out, the first because: {3} {4}',
        joined,
        rollouts.length,
        refused.length,
        first.message,
        first.remedy,
      )
    : t('{0} trajectories are in the experience pool.', joined);
}

async function remove(s: StudioContext, arg: unknown, selected: unknown): Promise<void> {
  const c = await chosen(s, arg, selected, t('Remove from Experience Pool'));
  if (!c) return;
  const reason = await showInputBox({
    title: t('Remove from Experience Pool'),
    prompt:
      c.rollouts.length === 1
        ? t('Why is {0} removed? The trajectory itself stays in the run.', c.rollouts[0]!)
        : t('Why are these {0} removed? The trajectories themselves stay in the run.', c.rollouts.length),
    value: t('removed by hand'),
    validateInput: (v) => (v.trim() === '' ? t('Enter a reason.') : undefined),
    ignoreFocusOut: true,
  });
  if (reason === undefined) return;
  s.pool.take(c.run, await s.client.request(methods.removeFromPool, { ...c, reason: reason.trim() }));
}

async function turn(s: StudioContext, arg: unknown, selected: unknown, enabled: boolean): Promise<void> {
  const c = await chosen(
    s,
    arg,
    selected,
    enabled ? t('Turn On in Experience Pool') : t('Turn Off in Experience Pool'),
  );
  if (c) await setPool(s, c.run, c.rollouts, enabled);
}
/** Also called by the check box. After a refusal the row is redrawn as it is. */
export async function setPool(
  s: StudioContext,
  run: RunPath,
  rollouts: readonly string[],
  enabled: boolean,
): Promise<void> {
  try {
    s.pool.take(run, await s.client.request(methods.setPool, { run, rollouts, enabled }));
  } finally {
    s.trees.pool.redraw();
  }
}
