/** Try Policy: wires the page to the host. What is tried is chosen above; the session is a control session (live/). */
import { orUndefined } from '../../runtime/protocol/failures.js';
import type { ControlState, TryParams } from '../../runtime/protocol/types.js';
import type { InputOf } from '../protocol.js';
import { ask } from '../live/ask.js';
import { Controller } from '../live/controller.js';
import { Hands } from '../live/hands.js';
import { Panel } from '../live/panel.js';
import { panelActions } from '../live/panelActions.js';
import { Picture, type Zoom } from '../live/picture.js';
import type { SessionAction } from '../live/session.js';
import { Announcer, Commands } from '../ui/commands.js';
import { Frames } from '../ui/frames.js';
import { hostErrorOf, type Host, type Init, type Pushed } from '../ui/host.js';
import { Stage } from '../ui/stage.js';
import { t } from '../ui/words.js';
import { TryForm } from './form.js';
import { trialKeepView, type TrialKeeping } from './keep.js';
import {
  askedOf,
  begin,
  emptyForm,
  over,
  paramsOf,
  policyOf,
  reduce,
  type Form,
  type Message,
  type State,
} from './state.js';
import { TryStepList } from './steps.js';
import { TryView } from './view.js';

export class App {
  readonly #host: Host<'try'>;
  readonly #control: Controller;
  readonly #picture: Picture;
  readonly #hands: Hands;
  readonly #panel: Panel;
  readonly #stage: Stage;
  readonly #frames: Frames;
  readonly #form: TryForm;
  readonly #list: TryStepList;
  readonly #view: TryView;
  readonly #commands: Commands;
  readonly #spoken = new Announcer();
  #s: State;
  #zoom: Zoom;
  #missing: string | undefined;
  #starting: AbortController | undefined;
  #asked = 0;
  #kept = '';
  /** Which of the session's steps were asked for last, and whether that is under way. */
  #seen = '';
  #fetching = false;

  constructor(host: Host<'try'>, root: HTMLElement, init: Init) {
    this.#host = host;
    const saved = host.getState<{ zoom?: Zoom; form?: Partial<Form> }>(),
      input = init.input as InputOf<'try'>;
    this.#s = begin(input, init.daemon, { ...emptyForm, ...saved?.form });
    this.#zoom = saved?.zoom;
    this.#picture = new Picture(this.#zoom, (zoom) => {
      this.#zoom = zoom;
      this.#keep();
    });
    this.#picture.handChanged = () => this.#ask();
    this.#control = new Controller(host, init.daemon, () => this.#changed());
    this.#hands = new Hands({
      picture: this.#picture,
      control: this.#control,
      spoken: this.#spoken,
      changed: () => this.#ask(),
    });
    this.#frames = new Frames(host);
    this.#stage = new Stage(
      this.#frames,
      { shot: (shot) => this.#dispatch({ type: 'shot', shot }), heat: () => undefined, context: () => '{}' },
      true,
    );
    this.#panel = this.#makePanel();
    this.#form = new TryForm(this.#s.form, {
      change: (form) => this.#change(form),
      begin: (mode) => void this.#begin(mode),
      cancel: () => this.#starting?.abort(),
      train: () => host.act({ action: 'command', command: 'startTraining' }),
    });
    this.#list = new TryStepList({
      pick: (step) => this.#dispatch({ type: 'select', step }),
      highlight: (place) => this.#stage.highlight(place),
    });
    this.#view = new TryView(root, {
      form: this.#form,
      picture: this.#picture,
      stage: this.#stage,
      panel: this.#panel,
      list: this.#list,
      surface: this.#hands.surface,
      control: this.#control,
      spoken: this.#spoken,
      live: () => this.#dispatch({ type: 'select' }),
      heat: () => this.#dispatch({ type: 'heat', on: !this.#s.heat }),
      train: () => host.act({ action: 'command', command: 'startTraining' }),
      build: () => host.act({ action: 'command', command: 'buildDesktop' }),
      read: () => void this.#load(),
    });
    this.#commands = this.#keys();
    host.on((m) => this.#pushed(m));
    if (input.desktop !== undefined && input.session !== undefined) this.#show(input.desktop, input.session);
    if (init.daemon === 'ready') void this.#load();
    for (const p of host.going('try/start')) void this.#start(p);
    this.#ask();
  }
  #makePanel(): Panel {
    const control = this.#control,
      base = panelActions({
        host: this.#host,
        control,
        desktop: () => control.state?.desktop ?? '',
        refused: (why) => this.#refused(why),
        openRollout: () => undefined,
        focus: () => this.#picture.element.focus(),
      }),
      stop = (): void => void control.stop((session) => this.#host.request('try/stop', { session })),
      keeping: TrialKeeping = {
        keep: ({ note, ...p }) => void control.keep({ ...p, ...(note ? { note } : {}) }),
        override: (note) => base.override(note, []),
        discard: () => void this.#discard(),
        open: base.open,
        annotate: base.annotate,
      };
    return new Panel(
      {
        ...base,
        does: { ...base.does, stop },
        after: (c, gone) => trialKeepView(c, gone, keeping),
      },
      { steps: 'elsewhere' },
    );
  }
  async #discard(): Promise<void> {
    const { state } = this.#control;
    const says = state?.kept
      ? t('It is removed from the experience pool and tagged “discarded”.')
      : t('What was done is discarded.');
    if ((await ask({ title: t('Discard it?'), says, yes: t('Discard'), icon: 'trash' })) !== undefined)
      await this.#control.discard();
  }

  // --- what can be tried

  async #load(): Promise<void> {
    const { roots, files } = this.#s.input;
    this.#dispatch({ type: 'reading' });
    try {
      const [{ policies }, images] = await Promise.all([
        this.#host.request('try/policies', { roots, files }),
        orUndefined(this.#host.request('desktop/images', {}), 'the policy’s own is offered all the same'),
      ]);
      this.#dispatch({ type: 'policies', policies, images: images?.images ?? [] });
      await this.#about();
    } catch (e) {
      this.#dispatch({ type: 'failed', error: hostErrorOf(e) });
    }
  }
  /** Evaluations and tasks of the chosen policy. */
  async #about(): Promise<void> {
    const policy = policyOf(this.#s),
      of = this.#s.form.policy;
    if (!policy || this.#s.facts?.of === of) return;
    const run = 'run' in policy ? policy.run : undefined,
      [detail, list] = await Promise.all([
        run === undefined
          ? undefined
          : orUndefined(this.#host.request('run/get', { run }), 'versions are offered without what they came to'),
        orUndefined(
          this.#host.request('task/list', run === undefined ? {} : { run, runnable: true }),
          'then there is an empty desktop alone',
        ),
      ]);
    this.#dispatch({ type: 'facts', facts: { of, evals: detail?.evals ?? [], tasks: list?.tasks ?? [] } });
  }
  #change(form: Partial<Form>): void {
    this.#missing = undefined;
    this.#dispatch({ type: 'form', form });
    if (form.policy !== undefined) void this.#about();
    this.#keep();
  }

  // --- a session

  async #begin(mode: TryParams['mode']): Promise<void> {
    if (this.#starting || this.#s.daemon !== 'ready' || !over(this.#control.state)) return;
    const p = paramsOf(this.#s, mode);
    if ('missing' in p) {
      this.#missing = p.missing;
      this.#ask();
      this.#form.focus(p.field);
      return;
    }
    this.#missing = undefined;
    await this.#start(p.params, () => this.#letGo());
  }
  /** Begins a session, or waits for the one that the page before this one began. */
  async #start(p: TryParams, before: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    const off = (this.#starting = new AbortController());
    this.#dispatch({ type: 'starting' });
    try {
      await before();
      const state = await this.#host.request('try/start', p, off.signal);
      this.#show(state.desktop, state.session);
    } catch (e) {
      this.#dispatch({ type: 'failed', ...(off.signal.aborted ? {} : { error: hostErrorOf(e) }) });
    } finally {
      this.#starting = undefined;
      this.#ask();
    }
  }
  /** Ends the page's session before the next one begins: what was not kept is gone. */
  async #letGo(): Promise<void> {
    const c = this.#control.state;
    if (c && !c.kept && !this.#control.knowledge.forgotten && !this.#control.knowledge.discarded)
      await orUndefined(this.#host.request('control/discard', { session: c.session }), 'it is over already');
  }
  #show(desktop: string, session: string): void {
    this.#seen = '';
    this.#dispatch({ type: 'session', session });
    this.#control.show(desktop, session);
    this.#keep();
  }
  /** The session's state is another one: steps are asked for that the page does not have. */
  #changed(): void {
    const c = this.#control.state;
    if (c) {
      const seen = `${c.session} ${c.steps.length} ${c.proposal?.id ?? ''} ${c.mode === 'ended'}`;
      if (seen !== this.#seen) {
        this.#seen = seen;
        void this.#fetch(c);
      }
    }
    this.#ask();
  }
  async #fetch(c: ControlState): Promise<void> {
    if (this.#fetching) return;
    this.#fetching = true;
    const { session } = c;
    let seen: string;
    do {
      seen = this.#seen;
      // The last one again: only the next step says what it led to.
      const from = this.#s.session === session ? Math.max(0, this.#s.steps.length - 1) : 0,
        answer = await orUndefined(
          this.#host.request('try/steps', { session, from }),
          'a session that is gone has shown its steps',
        );
      if (answer) this.#dispatch({ type: 'steps', session, from, answer });
    } while (seen !== this.#seen && this.#control.session === session);
    this.#fetching = false;
    const now = this.#control.state;
    if (now && now.session !== session) void this.#fetch(now);
  }

  #pushed(m: Pushed): void {
    switch (m.type) {
      case 'show':
        if (m.input.kind === 'try') {
          this.#dispatch({ type: 'input', input: m.input });
          const { desktop, session } = m.input;
          if (desktop !== undefined && session !== undefined && session !== this.#control.session)
            this.#show(desktop, session);
          void this.#load();
        }
        break;
      case 'daemon': {
        const back = m.state === 'ready' && this.#s.daemon !== 'ready';
        this.#dispatch({ type: 'daemon', state: m.state });
        this.#control.daemonIs(m.state);
        if (back) void this.#load();
        break;
      }
      case 'screen':
        this.#picture.patch(m, (e) => {
          throw e;
        });
        this.#dispatch({ type: 'pictured' });
        break;
      case 'control':
        // Another session on a desktop of the same name is somebody else's.
        if (m.state.session === this.#control.session) this.#control.pushed(m.state);
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
    this.#ask();
  }
  #ask(): void {
    if (this.#asked) return;
    this.#asked = requestAnimationFrame(() => {
      this.#asked = 0;
      const c = this.#control.state;
      if (c?.trial) this.#frames.open(undefined, c.trial.frames);
      this.#view.render(this.#s, this.#missing);
      this.#keep();
    });
  }
  /** Keeps the state that a page that is built again starts from. */
  #keep(): void {
    const { session, state } = this.#control,
      { desktop: _, session: __, ...input } = { ...this.#s.input, ...askedOf(this.#s) },
      { form } = this.#s,
      kept = session === undefined || state === undefined ? {} : { desktop: state.desktop, session },
      key = JSON.stringify([input, form, kept, this.#zoom]);
    if (key === this.#kept) return;
    this.#kept = key;
    this.#host.setState({ input: { ...input, ...kept }, form, zoom: this.#zoom });
  }
  #refused(why: string): void {
    this.#control.notice = { words: `${why}.`, tone: 'info' };
    this.#ask();
  }

  #keys(): Commands {
    const on = (action: SessionAction) => (): void => this.#panel.button(action)?.click(),
      run = t('Policy'),
      work = t('In control'),
      page = t('Page');
    const c = (
      name: string,
      key: string,
      words: string,
      group: string,
      go: () => void,
    ): ConstructorParameters<typeof Commands>[0][number] => ({
      name,
      keys: key.length === 1 ? [key, key.toUpperCase()] : [key],
      words,
      group,
      run: go,
    });
    return new Commands([
      c('takeOver', 't', t('Take over; pause the policy'), run, () =>
        (this.#panel.button('pause') ?? this.#panel.button('actYourself'))?.click(),
      ),
      c('stepThrough', 's', t('Step through: the policy asks before each step'), run, on('stepMode')),
      c('handBack', 'h', t('Hand back to the policy'), run, on('handBack')),
      c('accept', 'Enter', t('Accept the proposal'), run, () => this.#hands.accept()),
      c('stop', 'e', t('Stop'), run, on('stop')),
      c('capture', 'k', t('Give the desktop the keyboard (press and release Ctrl+Alt to take it back)'), work, () =>
        this.#hands.capture(),
      ),
      c('finish', 'f', t('Finish: the verifier judges'), work, on('finish')),
      c('wait', 'w', t('Record a wait'), work, on('wait')),
      c('answer', 'a', t('Finish with an answer'), work, on('answer')),
      c('live', 'l', t('The desktop as it is now'), page, () => this.#dispatch({ type: 'select' })),
      c('heat', 'm', t('Click heat map'), page, () => this.#dispatch({ type: 'heat', on: !this.#s.heat })),
    ]);
  }
}
