/** Tree rows from data, without `vscode`: what a row says, its icon, its tooltip, what a screen reader hears. */
import { applicationNames, isPartial, nameOfTask, scoreText } from '../../runtime/protocol/shared.js';
import type {
  AnnotationMarks,
  ControlState,
  DesktopRow,
  OutcomeKind,
  TaskRow,
  TrajectoryRow,
} from '../../runtime/protocol/types.js';
import { originWord, outcomeWord } from '../model/filter.js';
import { percent, plain, spark, span, steps, t } from '../words.js';
import { applicationWord } from './applicationWord.js';

export interface RowIcon {
  readonly id: string;
  /** A theme colour. */
  readonly color?: string;
}
export interface Row {
  /** Stable over refreshes, so that expansion and selection stay. */
  readonly id: string;
  readonly label: string;
  readonly description: string;
  /** Markdown. */
  readonly tooltip: string;
  readonly icon: RowIcon;
  /** `viewItem` of `when` clauses. */
  readonly context: string;
  readonly spoken: string;
  /** State of the row's check box; absent: it has none. */
  readonly checked?: boolean;
}

export const lines = (...parts: (string | false | undefined)[]): string =>
  parts.filter((p): p is string => typeof p === 'string').join('  \n');
export const list = (...parts: (string | false | undefined)[]): string =>
  parts.filter((p): p is string => typeof p === 'string' && p !== '').join(' · ');

/** The mean score of episodes some of which have a partial one. */
export const meanWord = (score: number | undefined): string =>
  score === undefined ? '' : t('mean score {0}', score.toFixed(2));
export function taskRow(k: TaskRow): Row {
  const e = k.evaluation,
    rate = e?.rate ?? k.rate,
    lately = k.rate === undefined ? undefined : t('last {0} rollouts {1}', k.recent ?? k.rollouts, percent(k.rate));
  const kind = list(k.heldOut && t('held out'), k.infeasible && t('cannot be done'));
  return {
    id: `task ${k.family}`,
    label: nameOfTask(k),
    context: 'task',
    icon:
      rate === undefined
        ? { id: 'circle-outline' }
        : rate >= 0.8
          ? { id: 'circle-filled', color: 'charts.green' }
          : rate >= 0.4
            ? { id: 'circle-filled', color: 'charts.yellow' }
            : { id: 'circle-filled', color: 'charts.red' },
    description: list(
      e ? t('evaluation {0} ({1} to {2})', percent(e.rate), percent(e.low), percent(e.high)) : undefined,
      k.external ? (k.rate === undefined ? '–' : percent(k.rate)) : (lately ?? (e ? undefined : '–')),
      k.external && t('{0} of {1}', k.successes, k.rollouts),
      k.groupSize !== undefined && t('{0} per group', k.groupSize),
      k.cap !== undefined && t('max {0}', steps(k.cap)),
      spark(k.spark),
      kind,
    ),
    tooltip: taskTooltip(k, kind),
    spoken: [
      nameOfTask(k),
      e ? t('evaluation {0}', percent(e.rate)) : '',
      lately ?? (e ? '' : t('no rollouts')),
      k.groupSize === undefined ? '' : t('{0} rollouts per group', k.groupSize),
      k.cap === undefined ? '' : t('at most {0}', steps(k.cap)),
      kind,
    ]
      .filter((x) => x !== '')
      .join(', '),
  };
}

function taskTooltip(k: TaskRow, kind: string): string {
  const e = k.evaluation;
  return lines(
    `**${plain(k.family)}**`,
    k.title && plain(k.title),
    k.apps?.length ? plain(applicationNames(k.apps).map(applicationWord).join(', ')) : undefined,
    list(
      k.external
        ? t('{0} of {1} trajectories succeeded', k.successes, k.rollouts)
        : t('{0} of {1} rollouts succeeded', k.successes, k.rollouts),
      meanWord(k.score),
    ),
    e &&
      list(
        t(
          'Evaluation of v{0}: {1} of {2} episodes, 95 % interval {3} to {4}',
          e.version,
          e.successes,
          e.episodes,
          percent(e.low),
          percent(e.high),
        ),
        meanWord(e.score),
      ),
    k.rate !== undefined &&
      k.low !== undefined &&
      k.high !== undefined &&
      t(
        'Last {0} rollouts: {1}, 95 % interval {2} to {3}',
        k.recent ?? k.rollouts,
        percent(k.rate),
        percent(k.low),
        percent(k.high),
      ),
    k.groupSize !== undefined && t('Next group: {0} rollouts', k.groupSize),
    k.cap !== undefined && t('At most {0} each', steps(k.cap)),
    k.meanSteps !== undefined && t('{0} steps on average', k.meanSteps.toFixed(1)),
    k.poolEntries !== undefined && t('{0} successes in the experience pool', k.poolEntries),
    kind || undefined,
  );
}

export const workWord = (w: DesktopRow['state']): string =>
  ({
    starting: t('starting'),
    idle: t('idle'),
    resetting: t('resetting'),
    setup: t('setting up'),
    observe: t('reading the screen'),
    decide: t('deciding'),
    act: t('acting'),
    settle: t('settling'),
    verify: t('verifying'),
    broken: t('broken'),
    stopped: t('stopped'),
  })[w];
/** The person who has a desktop, in words. */
export const heldWord = (s: ControlState): string =>
  s.mode === 'verifying'
    ? t('verifying')
    : s.mode === 'starting'
      ? t('starting')
      : s.purpose === 'record'
        ? t('recording')
        : s.mode === 'step'
          ? t('step by step')
          : s.mode === 'policy'
            ? s.purpose === 'try'
              ? t('trying a policy')
              : t('handed back')
            : t('under your control');
/** `held`: a person has it. */
export function desktopRow(d: DesktopRow, held?: ControlState): Row {
  const icon: RowIcon =
    held && held.mode !== 'policy'
      ? {
          id: held.purpose === 'record' ? 'record' : 'person',
          color: held.purpose === 'record' ? 'charts.red' : 'charts.blue',
        }
      : d.state === 'broken'
        ? { id: 'error', color: 'charts.red' }
        : d.state === 'idle' || d.state === 'stopped'
          ? { id: 'vm-outline' }
          : d.state === 'starting' || d.state === 'resetting'
            ? { id: 'vm-connect' }
            : { id: 'vm-running', color: 'charts.green' };
  const step =
    d.step === undefined
      ? undefined
      : d.cap === undefined
        ? t('step {0}', d.step + 1)
        : t('step {0} of {1}', d.step + 1, d.cap);
  return {
    id: `desktop ${d.desktop}`,
    label: d.desktop,
    icon,
    context: held
      ? 'desktop.held'
      : d.state === 'stopped' || d.state === 'broken'
        ? 'desktop.gone'
        : d.rollout === undefined
          ? 'desktop.idle'
          : 'desktop.busy',
    description: list(
      held ? heldWord(held) : workWord(d.state),
      held?.task ?? d.task,
      step,
      d.version !== undefined && t('v{0}', d.version),
    ),
    tooltip: lines(
      `**${plain(d.desktop)}** (${d.provider})`,
      held ? heldWord(held) : workWord(d.state),
      (held?.instruction ?? d.instruction) && plain(held?.instruction ?? d.instruction ?? ''),
      d.task && plain(d.task),
      step,
      d.version !== undefined && t('Policy version {0}', d.version),
      t('{0} resets, replaced {1} times', d.resets, d.replaced),
    ),
    spoken: [
      t('Desktop {0}', d.desktop),
      held ? heldWord(held) : workWord(d.state),
      d.task ?? '',
      step ?? '',
      d.version === undefined ? '' : t('policy version {0}', d.version),
    ]
      .filter((x) => x !== '')
      .join(', '),
  };
}

const outcomeIcons: Readonly<Record<OutcomeKind, RowIcon>> = {
  success: { id: 'pass', color: 'charts.green' },
  failure: { id: 'circle-slash', color: 'charts.red' },
  error: { id: 'warning', color: 'list.warningForeground' },
  running: { id: 'pulse', color: 'charts.blue' },
};
/** "failure, score 0.7": a partial score is said with the outcome. */
export const verdictWord = (r: Pick<TrajectoryRow, 'outcome' | 'reward'>): string =>
  isPartial(r.outcome, r.reward) ? t('failure, score {0}', scoreText(r.reward)) : outcomeWord(r.outcome);
/** Imported trajectories may have no instruction. */
export const titleOf = (r: TrajectoryRow): string => (r.instruction.trim() === '' ? r.task : r.instruction);
export function trajectoryRow(run: string, r: TrajectoryRow): Row {
  const versions =
      r.versions &&
      (r.versions[0] === r.versions[1] ? t('v{0}', r.versions[0]) : t('v{0} to {1}', r.versions[0], r.versions[1])),
    length = steps(r.steps);
  const origin = r.provenance === 'rollout' ? '' : originWord(r.provenance),
    a = r.annotated,
    marks = a ? markWords(a) : [],
    tags = [...new Set([...(r.tags ?? []), ...(a?.tags ?? [])])];
  const corrected = a?.outcome !== undefined && a.outcome !== r.outcome;
  return {
    id: `trajectory ${run} ${r.rollout}`,
    label: titleOf(r),
    context: `trajectory.${r.outcome}`,
    icon: outcomeIcons[r.outcome],
    description: list(
      corrected && t('corrected: {0}', outcomeWord(a.outcome)),
      isPartial(r.outcome, r.reward) && t('score {0}', scoreText(r.reward)),
      length,
      versions,
      origin,
      r.assisted && t('assisted'),
      ...marks,
      ...tags.map((x) => `#${x}`),
    ),
    tooltip: lines(
      `**${plain(titleOf(r))}**`,
      `${plain(r.task)}, ${plain(r.rollout)}`,
      list(
        verdictWord(r),
        r.reward !== undefined && !isPartial(r.outcome, r.reward) && t('reward {0}', r.reward),
        r.truncated && t('hit the step limit'),
        r.errorKind && plain(r.errorKind),
      ),
      t('{0} of at most {1}', length, r.cap),
      r.kept !== undefined && t('{0} steps kept by the entropy mask', r.kept),
      r.entropy !== undefined && t('mean entropy {0}', r.entropy.toFixed(2)),
      versions && t('Policy version {0}', versions),
      r.group && t('Group {0}', plain(r.group)),
      r.state && t('Ledger: {0}', plain(r.state)),
      r.startedAt !== undefined && r.endedAt !== undefined && t('Took {0}', span(r.endedAt - r.startedAt)),
      r.assisted && t('A person took or chose some of its steps: it is left out of success rates.'),
      r.relabelledFrom !== undefined && t('Relabelled from: {0}', plain(r.relabelledFrom)),
      corrected && t('Outcome corrected by hand to {0}', outcomeWord(a.outcome)),
      marks.length > 0 && t('Annotations: {0}', marks.join(', ')),
      tags.length > 0 && plain(tags.map((x) => `#${x}`).join(' ')),
    ),
    spoken: [titleOf(r), verdictWord(r), length, versions ?? '', origin, r.assisted ? t('assisted') : '', ...marks]
      .filter((x) => x !== '')
      .join(', '),
  };
}
/** Words about people's annotations of a trajectory. */
export function markWords(a: AnnotationMarks): string[] {
  return [
    a.edited && t('edited'),
    a.marks !== undefined && a.marks > 0 && (a.marks === 1 ? t('1 mark') : t('{0} marks', a.marks)),
    a.note && t('note'),
    a.replayed && t('replayed: {0}', outcomeWord(a.replayed)),
    a.reviewed && t('reviewed'),
  ].filter((x): x is string => typeof x === 'string');
}
export function moreRow(shown: number, total: number): Row {
  return {
    id: 'more',
    label: t('Load more'),
    description: t('{0} of {1} shown', shown, total),
    icon: { id: 'ellipsis' },
    context: 'more',
    tooltip: t('Show the next page.'),
    spoken: t('Load more, {0} of {1} shown', shown, total),
  };
}
