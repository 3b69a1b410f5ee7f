/**
 * A person at a desktop: Record Demonstration…, Take Over, Step Through, and the way back to a session that is open.
 */
import { basename } from 'node:path';
import { QuickPickItemKind, ThemeIcon, window, type QuickPickItem } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import { nameOfTask } from '../../runtime/protocol/shared.js';
import type { ControlState, DesktopRow, RecordParams, RunPath, TaskRow } from '../../runtime/protocol/types.js';
import { commands } from '../ids.js';
import { asksOf, groupWord, recordGroup, recordOrder, recordWords, type RecordGroup } from '../model/recordTasks.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage } from '../toasts.js';
import { nodeOf } from '../views/nodes.js';
import { heldWord, workWord } from '../views/rows.js';
import { runStateWord } from '../views/runRows.js';
import { span, t } from '../words.js';
import type { Actions } from './action.js';
import { choose, runOf, working } from './ask.js';
import { asked } from './asked.js';
import { showTry } from './tryPolicy.js';

type Ids =
  | typeof commands.recordDemonstration
  | typeof commands.showSession
  | typeof commands.takeOver
  | typeof commands.stepThrough;

export const recordCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.recordDemonstration]: { doing: t('record a demonstration'), run: (arg) => record(s, arg) },
  [commands.showSession]: { doing: t('show the desktop'), run: (arg) => showSession(s, arg) },
  [commands.takeOver]: { doing: t('take over the desktop'), run: (arg) => takeOver(s, arg, 'human') },
  [commands.stepThrough]: { doing: t('step through the rollout'), run: (arg) => takeOver(s, arg, 'step') },
});

/** Where a demonstration is stored: a run, or the collection of the runs folder. */
type Target = { readonly run: RunPath; readonly name: string } | { readonly collection: true };

async function record(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTraining();
  await s.ensureRuntime();
  await s.model.loading;
  const of = nodeOf(arg, 'task', 'poolFamily', 'poolMissing'),
    named = of?.kind === 'task' ? of.row.family : of?.family.family;
  // A page names the run it keeps to.
  const first = runOf(arg) ?? s.model.active?.run ?? s.model.selected;
  let target = targetOf(s, first),
    family = named;
  while (family === undefined) {
    const picked = await pickTask(s, target);
    if (picked === undefined) return;
    if (picked !== 'elsewhere') {
      family = picked;
      break;
    }
    target = (await pickTarget(s)) ?? target;
  }
  const { provider } = s.settings('run' in target ? target.run : undefined);
  const params: RecordParams = {
    family,
    ...('run' in target ? { run: target.run } : { base: s.home() }),
    provider: provider === 'auto' ? undefined : provider,
  };
  const state = await working(t('Recording a demonstration of {0}', family), async (say, signal) => {
    say.report({ message: t('starting a desktop and setting up the task') });
    return s.client.request(methods.recordDemonstration, params, signal);
  });
  await present(s, state);
  if (!s.model.summary(state.run)) await s.model.reload();
}

const targetOf = (s: StudioContext, run: RunPath | undefined): Target => {
  const summary = s.model.summary(run);
  // A run that another program writes, or that is damaged, cannot store anything.
  return summary && !summary.damaged && summary.state !== 'elsewhere'
    ? { run: summary.run, name: summary.name || basename(summary.run) }
    : { collection: true };
};
const targetName = (o: Target): string => ('run' in o ? o.name : t('the collection "demonstrations"'));

/** The family; `elsewhere`: it is to be kept somewhere else. */
async function pickTask(s: StudioContext, target: Target): Promise<string | 'elsewhere' | undefined> {
  type Item = QuickPickItem & { readonly family?: string };
  const pick = window.createQuickPick<Item>(),
    elsewhere = { iconPath: new ThemeIcon('folder'), tooltip: t('Save to Another Location…') };
  pick.title = t('Record Demonstration');
  pick.placeholder = t('Choose a task. The demonstration is saved in {0}.', targetName(target));
  pick.matchOnDescription = pick.matchOnDetail = true;
  pick.buttons = [elsewhere];
  pick.busy = true;
  const load = async (): Promise<void> => {
    const { tasks } = await s.client.request(
      methods.listTasks,
      'run' in target ? { run: target.run, runnable: true } : {},
    );
    pick.items = taskItems(tasks);
    if (tasks.length === 0) pick.placeholder = t('{0} has no tasks.', targetName(target));
    pick.busy = false;
  };
  return asked<string, Item>(pick, (answer) => {
    pick.onDidTriggerButton(() => {
      answer('elsewhere');
    });
    pick.onDidAccept(() => {
      const family = pick.selectedItems[0]?.family;
      if (family !== undefined) answer(family);
    });
    load().catch((e: unknown) => {
      answer(Promise.reject(e));
    });
  });
}
const groupIcons: Readonly<Record<RecordGroup, string>> = {
  unsolved: 'target',
  untried: 'circle-large-outline',
  solved: 'circle-large-filled',
  last: 'circle-slash',
};
function taskItems(tasks: readonly TaskRow[]): (QuickPickItem & { readonly family?: string })[] {
  let group: RecordGroup | undefined;
  return recordOrder(tasks).flatMap((k) => {
    const g = recordGroup(k),
      heading = g === group ? [] : [{ label: groupWord(g), kind: QuickPickItemKind.Separator }];
    group = g;
    return [
      ...heading,
      {
        label: `$(${groupIcons[g]}) ${nameOfTask(k)}`,
        description: recordWords(k),
        detail: asksOf(k) === '' ? undefined : asksOf(k),
        family: k.family,
      },
    ];
  });
}
async function pickTarget(s: StudioContext): Promise<Target | undefined> {
  const runs = s.model.runs.filter((r) => !r.damaged && r.state !== 'elsewhere');
  return choose<Target>(t('Save the Demonstration to'), [
    {
      label: `$(library) ${t('The collection "demonstrations"')}`,
      detail: t('A separate run folder beside the others; runs can start from it'),
      value: { collection: true },
    },
    ...runs.map((r) => ({
      label: `$(folder) ${r.name || basename(r.run)}`,
      description: runStateWord(r.state),
      detail: r.run,
      value: { run: r.run, name: r.name || basename(r.run) },
    })),
  ]);
}

/** The page in which a person acts. */
export async function present(s: StudioContext, state: ControlState): Promise<void> {
  s.sessions.adopt(state);
  if (state.purpose === 'try') await showTry(s, { desktop: state.desktop, session: state.session });
  else s.panels.show({ kind: 'live', desktop: state.desktop, session: state.session });
}

async function showSession(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTrust();
  const desktop = nodeOf(arg, 'desktop')?.row.desktop,
    open = s.sessions.open;
  const named =
    typeof arg === 'string' ? s.sessions.get(arg) : desktop === undefined ? undefined : s.sessions.of(desktop);
  const state =
    named ??
    (open.length <= 1
      ? open[0]
      : await choose(
          t('Show Controlled Desktop'),
          open.map((x) => ({ label: x.task, description: heldWord(x), detail: x.instruction, value: x })),
        ));
  if (state) await present(s, state);
  else if (open.length === 0)
    void showInformationMessage(t('No demonstration is being recorded and no rollout is taken over.'));
}

async function takeOver(s: StudioContext, arg: unknown, mode: 'human' | 'step'): Promise<void> {
  s.requireTrust();
  const title = mode === 'human' ? t('Take Over Rollout') : t('Step Through Rollout');
  const desktop =
    typeof arg === 'string' && arg !== ''
      ? arg
      : (nodeOf(arg, 'desktop')?.row.desktop ?? shownDesktop(s) ?? (await pickDesktop(s, title)));
  if (desktop === undefined) return;
  const held = s.sessions.of(desktop);
  // This window already has the session: the other mode is a change of mode, not a second session.
  const state = held
    ? held.purpose === 'record' || held.mode === mode
      ? held
      : await s.client.request(methods.setControlMode, { session: held.session, mode })
    : await working(title, async (say, signal) => {
        say.report({ message: t('waiting for the current step to end') });
        return s.client.request(methods.takeOver, { desktop, mode }, signal);
      });
  await present(s, state);
}
/** The desktop of the page that has the focus. */
const shownDesktop = (s: StudioContext): string | undefined => {
  const i = s.activeHost?.input;
  return i?.kind === 'live' ? i.desktop : undefined;
};
async function pickDesktop(s: StudioContext, title: string): Promise<string | undefined> {
  await s.attach();
  const rows: readonly DesktopRow[] =
    s.client.state === 'ready'
      ? (await s.client.request(methods.listDesktops, {})).desktops.filter((d) => d.rollout !== undefined)
      : [];
  if (rows.length === 0) {
    void showInformationMessage(t('No rollout is running. Start training first, or record a demonstration.'));
    return undefined;
  }
  return choose(
    title,
    rows.map((d) => ({
      label: d.desktop,
      description: [workWord(d.state), d.task ?? ''].filter((x) => x !== '').join(' · '),
      detail: d.instruction || undefined,
      value: d.desktop,
    })),
    t('The policy waits while you act.'),
  );
}

/** The page was closed, or its window reloaded and the page not shown again: what happens now, and the way back. */
export function sayAbandoned(s: StudioContext, state: ControlState): void {
  const left = span((state.abandonedAt ?? 0) - Date.now()),
    show = t('Show'),
    end = state.purpose === 'takeOver' ? t('Hand Back Now') : t('Discard');
  const words =
    state.purpose === 'takeOver'
      ? t('The rollout of {0} is handed back to the policy in {1}.', state.task, left)
      : state.purpose === 'try'
        ? t('The policy {0} is still being tried. Its desktop waits for another {1}.', state.trial?.policy ?? '', left)
        : state.verdict
          ? t(
              'The demonstration of {0} was judged and is not kept yet. Its desktop is released in {1}.',
              state.task,
              left,
            )
          : t(
              'The demonstration of {0} is still open. Its desktop waits for another {1}; then it is discarded.',
              state.task,
              left,
            );
  void showInformationMessage(words, show, end)
    .then(async (picked) => {
      if (picked === show) {
        const now = s.sessions.get(state.session);
        if (now) await present(s, now);
        else void showInformationMessage(t('It has already ended.'));
      }
      if (picked === end) await s.client.request(methods.discardControl, { session: state.session });
    })
    .then(undefined, (e: unknown) => s.report.report(e, t('end the session')));
}
