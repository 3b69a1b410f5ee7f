/** Questions to the user, and work with visible progress. */
import { settled } from '../../runtime/protocol/failures.js';
import { basename } from 'node:path';
import { ProgressLocation, window, type Progress, type QuickPickItem } from 'vscode';
import * as methods from '../../runtime/protocol/methods.js';
import type { RunPath, RunSummary, TrajectoryRow } from '../../runtime/protocol/types.js';
import { commands } from '../ids.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage, withProgress, type Said } from '../toasts.js';
import { nodeOf } from '../views/nodes.js';
import { titleOf, verdictWord } from '../views/rows.js';
import { runStateWord, startedWords, successWords } from '../views/runRows.js';
import { steps, t } from '../words.js';
import { asked } from './asked.js';
import { lastOfEither } from './either.js';

interface Question {
  readonly title: string;
  readonly placeholder?: string | undefined;
  readonly stays?: boolean | undefined;
  readonly many?: boolean;
  /** Items of which no two can be chosen together: the one ticked last counts. */
  readonly either?: (item: QuickPickItem) => boolean;
}
function answered<I extends QuickPickItem>(items: readonly I[], q: Question): Promise<readonly I[] | undefined> {
  const pick = window.createQuickPick<I>();
  pick.title = q.title;
  pick.placeholder = q.placeholder;
  pick.canSelectMany = q.many ?? false;
  pick.matchOnDescription = pick.matchOnDetail = true;
  pick.items = items;
  if (q.many) pick.selectedItems = items.filter((i) => i.picked);
  const { either } = q;
  if (either) {
    let before: readonly I[] = pick.selectedItems;
    pick.onDidChangeSelection((now) => {
      before = pick.selectedItems = lastOfEither(now, before, either);
    });
  }
  pick.ignoreFocusOut = q.stays ?? false;
  // Enter on a text without a match is not an answer.
  return asked<readonly I[], I>(pick, (answer) => {
    pick.onDidAccept(() => {
      if (q.many || pick.selectedItems.length > 0) answer(pick.selectedItems);
    });
  });
}
/** Asks for one choice; undefined when it was dismissed. */
export async function choose<T>(
  title: string,
  items: readonly (QuickPickItem & { readonly value: T })[],
  placeholder?: string,
  o: { /** A page that opens late and takes the focus does not dismiss it. */ readonly stays?: boolean } = {},
): Promise<T | undefined> {
  return (await answered(items, { title, placeholder, stays: o.stays }))?.[0]?.value;
}
/** Any number of them, but no two of `either`; undefined when it was dismissed. */
export async function chooseMany<T>(
  title: string,
  items: readonly (QuickPickItem & { readonly value: T })[],
  placeholder?: string,
  either: readonly T[] = [],
): Promise<readonly T[] | undefined> {
  const one = new Set<QuickPickItem>(items.filter((i) => either.includes(i.value)));
  return (
    await answered(items, { title, placeholder, many: true, ...(one.size > 1 ? { either: (i) => one.has(i) } : {}) })
  )?.map((i) => i.value);
}

/**
 * Shorter work is not announced: a notification that flashes cannot be read, and four within a second hide the
 * important one.
 */
const announcedAfterMs = 300;
/**
 * A notification with Cancel and a link to the log, for set-up and jobs of minutes. Disappears when the work ends,
 * whatever its result.
 */
export function working<T>(
  title: string,
  work: (say: Progress<Said>, signal: AbortSignal) => Promise<T>,
  o: {
    readonly cancellable?: boolean;
    /** A notification without buttons is one line: no room for the link. */
    readonly log?: boolean;
  } = {},
): Promise<T> {
  const link = (o.log ?? true) ? ` ([${t('show log')}](command:${commands.showLog}))` : '',
    cancel = new AbortController();
  let before: Said | undefined, shown: Progress<Said> | undefined;
  const done = work(
    {
      report: (s) => {
        if (shown) shown.report(s);
        else
          before = {
            ...before,
            ...s,
            ...(s.increment === undefined ? {} : { increment: (before?.increment ?? 0) + s.increment }),
          };
      },
    },
    cancel.signal,
  );
  const timer = setTimeout(() => {
    void withProgress(
      { location: ProgressLocation.Notification, title, link, cancellable: o.cancellable ?? true },
      async (p, token) => {
        shown = p;
        if (before) p.report(before);
        token.onCancellationRequested(() => {
          cancel.abort();
        });
        await settled(done);
      },
    );
  }, announcedAfterMs);
  return done.finally(() => {
    clearTimeout(timer);
  });
}

/** The run of a node, or a path given by a page. */
export function runOf(arg: unknown): RunPath | undefined {
  return typeof arg === 'string' && arg !== ''
    ? arg
    : nodeOf(arg, 'run', 'eval', 'checkpoint', 'trajectory', 'poolCoverage', 'poolMissing', 'poolFamily', 'poolEntry')
        ?.run;
}
export async function pickRun(
  s: StudioContext,
  title: string,
  fits: (r: RunSummary) => boolean = () => true,
  empty = t('There is no such run.'),
): Promise<RunPath | undefined> {
  await s.ensureRuntime();
  await s.model.loading;
  if (!s.model.loaded) await s.model.reload();
  const runs = s.model.runs.filter(fits);
  if (runs.length === 0) {
    void showInformationMessage(empty);
    return undefined;
  }
  return choose(title, runItems(runs));
}
/** Runs to choose from. */
export const runItems = (
  runs: readonly RunSummary[],
): (QuickPickItem & { readonly label: string; readonly value: RunPath })[] =>
  runs.map((r) => ({
    label: r.name || basename(r.run),
    description: [r.collection ? t('collection') : runStateWord(r.state), successWords(r), startedWords(r)]
      .filter((x) => x !== '')
      .join(' · '),
    detail: r.run,
    value: r.run,
  }));

const searchMs = 150;
/** A trajectory of a run, searched by the runtime as the user types. `file`: the user would rather open a file. */
export function pickTrajectory(
  s: StudioContext,
  run: RunPath,
  title: string,
  o: { readonly withFile?: boolean; readonly fits?: (r: TrajectoryRow) => boolean } = {},
): Promise<TrajectoryRow | 'file' | undefined> {
  const pick = window.createQuickPick<TrajectoryItem>();
  let abort = new AbortController(),
    timer: NodeJS.Timeout | undefined;
  pick.title = title;
  pick.placeholder = t('Search instruction, task or id');
  pick.matchOnDescription = pick.matchOnDetail = true;
  const search = async (giveUp: () => void): Promise<void> => {
    abort.abort();
    abort = new AbortController();
    const { signal } = abort;
    pick.busy = true;
    try {
      const { rows } = await s.client.request(
        methods.listTrajectories,
        { run, limit: 100, sort: 'newest', filter: pick.value ? { text: pick.value } : undefined },
        signal,
      );
      if (signal.aborted) return;
      const found = rows.filter((r) => o.fits?.(r) ?? true).map(itemOf);
      pick.items = o.withFile ? [fileItem(), ...found] : found;
    } catch (e) {
      if (!signal.aborted) {
        giveUp();
        s.report.report(e, t('search trajectories'));
      }
    }
    if (!signal.aborted) pick.busy = false;
  };
  return asked<TrajectoryRow | 'file' | undefined, TrajectoryItem>(pick, (answer) => {
    const giveUp = (): void => {
      answer(undefined);
    };
    pick.onDidChangeValue(() => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        void search(giveUp);
      }, searchMs);
    });
    pick.onDidAccept(() => {
      answer(pick.selectedItems[0]?.value);
    });
    void search(giveUp);
  }).finally(() => {
    clearTimeout(timer);
    abort.abort();
  });
}
type TrajectoryItem = QuickPickItem & { readonly value?: TrajectoryRow | 'file' };
const fileItem = (): TrajectoryItem => ({
  label: `$(go-to-file) ${t('Open a Trajectory File…')}`,
  alwaysShow: true,
  value: 'file',
});
const itemOf = (r: TrajectoryRow): TrajectoryItem => ({
  label: titleOf(r),
  description: `${verdictWord(r)} · ${steps(r.steps)}`,
  detail: `${r.task} · ${r.rollout}`,
  alwaysShow: true,
  value: r,
});
