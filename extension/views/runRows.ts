/** Rows of the Runs view: runs, their evaluations and checkpoints. */
import { basename } from 'node:path';
import type { EvalPoint, RunState, RunSummary } from '../../runtime/protocol/types.js';
import type { ListedRun } from '../model/savedRuns.js';
import { percent, plain, rollouts, spark, span, t } from '../words.js';
import { lines, list, type Row, type RowIcon } from './rows.js';

export const runStateWord = (s: RunState): string =>
  ({
    running: t('running'),
    paused: t('paused'),
    stopping: t('stopping'),
    finished: t('finished'),
    stopped: t('stopped'),
    failed: t('failed'),
    interrupted: t('interrupted'),
    elsewhere: t('written by another program'),
  })[s];
/** None spins for hours: drawing it takes 15 % of a processor where no graphics card helps. */
const runIcons: Readonly<Record<RunState, RowIcon>> = {
  running: { id: 'pulse', color: 'charts.blue' },
  paused: { id: 'debug-pause', color: 'charts.yellow' },
  stopping: { id: 'loading~spin' },
  finished: { id: 'pass', color: 'charts.green' },
  stopped: { id: 'circle-slash' },
  failed: { id: 'error', color: 'charts.red' },
  interrupted: { id: 'debug-disconnect', color: 'list.warningForeground' },
  elsewhere: { id: 'lock' },
};
/** Success of the newest evaluation, else of the newest rollouts. */
export const runSuccess = (r: RunSummary): number | undefined =>
  r.lastEval && r.lastEval.episodes > 0 ? r.lastEval.successes / r.lastEval.episodes : r.status?.success;

/** "last evaluation 94 %", "last 64 rollouts 31 %": what the success of a run is of. */
export const successWords = (r: RunSummary): string => {
  const success = runSuccess(r);
  return success === undefined
    ? ''
    : r.lastEval && r.lastEval.episodes > 0
      ? t('evaluation {0}', percent(success))
      : t('last 64 rollouts {0}', percent(success));
};
/** When it was started, with the year where it is another one, and its seed: what tells runs of one name apart. */
export const startedWords = (r: RunSummary, now = Date.now()): string =>
  list(
    new Date(r.createdAt).toLocaleString(undefined, {
      ...(new Date(r.createdAt).getFullYear() === new Date(now).getFullYear() ? {} : { year: 'numeric' }),
      month: 'short',
      day: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
    }),
    r.seed !== undefined && t('seed {0}', r.seed),
  );

/** `namesake`: another run of the list has the same name; `unreachable`: it was active when its runtime was lost. */
export function runRow(
  r: ListedRun,
  o: {
    readonly selected: boolean;
    readonly now: number;
    readonly namesake?: boolean;
    readonly unreachable?: boolean;
  },
): Row {
  const s = r.status,
    done = rollouts(r.rollouts),
    state = o.unreachable ? t('interrupted, reconnecting') : runStateWord(r.state);
  const live =
    r.state === 'running' && s && !o.unreachable
      ? list(
          s.phase === 'training' ? undefined : s.phase,
          s.rolloutsPerHour > 0 && t('{0} rollouts/h', Math.round(s.rolloutsPerHour)),
        )
      : state;
  return {
    id: `run ${r.run}`,
    label: r.name === '' ? basename(r.run) : r.name,
    context: runContext(r),
    icon:
      r.damaged || r.damage
        ? { id: 'warning', color: 'list.warningForeground' }
        : r.unread
          ? { id: 'history' }
          : runIcons[o.unreachable ? 'interrupted' : r.state],
    description: list(
      r.label?.pinned && t('pinned'),
      r.label?.archived && t('archived'),
      o.selected && t('selected'),
      o.namesake && startedWords(r, o.now),
      successWords(r),
      r.damaged ? t('cannot be read') : r.unread ? t('not read') : r.collection ? t('collection') : live,
      r.damage && t('journal damaged'),
      r.label?.tags?.map((x) => `#${x}`).join(' '),
      spark(r.evals),
    ),
    tooltip: runTooltip(r, o.now, { state, unreachable: o.unreachable === true }),
    spoken: [
      r.name,
      o.namesake ? startedWords(r, o.now) : '',
      r.damaged ? t('cannot be read') : r.unread ? t('not read') : state,
      successWords(r),
      r.unread || r.damaged ? '' : done,
    ]
      .filter((x) => x !== '')
      .join(', '),
  };
}
/** `viewItem` of `when` clauses. */
function runContext(r: ListedRun): string {
  return r.damaged
    ? 'run.damaged'
    : r.state === 'running'
      ? 'run.running'
      : r.state === 'paused'
        ? 'run.paused'
        : r.state === 'stopping'
          ? 'run.stopping'
          : r.state === 'elsewhere'
            ? 'run.elsewhere'
            : r.collection
              ? 'run.collection'
              : r.weightless
                ? 'run.weightless'
                : 'run.over';
}
function runTooltip(
  r: ListedRun,
  now: number,
  { state, unreachable }: { readonly state: string; readonly unreachable: boolean },
): string {
  const s = r.status,
    success = runSuccess(r);
  return lines(
    `**${plain(r.id)}**`,
    r.label?.notes && plain(r.label.notes),
    r.unread
      ? t('Its folder has no summary of its results. Open its dashboard to load them.')
      : !r.damaged && `${state}${s?.detail && !unreachable ? `: ${plain(s.detail)}` : ''}`,
    r.lastEval === undefined && success !== undefined && t('Success of the last 64 rollouts {0}', percent(success)),
    r.collection && t('Imported or recorded trajectories; nothing was trained in it.'),
    r.weightless && t('None of its checkpoints is left: it cannot be resumed, evaluated or tried.'),
    r.lastEval && evalLine(r.lastEval),
    !r.unread && !r.damaged && t('{0}, policy version {1}', rollouts(r.rollouts), r.version),
    r.damage && t('$(warning) {0} bytes of its journal are damaged; their contents are missing.', r.damage.bytes),
    r.createdAt > 0 && t('Started {0}, {1} ago', startedWords(r, now), span(now - r.createdAt)),
    r.damaged && `$(warning) ${plain(r.damaged.message)} ${plain(r.damaged.remedy)}`,
    r.error && `$(warning) ${plain(r.error.message)} ${plain(r.error.remedy)}`,
    s?.error && `$(error) ${plain(s.error.message)} ${plain(s.error.remedy)}`,
    r.state === 'running' && !unreachable && t('Training continues when VS Code is closed.'),
    `\`${r.run.replace(/[`\r\n]/g, '')}\``,
  );
}
const evalLine = (e: EvalPoint): string =>
  t(
    'Evaluation {0}: {1} of {2}, 95 % interval {3} to {4}',
    plain(e.label),
    e.successes,
    e.episodes,
    percent(e.low),
    percent(e.high),
  );

export const runGroupRow = (group: string, runs: number): Row => ({
  id: `group ${group}`,
  label: group,
  description: runs === 1 ? t('1 run') : t('{0} runs', runs),
  icon: { id: 'folder' },
  context: 'runGroup',
  tooltip: plain(group),
  spoken: t('Group {0}, {1} runs', group, runs),
});
export function evalRow(run: string, e: EvalPoint, i: number): Row {
  const rate = e.episodes > 0 ? percent(e.successes / e.episodes) : '';
  return {
    id: `eval ${run} ${i}`,
    label: t('Evaluation: {0}', e.label),
    description: list(rate, t('{0} of {1}', e.successes, e.episodes), t('version {0}', e.version)),
    icon: { id: 'beaker' },
    context: 'evaluation',
    tooltip: lines(
      evalLine(e),
      t('Policy version {0}', e.version),
      e.errors > 0 && t('{0} episodes ended in an error and are not counted', e.errors),
      e.infeasible && t('Tasks that cannot be done: {0} of {1}', e.infeasible.successes, e.infeasible.episodes),
    ),
    spoken: t('Evaluation {0}, {1}, policy version {2}', e.label, rate, e.version),
  };
}
export function checkpointRow(run: string, version: number, path: string): Row {
  return {
    id: `checkpoint ${run} ${version}`,
    label: t('Checkpoint {0}', version),
    description: '',
    icon: { id: 'save' },
    context: 'checkpoint',
    tooltip: lines(t('Policy version {0}', version), `\`${path.replace(/[`\r\n]/g, '')}\``),
    spoken: t('Checkpoint of policy version {0}', version),
  };
}
