/**
 * Beside the picture while a person records or has taken over: the instruction, the state in words, what can be done,
 * and the steps so far.
 */
import type { ControlState, ControlStep } from '../../runtime/protocol/types.js';
import { actionIcon, actionsWords } from '../ui/actions.js';
import { h, icon, replace, set, text } from '../ui/dom.js';
import { percent } from '../ui/format.js';
import { button } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import { busyIcon, RefusableButton } from './ask.js';
import {
  sessionActions,
  leftWords,
  originIcons,
  originWords,
  stepCount,
  type SessionAction,
  type ProposalWatch,
  type PageKnowledge,
} from './session.js';
import { sessionWords } from './sessionWords.js';
import { keepView, reportView, type Keeping } from './verdict.js';

export interface PanelActions extends Keeping {
  readonly does: Readonly<Record<SessionAction, () => void>>;
  refused(why: string): void;
  watchOn(): void;
  /** The element after the end of a try, in place of that of a recording or a take-over. `gone`: nothing is left. */
  after?(c: ControlState, gone: boolean): HTMLElement | undefined;
  openRollout(): void;
}
interface Shown {
  readonly c: ControlState;
  readonly s: PageKnowledge;
  readonly asking?: string | undefined;
  readonly proposal: ProposalWatch['state'];
}

const buttons: readonly {
  readonly action: SessionAction;
  readonly label: string;
  readonly icon: string;
  readonly key?: string;
  readonly title: string;
  readonly kind?: 'primary';
}[] = [
  {
    action: 'accept',
    label: t('Accept'),
    icon: 'check',
    key: 'Enter',
    title: t('Execute the proposed action'),
    kind: 'primary',
  },
  {
    action: 'handBack',
    label: t('Hand Back'),
    icon: 'debug-continue',
    key: 'H',
    title: t('The policy continues from here'),
  },
  {
    action: 'pause',
    label: t('Pause'),
    icon: 'debug-pause',
    key: 'T',
    title: t('The policy waits and you act'),
    kind: 'primary',
  },
  {
    action: 'actYourself',
    label: t('Act Yourself'),
    icon: 'person',
    key: 'T',
    title: t('The policy waits and proposes nothing; you act'),
  },
  {
    action: 'stepMode',
    label: t('Step Through'),
    icon: 'debug-step-over',
    key: 'S',
    title: t('The policy proposes each step and waits for your approval'),
  },
  {
    action: 'finish',
    label: t('Finish'),
    icon: 'pass',
    key: 'F',
    title: t('End it: the verifier judges what is on the desktop'),
  },
  { action: 'wait', label: t('Wait'), icon: 'watch', key: 'W', title: t('Record a wait: the screen needs time here') },
  {
    action: 'answer',
    label: t('Answer…'),
    icon: 'comment',
    key: 'A',
    title: t('End it with an answer, for tasks that ask a question'),
  },
  {
    action: 'cannot',
    label: t('Cannot Be Done…'),
    icon: 'circle-slash',
    title: t('End it by saying that the task is impossible, which is correct for some tasks'),
  },
  {
    action: 'drop',
    label: t('Leave Out Last Step'),
    icon: 'discard',
    key: 'X',
    title: t('The last step is left out of the recording; the desktop stays as it is'),
  },
  {
    action: 'stop',
    label: t('Stop'),
    icon: 'debug-stop',
    key: 'E',
    title: t('End it now; what was done so far can be kept'),
  },
  { action: 'discard', label: t('Discard…'), icon: 'trash', title: t('End it and keep nothing') },
];

export class Panel {
  readonly element: HTMLElement;
  readonly #instruction = h('p', { class: 'live-instruction', dir: 'auto' });
  readonly #task = h('p', { class: 'live-task' });
  readonly #now = h('div', { class: 'live-now' });
  readonly #word = h('h2', null);
  readonly #says = h('p', null);
  readonly #does: ReadonlyMap<SessionAction, RefusableButton>;
  readonly #buttons: HTMLElement;
  readonly #proposal = h('section', {
    class: 'live-proposal',
    hidden: true,
    'aria-label': t('What the policy proposes'),
  });
  readonly #after = h('div', { class: 'live-after', hidden: true });
  readonly #steps = h('ol', { class: 'live-steps' });
  readonly #count = h('h3', null);
  readonly #doing = h('div', { class: 'live-doing' });
  readonly #list: HTMLElement;
  readonly #actions: PanelActions;
  #word1 = '';
  #drawn: readonly string[] = [];
  #proposed = '';
  #ended = '';

  /** `o.steps`: the page lists them itself. */
  constructor(d: PanelActions, o: { readonly steps?: 'elsewhere' } = {}) {
    this.#actions = d;
    // Keys scroll what has the focus alone.
    new ResizeObserver(() => {
      const p = this.#instruction;
      set(p, { tabindex: p.scrollHeight > p.clientHeight ? 0 : undefined });
    }).observe(this.#instruction);
    this.#does = new Map(
      buttons.map((b) => [
        b.action,
        new RefusableButton(b.label, d.does[b.action], (why) => d.refused(why), {
          icon: b.icon,
          title: b.title,
          key: b.key,
          kind: b.kind,
        }),
      ]),
    );
    this.#buttons = h(
      'div',
      { class: 'live-buttons', role: 'group', 'aria-label': t('What you can do') },
      [...this.#does.values()].map((b) => b.element),
    );
    this.#list = h(
      'section',
      { class: 'live-recorded', tabindex: 0, 'aria-label': t('Steps recorded so far') },
      this.#count,
      this.#steps,
      this.#doing,
    );
    this.element = h(
      'aside',
      { class: 'live-panel', 'aria-label': t('You and the desktop') },
      h('div', { class: 'live-task-box' }, this.#instruction, this.#task),
      (replace(this.#now, this.#word, this.#says), this.#now),
      this.#proposal,
      this.#buttons,
      this.#after,
      o.steps === 'elsewhere' ? undefined : this.#list,
    );
  }

  /** The button of an action that the panel offers now. */
  button(action: SessionAction): HTMLElement | undefined {
    const b = this.#does.get(action)?.element;
    return b && !b.hidden && !this.element.hidden ? b : undefined;
  }

  render(v: Shown): void {
    const focused = document.activeElement,
      inside = focused instanceof HTMLElement && this.element.contains(focused);
    this.#update(v);
    // A button that disappears loses the focus; the next one gets it, unless the person is elsewhere in
    // the editor.
    if (inside && document.hasFocus() && (!focused.isConnected || focused.hidden || focused.closest('[hidden]')))
      (
        this.element.querySelector<HTMLElement>('.live-buttons:not([hidden]) vscode-button:not([hidden])') ?? this.#list
      ).focus();
  }
  #update(v: Shown): void {
    const { c, s } = v,
      w = sessionWords(c, s);
    text(this.#instruction, c.instruction);
    // A task that somebody wrote in their own words is none of a suite.
    const task = c.purpose === 'try' && c.family.startsWith('try/') ? [] : [c.task, t('seed {0}', c.seed)];
    const left = c.left === undefined || c.mode === 'ended' ? [] : [leftWords(c.left)];
    text(this.#task, [...task, ...left].join(' · '));
    const word = `${w.icon} ${w.word}`;
    if (word !== this.#word1) {
      this.#word1 = word;
      replace(this.#word, busyIcon(w.icon), w.word);
      this.#now.dataset['tone'] = w.tone;
    }
    text(this.#says, c.mode === 'verifying' || c.mode === 'ended' ? w.says : (v.asking ?? w.says));
    const can = sessionActions(c, s),
      busy = v.asking === undefined ? undefined : t('The runtime is busy with another request');
    for (const [action, b] of this.#does) {
      b.element.hidden = !can.has(action);
      b.setRefusal(busy ?? can.get(action));
    }
    const primary = c.purpose === 'record' ? 'finish' : c.mode === 'human' ? 'handBack' : undefined;
    for (const action of ['finish', 'handBack'] as const)
      this.#does.get(action)!.element.setAttribute('appearance', action === primary ? 'primary' : 'secondary');
    this.#buttons.hidden = can.size === 0;
    this.#showProposal(v);
    this.#showSteps(c);
    this.#showEnd(c, s);
  }

  #showProposal({ c, proposal }: Shown): void {
    const p = c.mode === 'step' ? c.proposal : undefined,
      key = p && proposal !== 'none' ? `${p.id} ${proposal}` : '';
    if (key === this.#proposed) return;
    this.#proposed = key;
    this.#proposal.hidden = key === '';
    if (!p) return;
    const state = {
      open: ['question', t('Proposed next action')],
      accepted: ['check', t('Accepted: it is being carried out')],
      overridden: ['person', t('You do something else instead')],
      none: ['', ''],
    }[proposal];
    replace(
      this.#proposal,
      h('h3', null, icon(state[0]!), state[1]!),
      p.thought ? h('blockquote', null, p.thought) : undefined,
      h(
        'p',
        { class: 'live-proposal-action' },
        p.actions[0] ? icon(actionIcon(p.actions[0])) : undefined,
        h('span', null, actionsWords(p.actions)),
        p.probability === undefined
          ? undefined
          : h(
              'span',
              { class: 'number chance', title: t('Probability that the policy gives this decision') },
              percent(p.probability),
            ),
      ),
      p.labels?.length
        ? h(
            'p',
            { class: 'live-labels' },
            p.labels.map((l) => h('code', null, l)),
          )
        : undefined,
    );
    this.#proposal.dataset['state'] = proposal;
  }

  /** Steps only ever come or go at the end: rows before stay as they are. */
  #showSteps(c: ControlState): void {
    const keys = c.steps.map((s) => `${s.index} ${s.origin} ${JSON.stringify(s.actions)}`),
      same = keys.findIndex((k, i) => k !== this.#drawn[i]),
      from = same < 0 ? keys.length : same;
    if (from < this.#drawn.length || from < keys.length) {
      for (const li of [...this.#steps.children].slice(from)) li.remove();
      this.#steps.append(...c.steps.slice(from).map(stepRow));
      this.#drawn = keys;
      [...this.#steps.children].forEach((li, i, all) => {
        li.classList.toggle('newest', i === all.length - 1);
        if (i === all.length - 1) li.setAttribute('aria-current', 'step');
        else li.removeAttribute('aria-current');
      });
      this.#list.scrollTop = this.#list.scrollHeight;
    }
    text(this.#count, stepCount(c.steps.length, c));
    const doing = c.mode === 'ended' || c.mode === 'verifying' ? undefined : c.doing;
    this.#doing.hidden = doing === undefined;
    if (doing !== undefined) {
      if (!this.#doing.childElementCount) replace(this.#doing, icon('edit'), h('span', null, ''));
      text(this.#doing.lastElementChild!, doing);
    }
  }

  #showEnd(c: ControlState, s: PageKnowledge): void {
    const over = c.mode === 'ended' || s.discarded || s.forgotten,
      key = over ? JSON.stringify([c.verdict, c.kept, s.discarded, s.forgotten, c.error]) : '';
    if (key === this.#ended) return;
    this.#ended = key;
    this.#after.hidden = !over;
    if (!over) return;
    const report = c.verdict?.report,
      { rollout } = c;
    replace(
      this.#after,
      report?.checks.length ? reportView(report) : undefined,
      this.#actions.after
        ? this.#actions.after(c, Boolean(s.discarded || s.forgotten))
        : c.purpose === 'record'
          ? keepView(c, Boolean(s.discarded || s.forgotten), this.#actions)
          : h(
              'div',
              { class: 'live-buttons' },
              button(t('Keep Watching'), () => this.#actions.watchOn(), {
                icon: 'eye',
                kind: 'primary',
                title: t('Back to watching the desktop'),
              }),
              rollout === undefined
                ? undefined
                : button(t('Open Trajectory'), () => this.#actions.openRollout(), {
                    icon: 'open-preview',
                    title: t('Step by step, in the inspector'),
                  }),
            ),
    );
  }
}

function stepRow(s: ControlStep): HTMLElement {
  return h(
    'li',
    { class: s.origin, title: s.thought },
    h('span', { class: 'number index' }, s.index + 1),
    s.actions[0] ? icon(actionIcon(s.actions[0])) : icon('dash'),
    h('span', { class: 'words' }, actionsWords(s.actions)),
    h('span', { class: 'origin' }, icon(originIcons[s.origin]), originWords[s.origin]),
  );
}
