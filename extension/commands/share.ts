/** Shares a run or a trajectory with people elsewhere: as one HTML file, or as a link into this window. */
import { basename } from 'node:path';
import { env, Uri, window, workspace } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import type { RunPath } from '../../runtime/protocol/types.js';
import type { PageInput } from '../../webview/protocol.js';
import { commands } from '../ids.js';
import { linkText, parseLink, type Link } from '../model/links.js';
import type { ListedRun } from '../model/savedRuns.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage, showWarningMessage } from '../toasts.js';
import { nodeOf, trajectoriesOf } from '../views/nodes.js';
import { startedWords } from '../views/runRows.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { choose, pickRun, runOf, working } from './ask.js';

type Ids = typeof commands.exportPage | typeof commands.exportTable | typeof commands.copyLink;

/** A run, one of its trajectories, or a `.traj.jsonl` file. */
type What =
  { readonly run: RunPath; readonly rollout?: string; readonly step?: number } | { readonly trajectory: string };

export const shareCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.exportPage]: { doing: t('export the page'), run: (arg) => exportPage(s, arg) },
  [commands.exportTable]: { doing: t('export the data'), run: (arg) => exportTable(s, arg) },
  [commands.copyLink]: { doing: t('copy the link'), run: (arg) => copyLink(s, arg) },
});

/** The run or trajectory that a menu, a page or the focused editor names; undefined where none of them does. */
function meant(s: StudioContext, arg: unknown): What | undefined {
  if (arg instanceof Uri) return { trajectory: arg.fsPath };
  const [named] = trajectoriesOf(arg);
  if (named) return named;
  const run = nodeOf(arg, 'run')?.run ?? (typeof arg === 'string' ? arg : undefined);
  if (run !== undefined) return { run };
  const given = arg as { readonly run?: unknown; readonly rollout?: unknown } | undefined;
  if (typeof given?.run === 'string')
    return { run: given.run, ...(typeof given.rollout === 'string' ? { rollout: given.rollout } : {}) };
  const shown = s.activeHost?.input;
  return shown && shownBy(s, shown);
}
function shownBy(s: StudioContext, i: PageInput): What | undefined {
  switch (i.kind) {
    case 'dashboard':
    case 'table':
      return { run: i.run };
    case 'inspector':
      if (i.run !== undefined)
        return { run: i.run, rollout: i.rollout, ...(i.step === undefined ? {} : { step: i.step }) };
      return s.editors.active && { trajectory: s.editors.active.uri.fsPath };
    default:
      return undefined;
  }
}

export async function exportPage(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTrust();
  let what = meant(s, arg);
  await s.ensureRuntime();
  await s.model.loading;
  if (!what) {
    const run = runOf(arg) ?? s.model.selected ?? (await pickRun(s, t('Export as HTML')));
    if (run === undefined) return;
    what = { run };
  }
  const name =
    'trajectory' in what
      ? basename(what.trajectory).replace(/(\.traj)?\.jsonl$/, '')
      : [basename(what.run), ...(what.rollout === undefined ? [] : [what.rollout])].join('-');
  const folder = workspace.workspaceFolders?.[0]?.uri ?? Uri.file(s.storage),
    target = await window.showSaveDialog({
      title: t('Export as HTML'),
      defaultUri: Uri.joinPath(folder, `${name.replace(/[^\w.-]+/g, '-')}.html`),
      filters: { HTML: ['html'] },
    });
  if (!target) return;
  const page =
    'trajectory' in what
      ? { trajectory: what.trajectory }
      : { run: what.run, ...(what.rollout === undefined ? {} : { rollout: what.rollout }) };
  const to = /\.html$/i.test(target.fsPath) ? target.fsPath : `${target.fsPath}.html`,
    made = await working(t('Exporting the page'), (_say, signal) =>
      s.client.request(methods.sharePage, { ...page, to }, signal),
    );
  const open = t('Open'),
    words = [
      t(
        'Saved {0}, {1} MB. It opens in any browser, without a network.',
        basename(to),
        (made.bytes / 1e6).toPrecision(2),
      ),
      made.scale > 1 ? t('Screens are {0} times smaller in width and height.', made.scale) : '',
      made.without > 0 ? t('{0} screens are not in it.', made.without) : '',
    ];
  void showInformationMessage(words.filter(Boolean).join(' '), ...(env.remoteName === undefined ? [open] : [])).then(
    (picked) => {
      if (picked === open) void env.openExternal(Uri.file(to));
    },
  );
}

/** All rollouts or all metrics of a run, for a notebook. */
async function exportTable(s: StudioContext, arg: unknown): Promise<void> {
  s.requireTrust();
  await s.ensureRuntime();
  await s.model.loading;
  const title = t('Export Run Data'),
    run = runOf(arg) ?? s.model.selected ?? (await pickRun(s, title));
  if (run === undefined) return;
  const what = await choose(title, [
    {
      label: t('Rollouts'),
      detail: t('One row for each: task, outcome, reward, steps, versions, times'),
      value: 'rollouts' as const,
    },
    {
      label: t('Metrics'),
      detail: t('One row for each value: name, time, policy version, value'),
      value: 'metrics' as const,
    },
  ]);
  if (!what) return;
  const folder = workspace.workspaceFolders?.[0]?.uri ?? Uri.file(s.storage),
    target = await window.showSaveDialog({
      title,
      defaultUri: Uri.joinPath(folder, `${basename(run).replace(/[^\w.-]+/g, '-')}-${what}.csv`),
      filters: { CSV: ['csv'], Parquet: ['parquet'], JSON: ['json'] },
    });
  if (!target) return;
  const to = /\.(csv|parquet|json)$/.test(target.fsPath) ? target.fsPath : `${target.fsPath}.csv`,
    { rows } = await working(t('Exporting the data'), (_say, signal) =>
      s.client.request(methods.exportTable, { run, what, to }, signal),
    );
  void showInformationMessage(
    rows === 1 ? t('Saved {0}: 1 row.', basename(to)) : t('Saved {0}: {1} rows.', basename(to), rows),
  );
}

async function copyLink(s: StudioContext, arg: unknown): Promise<void> {
  const host = s.activeHost;
  // Only the page knows which step it shows.
  if (
    host?.input.kind === 'inspector' &&
    host.input.run !== undefined &&
    nodeOf(arg, 'run', 'trajectory') === undefined
  ) {
    host.do('copyLink');
    return;
  }
  const what = meant(s, arg);
  if (what && 'trajectory' in what) {
    void showInformationMessage(t('Only trajectories of a run have links; this one is a separate file.'));
    return;
  }
  const run = what?.run ?? s.model.selected;
  if (run === undefined) {
    void showInformationMessage(t('No runs yet. Choose Start Training… to start one.'));
    return;
  }
  await writeLink(s, { run, rollout: what?.rollout, step: what?.step });
}
/** `step`: its index. */
export async function writeLink(
  s: StudioContext,
  of: { readonly run: RunPath; readonly rollout?: string | undefined; readonly step?: number | undefined },
): Promise<void> {
  const link: Link = {
    run: s.model.runs.find((r) => r.run === of.run)?.id ?? basename(of.run),
    ...(of.rollout === undefined ? {} : { rollout: of.rollout }),
    ...(of.rollout === undefined || of.step === undefined ? {} : { step: of.step + 1 }),
  };
  await env.clipboard.writeText(linkText(env.uriScheme, s.extension.extension.id, link));
  window.setStatusBarMessage(t('$(link) Link copied'), 2000);
}

/**
 * A link from anywhere: shows a run or a trajectory that this window lists, and does nothing else. No runtime is started
 * for it, unless one goes on with a run that was interrupted, as in every window.
 */
export async function openLink(s: StudioContext, uri: Pick<Uri, 'path' | 'query'>): Promise<void> {
  const link = parseLink(uri.path, uri.query);
  if (!link) {
    void showWarningMessage(t('This link is not one of DART Studio, or it is damaged. Nothing was opened.'));
    return;
  }
  const named = (): readonly ListedRun[] => s.model.runs.filter((r) => r.id === link.run && !r.damaged);
  if (named().length === 0) {
    // The link may have opened the window, which knows its runs once the runtime answers or is known to be down.
    await s.attach();
    await (s.model.loading ?? s.model.reload());
  }
  const runs = named();
  if (runs.length === 0) {
    void showWarningMessage(
      t(
        'The run {0} of this link is not in this window. Open the folder that holds it, or choose Open Run Folder….',
        link.run,
      ),
    );
    return;
  }
  const run =
    runs.length === 1
      ? runs[0]!.run
      : await choose(
          t('Open Link'),
          runs.map((r) => ({ label: r.name, description: startedWords(r), detail: r.run, value: r.run })),
        );
  if (run === undefined) return;
  const { rollout, step } = link;
  if (rollout === undefined) {
    s.panels.show({ kind: 'dashboard', run });
    return;
  }
  if (s.client.state === 'ready' && !(await isThere(s, run, rollout))) {
    void showWarningMessage(t('The run {0} has no trajectory {1}.', link.run, rollout));
    return;
  }
  s.panels.show({ kind: 'inspector', run, rollout, ...(step === undefined ? {} : { step: step - 1 }) });
}
const isThere = (s: StudioContext, run: RunPath, rollout: string): Promise<boolean> =>
  s.client.request(methods.getTrajectory, { run, rollout }).then(
    () => true,
    () => false,
  );
