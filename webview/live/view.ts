/** The view of the page's state: header, facts, the strip over the picture, notices, and what is read aloud. */
import { actionsWords } from '../ui/actions.js';
import type { Announcer } from '../ui/commands.js';
import { h, icon, replace, text } from '../ui/dom.js';
import { button, setPressed } from '../ui/toolkit.js';
import { around, t } from '../ui/words.js';
import { busyIcon, type RefusableButton } from './ask.js';
import type { Controller } from './controller.js';
import type { Panel } from './panel.js';
import type { Marked, Picture } from './picture.js';
import { proposalWords, recordedWords, takesOverSoon, takeOverRefusal } from './session.js';
import { sessionWords } from './sessionWords.js';
import { outcomeWords, stateWords, stepWords, type State, type Words } from './state.js';
import type { Surface } from './surface.js';
import type { TakeOverMode } from './takeOver.js';

/** "desktop-1" is Desktop 1. */
export const nameOf = (id: string): string => t('Desktop {0}', id.replace(/^desktop[-_ ]?/i, '')).trim();

/** The other parts of the page: each does its own work. */
export interface LiveParts {
  readonly picture: Picture;
  readonly surface: Surface;
  readonly control: Controller;
  readonly panel: Panel;
  readonly take: RefusableButton;
  readonly through: RefusableButton;
  readonly open: HTMLElement;
}

export class LiveView {
  readonly #picture: Picture;
  readonly #surface: Surface;
  readonly #control: Controller;
  readonly #panel: Panel;
  readonly #take: RefusableButton;
  readonly #through: RefusableButton;
  readonly #open: HTMLElement;
  readonly #spoken: Announcer;
  readonly #title = h('h1', { class: 'live-name' });
  readonly #state = h('span', { class: 'live-state' });
  readonly #says = h('p', { class: 'live-says' });
  readonly #task = h('dd', null);
  readonly #instruction = h('dd', { class: 'live-instruction', dir: 'auto' });
  readonly #step = h('dd', { class: 'number' });
  readonly #version = h('dd', { class: 'number' });
  readonly #action = h('dd', null);
  readonly #outcome = h('dd', null);
  readonly #empty = h('div', { class: 'live-empty' });
  readonly #strip = h('div', { class: 'live-strip' });
  readonly #notice = h('div', { class: 'ds-banner error live-notice', role: 'alert', hidden: true });
  readonly #facts: HTMLElement;
  readonly #main: HTMLElement;
  #s: State;
  #said = '';
  #saidSteps = 0;
  #noticed = '';

  constructor(root: HTMLElement, s: State, parts: LiveParts, spoken: Announcer) {
    this.#s = s;
    this.#picture = parts.picture;
    this.#surface = parts.surface;
    this.#control = parts.control;
    this.#panel = parts.panel;
    this.#take = parts.take;
    this.#through = parts.through;
    this.#open = parts.open;
    this.#spoken = spoken;
    this.#facts = this.#factList();
    this.#main = h(
      'main',
      { class: 'live-main' },
      h('div', { class: 'live-left' }, this.#strip, this.#picture.element, this.#empty, this.#facts),
      this.#panel.element,
    );
    replace(
      root,
      h(
        'div',
        { class: 'live' },
        h(
          'header',
          { class: 'live-head' },
          this.#title,
          this.#state,
          h('span', { class: 'ds-spring' }),
          this.#take.element,
          this.#through.element,
          this.#open,
          this.#picture.tools,
        ),
        this.#notice,
        this.#main,
        this.#spoken.element,
      ),
    );
  }
  /** Steps of another session are announced again. */
  reset(): void {
    this.#saidSteps = 0;
  }
  #factList(): HTMLElement {
    const fact = (name: string, value: HTMLElement): HTMLElement => h('div', null, h('dt', null, name), value);
    return h(
      'section',
      { class: 'live-facts', 'aria-label': t('What it works on') },
      h(
        'dl',
        null,
        fact(t('Task'), this.#task),
        fact(t('Instruction'), this.#instruction),
        fact(t('Step'), this.#step),
        fact(t('Version'), this.#version),
        fact(t('Last action'), this.#action),
        fact(t('Outcome'), this.#outcome),
      ),
      this.#says,
    );
  }

  /** `wish`: how the desktop is to be taken over as soon as it can be. */
  render(s: State, wish: TakeOverMode | undefined): void {
    this.#s = s;
    const k = this.#control,
      c = k.state,
      r = s.row,
      seen = s.pictureAt !== undefined;
    const inSession = k.session !== undefined,
      w = this.#words(s);
    text(this.#title, c?.purpose === 'record' ? t('Recording a demonstration') : nameOf(s.desktop));
    if (this.#state.dataset['word'] !== w.word) {
      this.#state.dataset['word'] = w.word;
      replace(this.#state, busyIcon(w.icon), w.word);
    }
    this.#speak(w, w.still || c !== undefined);
    this.#main.classList.toggle('controlled', c !== undefined);
    this.#facts.hidden = c !== undefined;
    this.#panel.element.hidden = c === undefined;
    for (const b of [this.#take, this.#through]) {
      b.element.hidden = inSession;
      b.setRefusal(k.taking ? undefined : (k.asking ?? (takesOverSoon(s) ? undefined : takeOverRefusal(s))));
    }
    setPressed(this.#take.element, wish === 'human');
    setPressed(this.#through.element, wish === 'step');
    this.#showFacts(k.asking ?? w.says);
    if (c ? (c.rollout ?? c.kept?.rollout) : r?.rollout) this.#open.removeAttribute('disabled');
    else this.#open.setAttribute('disabled', '');
    this.#open.hidden = c?.purpose === 'record';
    this.#empty.hidden = seen;
    if (!seen)
      replace(
        this.#empty,
        busyIcon(w.icon),
        h('p', null, w.still || c?.mode === 'starting' ? w.says : t('Waiting for the first picture…')),
      );
    this.#picture.element.hidden = !seen;
    const marked = this.#showPicture(s, w);
    this.#picture.hold(k.mayAct);
    this.#surface.enable(k.mayAct && this.#picture.worksOn && seen);
    this.#showStrip(seen);
    this.#showNotice();
    if (c) this.#panel.render({ c, s: k.knowledge, asking: k.asking, proposal: k.proposal.state });
    if (c?.proposal && marked?.proposal !== undefined) requestAnimationFrame((at) => k.proposal.drawn(at));
  }
  #words(s: State): Words {
    const k = this.#control;
    if (k.state) return sessionWords(k.state, k.knowledge);
    return k.knowledge.forgotten && !s.row
      ? {
          icon: 'debug-stop',
          word: t('Ended'),
          says: t('The runtime no longer has this session.'),
          still: true,
        }
      : stateWords(s);
  }
  /** The picture with what was done or is proposed on it. */
  #showPicture(s: State, w: Words): Marked | undefined {
    const marked = this.#marked();
    const words = [nameOf(s.desktop), w.word];
    if (marked)
      words.push(
        marked.proposal === undefined
          ? t('last action: {0}', actionsWords(marked.actions))
          : t('proposed: {0}', actionsWords(marked.actions)),
      );
    this.#picture.show(marked, words.join(', '), w.still);
    return marked;
  }
  #showFacts(says: string): void {
    const s = this.#s,
      r = s.row;
    text(this.#says, says);
    text(this.#task, r?.task ?? '–');
    text(this.#instruction, r?.instruction ?? '–');
    text(this.#step, (r && stepWords(r)) || '–');
    text(this.#version, r?.version === undefined ? '–' : `v${r.version}`);
    text(this.#action, s.step ? actionsWords(s.step.actions) : '–');
    text(this.#outcome, s.ended ? outcomeWords(s.ended) : r?.rollout ? t('Running') : '–');
  }
  /** The proposal while it is open; what the policy did last while it acts; nothing while a person acts. */
  #marked(): Marked | undefined {
    const c = this.#control.state,
      { step } = this.#s;
    if (!c || c.mode === 'policy')
      return step ? { key: `step ${this.#s.row?.rollout} ${step.index}`, actions: step.actions } : undefined;
    const p = c.mode === 'step' && this.#control.proposal.state !== 'overridden' ? c.proposal : undefined;
    return p
      ? { key: `proposal ${p.id}`, actions: p.actions, proposal: t('Proposed: {0}', proposalWords(p)) }
      : undefined;
  }
  #showStrip(seen: boolean): void {
    const k = this.#control,
      on = k.mayAct && seen,
      captured = on && this.#surface.captured && document.hasFocus();
    this.#strip.hidden = !on && !(seen && k.state?.mode === 'policy');
    const key = !on ? `off ${k.state?.mode}` : captured ? 'captured' : this.#picture.worksOn ? 'free' : 'hand';
    if (this.#strip.dataset['key'] === key) return;
    this.#strip.dataset['key'] = key;
    this.#strip.classList.toggle('captured', captured);
    const caps = (...keys: string[]): HTMLElement[] => keys.map((x) => h('kbd', null, x));
    replace(
      this.#strip,
      ...(key === 'captured'
        ? [
            icon('keyboard'),
            h('strong', null, t('The desktop has the keyboard')),
            h('span', null, around(t('{0} to take it back'), [caps('Ctrl'), ' + ', caps('Alt')])),
          ]
        : key === 'free'
          ? [
              icon('keyboard'),
              h('span', null, around(t('Click the picture or press {0} to give the desktop the keyboard'), caps('K'))),
            ]
          : key === 'hand'
            ? [icon('move'), h('span', null, t('The mouse pans the picture. Turn off “Pan the picture” to act on it'))]
            : [icon('eye'), h('span', null, t('You are watching'))]),
    );
  }
  #showNotice(): void {
    const n = this.#control.notice,
      key = n ? `${n.tone} ${n.words}` : '';
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
            button(t('Dismiss'), () => this.#control.dismiss(), { kind: 'icon', icon: 'close', title: t('Dismiss') }),
          ]
        : undefined,
    );
  }
  /** Each state once, in a session each recorded step and each proposal too. */
  #speak(w: Words, aloud: boolean): void {
    const c = this.#control.state,
      said = `${w.word} ${c?.proposal?.id ?? ''}`,
      steps = c?.steps.length ?? 0,
      newest = c?.steps.at(-1);
    const step =
      steps > this.#saidSteps && newest
        ? `${recordedWords(newest)}.`
        : steps < this.#saidSteps && c
          ? t('The last step is left out.')
          : '';
    this.#saidSteps = steps;
    if (said === this.#said && !step) return;
    const state =
      said === this.#said || !aloud
        ? ''
        : c?.mode === 'step' && c.proposal
          ? t('Proposed: {0}. Enter accepts.', proposalWords(c.proposal))
          : `${w.word}. ${w.says}`;
    this.#said = said;
    if (step || state) this.#spoken.say([step, state].filter(Boolean).join(' '));
  }
}
