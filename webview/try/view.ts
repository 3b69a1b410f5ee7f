/** The view of the page's state: form, picture or the screenshot of a step, the session beside it. */
import type { Controller } from '../live/controller.js';
import type { Panel } from '../live/panel.js';
import type { Marked, Picture } from '../live/picture.js';
import { proposalWords } from '../live/session.js';
import type { Surface } from '../live/surface.js';
import { trialWords } from '../live/trialWords.js';
import { actionsWords } from '../ui/actions.js';
import type { Announcer } from '../ui/commands.js';
import { h, icon, replace, text } from '../ui/dom.js';
import { heatCells } from '../ui/overlay.js';
import type { Stage } from '../ui/stage.js';
import { button, setPressed } from '../ui/toolkit.js';
import { around, t } from '../ui/words.js';
import type { TryForm } from './form.js';
import { over, type State } from './state.js';
import type { TryStepList } from './steps.js';

export interface TryParts {
  readonly form: TryForm;
  readonly picture: Picture;
  readonly stage: Stage;
  readonly panel: Panel;
  readonly list: TryStepList;
  readonly surface: Surface;
  readonly control: Controller;
  readonly spoken: Announcer;
  live(): void;
  heat(): void;
  train(): void;
  build(): void;
  /** Reads again what can be tried. */
  read(): void;
}

export class TryView {
  readonly #p: TryParts;
  readonly #about = h('p', { class: 'try-about' });
  readonly #notes = h('ul', { class: 'try-notes' });
  readonly #notice = h('div', { class: 'ds-banner live-notice', role: 'alert', hidden: true });
  readonly #strip = h('div', { class: 'live-strip' });
  readonly #empty = h('div', { class: 'live-empty' });
  readonly #fold: HTMLDetailsElement;
  readonly #narrow = matchMedia('(max-width: 760px)');
  readonly #side: HTMLElement;
  readonly #bar: HTMLElement;
  readonly #live: HTMLElement;
  readonly #heat: HTMLElement;
  #noticed = '';
  #said = '';
  #emptied = '';
  #busy = false;

  constructor(root: HTMLElement, p: TryParts) {
    this.#p = p;
    this.#live = button(t('Live'), p.live, {
      icon: 'vm-running',
      pressed: true,
      title: t('The desktop as it is now (L)'),
    });
    this.#heat = button(t('Click heat map'), p.heat, {
      icon: 'flame',
      pressed: true,
      title: t('Show click heat map: probability at each point (M)'),
      keys: 'm',
    });
    this.#bar = h(
      'div',
      { class: 'try-bar' },
      this.#live,
      this.#heat,
      h('span', { class: 'ds-spring' }),
      p.picture.tools,
    );
    this.#fold = h('details', { class: 'try-fold', open: true }, h('summary', null, t('What to try')), p.form.element);
    this.#narrow.addEventListener('change', () => this.#foldForm());
    this.#side = h(
      'div',
      { class: 'try-side' },
      h('div', { class: 'try-trial' }, this.#about, this.#notes),
      p.panel.element,
      p.list.element,
    );
    replace(
      root,
      h(
        'div',
        { class: 'live try' },
        h('header', { class: 'try-head' }, h('h1', { class: 'live-name' }, t('Try Policy')), this.#fold),
        this.#notice,
        h(
          'main',
          { class: 'live-main' },
          h('div', { class: 'live-left' }, this.#bar, this.#strip, p.picture.element, p.stage.element, this.#empty),
          this.#side,
        ),
        p.spoken.element,
      ),
    );
  }

  render(s: State, missing: string | undefined): void {
    const { form, picture, stage, panel, list, surface, control: k } = this.#p,
      c = k.state,
      session = k.session !== undefined && c !== undefined,
      gone = k.knowledge.forgotten === true || k.knowledge.discarded === true,
      seen = session && s.pictured,
      looking = session && s.selected !== undefined ? s.steps[s.selected] : undefined;
    const busy = session && !over(c) && !gone;
    form.render(s, missing, busy);
    if (busy !== this.#busy) {
      this.#busy = busy;
      this.#foldForm();
    }
    this.#side.hidden = panel.element.hidden = !session;
    this.#bar.hidden = !session;
    picture.element.hidden = !seen || looking !== undefined;
    stage.element.hidden = looking === undefined;
    picture.tools.hidden = looking !== undefined;
    setPressed(this.#live, looking === undefined);
    setPressed(this.#heat, s.heat);
    const still = c === undefined || over(c) || gone,
      marked = this.#marked(s);
    picture.show(marked, this.#pictureWords(marked), still);
    picture.hold(k.mayAct);
    surface.enable(k.mayAct && picture.worksOn && seen && looking === undefined);
    if (looking) stage.update({ step: looking, shot: s.shot, heat: s.heat });
    this.#showEmpty(s, session, seen || looking !== undefined);
    this.#showStrip(seen && looking === undefined);
    this.#showTrial();
    this.#showNotice(s);
    if (c) panel.render({ c, s: k.knowledge, asking: k.asking, proposal: k.proposal.state });
    list.render(s, session ? c : undefined);
    this.#speak();
    if (c?.proposal && marked?.proposal !== undefined && looking === undefined)
      requestAnimationFrame((at) => k.proposal.drawn(at));
  }
  /** In a narrow window the fields, which nothing can be entered in while a session runs, leave their room to it. */
  #foldForm(): void {
    const folds = this.#busy && this.#narrow.matches;
    this.#fold.classList.toggle('folds', folds);
    this.#fold.open = !folds;
  }
  #pictureWords(marked: Marked | undefined): string {
    const { state, knowledge } = this.#p.control,
      words = state ? [trialWords(state, knowledge).word] : [];
    if (marked)
      words.push(
        marked.proposal === undefined
          ? t('last action: {0}', actionsWords(marked.actions))
          : t('proposed: {0}', actionsWords(marked.actions)),
      );
    return [t('Desktop'), ...words].join(', ');
  }
  /** The proposal while it is open; what the policy did last while it acts; nothing while a person acts. */
  #marked(s: State): Marked | undefined {
    const k = this.#p.control,
      c = k.state,
      heatOf = (step: State['steps'][number]): Pick<Marked, 'heat'> => (s.heat ? { heat: heatCells(step.tokens) } : {}),
      on = s.heat ? 'heat' : '';
    if (c?.mode === 'policy' || c?.mode === 'verifying') {
      const step = s.steps.at(-1);
      return step && { key: `step ${s.session} ${step.index} ${on}`, actions: step.actions, ...heatOf(step) };
    }
    const p = c?.mode === 'step' && k.proposal.state !== 'overridden' ? c.proposal : undefined;
    if (!p) return undefined;
    const known = s.proposal?.id === p.id ? s.proposal.step : undefined;
    return {
      key: `proposal ${p.id} ${on} ${known !== undefined}`,
      actions: p.actions,
      proposal: t('Proposed: {0}', proposalWords(p)),
      ...(known ? heatOf(known) : {}),
    };
  }

  #showEmpty(s: State, session: boolean, shown: boolean): void {
    this.#empty.hidden = shown;
    const nothing = s.policies?.length === 0,
      key = shown ? '' : `${s.starting} ${session} ${nothing} ${s.daemon}`;
    if (key === this.#emptied) return;
    this.#emptied = key;
    const [name, words, ...more] = s.starting
      ? [
          'loading codicon-modifier-spin',
          t('The policy and a desktop are being started. The first time takes longest.'),
        ]
      : session
        ? ['loading codicon-modifier-spin', t('Waiting for the first picture…')]
        : s.daemon !== 'ready'
          ? ['debug-disconnect', t('The runtime is not running; desktops and policies need it.')]
          : nothing
            ? [
                'hubot',
                t('There is no policy to try yet: no run here has a checkpoint, and no run file names a model.'),
                button(t('Start Training…'), () => this.#p.train(), { icon: 'play', kind: 'primary' }),
              ]
            : [
                'hubot',
                t(
                  'Choose a policy, enter an instruction, and press Try. It acts on a separate desktop. Nothing is saved unless you choose Keep.',
                ),
              ];
    replace(this.#empty, icon(name), h('p', null, words), more);
  }
  #showStrip(seen: boolean): void {
    const k = this.#p.control,
      on = k.mayAct && seen,
      captured = on && this.#p.surface.captured && document.hasFocus(),
      key = !on ? 'off' : captured ? 'captured' : 'free';
    this.#strip.hidden = !on;
    if (this.#strip.dataset['key'] === key) return;
    this.#strip.dataset['key'] = key;
    this.#strip.classList.toggle('captured', captured);
    const cap = (x: string): HTMLElement => h('kbd', null, x);
    replace(
      this.#strip,
      icon('keyboard'),
      captured
        ? h(
            'span',
            null,
            around(t('The desktop has the keyboard; press {0} to take it back'), [cap('Ctrl'), ' + ', cap('Alt')]),
          )
        : h('span', null, around(t('Click the picture or press {0} to give the desktop the keyboard'), [cap('K')])),
    );
  }
  /** Shows which policy acts, and where the instruction is unlike those that it learned from. */
  #showTrial(): void {
    const trial = this.#p.control.state?.trial;
    text(
      this.#about,
      trial
        ? [
            trial.policy,
            t('desktop {0}', trial.image),
            trial.verified ? t('a verifier judges') : t('you judge'),
            ...(trial.heldOut ? [t('held out')] : []),
          ].join(' · ')
        : '',
    );
    const notes = trial?.notes ?? [];
    if (this.#notes.dataset['key'] === notes.join('\n')) return;
    this.#notes.dataset['key'] = notes.join('\n');
    replace(
      this.#notes,
      notes.map((n) => h('li', null, icon('info'), h('span', null, n))),
    );
  }
  #showNotice(s: State): void {
    const k = this.#p.control,
      { error } = s,
      n = error ? { words: [error.message, error.remedy].filter(Boolean).join(' '), tone: 'error' as const } : k.notice,
      unread = error !== undefined && s.policies === undefined,
      key = n ? `${n.tone} ${unread} ${n.words}` : '';
    if (key === this.#noticed) return;
    this.#noticed = key;
    this.#notice.hidden = !n;
    this.#notice.className = `ds-banner live-notice ${n?.tone ?? 'info'}`;
    replace(
      this.#notice,
      n
        ? [
            icon(n.tone === 'error' ? 'error' : 'info'),
            h('div', { class: 'words' }, n.words),
            error?.kind === 'desktop.image'
              ? button(t('Build Desktop Image'), () => this.#p.build(), { icon: 'tools' })
              : undefined,
            unread ? button(t('Try again'), () => this.#p.read(), { icon: 'refresh' }) : undefined,
          ]
        : undefined,
    );
  }
  /** Each state once. */
  #speak(): void {
    const { state: c, knowledge } = this.#p.control;
    if (!c) return;
    const w = trialWords(c, knowledge),
      said = `${c.session} ${w.word} ${c.proposal?.id ?? ''}`;
    if (said === this.#said) return;
    this.#said = said;
    this.#p.spoken.say(
      c.mode === 'step' && c.proposal
        ? t('Proposed: {0}. Enter accepts.', proposalWords(c.proposal))
        : `${w.word}. ${w.says}`,
    );
  }
}
