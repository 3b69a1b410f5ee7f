/** After Finish: the verifier's report, and what becomes of a demonstration. */
import type { ControlState } from '../../runtime/protocol/types.js';
import { h, icon } from '../ui/dom.js';
import { clip, num } from '../ui/format.js';
import { button } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import { field } from './ask.js';

/** A check may be a whole shell script. */
const longestWhat = 90;
type Report = NonNullable<NonNullable<ControlState['verdict']>['report']>;
/** The checks with expected and found values; narrow enough for a panel. */
export function reportView(report: Report): HTMLElement {
  const passed = report.checks.filter((c) => c.score >= 1).length;
  const fact = (name: string, value: string, differs = false): HTMLElement =>
    h(
      'div',
      null,
      h('dt', null, name),
      h('dd', { class: differs ? 'differs' : '' }, value === '' ? t('(nothing)') : value),
    );
  return h(
    'section',
    { class: 'live-report', 'aria-label': t('Verifier’s report') },
    h(
      'h3',
      null,
      icon(passed === report.checks.length ? 'verified' : 'unverified'),
      report.checks.length === 1
        ? t('Verifier: {0} of 1 check passed', passed)
        : t('Verifier: {0} of {1} checks passed', passed, report.checks.length),
    ),
    h(
      'ul',
      null,
      report.checks.map((c) =>
        h(
          'li',
          { class: c.score >= 1 ? 'passed' : 'missed' },
          h(
            'div',
            { class: 'what' },
            icon(c.score >= 1 ? 'pass' : 'error', c.score >= 1 ? t('passed') : t('not passed')),
            h('span', { title: c.what.length > longestWhat ? c.what : undefined }, clip(c.what, longestWhat)),
            h('span', { class: 'number score', title: t('Score, in [0, 1]') }, num(c.score, 3)),
          ),
          h('dl', null, fact(t('Expected'), c.expected), fact(t('Found'), c.found, c.score < 1)),
        ),
      ),
    ),
  );
}

export interface Keeping {
  keep(pool: 'auto' | 'never', note: string, tags: readonly string[]): void;
  override(note: string, tags: readonly string[]): void;
  discard(): void;
  open(rollout: string): void;
  annotate(rollout: string): void;
  again(): void;
}
const tagsOf = (t: string): string[] => [
  ...new Set(
    t
      .split(',')
      .map((x) => x.trim())
      .filter(Boolean),
  ),
];

/** Note, tags and the choices that are left. Built once per outcome, so that what is being typed stays. */
export function keepView(c: ControlState, discarded: boolean, k: Keeping): HTMLElement {
  let note = '',
    tags = '';
  const again = button(t('Record Another…'), () => k.again(), {
    icon: 'record',
    kind: discarded || c.verdict?.outcome === 'error' ? 'primary' : 'secondary',
    title: t('Choose a task and record the next demonstration'),
  });
  if (discarded || !c.verdict || c.verdict.outcome === 'error' || c.kept?.why === 'discarded')
    return h('div', { class: 'live-buttons' }, again);
  const success = c.verdict.outcome === 'success',
    kept = c.kept;
  const said = [
    field(t('Note'), (v) => {
      note = v;
    }).element,
    field(t('Tags, with commas between them'), (v) => {
      tags = v;
    }).element,
  ];
  const discard = button(t('Discard…'), () => k.discard(), {
    icon: 'trash',
    title: kept ? t('Remove it from the pool and tag it “discarded”') : t('Nothing is kept'),
  });
  const typed = (): Typed => ({ note, tags: tagsOf(tags) });
  return h(
    'div',
    { class: 'live-keep' },
    kept && !success ? undefined : h('div', { class: 'live-said' }, said),
    h(
      'div',
      { class: 'live-buttons' },
      kept ? (success ? saveNoteButton(k, typed) : []) : keepButtons(success, k, typed),
      kept ? openButtons(kept.rollout, k) : [],
      kept && !success ? undefined : discard,
      kept ? again : undefined,
    ),
  );
}
interface Typed {
  readonly note: string;
  readonly tags: string[];
}
const openButtons = (rollout: string, k: Keeping): HTMLElement[] => [
  button(t('Open Trajectory'), () => k.open(rollout), {
    icon: 'open-preview',
    title: t('Step by step, in the inspector'),
  }),
  button(t('Annotate'), () => k.annotate(rollout), {
    icon: 'edit',
    title: t('Correct, trim or mark its steps'),
  }),
];
const keepButton = (k: Keeping, pool: 'auto' | 'never', typed: () => Typed, title: string): HTMLElement =>
  button(t('Keep'), () => k.keep(pool, typed().note, typed().tags), { icon: 'save', kind: 'primary', title });
/** The button that saves the note of a demonstration that is kept already. */
const saveNoteButton = (k: Keeping, typed: () => Typed): HTMLElement =>
  button(t('Save Note'), () => k.keep('auto', typed().note, typed().tags), {
    icon: 'save',
    title: t('Save the note and tags with the demonstration'),
  });
const keepButtons = (success: boolean, k: Keeping, typed: () => Typed): HTMLElement[] =>
  success
    ? [keepButton(k, 'auto', typed, t('Keep it and add it to the experience pool'))]
    : [
        keepButton(k, 'never', typed, t('Keep it in the run, never in the experience pool')),
        button(t('Add to Pool Anyway…'), () => k.override(typed().note, typed().tags), {
          icon: 'database',
          title: t(
            'Keep it and let training learn from it although the verifier did not confirm it; requires a reason',
          ),
        }),
      ];
