/** Live desktop: wires the page to the host. One page for watching a desktop, recording on it and taking it over. */
import { orUndefined } from '../../runtime/protocol/failures.js';
import { around, t } from '../ui/words.js';
import './style.css';
import type { DesktopRow } from '../../runtime/protocol/types.js';
import { actionsWords } from '../ui/actions.js';
import { Announcer, Commands } from '../ui/commands.js';
import { h, icon, replace, text } from '../ui/dom.js';
import { Host, type Init, type Pushed } from '../ui/host.js';
import { button, registerToolkit, setPressed } from '../ui/toolkit.js';
import { ask, busyIcon, WhyButton } from './ask.js';
import { Controller } from './controller.js';
import { Panel, type PanelDeeds } from './panel.js';
import { Picture, type Marked, type Zoom } from './picture.js';
import {
  mayAct,
  proposalWords,
  recordedWords,
  sessionWords,
  takesOverSoon,
  whyNotTakeOver,
  type Deed,
} from './session.js';
import { outcomeWords, reduce, stateWords, stepWords, type Message, type State, type Words } from './state.js';
import { Surface } from './surface.js';

registerToolkit();
const host = new Host<'live'>();

/** "desktop-1" is Desktop 1. */
const nameOf = (id: string): string => t('Desktop {0}', id.replace(/^desktop[-_ ]?/i, '')).trim();
const hasKeyboard = t('The desktop has the keyboard. Control and Alt together, pressed and let go, give it back.');

class LivePage {
  readonly #picture: Picture;
  readonly #surface: Surface;
  readonly #control: Controller;
  readonly #panel: Panel;
  readonly #commands: Commands;
  readonly #spoken = new Announcer();
  readonly #title = h('h1', { class: 'live-name' });
  readonly #state = h('span', { class: 'live-state' });
  readonly #says = h('p', { class: 'live-says' });
  readonly #task = h('dd', null);
  readonly #instruction = h('dd', { class: 'live-instruction' });
  readonly #step = h('dd', { class: 'number' });
  readonly #version = h('dd', { class: 'number' });
  readonly #action = h('dd', null);
  readonly #outcome = h('dd', null);
  readonly #empty = h('div', { class: 'live-empty' });
  readonly #strip = h('div', { class: 'live-strip' });
  readonly #notice = h('div', { class: 'ds-banner error live-notice', role: 'alert', hidden: true });
  readonly #facts: HTMLElement;
  readonly #main: HTMLElement;
  readonly #open: HTMLElement;
  readonly #take: WhyButton;
  readonly #through: WhyButton;
  #s: State;
  #zoom: Zoom;
  #asked = 0;
  #following = '';
  #failed = '';
  #said = '';
  #saidSteps = 0;
  #noticed = '';
  #wish: { readonly mode: 'human' | 'step'; readonly asked?: string } | undefined;
  #kept = '';
  #pressed: Pick<KeyboardEvent, 'timeStamp' | 'repeat'> = { timeStamp: 0, repeat: false };

  constructor(root: HTMLElement, init: Init) {
    this.#s = { desktop: '', daemon: init.daemon, gone: false };
    this.#zoom = host.getState<{ zoom?: Zoom }>()?.zoom;
    this.#picture = new Picture(this.#zoom, (zoom) => {
      this.#zoom = zoom;
      this.#keep();
    });
    this.#picture.handChanged = () => this.#ask();
    this.#control = new Controller(host, init.daemon, () => this.#ask());
    this.#surface = new Surface(this.#picture.element, {
      place: () => this.#picture.place(),
      push: (e) => this.#control.input(e),
      flush: () => this.#control.flush(),
      hover: () => this.#control.state?.mode === 'human',
      captured: (on) => {
        this.#picture.element.classList.toggle('captured', on);
        if (on) this.#spoken.say(hasKeyboard);
        this.#ask();
      },
      key: (e) => this.#enter(e),
    });
    this.#panel = new Panel(this.#deeds());
    const refused = (why: string): void => this.#refused(why);
    this.#take = new WhyButton(t('Take Over'), () => this.#takeOver('human'), refused, {
      icon: 'person',
      key: 'T',
      title: t('The policy waits before its next step and you act'),
    });
    this.#through = new WhyButton(t('Step Through'), () => this.#takeOver('step'), refused, {
      icon: 'debug-step-over',
      key: 'S',
      title: t('The policy proposes each step and waits for your consent'),
    });
    this.#open = button(t('Open Trajectory'), () => this.#openRollout(), {
      icon: 'open-preview',
      title: t('The rollout under way, step by step'),
    });
    addEventListener(
      'keydown',
      (e) => {
        this.#pressed = e;
      },
      true,
    );
    this.#commands = this.#keys();
    this.#picture.element.addEventListener('keydown', (e) => {
      if (
        e.target === this.#picture.element &&
        e.key === 'Enter' &&
        !e.repeat &&
        this.#control.mayAct &&
        this.#control.state?.mode === 'human'
      ) {
        e.preventDefault();
        this.#surface.capture();
      }
    });
    const fact = (name: string, value: HTMLElement): HTMLElement => h('div', null, h('dt', null, name), value);
    this.#facts = h(
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
    host.on((m) => this.#pushed(m));
    if (init.input.kind === 'live') this.#show(init.input.desktop, init.daemon, init.input.session);
  }

  #show(desktop: string, daemon: State['daemon'], session?: string): void {
    this.#saidSteps = 0;
    // The same desktop, in somebody's hands now: its pictures go on.
    if (desktop !== this.#s.desktop) {
      this.#following = '';
      this.#dispatch({ type: 'open', desktop, daemon });
    }
    document.title = nameOf(desktop);
    this.#control.show(desktop, session);
    this.#keep();
    if (daemon === 'ready') void this.#load();
  }
  /** What a page that is built again starts from. */
  #keep(): void {
    const { session } = this.#control,
      { desktop } = this.#s,
      key = JSON.stringify([desktop, session, this.#zoom]);
    if (key === this.#kept) return;
    this.#kept = key;
    host.setState({
      input: { kind: 'live', desktop, ...(session === undefined ? {} : { session }) },
      ...(this.#zoom === undefined ? {} : { zoom: this.#zoom }),
    });
  }
  async #load(): Promise<void> {
    const { desktop, row: before } = this.#s;
    const r = await orUndefined(host.request('desktop/list', {}), 'the row is pushed when it changes');
    const row = r?.desktops.find((d) => d.desktop === desktop);
    // What was pushed meanwhile is newer than the answer.
    if (r && this.#s.desktop === desktop && this.#s.row === before) {
      if (row) this.#dispatch({ type: 'row', row });
      else if (!this.#s.row) this.#dispatch({ type: 'row' });
    }
  }
  /** The steps of the rollout under way: those it has, then each as it happens. */
  async #follow(row: DesktopRow): Promise<void> {
    const key = `${row.run} ${row.rollout}`;
    if (!row.rollout || key === this.#following || `${key} ${row.step}` === this.#failed) return;
    this.#following = key;
    const view = await orUndefined(
      host.request('trajectory/get', { run: row.run, rollout: row.rollout }),
      'a rollout that was only just ordered may not be known yet: its next step asks again',
    );
    if (this.#following !== key) return;
    if (!view) {
      this.#following = '';
      this.#failed = `${key} ${row.step}`;
      return;
    }
    this.#dispatch({ type: 'trajectory', view });
    if (view.live && view.seq !== undefined)
      host.subscribe({ run: row.run, sinceSeq: view.seq, rollout: row.rollout, types: ['step', 'ended'] });
  }
  #pushed(m: Pushed): void {
    switch (m.type) {
      case 'show':
        if (
          m.input.kind === 'live' &&
          (m.input.desktop !== this.#s.desktop || m.input.session !== this.#control.session)
        )
          this.#show(m.input.desktop, this.#s.daemon, m.input.session);
        break;
      case 'daemon': {
        const back = m.state === 'ready' && this.#s.daemon !== 'ready';
        this.#dispatch({ type: 'daemon', state: m.state });
        this.#control.daemonIs(m.state);
        if (back) {
          this.#following = '';
          void this.#load();
        }
        break;
      }
      case 'desktop':
        if (m.desktop === this.#s.desktop) this.#dispatch({ type: 'row', row: m.row });
        break;
      case 'screen':
        this.#picture.patch(m, (e) => {
          throw e;
        });
        if (this.#s.pictureAt === undefined) this.#dispatch({ type: 'screen', at: m.at });
        break;
      case 'control':
        this.#control.pushed(m.state);
        break;
      case 'events':
        this.#dispatch({ type: 'events', events: m.events });
        break;
      case 'do':
        this.#commands.run(m.what, m.context);
        break;
      default:
        break;
    }
  }
  #dispatch(m: Message): void {
    this.#s = reduce(this.#s, m);
    if (m.type === 'row' && m.row) {
      void this.#follow(m.row);
      this.#wished();
    }
    this.#ask();
  }
  #ask(): void {
    this.#asked ||= requestAnimationFrame(() => {
      this.#asked = 0;
      this.#render();
    });
  }

  // --- what a person does ---

  /** At once, or as soon as a rollout can be taken; asked again, it is called off. */
  #takeOver(mode: 'human' | 'step'): void {
    if (this.#control.taking) {
      this.#control.callOff();
      this.#wish = undefined;
      return;
    }
    if (this.#wish?.mode !== mode && !takesOverSoon(this.#s)) {
      this.#takeNow(mode);
      return;
    }
    this.#wish = this.#wish?.mode === mode ? undefined : { mode };
    if (this.#wish)
      this.#refused(
        [t('It is yours as soon as a rollout can be taken over.'), whyNotTakeOver(this.#s)].filter(Boolean).join(' '),
      );
    else this.#control.dismiss();
  }
  /** A rollout that refuses, as one of an evaluation does, is asked once; the wish stays for the next. */
  #wished(): void {
    const w = this.#wish,
      rollout = this.#s.row?.rollout;
    if (this.#control.session !== undefined) this.#wish = undefined;
    else if (
      w &&
      rollout !== undefined &&
      w.asked !== rollout &&
      this.#control.asking === undefined &&
      whyNotTakeOver(this.#s) === undefined
    ) {
      this.#wish = { mode: w.mode, asked: rollout };
      this.#takeNow(w.mode);
    }
  }
  #takeNow(mode: 'human' | 'step'): void {
    const asked = this.#s.row?.rollout;
    void this.#control.takeOver(this.#s.desktop, mode).then((how) => {
      if (how === 'taken') this.#wish = undefined;
      // The next one may be there already.
      else if (how === 'later') {
        this.#wish = { mode, ...(asked === undefined ? {} : { asked }) };
        this.#wished();
      }
      if (document.hasFocus() && (document.activeElement === document.body || document.activeElement === null))
        this.#picture.element.focus();
      this.#ask();
    });
  }
  #openRollout(): void {
    const c = this.#control.state,
      r = this.#s.row,
      run = c?.run ?? r?.run,
      rollout = c ? (c.rollout ?? c.kept?.rollout) : r?.rollout;
    if (run !== undefined && rollout !== undefined) host.act({ action: 'openTrajectory', run, rollout, beside: true });
  }
  #refused(why: string): void {
    this.#control.notice = { words: `${why}.`, tone: 'info' };
    this.#ask();
  }
  #deeds(): PanelDeeds {
    const c = this.#control;
    const does: Record<Deed, () => void> = {
      accept: () => {
        if (!c.accept(performance.now(), true)) this.#refused(t('This proposal has only just come: look at it first'));
      },
      handBack: () => void c.mode('policy'),
      pause: () => void c.mode('human'),
      actYourself: () => void c.mode('human'),
      stepMode: () => void c.mode('step'),
      finish: () => void c.finish(),
      wait: () => void c.act({ type: 'wait' }),
      drop: () => void c.drop(),
      answer: () =>
        void this.#final(
          {
            title: t('Answer'),
            says: t('It ends with this answer, and the verifier judges it.'),
            yes: t('Answer and Finish'),
            icon: 'comment',
            field: { label: t('Answer'), required: t('An answer is missing. Without one, press Finish instead.') },
          },
          (answer) => ({ type: 'finished', answer }),
        ),
      cannot: () =>
        void this.#final(
          {
            title: t('This cannot be done'),
            says: t('It ends by saying that the task is impossible. The verifier knows whether that is right.'),
            yes: t('Cannot Be Done'),
            icon: 'circle-slash',
            field: { label: t('Reason (may be empty)') },
          },
          (reason) => ({ type: 'fail', ...(reason ? { reason } : {}) }),
        ),
      discard: () => void this.#discard(),
    };
    return {
      does,
      refused: (why) => this.#refused(why),
      discard: () => void this.#discard(),
      openRollout: () => this.#openRollout(),
      keep: (pool, note, tags) => void c.keep({ pool, ...(note ? { note } : {}), ...(tags.length ? { tags } : {}) }),
      override: (note, tags) =>
        void ask({
          title: t('Add to the pool anyway'),
          says: t(
            'The verifier did not confirm it. Training will imitate it all the same; the reason is kept beside it.',
          ),
          yes: t('Add to Pool'),
          icon: 'database',
          field: { label: t('Reason'), required: t('A reason is needed.') },
        }).then((reason) => {
          if (reason)
            void c.keep({ pool: 'override', reason, ...(note ? { note } : {}), ...(tags.length ? { tags } : {}) });
        }),
      open: (rollout) => {
        if (c.state) host.act({ action: 'openTrajectory', run: c.state.run, rollout, beside: true });
      },
      annotate: (rollout) => {
        if (c.state) host.act({ action: 'annotate', run: c.state.run, rollout });
      },
      again: () =>
        host.act({ action: 'command', command: 'recordDemonstration', ...(c.state ? { argument: c.state.run } : {}) }),
      watchOn: () => {
        c.show(this.#s.desktop, undefined);
        this.#picture.element.focus();
      },
    };
  }
  /** An action that ends it; Finish follows where the runtime does not end it by itself. */
  async #final(
    q: Parameters<typeof ask>[0],
    action: (said: string) => Parameters<Controller['act']>[0],
  ): Promise<void> {
    const said = await ask(q);
    if (
      said !== undefined &&
      (await this.#control.act(action(said))) &&
      mayAct(this.#control.state, this.#control.standing)
    )
      await this.#control.finish();
  }
  async #discard(): Promise<void> {
    const c = this.#control.state;
    if (!c) return;
    const sure = c.kept
      ? t('It leaves the experience pool and is tagged “discarded”.')
      : c.steps.length || c.verdict
        ? c.steps.length === 1
          ? t('1 recorded step is thrown away.')
          : t('{0} recorded steps are thrown away.', c.steps.length)
        : undefined;
    if (
      sure === undefined ||
      (await ask({ title: t('Discard this demonstration?'), says: sure, yes: t('Discard'), icon: 'trash' })) !==
        undefined
    )
      await this.#control.discard();
  }
  /**
   * Enter while the desktop has the keyboard: in step mode it answers the proposal, unless something else is being
   * done.
   */
  #enter(e: KeyboardEvent): boolean {
    const c = this.#control;
    if (
      e.key !== 'Enter' ||
      c.state?.mode !== 'step' ||
      c.overriding ||
      e.ctrlKey ||
      e.altKey ||
      e.shiftKey ||
      e.metaKey
    )
      return false;
    this.#accept();
    return true;
  }
  /**
   * An Enter that comes too soon, or too late for the last proposal, accepts nothing. It counts when it was pressed,
   * not when the page got to it.
   */
  #accept(): void {
    const { proposal } = this.#control;
    if (!this.#pressed.repeat && !this.#control.accept(this.#pressed.timeStamp) && proposal.state === 'open')
      this.#spoken.say(t('The proposal is new. Look at it, then press Enter.'));
  }
  #keys(): Commands {
    const on = (deed: Deed, orElse?: () => void) => (): void => {
      const b = this.#panel.button(deed);
      if (this.#control.state && b) b.click();
      else if (!this.#control.state) orElse?.();
    };
    const click = (b: WhyButton) => (): void => b.element.click(),
      run = t('Rollout'),
      work = t('In control');
    const c = (
      name: string,
      keys: readonly string[],
      words: string,
      group: string,
      go: () => void,
    ): ConstructorParameters<typeof Commands>[0][number] => ({ name, keys, words, group, run: go });
    return new Commands([
      c('takeOver', ['t', 'T'], t('Take over; pause the policy'), run, () => {
        const b = this.#panel.button('pause') ?? this.#panel.button('actYourself');
        if (!this.#control.state) click(this.#take)();
        else b?.click();
      }),
      c(
        'stepThrough',
        ['s', 'S'],
        t('Step through: the policy asks before each step'),
        run,
        on('stepMode', click(this.#through)),
      ),
      c('handBack', ['h', 'H'], t('Hand back to the policy'), run, on('handBack')),
      c('accept', ['Enter'], t('Accept the proposal'), run, () => this.#accept()),
      c(
        'capture',
        ['k', 'K'],
        t('Give the desktop the keyboard (Ctrl+Alt, pressed and let go, gives it back)'),
        work,
        () => {
          if (this.#control.mayAct) this.#surface.capture();
        },
      ),
      c('finish', ['f', 'F'], t('Finish: the verifier judges'), work, on('finish')),
      c('wait', ['w', 'W'], t('Record a wait'), work, on('wait')),
      c('answer', ['a', 'A'], t('Finish with an answer'), work, on('answer')),
      c('dropStep', ['x', 'X'], t('Leave out the last step'), work, on('drop')),
      c('openTrajectory', ['o', 'O'], t('Open the trajectory'), t('Page'), () => this.#openRollout()),
    ]);
  }

  // --- what is shown ---

  #render(): void {
    const s = this.#s,
      k = this.#control,
      c = k.state,
      r = s.row,
      seen = s.pictureAt !== undefined;
    const inSession = k.session !== undefined,
      w: Words = c
        ? sessionWords(c, k.standing)
        : k.standing.forgotten
          ? {
              icon: 'debug-stop',
              word: t('Over'),
              says: t('The runtime does not know this session any more.'),
              still: true,
            }
          : stateWords(s);
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
      b.can(k.taking ? undefined : (k.asking ?? (takesOverSoon(s) ? undefined : whyNotTakeOver(s))));
    }
    setPressed(this.#take.element, this.#wish?.mode === 'human');
    setPressed(this.#through.element, this.#wish?.mode === 'step');
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
    const marked = this.#marked();
    this.#picture.show(
      marked,
      [
        nameOf(s.desktop),
        w.word,
        ...(marked
          ? [
              marked.proposal === undefined
                ? t('last action: {0}', actionsWords(marked.actions))
                : t('proposed: {0}', actionsWords(marked.actions)),
            ]
          : []),
      ].join(', '),
      w.still,
    );
    this.#picture.hold(k.mayAct);
    this.#surface.enable(k.mayAct && this.#picture.worksOn && seen);
    this.#showStrip(seen);
    this.#showNotice();
    if (c) this.#panel.render({ c, s: k.standing, asking: k.asking, proposal: k.proposal.state });
    if (c?.proposal && marked?.proposal !== undefined) requestAnimationFrame((at) => k.proposal.drawn(at));
    this.#keep();
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
    text(this.#outcome, s.ended ? outcomeWords(s.ended) : r?.rollout ? t('Under way') : '–');
  }
  /** The proposal while it is open; what the policy did last while it acts; nothing in a person's way. */
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
            h('span', null, around(t('{0} gives it back'), [caps('Ctrl'), ' + ', caps('Alt')])),
          ]
        : key === 'free'
          ? [
              icon('keyboard'),
              h('span', null, around(t('Click the picture or press {0} to give the desktop the keyboard'), caps('K'))),
            ]
          : key === 'hand'
            ? [
                icon('move'),
                h('span', null, t('The mouse moves the picture. Switch “Move the picture” off to work on it')),
              ]
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

void host.start().then((init) => new LivePage(document.getElementById('app') ?? document.body, init));
