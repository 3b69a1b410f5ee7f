/** Two trajectories of a group side by side; updates the components from the state. */
import type { StepView, TrajectoryView } from '../../runtime/protocol/types.js';
import { facts, outcomeBadge, outcomeLower, outcomeWords } from '../inspector/header.js';
import { noStepWords } from '../inspector/verdict.js';
import { actionCall, actionIcon, actionsWords, actionWords } from '../ui/actions.js';
import { bannerView } from '../ui/banner.js';
import { Announcer } from '../ui/commands.js';
import { h, icon, replace, set, text } from '../ui/dom.js';
import { markSteps } from '../ui/entropy.js';
import { Filmstrip } from '../ui/filmstrip.js';
import { num, percent, signed } from '../ui/format.js';
import type { Frames } from '../ui/frames.js';
import { Stage } from '../ui/stage.js';
import { button, dropdown, progress } from '../ui/toolkit.js';
import { versionSpans } from '../ui/versions.js';
import { steps, t, whole } from '../ui/words.js';
import {
  differences,
  differenceWords,
  divergenceWords,
  nextDifference,
  sameScreen,
  type Difference,
} from './diverge.js';
import { lengthOf, type CompareState, type SideName } from './state.js';

export interface CompareActions {
  select(at: number): void;
  shot(shot: 'before' | 'after'): void;
  jump(direction: 1 | -1): void;
  first(): void;
  swap(): void;
  choose(side: SideName, rollout: string): void;
  open(side: SideName): void;
  retry(side: SideName): void;
  help(): void;
  host(command: 'startRuntime' | 'showLog'): void;
}

class SidePane {
  readonly element: HTMLElement;
  readonly stage: Stage;
  readonly strip: Filmstrip;
  readonly #side: SideName;
  readonly #actions: CompareActions;
  readonly #head = h('header', { class: 'cp-head' });
  readonly #note = h('div', { class: 'cp-step' });
  #shown: { view?: TrajectoryView; rollout?: string; members?: string } = {};

  constructor(side: SideName, frames: Frames, a: CompareActions, scrolled: (item: number) => void) {
    this.#side = side;
    this.#actions = a;
    const context = (step: { readonly index: number }): string =>
      JSON.stringify({ webviewSection: 'step', step: step.index, side, preventDefaultContextMenuItems: true });
    this.stage = new Stage(frames, { shot: a.shot, heat: () => undefined, context }, true);
    this.strip = new Filmstrip(frames, {
      select: a.select,
      context,
      label: side === 'left' ? t('Steps of the left trajectory') : t('Steps of the right trajectory'),
      scrolled,
    });
    this.element = h(
      'section',
      { class: 'cp-side', 'aria-label': side === 'left' ? t('Left trajectory') : t('Right trajectory') },
      this.#head,
      h('div', { class: 'cp-stage' }, this.stage.element),
      this.#note,
      this.strip.element,
    );
  }

  render(s: CompareState, diffs: ReadonlyMap<number, Difference>): void {
    const side = s[this.#side],
      v = side.view;
    this.#header(s);
    if (!v) {
      this.stage.update({
        shot: s.shot,
        heat: false,
        empty: side.error
          ? { icon: 'error', words: `${side.error.message} ${side.error.remedy}` }
          : { icon: 'loading', words: t('Loading trajectory…'), busy: true },
      });
      replace(
        this.#note,
        side.error ? button(t('Try again'), () => this.#actions.retry(this.#side), { icon: 'refresh' }) : undefined,
      );
      this.strip.update({ steps: [], marks: [], spans: [], selected: -1 });
      return;
    }
    const step = v.steps[s.selected],
      none = v.steps.length === 0 ? noStepWords(v) : endedWords(v),
      alone = !s.left.view || !s.right.view;
    this.stage.update({ shot: s.shot, heat: false, empty: none, step });
    replace(
      this.#note,
      step
        ? stepLine(step, s.selected, alone ? 'alone' : diffs.get(s.selected))
        : h('p', { class: 'ds-quiet' }, none.words),
    );
    this.strip.update({
      steps: v.steps,
      marks: markSteps(v.steps, v.threshold),
      spans: versionSpans(v.steps),
      selected: step ? s.selected : -1,
      flags: new Map([...diffs].map(([i, d]) => [i, t('differs: {0}', differenceWords[d])])),
    });
  }
  #header(s: CompareState): void {
    const side = s[this.#side],
      v = side.view,
      members = (v ?? s.left.view ?? s.right.view)?.group?.members,
      key = members?.map((m) => `${m.rollout}${m.outcome}`).join() ?? '';
    if (this.#shown.view === v && this.#shown.rollout === side.rollout && this.#shown.members === key && v) return;
    this.#shown = { view: v, rollout: side.rollout, members: key };
    const known = members?.some((m) => m.rollout === side.rollout) ? members : undefined;
    replace(
      this.#head,
      h(
        'div',
        { class: 'cp-head-row' },
        v
          ? h('span', { class: 'ds-badge-slot' }, outcomeBadge(v.row.outcome, v.row.truncated, v.row.reward))
          : undefined,
        known
          ? dropdown(
              this.#side === 'left' ? t('Rollout on the left') : t('Rollout on the right'),
              known.map((m, i) => ({
                value: m.rollout,
                label: [
                  `${i + 1}: ${outcomeLower[m.outcome]}`,
                  m.reward === undefined ? '' : t('reward {0}', num(m.reward)),
                  m.advantage === undefined ? '' : `A ${signed(m.advantage)}`,
                  steps(m.steps),
                ]
                  .filter(Boolean)
                  .join(', '),
              })),
              side.rollout,
              (r) => this.#actions.choose(this.#side, r),
            )
          : h('code', null, side.rollout),
        h('span', { class: 'ds-spring' }),
        button(t('Open in the inspector'), () => this.#actions.open(this.#side), {
          kind: 'icon',
          icon: 'go-to-file',
          title: t('Open in the inspector'),
        }),
      ),
      v ? facts(v, true) : undefined,
    );
  }
}

/** In place of a step that only the other side has. */
const endedWords = (v: TrajectoryView): { readonly icon: string; readonly words: string } =>
  v.live
    ? { icon: 'watch', words: t('{0}: it is at step {1}.', outcomeWords[v.row.outcome], v.steps.length) }
    : { icon: 'circle-slash', words: t('{0}: it ended after step {1}.', outcomeWords[v.row.outcome], v.steps.length) };

/** `alone`: there is no other one to compare it with, or not yet. */
function stepLine(step: StepView, at: number, d: Difference | 'alone' | undefined): HTMLElement {
  const known = step.tokens?.every((x) => x.logprob !== undefined) ?? false,
    prob =
      known && step.tokens?.length ? Math.exp(step.tokens.reduce((sum, x) => sum + (x.logprob ?? 0), 0)) : undefined;
  return h(
    'div',
    { class: ['cp-line', (d === 'action' || d === 'both') && 'differs'] },
    h(
      'div',
      { class: 'cp-line-head' },
      h('h2', null, t('Step {0}', at + 1)),
      d === 'alone'
        ? undefined
        : d
          ? h('span', { class: 'ds-badge high' }, icon('diff-modified'), differenceWords[d])
          : h('span', { class: 'ds-badge' }, icon('check'), t('the same')),
      h(
        'span',
        { class: 'ds-quiet number' },
        [
          step.version === undefined ? '' : t('policy v{0}', step.version),
          step.entropy === undefined ? '' : `H ${step.entropyBound ? '≥ ' : ''}${num(step.entropy)}`,
          prob === undefined ? '' : `p ${percent(prob)}`,
        ]
          .filter(Boolean)
          .join(' · '),
      ),
    ),
    h(
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
    ),
    step.thought ? h('p', { class: 'ds-thought' }, step.thought) : undefined,
  );
}

export class ComparePage {
  readonly left: SidePane;
  readonly right: SidePane;
  readonly #actions: CompareActions;
  readonly #announcer = new Announcer();
  readonly #banner = h('div', { class: 'ds-banners' });
  readonly #title = h('h1', { dir: 'auto' }, t('Compare trajectories'));
  readonly #words = h('p', { class: 'cp-words' });
  readonly #counter = h('span', { class: 'ds-quiet number' });
  readonly #previous: HTMLElement;
  readonly #next: HTMLElement;
  #diffs: ReadonlyMap<number, Difference> = new Map();
  #old: CompareState | undefined;

  constructor(root: HTMLElement, leftFrames: Frames, rightFrames: Frames, a: CompareActions) {
    this.#actions = a;
    this.left = new SidePane('left', leftFrames, a, (i) => this.right?.strip.scrollTo(i));
    this.right = new SidePane('right', rightFrames, a, (i) => this.left.strip.scrollTo(i));
    leftFrames.changed = () => this.left.strip.refresh();
    rightFrames.changed = () => this.right.strip.refresh();
    this.#previous = button(t('Previous difference'), () => a.jump(-1), {
      kind: 'icon',
      icon: 'arrow-up',
      title: t('Previous difference (p)'),
      keys: 'p',
    });
    this.#next = button(t('Next difference'), () => a.jump(1), {
      kind: 'icon',
      icon: 'arrow-down',
      title: t('Next difference (n)'),
      keys: 'n',
    });
    set(root, { class: 'ds-root' });
    root.append(
      this.#banner,
      h(
        'header',
        { class: 'ds-head' },
        h(
          'div',
          { class: 'ds-head-row' },
          this.#title,
          h(
            'div',
            { class: 'ds-head-actions', role: 'toolbar', 'aria-label': t('Comparison') },
            this.#counter,
            this.#previous,
            this.#next,
            button(t('First difference'), a.first, {
              icon: 'diff',
              title: t('Go to the first difference (x)'),
              keys: 'x',
            }),
            button(t('Swap sides'), a.swap, {
              kind: 'icon',
              icon: 'arrow-swap',
              title: t('Swap sides (w)'),
              keys: 'w',
            }),
            button(t('Keyboard shortcuts'), a.help, {
              kind: 'icon',
              icon: 'question',
              title: t('Keyboard shortcuts (?)'),
              keys: '?',
            }),
          ),
        ),
        this.#words,
      ),
      h('main', { class: 'cp-main' }, this.left.element, this.right.element),
      this.#announcer.element,
    );
  }
  get differences(): ReadonlyMap<number, Difference> {
    return this.#diffs;
  }
  focusStrip(): void {
    this.left.strip.focus();
  }

  render(s: CompareState): void {
    const old = this.#old,
      l = s.left.view,
      r = s.right.view,
      first = l !== undefined && r !== undefined && !(old?.left.view && old.right.view);
    this.#old = s;
    if (
      !old ||
      old.left.view !== l ||
      old.right.view !== r ||
      old.left.error !== s.left.error ||
      old.right.error !== s.right.error
    ) {
      this.#diffs = l && r ? differences(l.steps, r.steps) : new Map();
      text(this.#title, (l ?? r)?.row.instruction ?? t('Compare trajectories'));
      replace(
        this.#words,
        l && r
          ? [
              icon(this.#diffs.size ? 'diff' : 'check'),
              ' ',
              l.row.task === r.row.task
                ? undefined
                : h('strong', null, t('These are rollouts of different tasks.'), ' '),
              divergenceWords(l.steps, r.steps),
            ]
          : s.left.error || s.right.error
            ? t('One of them could not be read.')
            : progress(t('Loading both trajectories…')),
      );
      if (first) this.#announcer.say(divergenceWords(l.steps, r.steps));
    }
    text(
      this.#counter,
      l && r
        ? [
            t('Step {0} of {1}', s.selected + 1, lengthOf(s)),
            this.#diffs.size === 1 ? t('1 difference') : t('{0} differences', whole(this.#diffs.size)),
          ].join(' · ')
        : '',
    );
    set(this.#previous, { disabled: nextDifference(this.#diffs, s.selected, -1) === undefined });
    set(this.#next, { disabled: nextDifference(this.#diffs, s.selected, 1) === undefined });
    this.#connection(s, old);
    this.left.render(s, this.#diffs);
    this.right.render(s, this.#diffs);
    if (old && !first && old.selected !== s.selected && old.selected >= 0) this.#announcer.say(this.#stepWords(s));
  }
  #stepWords(s: CompareState): string {
    const a = s.left.view?.steps[s.selected],
      b = s.right.view?.steps[s.selected],
      say = (x: StepView | undefined): string => (x ? actionsWords(x.actions) : t('has ended'));
    return [
      t('Step {0}.', s.selected + 1),
      a && b && !this.#diffs.has(s.selected) ? t('Both: {0}.', say(a)) : t('Left: {0}. Right: {1}.', say(a), say(b)),
      a && b && this.#diffs.has(s.selected) && !sameScreen(a, b) ? t('Screens differ.') : '',
    ]
      .filter(Boolean)
      .join(' ');
  }
  #connection(s: CompareState, old: CompareState | undefined): void {
    if (old?.daemon === s.daemon) return;
    const d = s.daemon,
      busy = d.state === 'starting' || d.state === 'attaching' || d.state === 'reconnecting',
      command = d.state === 'stopped' ? 'startRuntime' : 'showLog';
    replace(
      this.#banner,
      d.state === 'ready'
        ? undefined
        : bannerView(
            busy ? 'loading codicon-modifier-spin' : 'debug-disconnect',
            busy
              ? t('Connecting to the runtime…')
              : [t('The runtime is not connected.'), d.error?.message, d.error?.remedy].filter(Boolean).join(' '),
            'warning',
            busy
              ? undefined
              : button(command === 'startRuntime' ? t('Start runtime') : t('Show log'), () =>
                  this.#actions.host(command),
                ),
          ),
    );
  }
}
