/**
 * Import Trajectories…: the source, a preview before anything is written, the target, progress that can be cancelled,
 * and the result.
 */
import { basename } from 'node:path';
import { commands as vscodeCommands, Uri, window, type QuickPickItem } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import type {
  ImportFormatName,
  ImportOptions,
  ImportPreview,
  ImportResult,
  RunPath,
} from '../../runtime/protocol/types.js';
import { views } from '../ids.js';
import {
  badRunName,
  countsWords,
  formatWord,
  importDocument,
  importWords,
  previewDocument,
  problemsWords,
  runNameFor,
  trajectoriesWords,
} from '../model/interchangeWords.js';
import { isActive } from '../model/studioModel.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage, showInputBox, showWarningMessage } from '../toasts.js';
import { runStateWord } from '../views/runRows.js';
import { t } from '../words.js';
import { choose, working } from './ask.js';
import { counted } from './counted.js';

type Where = { readonly run: RunPath; readonly name: string } | { readonly name: string };
interface Plan {
  readonly path: string;
  readonly format?: ImportFormatName;
  readonly options: ImportOptions;
  readonly where: Where;
  readonly pool: boolean;
}

export async function importTrajectories(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTraining();
  const uri = arg instanceof Uri ? arg : await pickSource();
  if (!uri) return;
  await s.ensureRuntime();
  await s.model.loading;
  let plan: Plan = { path: uri.fsPath, options: {}, where: { name: freeName(s, runNameFor(uri.fsPath)) }, pool: true },
    preview = await look(s, plan);
  for (;;) {
    const next = await ask(s, plan, preview);
    if (next === undefined) return;
    if (next === 'go') break;
    if (next === 'report') {
      await s.reports.show(t('Import of {0}', basename(plan.path)), previewDocument(preview));
      // A quick pick would close when the user scrolls the report, so the next step is a notification beside it.
      const on = t('Import…');
      if (
        preview.trajectories > preview.already &&
        (await showInformationMessage(
          t(
            '{0} of {1} can be imported. Nothing has been written yet.',
            trajectoriesWords(preview.trajectories - preview.already),
            basename(plan.path),
          ),
          on,
        )) === on
      )
        continue;
      return;
    }
    const again = next.options !== plan.options || next.format !== plan.format || next.where !== plan.where;
    plan = next;
    if (again) preview = await look(s, plan);
  }
  await carryOut(s, plan);
}

/** VS Code's dialog takes either files or folders, so it is asked first. */
async function pickSource(): Promise<Uri | undefined> {
  const kind = await choose<'folder' | 'file'>(
    t('Import Trajectories'),
    [
      {
        label: `$(folder) ${t('A Folder…')}`,
        detail: t('OSWorld results, DART rollouts, UI-TARS data, or a folder of trajectory files'),
        value: 'folder',
      },
      {
        label: `$(file) ${t('A File…')}`,
        detail: t('AgentNet or OpenCUA JSONL, .traj.jsonl, UI-TARS JSON'),
        value: 'file',
      },
    ],
    t('What do you want to import?'),
  );
  if (kind === undefined) return undefined;
  return (
    await window.showOpenDialog({
      title: t('Import Trajectories'),
      canSelectFolders: kind === 'folder',
      canSelectFiles: kind === 'file',
      openLabel: t('Preview'),
    })
  )?.[0];
}
function freeName(s: StudioContext, name: string): string {
  const taken = new Set(s.model.runs.map((r) => basename(r.run)));
  for (let n = 1; ; n++) {
    const tried = n === 1 ? name : `${name}-${n}`;
    if (!taken.has(tried)) return tried;
  }
}
/** Reads the source; writes nothing. */
function look(s: StudioContext, p: Plan): Promise<ImportPreview> {
  return working(t('Checking {0}', basename(p.path)), async (_say, signal) =>
    s.client.request(
      methods.previewImport,
      {
        path: p.path,
        format: p.format,
        options: p.options,
        run: 'run' in p.where ? p.where.run : undefined,
      },
      signal,
    ),
  );
}

type Next = 'go' | 'report' | 'where' | 'format' | 'verdict' | 'tasks' | 'coordinates' | 'pool';
/** Asks until the answer is "Import": what was found, where it goes, and what can be changed. */
async function ask(s: StudioContext, p: Plan, v: ImportPreview): Promise<Plan | 'go' | 'report' | undefined> {
  const picked = await choose<Next>(
    t('Import {0}', basename(p.path)),
    [...importItems(p, v), ...optionItems(p, v)],
    v.trajectories > v.already
      ? t('Nothing has been written yet.')
      : v.trajectories > 0
        ? t('The run already has everything in it.')
        : t('No trajectory in it can be imported.'),
    { stays: true },
  );
  return picked === undefined || picked === 'go' || picked === 'report' ? picked : changed(s, p, picked);
}
type NextItem = QuickPickItem & { readonly value: Next };
/** The items that import, where there is something to import, and that show what was found. */
function importItems(p: Plan, v: ImportPreview): NextItem[] {
  const fresh = v.trajectories - v.already;
  const go: NextItem = {
    label: `$(cloud-download) ${t('Import {0}', trajectoriesWords(fresh))}`,
    description: 'run' in p.where ? t('into {0}', p.where.name) : t('into the new run {0}', p.where.name),
    detail: countsWords(v),
    value: 'go',
  };
  const report: NextItem = {
    label: `$(${v.problemCount > 0 ? 'warning' : 'output'}) ${t('Show Report')}`,
    description: [problemsWords(v.problemCount), v.already > 0 ? t('{0} already in the run', v.already) : '']
      .filter((x) => x !== '')
      .join(', '),
    detail: v.problems[0] ? `${v.problems[0].where}: ${v.problems[0].what}` : undefined,
    value: 'report',
  };
  return fresh > 0 ? [go, report] : [report];
}
/** The options that can be changed, with their values. */
function optionItems(p: Plan, v: ImportPreview): NextItem[] {
  const formats = Object.keys(v.formats)
    .map((f) => formatWord(f as ImportFormatName))
    .join(', ');
  return [
    { label: `$(folder) ${t('Save to…')}`, description: p.where.name, value: 'where' },
    {
      label: `$(library) ${t('Experience Pool')}`,
      description: p.pool ? t('Add successes') : t('Add nothing'),
      value: 'pool',
    },
    {
      label: `$(file-code) ${t('Format')}`,
      description: p.format ? formatWord(p.format) : formats === '' ? t('not detected') : t('detected: {0}', formats),
      value: 'format',
    },
    {
      label: `$(pass) ${t('Trajectories Without a Verdict')}`,
      description:
        p.options.verdict === undefined ? t('left out') : p.options.verdict === 'success' ? t('success') : t('failure'),
      value: 'verdict',
    },
    {
      label: `$(checklist) ${t('Folder of OSWorld Task Files')}`,
      description: p.options.tasks ?? t('none'),
      value: 'tasks',
    },
    {
      label: `$(target) ${t('Coordinates')}`,
      description: p.options.coordinates ?? t('as specified by the format'),
      value: 'coordinates',
    },
  ];
}
/** The plan with one option asked for again. */
async function changed(s: StudioContext, p: Plan, what: Exclude<Next, 'go' | 'report'>): Promise<Plan> {
  switch (what) {
    case 'pool':
      return { ...p, pool: !p.pool };
    case 'where':
      return { ...p, where: (await pickWhere(s, p.where)) ?? p.where };
    case 'format': {
      const format = await pickFormat();
      return format === undefined ? p : format === 'auto' ? withoutFormat(p) : { ...p, format };
    }
    case 'verdict':
      return { ...p, options: option(p.options, 'verdict', await pickVerdict()) };
    case 'tasks': {
      const tasks = await pickTasks();
      return tasks === undefined ? p : { ...p, options: { ...p.options, tasks } };
    }
    case 'coordinates':
      return { ...p, options: option(p.options, 'coordinates', await pickCoordinates()) };
  }
}
const pickVerdict = (): Promise<'success' | 'failure' | 'none' | undefined> =>
  choose<'success' | 'failure' | 'none'>(t('Trajectories Without a Verdict'), [
    { label: t('Left out'), detail: t('What has no verdict is not imported as a success'), value: 'none' },
    { label: t('Success'), value: 'success' },
    { label: t('Failure'), value: 'failure' },
  ]);
async function pickTasks(): Promise<string | undefined> {
  const picked = await window.showOpenDialog({
    title: t('Folder of OSWorld Task Files'),
    canSelectFolders: true,
    canSelectFiles: false,
    openLabel: t('Use'),
  });
  return picked?.[0]?.fsPath;
}
type Coordinates = NonNullable<ImportOptions['coordinates']> | 'none';
const pickCoordinates = (): Promise<Coordinates | undefined> =>
  choose<Coordinates>(t('Coordinates'), [
    { label: t('As specified by the format'), value: 'none' },
    { label: t('Pixels of the screen'), value: 'absolute' },
    { label: t('Pixels of the smart-resized picture (Qwen2.5-VL)'), value: 'qwen25' },
    { label: t('0 to 1'), value: 'relative1' },
    { label: t('0 to 999'), value: 'relative999' },
    { label: t('0 to 1000'), value: 'relative1000' },
  ]);
const withoutFormat = (p: Plan): Plan => {
  const { format: _format, ...rest } = p;
  return rest;
};
function option<K extends 'verdict' | 'coordinates'>(
  o: ImportOptions,
  key: K,
  value: NonNullable<ImportOptions[K]> | 'none' | undefined,
): ImportOptions {
  if (value === undefined) return o;
  const { [key]: _before, ...rest } = o;
  return value === 'none' ? rest : { ...rest, [key]: value };
}
const pickFormat = (): Promise<ImportFormatName | 'auto' | undefined> =>
  choose<ImportFormatName | 'auto'>(t('Format'), [
    { label: t('Detect automatically'), value: 'auto' },
    ...(['osworld', 'agentnet', 'dart', 'ui-tars', 'traj'] as const).map((f) => ({ label: formatWord(f), value: f })),
  ]);
async function pickWhere(s: StudioContext, now: Where): Promise<Where | undefined> {
  const runs = s.model.runs.filter((r) => !isActive(r) && r.state !== 'elsewhere' && !r.damaged);
  const picked = await choose<Where | 'new'>(
    t('Save the Imported Trajectories to'),
    [
      { label: `$(add) ${t('A New Run…')}`, value: 'new' },
      ...runs.map((r) => ({
        label: `$(folder) ${r.name || basename(r.run)}`,
        description: runStateWord(r.state),
        detail: r.run,
        value: { run: r.run, name: r.name || basename(r.run) },
      })),
    ],
    t("You can't import into an active run. Stop it first."),
  );
  if (picked !== 'new') return picked;
  const name = await showInputBox({
    ignoreFocusOut: true,
    title: t('Name of the New Run'),
    value: 'run' in now ? '' : now.name,
    validateInput: (v) => badRunName(v),
  });
  return name === undefined ? undefined : { name: name.trim() };
}

async function carryOut(s: StudioContext, p: Plan): Promise<void> {
  // When cancelled between two trajectories, the answer says what was imported until then.
  const result = await counted(s, t('Importing {0}', basename(p.path)), (signal) =>
    s.client.request(
      methods.importTrajectories,
      {
        path: p.path,
        format: p.format,
        options: p.options,
        pool: p.pool,
        ...('run' in p.where ? { run: p.where.run } : { base: s.home(), name: p.where.name }),
      },
      signal,
      true,
    ),
  );
  await s.model.reload();
  await tell(s, p, result);
}
async function tell(s: StudioContext, p: Plan, r: ImportResult): Promise<void> {
  const open = t('Open'),
    report = t('Show Report'),
    buttons = [
      ...(r.imported + r.already > 0 ? [open] : []),
      ...(r.problemCount > 0 || Object.keys(r.notPooled).length > 0 ? [report] : []),
    ];
  const picked = await (r.imported > 0 || r.problemCount === 0
    ? showInformationMessage(importWords(r), ...buttons)
    : showWarningMessage(importWords(r), ...buttons));
  if (picked === open) {
    await vscodeCommands.executeCommand(`${views.trajectories}.focus`);
    s.model.select(r.run);
    await s.filter({});
  }
  if (picked === report) await s.reports.show(t('Imported from {0}', basename(p.path)), importDocument(r, p.path));
}
