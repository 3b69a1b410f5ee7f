/** Names, notes, tags and groups that people give their runs, and the archive. Needs no runtime. */
import { rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Uri, workspace, type QuickPickItem } from 'vscode';
import { labelName, runLabelOf, type RunLabel } from '../../runtime/protocol/runLabel.js';
import type { RunPath } from '../../runtime/protocol/types.js';
import { commands } from '../ids.js';
import { runFiles } from '../model/runFiles.js';
import { groupsOf, parseTags } from '../model/runOrder.js';
import { parsedLabel, type ListedRun } from '../model/savedRuns.js';
import { isActive } from '../model/studioModel.js';
import type { StudioContext } from '../studioContext.js';
import { showInputBox, showWarningMessage } from '../toasts.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { choose, runItems, runOf } from './ask.js';

type Ids =
  | typeof commands.renameRun
  | typeof commands.editRunNotes
  | typeof commands.tagRun
  | typeof commands.groupRun
  | typeof commands.pinRun
  | typeof commands.archiveRun
  | typeof commands.deleteRun
  | typeof commands.findRun
  | typeof commands.showArchived;

export const runLabelCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.renameRun]: { doing: t('rename the run'), run: (arg) => edit(s, arg, t('Rename Run'), renamed) },
  [commands.editRunNotes]: { doing: t('keep the notes'), run: (arg) => edit(s, arg, t('Edit Notes of Run'), noted) },
  [commands.tagRun]: { doing: t('tag the run'), run: (arg) => edit(s, arg, t('Edit Tags of Run'), tagged) },
  [commands.groupRun]: {
    doing: t('group the run'),
    run: (arg) => edit(s, arg, t('Move Run to Group'), (r) => grouped(s, r)),
  },
  [commands.pinRun]: {
    doing: t('pin the run'),
    run: (arg) =>
      edit(s, arg, t('Pin or Unpin Run'), ({ label = {} }) => Promise.resolve({ ...label, pinned: !label.pinned })),
  },
  [commands.archiveRun]: {
    doing: t('archive the run'),
    run: (arg) =>
      edit(s, arg, t('Archive or Restore Run'), ({ label = {} }) =>
        Promise.resolve({ ...label, archived: !label.archived }),
      ),
  },
  [commands.deleteRun]: { doing: t('delete the run'), run: (arg) => remove(s, arg) },
  [commands.findRun]: { doing: t('find the run'), run: () => find(s) },
  [commands.showArchived]: { doing: t('show archived runs'), run: () => s.model.showArchived(!s.model.archived) },
});

async function chosen(s: StudioContext, arg: unknown, title: string): Promise<ListedRun | undefined> {
  await s.model.loading;
  const known = runOf(arg) ?? (await choose(title, runItems(s.model.runs)));
  return s.model.runs.find((r) => r.run === known);
}
/** `change`: the label as it is to be; undefined where the question was dismissed. */
async function edit(
  s: StudioContext,
  arg: unknown,
  title: string,
  change: (r: ListedRun, title: string) => Promise<RunLabel | undefined>,
): Promise<void> {
  s.requireTrust();
  const run = await chosen(s, arg, title);
  if (!run) return;
  // Another window may have changed it since it was listed.
  const label = parsedLabel(await runFiles.read(join(run.run, labelName))),
    next = await change({ ...run, label }, title);
  if (!next) return;
  await keep(run.run, next);
  await s.model.reload();
}
/** Whole, or not at all: another window may read it meanwhile. */
async function keep(run: RunPath, label: RunLabel): Promise<void> {
  const file = join(run, labelName),
    tmp = `${file}.${process.pid}.tmp`;
  // A fresh name is used: a link in a stranger's folder could lead to any file.
  await rm(tmp, { recursive: true, force: true });
  await writeFile(tmp, `${JSON.stringify(runLabelOf(label), null, 2)}\n`, { flag: 'wx' });
  await rename(tmp, file);
}

const ask = (title: string, prompt: string, value: string): Promise<string | undefined> =>
  Promise.resolve(showInputBox({ ignoreFocusOut: true, title, prompt, value }));
async function renamed({ label = {}, name }: ListedRun, title: string): Promise<RunLabel | undefined> {
  const words = await ask(title, t('The folder keeps its name. Leave empty to use the name in its run file.'), name);
  return words === undefined ? undefined : { ...label, name: words };
}
async function noted({ label = {} }: ListedRun, title: string): Promise<RunLabel | undefined> {
  const words = await ask(title, t('What to remember about this run'), label.notes ?? '');
  return words === undefined ? undefined : { ...label, notes: words };
}
async function tagged({ label = {} }: ListedRun, title: string): Promise<RunLabel | undefined> {
  const words = await ask(title, t('Separated by spaces or commas'), (label.tags ?? []).join(', '));
  return words === undefined ? undefined : { ...label, tags: parseTags(words) };
}
async function grouped(s: StudioContext, { label = {} }: ListedRun): Promise<RunLabel | undefined> {
  const title = t('Move Run to Group'),
    pick = await choose<{ readonly group: string } | 'new' | 'none'>(title, [
      ...groupsOf(s.model.runs).map((group) => ({
        label: `$(folder) ${group}`,
        ...(group === label.group ? { description: t('current') } : {}),
        value: { group },
      })),
      { label: `$(new-folder) ${t('New group…')}`, value: 'new' },
      ...(label.group === undefined ? [] : [{ label: `$(close) ${t('No group')}`, value: 'none' as const }]),
    ]);
  if (pick === undefined) return undefined;
  const { group: _before, ...rest } = label;
  if (pick === 'none') return rest;
  const group = pick === 'new' ? await ask(title, t('Name of the group'), '') : pick.group;
  return group === undefined || group.trim() === '' ? undefined : { ...label, group };
}

async function remove(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTrust();
  const run = await chosen(s, arg, t('Delete Run'));
  if (!run) return;
  if (isActive(run) || run.state === 'elsewhere') {
    void showWarningMessage(t('{0} is active. Stop it first.', run.name));
    return;
  }
  const trash = t('Move to Trash'),
    said = await showWarningMessage(
      t('Delete the run {0}?', run.name),
      {
        modal: true,
        detail: t('Its folder, with trajectories, checkpoints and annotations, is moved to the trash:\n{0}', run.run),
      },
      trash,
    );
  if (said !== trash) return;
  await trashed(run);
  await s.dropRoot(run.run);
  await s.model.reload();
}
/** A machine without a trash is asked about once more: what is deleted there does not come back. */
async function trashed(run: ListedRun): Promise<void> {
  const uri = Uri.file(run.run);
  try {
    await workspace.fs.delete(uri, { recursive: true, useTrash: true });
  } catch {
    const forever = t('Delete Permanently'),
      said = await showWarningMessage(
        t('{0} cannot be moved to a trash here.', basename(run.run)),
        { modal: true, detail: t('If it is deleted permanently, it cannot be restored.') },
        forever,
      );
    if (said === forever) await workspace.fs.delete(uri, { recursive: true, useTrash: false });
  }
}

/** Searches all runs, archived ones too, by name, tags, notes, group and folder. */
async function find(s: StudioContext): Promise<void> {
  await s.model.loading;
  const items = runItems(s.model.runs).map((i): QuickPickItem & { value: RunPath } => {
      const { label } = s.model.runs.find((r) => r.run === i.value) ?? {},
        said = [
          label?.archived ? t('archived') : '',
          label?.group ?? '',
          ...(label?.tags ?? []).map((x) => `#${x}`),
          label?.notes ?? '',
        ].filter((x) => x !== '');
      return { ...i, detail: [...said, i.value].join(' · ') };
    }),
    run = await choose(t('Find Run'), items, t('Name, tag, note, group or folder'));
  if (run === undefined) return;
  const found = s.model.runs.find((r) => r.run === run);
  if (found?.label?.archived) s.model.showArchived(true);
  s.model.select(run);
  s.panels.show({ kind: 'dashboard', run });
}
