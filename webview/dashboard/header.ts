/** Top of the page: which run, its state in a word, how far it is, and what can be done now. */
import type { RunState } from '../../runtime/protocol/types.js';
import type { Host } from '../ui/host.js';
import { h, icon, replace, text } from '../ui/dom.js';
import { button } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import { clock, timeOfDay } from './format.js';
import { isOver, last, stateOf, type Model } from './model.js';
import { progressBar } from './parts.js';
import { leftMs, stepsOf, type StepState } from './phases.js';
import { roving } from '../ui/roving.js';
import { explain } from './tip.js';

export const stateWords: Readonly<
  Record<RunState, { readonly icon: string; readonly word: string; readonly says: string }>
> = {
  running: {
    icon: 'play-circle',
    word: t('Running'),
    says: t('The runtime is training. It continues when VS Code is closed.'),
  },
  paused: {
    icon: 'debug-pause',
    word: t('Paused'),
    says: t('No new rollouts start; running ones finish, and the trainer continues with what it has.'),
  },
  stopping: {
    icon: 'loading',
    word: t('Stopping'),
    says: t('Rollouts end or are recorded as stopped, a checkpoint is written, and the desktops are removed.'),
  },
  finished: { icon: 'pass', word: t('Finished'), says: t('The run used its budget.') },
  stopped: { icon: 'debug-stop', word: t('Stopped'), says: t('It was stopped; it can be resumed.') },
  failed: {
    icon: 'error',
    word: t('Failed'),
    says: t('The run ended with an error; it can be resumed once the cause is fixed.'),
  },
  interrupted: {
    icon: 'debug-disconnect',
    word: t('Interrupted'),
    says: t('The runtime that ran it died. Everything that had been accepted is kept; resume it to continue.'),
  },
  elsewhere: {
    icon: 'terminal',
    word: t('Running elsewhere'),
    says: t('Another process, such as the command line, writes this run. It is shown read-only.'),
  },
};

const stepSigns: Readonly<Record<StepState, { readonly icon: string; readonly word: string }>> = {
  done: { icon: 'pass-filled', word: t('done') },
  now: { icon: 'record', word: t('now') },
  next: { icon: 'circle-large-outline', word: t('to come') },
  skipped: { icon: 'circle-slash', word: t('not reached') },
};

export interface HeaderActions {
  readonly failures: (from: HTMLElement) => void;
}
export class Header {
  readonly element: HTMLElement;
  readonly #host: Host<'dashboard'>;
  readonly #o: HeaderActions;
  readonly #name = h('h1', { class: 'run-name', dir: 'auto' });
  readonly #state = explain(h('span', { class: 'state', tabindex: 0 }), t('State of the run.'));
  readonly #phase = explain(h('span', { class: 'phase', tabindex: 0 }), t('What the run is doing now.'));
  readonly #time = explain(
    h('span', { class: 'num', tabindex: 0 }),
    t('Time the run has been active, of its budget. Time between a stop and a resume does not count.'),
  );
  readonly #version = explain(
    h('span', { class: 'num', tabindex: 0 }),
    t('Newest version of the policy: each update of the trainer makes one.'),
  );
  readonly #replicas = explain(
    h('span', { class: 'num dim', tabindex: 0 }),
    t('Versions that the policy replicas act with. They update one after another, so they can differ briefly.'),
  );
  readonly #steps = h('ol', { class: 'run-steps', 'aria-label': t('Phases of the run') });
  #stepsShown = '';
  readonly #left = explain(
    h('span', { class: 'num', tabindex: 0 }),
    t('Estimated time until the first budget limit, at the current pace. The final evaluation follows.'),
  );
  readonly #progress = progressBar(t('Budget used'));
  readonly #buttons = h('div', { class: 'buttons', role: 'toolbar', 'aria-label': t('Run') });
  #shown = '';

  constructor(host: Host<'dashboard'>, o: HeaderActions) {
    this.#host = host;
    this.#o = o;
    roving(this.#steps, '.run-step > span');
    this.element = h(
      'header',
      { class: 'top' },
      h('div', { class: 'top-row' }, h('div', { class: 'top-name' }, this.#name, this.#state), this.#buttons),
      this.#steps,
      h('div', { class: 'top-facts' }, this.#phase, this.#time, this.#left, this.#version, this.#replicas),
      this.#progress.element,
    );
  }

  render(m: Model): void {
    const d = m.detail,
      st = m.status,
      state = stateOf(m),
      words = state && stateWords[state];
    text(this.#name, d?.summary.name || d?.summary.id || m.run.split(/[\\/]/).pop() || t('Run'));
    this.#name.title = m.run;
    if (words && this.#state.dataset['state'] !== state) {
      this.#state.dataset['state'] = state;
      replace(this.#state, icon(words.icon), words.word);
      explain(this.#state, words.says);
    }
    this.#state.hidden = !words;
    // A runtime that is away has not ended it.
    const live = !isOver(m),
      elapsed = st?.elapsedMs ?? last(m, 'run.elapsedMs'),
      budget = st?.budgetMs;
    text(
      this.#phase,
      live && st
        ? `${st.phase}${st.detail ? `: ${st.detail}` : ''}`
        : d
          ? t('started {0}', new Date(d.summary.createdAt).toLocaleString())
          : '',
    );
    text(
      this.#time,
      elapsed === undefined
        ? ''
        : budget
          ? live
            ? t('{0} of {1}', clock(elapsed), clock(budget))
            : t('ran {0} of {1}', clock(elapsed), clock(budget))
          : live
            ? clock(elapsed)
            : t('ran {0}', clock(elapsed)),
    );
    text(this.#version, d ? `v${st?.version ?? d.summary.version}` : '');
    const versions = [...new Set(st?.replicaVersions ?? [])];
    text(this.#replicas, versions.length > 0 ? t('replicas {0}', versions.map((v) => `v${v}`).join(', ')) : '');
    const left = leftMs(m);
    text(
      this.#left,
      left === undefined || state !== 'running'
        ? ''
        : t('{0} left, until about {1}', clock(left), timeOfDay(Date.now() + left)),
    );
    this.#renderSteps(m);
    for (const e of [this.#phase, this.#time, this.#left, this.#version, this.#replicas])
      e.hidden = e.textContent === '';
    this.#progress.set(
      budget && elapsed !== undefined && live ? elapsed / budget : undefined,
      t('{0} of {1}', clock(elapsed), clock(budget)),
    );
    this.#renderButtons(m, state);
  }

  #renderSteps(m: Model): void {
    const steps = stepsOf(m),
      key = JSON.stringify(steps);
    if (key === this.#stepsShown) return;
    this.#stepsShown = key;
    this.#steps.hidden = steps.length === 0;
    replace(
      this.#steps,
      steps.map((x) => {
        const { icon: sign, word } = stepSigns[x.state];
        return h(
          'li',
          { class: `run-step ${x.state}`, ...(x.state === 'now' ? { 'aria-current': 'step' } : {}) },
          explain(
            h('span', { tabindex: -1 }, icon(sign), x.label, h('span', { class: 'sr-only' }, `, ${word}`)),
            [x.says, x.took === undefined ? '' : t('It took {0}.', clock(x.took))].filter(Boolean).join(' '),
          ),
        );
      }),
    );
  }
  #renderButtons(m: Model, state: RunState | undefined): void {
    const { collection, weightless } = m.detail?.summary ?? {},
      key = `${state} ${m.daemon} ${m.run} ${collection} ${weightless}`;
    if (key === this.#shown) return;
    this.#shown = key;
    const act: Act = (command) => (): void => this.#host.act({ action: 'command', command, argument: m.run });
    const ready = m.daemon === 'ready',
      out = [
        ...steerButtons(state, ready, act),
        // Without a policy there is nothing to resume or evaluate.
        ...(collection || weightless ? [] : checkpointButtons(state, ready, act)),
      ];
    const failures: HTMLElement = button(t('Open newest failures'), () => this.#o.failures(failures), {
      icon: 'bug',
      disabled: !ready,
      title: t('The most recent rollouts that failed'),
    });
    failures.setAttribute('aria-haspopup', 'dialog');
    if (state !== undefined)
      out.push(
        failures,
        button(t('Export as HTML…'), () => this.#host.act({ action: 'exportPage', run: m.run }), {
          icon: 'share',
          disabled: !ready,
          title: t('The run as one file for people without VS Code: curves, tables, examples'),
        }),
      );
    replace(this.#buttons, out);
  }
}
type Act = (command: 'pause' | 'resume' | 'stopTraining' | 'evaluate' | 'tryPolicy') => () => void;
const isActive = (state: RunState | undefined): boolean =>
  state === 'running' || state === 'paused' || state === 'stopping';
/** Buttons of an active run: pause or resume, and stop. */
function steerButtons(state: RunState | undefined, ready: boolean, act: Act): HTMLElement[] {
  const out: HTMLElement[] = [];
  if (state === 'running')
    out.push(
      button(t('Pause'), act('pause'), {
        icon: 'debug-pause',
        disabled: !ready,
        title: t('No new rollouts; running ones finish'),
      }),
    );
  if (state === 'paused')
    out.push(
      button(t('Resume'), act('resume'), {
        kind: 'primary',
        icon: 'play',
        disabled: !ready,
        title: t('Resume training'),
      }),
    );
  if (isActive(state))
    out.push(
      button(t('Stop…'), act('stopTraining'), {
        icon: 'debug-stop',
        disabled: !ready || state === 'stopping',
        title: t('End the run cleanly: a checkpoint is written and it can be resumed'),
      }),
    );
  return out;
}
/** Buttons of a run that is over: resume from its checkpoint, and evaluate; an active run cannot be evaluated yet. */
function checkpointButtons(state: RunState | undefined, ready: boolean, act: Act): HTMLElement[] {
  const out: HTMLElement[] = [],
    active = isActive(state);
  if (state !== undefined && !active && state !== 'elsewhere') {
    out.push(
      button(t('Resume Run…'), act('resume'), { icon: 'play', disabled: !ready, title: t('Continue this run') }),
    );
    out.push(
      button(t('Evaluate…'), act('evaluate'), {
        icon: 'beaker',
        disabled: !ready,
        title: t('Greedy episodes of a checkpoint on the run’s evaluation tasks'),
      }),
      button(t('Try Policy…'), act('tryPolicy'), {
        icon: 'hubot',
        disabled: !ready,
        title: t('Tell the trained policy what to do, and watch it on a separate desktop'),
      }),
    );
  } else if (active)
    out.push(
      button(t('Evaluate…'), act('evaluate'), {
        icon: 'beaker',
        disabled: true,
        title: t('A checkpoint can be evaluated once the run has ended; an active run is evaluated automatically'),
      }),
    );
  return out;
}
