/** Export Trajectories…: format, which of them, splits, a folder. */
import { basename } from 'node:path';
import { Uri, window, workspace, type QuickPickItem } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import type { AnnotationFilter, ExportFormatName } from '../../runtime/protocol/types.js';
import { exportWords, formatWord, trajectoriesWords } from '../model/interchangeWords.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage, showWarningMessage } from '../toasts.js';
import { nodeOf, trajectoriesOf } from '../views/nodes.js';
import { t } from '../words.js';
import { choose, chooseMany, pickRun, runOf } from './ask.js';
import { counted } from './counted.js';
import { exists, reveal } from './runs.js';

export async function exportTrajectories(s: StudioContext, arg: unknown, selected: unknown): Promise<void> {
  s.requireTraining();
  await s.ensureRuntime();
  await s.model.loading;
  const some = trajectoriesOf(arg, selected),
    family = nodeOf(arg, 'task')?.row.family ?? nodeOf(arg, 'poolFamily')?.family.family;
  const run = some[0]?.run ?? runOf(arg) ?? s.model.selected ?? (await pickRun(s, t('Export Trajectories')));
  if (run === undefined) return;
  const rollouts = some.filter((x) => x.run === run).map((x) => x.rollout);
  const format = await pickFormat();
  if (format === undefined) return;
  const which = await pickWhich(s, rollouts.length, family);
  if (which === undefined) return;
  const share = await choose(t('Export Trajectories: Splits'), [
    { label: t('No split'), value: 0 },
    ...[0.05, 0.1, 0.2].map((value) => ({
      label: t('Hold out {0} %', Math.round(100 * value)),
      detail: t('Split by task and content, the same at every export: one set to train on and one to test with'),
      value,
    })),
  ]);
  if (share === undefined) return;
  const [folder] =
    (await window.showOpenDialog({
      title: t('Export Into'),
      canSelectFolders: true,
      canSelectFiles: false,
      openLabel: t('Export Here'),
      defaultUri: workspace.workspaceFolders?.[0]?.uri,
    })) ?? [];
  if (!folder) return;
  const to = await freeFolder(folder, `${basename(run)}-${format}`);
  const result = await counted(s, t('Exporting'), (signal) =>
    s.client.request(
      methods.exportTrajectories,
      {
        run,
        to: to.fsPath,
        format,
        ...which,
        rollouts: rollouts.length > 0 ? rollouts : undefined,
        split: share > 0 ? { share: 1 - share, seed: 0 } : undefined,
      },
      signal,
    ),
  );
  const show = t('Show Folder');
  const picked = await (result.trajectories > 0
    ? showInformationMessage(exportWords(result), show)
    : showWarningMessage(exportWords(result)));
  if (picked === show) await reveal(result.to);
}

const pickFormat = (): Promise<ExportFormatName | undefined> =>
  choose<ExportFormatName>(t('Export Trajectories: Format'), [
    {
      label: formatWord('traj'),
      description: '.traj.jsonl',
      detail: t('Everything: tokens, entropies, advantages, reports, pictures; opens in the inspector'),
      value: 'traj',
    },
    {
      label: formatWord('osworld'),
      detail: t('A results folder as OSWorld writes it: traj.jsonl, screenshots, result.txt'),
      value: 'osworld',
    },
    {
      label: formatWord('agentnet'),
      detail: t('One line per trajectory, with pyautogui code and thoughts'),
      value: 'agentnet',
    },
    {
      label: formatWord('dart'),
      detail: t('Rollout folders as its trainer reads them, with token ids and log-probs of the answers'),
      value: 'dart',
    },
    {
      label: formatWord('openai'),
      detail: t('Chat messages with pictures, for supervised fine-tuning'),
      value: 'openai',
    },
  ]);

interface Which {
  readonly outcome?: 'success' | 'failure';
  readonly family?: string;
  readonly annotations?: AnnotationFilter;
}
/** Several can be chosen; no filter is preselected. */
async function pickWhich(s: StudioContext, chosen: number, family: string | undefined): Promise<Which | undefined> {
  type Option = 'success' | 'failure' | 'family' | 'reviewed' | 'tag' | 'revised' | 'wrong' | 'redundant';
  const only = family ?? s.list.filter.family,
    tag = s.list.filter.tag;
  const items: (QuickPickItem & { readonly value: Option })[] = [
    ...(chosen > 0
      ? []
      : [
          {
            label: t('Only successes'),
            value: 'success' as const,
            picked: s.list.filter.outcome?.length === 1 && s.list.filter.outcome[0] === 'success',
          },
          { label: t('Only failures'), value: 'failure' as const },
        ]),
    ...(only === undefined || chosen > 0
      ? []
      : [{ label: t('Only {0}', only), value: 'family' as const, picked: true }]),
    { label: t('Only reviewed'), value: 'reviewed' },
    ...(tag === undefined ? [] : [{ label: t('Only tagged #{0}', tag), value: 'tag' as const, picked: true }]),
    {
      label: t('With annotations'),
      description: t('outcomes as corrected, edits applied'),
      value: 'revised',
      picked: true,
    },
    { label: t('Without steps marked wrong'), value: 'wrong' },
    { label: t('Without steps marked redundant'), value: 'redundant' },
  ];
  const picked = await chooseMany(
    chosen > 0 ? t('Export {0}', trajectoriesWords(chosen)) : t('Export Trajectories: Which'),
    items,
    t('Choose nothing to export everything as it was recorded'),
    // One of the two is chosen; none means both.
    ['success', 'failure'],
  );
  if (!picked) return undefined;
  const has = (o: Option): boolean => picked.includes(o),
    without = (['wrong', 'redundant'] as const).filter(has);
  return {
    outcome: has('success') ? 'success' : has('failure') ? 'failure' : undefined,
    family: has('family') && only !== undefined ? only : undefined,
    annotations: {
      revised: has('revised'),
      reviewed: has('reviewed') || undefined,
      tags: has('tag') && tag !== undefined ? [tag] : undefined,
      without: without.length > 0 ? without : undefined,
    },
  };
}
/** A folder that does not exist yet: an export never mixes with other files. */
async function freeFolder(parent: Uri, name: string): Promise<Uri> {
  for (let n = 1; ; n++) {
    const uri = Uri.joinPath(parent, n === 1 ? name : `${name}-${n}`);
    if (!(await exists(uri))) return uri;
  }
}
