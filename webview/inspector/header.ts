/** Top of the inspector: task, outcome, facts, the verifier's report and the group's siblings. */
import { isPartial, scoreText } from '../../runtime/protocol/shared.js';
import type {
  AnnotationView,
  GroupView,
  OutcomeKind,
  TrajectoryRow,
  TrajectoryView,
} from '../../runtime/protocol/types.js';
import { ledgerPlace, placeWords } from '../dashboard/flow.js';
import { h, icon, type Child } from '../ui/dom.js';
import { duration, num, signed } from '../ui/format.js';
import { originIcons } from '../ui/notes.js';
import { roving } from '../ui/roving.js';
import { versionSpans, versionWords } from '../ui/versions.js';
import { steps, t, whole } from '../ui/words.js';
import { outcomeLower, outcomeWords, verdictLower, type Reward } from './verdict.js';

export { outcomeLower, outcomeWords } from './verdict.js';

/** `siblings`: whether the others of the group can be opened: a file has only one. */
export interface HeaderActions {
  readonly siblings: () => boolean;
  open(rollout: string): void;
  compare(rollout: string): void;
}

export const outcomeIcons: Readonly<Record<OutcomeKind, string>> = {
  success: 'pass-filled',
  failure: 'error',
  error: 'warning',
  running: 'pulse',
};
const provenanceWords: Readonly<Record<TrajectoryRow['provenance'], string>> = {
  rollout: t('training rollout'),
  probe: t('evaluation'),
  oracle: t('scripted'),
  human: t('demonstration by a person'),
  imported: t('imported'),
  hindsight: t('relabelled failure'),
};

export function outcomeBadge(kind: OutcomeKind, truncated = false, reward: Reward = undefined): HTMLElement {
  const words = truncated ? t('{0} at the step limit', outcomeWords[kind]) : outcomeWords[kind],
    part = isPartial(kind, reward) ? scoreText(reward) : undefined;
  return h(
    'span',
    {
      class: `ds-outcome ${kind}`,
      title: part && t('The verifier gave {0} of 1: a part of the task is done. Only 1 is a success.', part),
    },
    icon(outcomeIcons[kind]),
    h('span', null, part === undefined ? words : t('{0}, score {1}', words, part)),
  );
}

/** A person's outcome, with the verifier's verdict beside it: neither hides the other. */
export function correctedBadge(v: TrajectoryView, outcome: NonNullable<AnnotationView['outcome']>): HTMLElement {
  const verified = verdictLower(v.row.outcome, v.row.reward);
  return h(
    'span',
    {
      class: 'ds-corrected',
      title: t('A person says {0}: {1}. The verifier said {2}.', outcomeLower[outcome.value], outcome.reason, verified),
    },
    outcomeBadge(outcome.value),
    h('span', { class: 'ds-quiet' }, t('by a person; verifier: {0}', verified)),
  );
}
/** Who acted in the steps, where a person acted in a policy's rollout. */
export function assistedBadge(v: TrajectoryView): HTMLElement | undefined {
  const byHand = v.steps.filter((s) => s.origin === 'human' || s.declined).length;
  return v.row.assisted
    ? h(
        'span',
        {
          class: 'ds-badge',
          title: t(
            'A person took over for a while: left out of success rates; steps that they took or chose are imitated, never trained with a policy gradient',
          ),
        },
        icon(originIcons.human),
        t('assisted: {0} of {1} by a person', byHand, steps(v.steps.length)),
      )
    : undefined;
}
/** A trajectory's annotations in one line. */
function annotatedWords(r: TrajectoryRow): string {
  const a = r.annotated;
  return a
    ? [
        a.outcome ? t('corrected to {0}', outcomeLower[a.outcome]) : '',
        a.edited ? t('edited') : '',
        a.marks ? (a.marks === 1 ? t('1 mark') : t('{0} marks', whole(a.marks))) : '',
        a.tags?.length ? t('tagged {0}', a.tags.join(', ')) : '',
        a.note ? t('note') : '',
        a.reviewed ? t('reviewed') : '',
        a.replayed ? t('replayed: {0}', outcomeLower[a.replayed]) : '',
      ]
        .filter(Boolean)
        .join(', ') || t('revision {0}', a.revision)
    : '';
}

function fact(label: string, value: Child, title: string): HTMLElement {
  return h('div', { class: 'ds-fact', title }, h('dt', null, label), h('dd', null, value));
}

type Opens = ((rollout: string) => void) | undefined;

/** `<rollout>@<number>` in its parts. */
function placeIn(text: string): [rollout: string, number: string | undefined] {
  const [, rollout = text, number] = /^(.+)@(\d+)$/s.exec(text) ?? [];
  return [rollout, number];
}
/** `of`: `<rollout>@<revision>`. */
function replayFact(of: string, open: Opens): HTMLElement {
  const [rollout, revision] = placeIn(of),
    words = revision === undefined || revision === '0' ? rollout : t('{0}, revision {1}', rollout, revision);
  return fact(t('Replay of'), opener(rollout, words, open), t('The edited trajectory that was replayed here'));
}
/** `branch`: `<rollout>@<index of its first own step>`. */
function branchFact(branch: string, open: Opens): HTMLElement {
  const [rollout, step = '0'] = placeIn(branch);
  return fact(
    t('Branch of'),
    opener(rollout, t('{0}, from step {1}', rollout, Number(step) + 1), open),
    t(
      'Its steps before were acted out again on a desktop of its own, where every screen was the recorded one; they are not trained a second time',
    ),
  );
}
/** `asked`: what it was asked for when it was rolled out. */
function relabelledFact(r: TrajectoryRow, asked: string, open: Opens): HTMLElement {
  const [, rollout] = /^hindsight\/(.+)$/s.exec(r.rollout) ?? [];
  return fact(
    t('Relabelled from'),
    rollout === undefined ? asked : opener(rollout, asked, open),
    t('What the policy was asked for. It failed at that, and did what another task of its screen asks for'),
  );
}
const opener = (rollout: string, words: string, open: Opens): Child =>
  open
    ? h(
        'button',
        { type: 'button', class: 'ds-link', title: t('Open {0}', rollout), on: { click: () => open(rollout) } },
        words,
      )
    : words;
/** `brief`: what differs between siblings (the compare page). */
export function facts(v: TrajectoryView, brief = false, open?: Opens): HTMLElement {
  const r = v.row,
    took = r.startedAt !== undefined && r.endedAt !== undefined ? r.endedAt - r.startedAt : undefined,
    versions = versionWords(versionSpans(v.steps)),
    tags = (r.tags ?? []).filter((t) => !(t === 'truncated' && r.truncated));
  return h(
    'dl',
    { class: 'ds-facts' },
    brief ? undefined : fact(t('Task'), h('code', null, r.family), t('Task {0}', r.task)),
    r.reward === undefined
      ? undefined
      : fact(t('Reward'), num(r.reward, 3), t('The verifier’s verdict, in [0, 1]; an error has none')),
    v.advantage === undefined
      ? undefined
      : fact(t('Advantage'), signed(v.advantage, 3), t('Reward compared with the group’s')),
    fact(t('Steps'), t('{0} of at most {1}', v.steps.length, r.cap), t('Steps taken, and the most it could take')),
    v.steps.length === 0 ? undefined : fact(t('Policy'), versions, t('Policy versions that decided its steps')),
    took === undefined ? undefined : fact(t('Duration'), duration(took), t('From the desktop’s reset to the verdict')),
    brief || v.resetMs === undefined
      ? undefined
      : fact(t('Reset'), duration(v.resetMs), t('Time to bring the desktop to the task’s start')),
    brief || v.verifyMs === undefined
      ? undefined
      : fact(t('Verify'), duration(v.verifyMs), t('Time the verifier took')),
    brief && r.provenance === 'rollout'
      ? undefined
      : fact(t('From'), provenanceWords[r.provenance], t('Where this trajectory comes from')),
    r.of === undefined ? undefined : replayFact(r.of, open),
    r.branch === undefined ? undefined : branchFact(r.branch, open),
    r.relabelledFrom === undefined ? undefined : relabelledFact(r, r.relabelledFrom, open),
    r.annotated ? fact(t('Annotated'), annotatedWords(r), t('Annotations (e shows and edits them)')) : undefined,
    brief || ledgerPlace(r) === ''
      ? undefined
      : fact(t('Ledger'), placeWords(ledgerPlace(r), v.over)[0], t('Where the rollout is in the ledger')),
    tags.length ? fact(t('Tags'), tags.join(', '), t('Tags')) : undefined,
  );
}

const passedIcon = (score: number): HTMLElement =>
  score >= 1
    ? icon('check', t('passed'))
    : score > 0
      ? icon('dash', t('passed in part'))
      : icon('close', t('not passed'));
export function checksTable(report: NonNullable<TrajectoryView['report']>): HTMLElement {
  const judged = report.checks.some((c) => c.judge);
  return h(
    'div',
    { class: 'ds-table-scroll', tabindex: '0', role: 'region', 'aria-label': t('What the verifier checked') },
    h(
      'table',
      { class: 'ds-table' },
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          [t('Check'), t('Expected'), t('Found'), t('Score'), ...(judged ? [t('Judged by')] : [])].map((x, i) =>
            h('th', { scope: 'col', class: i === 3 ? 'number' : '' }, x),
          ),
        ),
      ),
      h(
        'tbody',
        null,
        report.checks.map((c) =>
          h(
            'tr',
            null,
            h('th', { scope: 'row' }, passedIcon(c.score), ' ', named(c)),
            h('td', null, c.expected),
            h('td', { class: c.expected === c.found ? '' : 'differs' }, c.found),
            h('td', { class: 'number' }, num(c.score, 3)),
            judged ? h('td', null, judgeOf(c.judge)) : undefined,
          ),
        ),
      ),
    ),
  );
}
/** The judge, its version and how long it took; the files it read of the desktop are one click away. */
function judgeOf(j: NonNullable<TrajectoryView['report']>['checks'][number]['judge']): HTMLElement | string {
  if (!j) return '';
  const who = `${j.name} ${j.version}, ${duration(j.ms)}`;
  return j.files.length === 0
    ? who
    : h(
        'details',
        { class: 'ds-script' },
        h('summary', { title: t('Show the files it read') }, who),
        h('pre', null, j.files.join('\n')),
      );
}
/** A check that runs a script is named by its first words; the whole of it is one click away. */
const named = (c: NonNullable<TrajectoryView['report']>['checks'][number]): HTMLElement | string =>
  c.detail === undefined
    ? c.what
    : h(
        'details',
        { class: 'ds-script' },
        h('summary', { title: t('Show the whole script') }, c.what),
        h('pre', null, c.detail),
      );
/** "Verifier: 2 of 3 checks passed". */
export const checksWords = (passed: number, of: number): string =>
  of === 1 ? t('Verifier: {0} of 1 check passed', passed) : t('Verifier: {0} of {1} checks passed', passed, of);
/** The verifier's checks and findings. Open when something was found wrong. */
export function reportView(
  v: TrajectoryView,
  open: boolean,
  toggled: (open: boolean) => void,
): HTMLElement | undefined {
  const checks = v.report?.checks;
  if (!checks?.length) return undefined;
  const passed = checks.filter((c) => c.score >= 1).length;
  const details = h(
    'details',
    { class: 'ds-report', open, on: { toggle: () => toggled((details as HTMLDetailsElement).open) } },
    h('summary', null, icon(passed === checks.length ? 'verified' : 'unverified'), checksWords(passed, checks.length)),
    checksTable({ checks }),
  );
  return details;
}

export function errorView(v: TrajectoryView): HTMLElement | undefined {
  return v.error
    ? h(
        'div',
        { class: 'ds-banner error', role: 'note' },
        icon('warning'),
        h(
          'div',
          null,
          h('strong', null, v.error.message),
          ' ',
          v.error.remedy,
          ' ',
          t('An error has no reward and is not trained on.'),
        ),
      )
    : undefined;
}

const short = (id: string): string => (id.length > 10 ? `…${id.slice(-6)}` : id);
/** Siblings as chips, this one marked; each opens its trajectory, and the small button compares. */
export function groupView(g: GroupView, self: string, a: HeaderActions): HTMLElement {
  const wins = g.members.filter((m) => m.outcome === 'success').length,
    chips = h(
      'ul',
      { 'aria-label': t('Rollouts of this group') },
      g.members.map((m, i) => sibling(m, i + 1, m.rollout === self, a)),
    );
  roving(chips, 'button');
  return h(
    'div',
    { class: 'ds-group' },
    h(
      'h2',
      { title: t('Group {0}', g.id) },
      t('Group'),
      h('span', { class: 'ds-count' }, t('{0} of {1} succeeded · {2}', wins, g.members.length, g.state)),
    ),
    chips,
  );
}
type Member = GroupView['members'][number];
/** `n`: its number in the group, from 1. `mine`: the one that is shown. */
function sibling(m: Member, n: number, mine: boolean, a: HeaderActions): HTMLElement {
  const openable = a.siblings();
  const words = [
    `${n}: ${outcomeWords[m.outcome]}`,
    m.reward === undefined ? '' : t('reward {0}', num(m.reward, 2)),
    m.advantage === undefined ? '' : t('advantage {0}', signed(m.advantage)),
    steps(m.steps),
    m.injected ? t('injected from the experience pool') : '',
    m.retired ? t('retired: {0}', m.retired) : '',
  ]
    .filter(Boolean)
    .join(', ');
  return h(
    'li',
    { class: ['ds-sibling', mine && 'mine', m.retired !== undefined && 'retired'] },
    openButton(m, words, mine, openable, a),
    mine || !openable
      ? undefined
      : h(
          'button',
          {
            class: 'compare',
            type: 'button',
            title: t('Compare side by side'),
            'aria-label': t('Compare with rollout {0}', n),
            on: { click: () => a.compare(m.rollout) },
          },
          icon('split-horizontal'),
        ),
  );
}
const openButton = (m: Member, words: string, mine: boolean, openable: boolean, a: HeaderActions): HTMLElement =>
  h(
    'button',
    {
      class: 'open',
      type: 'button',
      title:
        mine || openable
          ? `${words} (${m.rollout})`
          : t('{0} ({1}). This file holds one rollout of the group; open the run to see the others.', words, m.rollout),
      disabled: !mine && !openable,
      'aria-current': mine ? 'true' : undefined,
      on: {
        click: () => {
          if (!mine) a.open(m.rollout);
        },
      },
    },
    h('span', { class: `ds-outcome ${m.outcome}` }, icon(outcomeIcons[m.outcome], outcomeWords[m.outcome])),
    h('span', { class: 'id' }, short(m.rollout)),
    m.reward === undefined
      ? undefined
      : h('span', { class: 'number' }, h('span', { class: 'sr-only' }, ' ', t('reward'), ' '), num(m.reward, 2)),
    m.advantage === undefined ? undefined : h('span', { class: 'advantage' }, ` A ${signed(m.advantage)}`),
    m.injected ? icon('database', t('injected from the experience pool')) : undefined,
  );
