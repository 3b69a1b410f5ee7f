/** Right side of the inspector: everything known of the selected step. */
import type { StepView, TrajectoryView } from '../../runtime/protocol/types.js';
import { actionCall, actionIcon, actionsWords, actionWords } from '../ui/actions.js';
import { h, icon, s, type Child } from '../ui/dom.js';
import { entropyWords, type StepMark } from '../ui/entropy.js';
import { noteWords, originIcons, originWords, type StepNote } from '../ui/notes.js';
import { duration, num, signed } from '../ui/format.js';
import { versionColour } from '../ui/versions.js';
import { t } from '../ui/words.js';
import type { AnswerActions } from './answer.js';
import { finishWords, promptView, rejectedView, type PromptActions } from './prompt.js';
import { scaleOf } from './token.js';
import { isText, spellsThought, tokensView, tokenTable } from './tokens.js';

export interface DetailActions extends AnswerActions, PromptActions {}
export interface DetailModel {
  readonly view: TrajectoryView;
  readonly step: StepView;
  readonly position: number;
  readonly mark: StepMark | undefined;
  /** Highest token entropy of the trajectory: full heat. */
  readonly hottest: number;
  /** The annotations of this step. */
  readonly note?: StepNote;
}

export function detailTitle({ step, mark, view, note }: DetailModel): HTMLElement {
  return h(
    'div',
    { class: 'ds-detail-title' },
    h(
      'h2',
      null,
      t('Step {0}', step.index + 1),
      h(
        'span',
        { class: 'ds-count' },
        ' ',
        view.live ? t('of {0} so far', view.steps.length) : t('of {0}', view.steps.length),
      ),
    ),
    badges(step, mark, note),
  );
}
/** The text and actions of the step; the annotator's fields stand in their place. */
export function saidView({ step }: DetailModel): Child[] {
  return [
    step.thought && !spellsThought(step)
      ? section(t('Thought'), h('p', { class: 'ds-thought' }, step.thought))
      : undefined,
    section(
      step.actions.length > 1 ? t('Actions') : t('Action'),
      step.actions.length
        ? h(
            'ul',
            { class: 'ds-actions' },
            step.actions.map((x) =>
              h(
                'li',
                null,
                icon(actionIcon(x)),
                h('div', null, h('span', null, actionWords(x)), h('code', null, actionCall(x))),
              ),
            ),
          )
        : h('p', { class: 'ds-quiet' }, t('No action: the answer contained none.')),
    ),
  ];
}
export function detailView(m: DetailModel, a: DetailActions): Child[] {
  return [
    section(
      isText(m.step) ? t('Answer') : t('Choices'),
      ...tokensView(m, a),
      rejectedView(m.step.rejected, scaleOf(m.step, m.hottest), a),
    ),
    m.step.prompt === undefined ? undefined : section(t('Prompt'), promptView(m, a)),
    isText(m.step) ? section(t('Tokens'), tokenTable(m, a)) : undefined,
    section(t('Training'), training(m)),
    section(t('Time'), timings(m.step)),
  ];
}
function section(title: string, ...body: Child[]): HTMLElement {
  return h('section', { class: 'ds-detail-part' }, h('h3', null, title), body);
}

function badges(step: StepView, mark: StepMark | undefined, note: StepNote | undefined): HTMLElement {
  return h(
    'div',
    { class: 'ds-badges' },
    personBadges(step),
    note?.deleted ? h('span', { class: 'ds-badge dropped' }, icon('trash'), t('deleted')) : undefined,
    note?.changed ? h('span', { class: 'ds-badge' }, icon('edit'), t('edited')) : undefined,
    curationBadges(mark),
    warnings(step),
  );
}
const badge = (look: string, title: string, ...body: Child[]): HTMLElement =>
  h('span', { class: look === '' ? 'ds-badge' : `ds-badge ${look}`, title }, ...body);

function personBadges(step: StepView): Child[] {
  return [
    step.origin === 'policy'
      ? undefined
      : badge(
          '',
          step.origin === 'human' ? t('Imitated, never trained with a policy gradient') : t('A script acted'),
          icon(originIcons[step.origin]),
          t('by {0}', originWords[step.origin]),
        ),
    step.declined
      ? badge(
          '',
          t(
            'A person declined {0} other proposals for this step: imitated, never trained with a policy gradient',
            step.declined,
          ),
          icon(originIcons.human),
          t('chosen by a person'),
        )
      : undefined,
  ];
}
function curationBadges(mark: StepMark | undefined): Child[] {
  return [
    mark?.high
      ? badge(
          'high',
          t('Among the fifth of the steps where the policy hesitated most'),
          h('span', { class: 'ds-diamond', 'aria-hidden': 'true' }, '◆'),
          t('high entropy'),
        )
      : undefined,
    mark?.kept === undefined
      ? undefined
      : badge(
          mark.kept ? 'kept' : 'dropped',
          mark.kept
            ? t('Trained on: at or above the group’s threshold')
            : t('Left out of the loss: below the group’s threshold'),
          icon(mark.kept ? 'check' : 'circle-slash'),
          mark.kept ? t('kept') : t('dropped'),
        ),
  ];
}
function warnings(step: StepView): Child[] {
  return [
    step.finish === undefined
      ? undefined
      : badge(
          'warn',
          step.finish === 'length'
            ? t('The limit on the tokens of an answer ended it')
            : t('Why the model server ended the answer'),
          icon('warning'),
          finishWords(step.finish),
        ),
    step.settled
      ? undefined
      : badge(
          'warn',
          t('The screen was still changing when the time to settle ran out'),
          icon('warning'),
          t('not settled'),
        ),
  ];
}

/** Whether curation and trainer have still to say what becomes of it: a rollout of the ledger that is on its way. */
export const undecided = (v: TrajectoryView): boolean =>
  !v.over &&
  v.row.provenance === 'rollout' &&
  v.row.state !== undefined &&
  !['trained', 'retired'].includes(v.row.state);

const row = (label: string, value: Child, title: string): HTMLElement =>
  h('div', { title }, h('dt', null, label), h('dd', null, value));

function training(m: DetailModel): HTMLElement {
  const { step } = m;
  return h(
    'dl',
    { class: 'ds-pairs' },
    decidedBy(step),
    credit(m),
    step.replica ? row(t('Replica'), h('code', null, step.replica), t('Policy process that answered')) : undefined,
    step.desktop ? row(t('Desktop'), h('code', null, step.desktop), t('Where it was carried out')) : undefined,
    row(
      t('Screen'),
      step.settled ? t('settled') : t('did not settle in time'),
      t('Whether the desktop settled after the action'),
    ),
  );
}
function decidedBy(step: StepView): HTMLElement {
  const dot = { class: 'ds-version-dot', 'aria-hidden': 'true' };
  return row(
    t('Decided by'),
    step.version === undefined
      ? originWords[step.origin]
      : [h('span', { ...dot, style: { '--colour': versionColour(step.version) } }), t('policy v{0}', step.version)],
    t('Who decided this step, and with which version of the policy'),
  );
}
/** Rows on what curation, credit and the trainer made of the step. */
function credit({ step, view }: DetailModel): Child[] {
  return [
    row(
      t('Entropy'),
      step.entropy === undefined
        ? t('none')
        : [
            step.entropyBound ? t('at least {0}', num(step.entropy, 3)) : num(step.entropy, 3),
            view.threshold === undefined
              ? ''
              : h('span', { class: 'ds-quiet' }, ' ', t('threshold {0}', num(view.threshold, 3))),
          ],
      t(
        'Mean token entropy, for the embedded policy as a share of the maximum of each choice, otherwise in nats; curation keeps steps at or above the threshold',
      ),
    ),
    row(
      t('Advantage'),
      step.advantage === undefined ? (undecided(view) ? t('not known yet') : t('none')) : signed(step.advantage, 3),
      t('Reward compared with the group’s, per its standard deviation'),
    ),
    row(
      t('Importance weight'),
      step.weight === undefined ? (undecided(view) ? t('not trained yet') : t('not trained')) : num(step.weight, 3),
      t('Truncated importance weight, mean over the step’s tokens: how much the newer policy agrees'),
    ),
    step.progress
      ? row(
          t('Verifier'),
          t('{0} % of its checks hold', Math.round(100 * step.progress.held)),
          t('What the verifier said after this step, mid-episode; credit may use it, the outcome does not'),
        )
      : undefined,
  ];
}

/** Each part's name by itself, and within a sentence. */
const parts = [
  ['observe', t('Observe'), t('observe')],
  ['queue', t('Queue'), t('queue')],
  ['decide', t('Decide'), t('decide')],
  ['perform', t('Perform'), t('perform')],
  ['settle', t('Settle'), t('settle')],
] as const;
/** A stacked bar with its numbers. */
function timings(step: StepView): Child {
  const sum = parts.reduce((t, [k]) => t + Math.max(0, step.timings[k]), 0);
  if (!(sum > 0)) return h('p', { class: 'ds-quiet' }, t('Not measured.'));
  let x = 0;
  const rects = parts.map(([k], i) => {
    const w = (Math.max(0, step.timings[k]) / sum) * 100,
      r = s('rect', { x: `${x}%`, width: `${w}%`, height: '100%', class: `part-${i}` });
    x += w;
    return r;
  });
  return [
    s(
      'svg',
      {
        class: 'ds-stack',
        width: '100%',
        height: 10,
        role: 'img',
        'aria-label': t('Time: {0}', parts.map(([k, , n]) => `${n} ${duration(step.timings[k])}`).join(', ')),
      },
      rects,
    ),
    h(
      'dl',
      { class: 'ds-times' },
      parts.map(([k, n], i) =>
        h(
          'div',
          null,
          h('dt', null, h('span', { class: `ds-key part-${i}`, 'aria-hidden': 'true' }), n),
          h('dd', null, duration(step.timings[k])),
        ),
      ),
      h('div', { class: 'sum' }, h('dt', null, t('Sum')), h('dd', null, duration(sum))),
    ),
  ];
}

/** Words for the live region. */
export function stepWords(m: DetailModel): string {
  const { step, mark } = m;
  return [
    t('Step {0} of {1}: {2}', step.index + 1, m.view.steps.length, actionsWords(step.actions)),
    mark?.entropy === undefined ? '' : entropyWords(num(mark.entropy), mark),
    mark?.kept === false ? t('dropped by the mask') : '',
    step.origin === 'policy' ? '' : t('by {0}', originWords[step.origin]),
    noteWords(m.note),
  ]
    .filter(Boolean)
    .join(', ');
}
