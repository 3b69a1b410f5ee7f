/** Live desktop: wires the page to the host. One page for watching a desktop, recording on it and taking it over. */
import { orUndefined } from '../../runtime/protocol/failures.js';
import type { DesktopRow } from '../../runtime/protocol/types.js';
import { Announcer, Commands } from '../ui/commands.js';
import type { Host, Init, Pushed } from '../ui/host.js';
import { button } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import { RefusableButton } from './ask.js';
import { Controller } from './controller.js';
import { Hands } from './hands.js';
import { Panel } from './panel.js';
import { panelActions } from './panelActions.js';
import { Picture, type Zoom } from './picture.js';
import type { SessionAction } from './session.js';
import { reduce, type Message, type State } from './state.js';
import { TakeOver } from './takeOver.js';
import { LiveView, nameOf } from './view.js';

export class App {
  readonly #host: Host<'live'>;
  readonly #picture: Picture;
  readonly #hands: Hands;
  readonly #control: Controller;
  readonly #panel: Panel;
  readonly #commands: Commands;
  readonly #spoken = new Announcer();
  readonly #view: LiveView;
  readonly #takeOver: TakeOver;
  readonly #take: RefusableButton;
  readonly #through: RefusableButton;
  #s: State;
  #zoom: Zoom;
  #asked = 0;
  #following = '';
  #failed = '';
  #kept = '';

  constructor(host: Host<'live'>, root: HTMLElement, init: Init) {
    this.#host = host;
    this.#s = { desktop: '', daemon: init.daemon, gone: false };
    this.#zoom = host.getState<{ zoom?: Zoom }>()?.zoom;
    this.#picture = new Picture(this.#zoom, (zoom) => {
      this.#zoom = zoom;
      this.#keep();
    });
    this.#picture.handChanged = () => this.#ask();
    this.#control = new Controller(host, init.daemon, () => this.#ask());
    this.#hands = new Hands({
      picture: this.#picture,
      control: this.#control,
      spoken: this.#spoken,
      changed: () => this.#ask(),
    });
    const refused = (why: string): void => this.#refused(why),
      focus = (): void => this.#picture.element.focus(),
      openRollout = (): void => this.#openRollout(),
      control = this.#control;
    this.#takeOver = new TakeOver({ control, state: () => this.#s, refused, focus, changed: () => this.#ask() });
    this.#panel = new Panel(
      panelActions({ host, control, desktop: () => this.#s.desktop, refused, openRollout, focus }),
    );
    this.#take = new RefusableButton(t('Take Over'), () => this.#takeOver.toggle('human'), refused, {
      icon: 'person',
      key: 'T',
      title: t('The policy waits before its next step and you act'),
    });
    this.#through = new RefusableButton(t('Step Through'), () => this.#takeOver.toggle('step'), refused, {
      icon: 'debug-step-over',
      key: 'S',
      title: t('The policy proposes each step and waits for your approval'),
    });
    const open = button(t('Open Trajectory'), openRollout, {
      icon: 'open-preview',
      title: t('The running rollout, step by step'),
    });
    this.#view = new LiveView(
      root,
      this.#s,
      {
        picture: this.#picture,
        surface: this.#hands.surface,
        control,
        panel: this.#panel,
        take: this.#take,
        through: this.#through,
        open,
      },
      this.#spoken,
    );
    this.#commands = this.#keys();
    host.on((m) => this.#pushed(m));
    if (init.input.kind === 'live') this.#show(init.input.desktop, init.daemon, init.input.session);
  }

  #show(desktop: string, daemon: State['daemon'], session?: string): void {
    this.#view.reset();
    // The same desktop, now controlled by a person: its pictures go on.
    if (desktop !== this.#s.desktop) {
      this.#following = '';
      this.#dispatch({ type: 'open', desktop, daemon });
    }
    document.title = nameOf(desktop);
    this.#control.show(desktop, session);
    this.#keep();
    if (daemon === 'ready') void this.#load();
  }
  /** Keeps the state that a page that is built again starts from. */
  #keep(): void {
    const { session } = this.#control,
      { desktop } = this.#s,
      key = JSON.stringify([desktop, session, this.#zoom]);
    if (key === this.#kept) return;
    this.#kept = key;
    this.#host.setState({
      // The saved state has no session once it is over, so that a page that is restored begins without one.
      input: { kind: 'live', desktop, ...(session === undefined ? {} : { session }) },
      zoom: this.#zoom,
    });
  }
  async #load(): Promise<void> {
    const { desktop, row: before } = this.#s;
    const r = await orUndefined(this.#host.request('desktop/list', {}), 'the row is pushed when it changes');
    const row = r?.desktops.find((d) => d.desktop === desktop);
    // State pushed since the request is newer than the answer.
    if (r && this.#s.desktop === desktop && this.#s.row === before) {
      if (row) this.#dispatch({ type: 'row', row });
      else this.#dispatch({ type: 'row' });
    }
  }
  /** The steps of the rollout under way: those it has, then each as it happens. */
  async #follow(row: DesktopRow): Promise<void> {
    const key = `${row.run} ${row.rollout}`;
    if (!row.rollout || key === this.#following || `${key} ${row.step}` === this.#failed) return;
    this.#following = key;
    const view = await orUndefined(
      this.#host.request('trajectory/get', { run: row.run, rollout: row.rollout }),
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
      this.#host.subscribe({ run: row.run, sinceSeq: view.seq, rollout: row.rollout, types: ['step', 'ended'] });
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
      this.#takeOver.retry();
    }
    this.#ask();
  }
  #ask(): void {
    if (this.#asked) return;
    this.#asked = requestAnimationFrame(() => {
      this.#asked = 0;
      this.#view.render(this.#s, this.#takeOver.wish);
      this.#keep();
    });
  }

  // --- what a person does ---

  #openRollout(): void {
    const c = this.#control.state,
      r = this.#s.row,
      run = c?.run ?? r?.run,
      rollout = c ? (c.rollout ?? c.kept?.rollout) : r?.rollout;
    if (run !== undefined && rollout !== undefined)
      this.#host.act({ action: 'openTrajectory', run, rollout, beside: true });
  }
  #refused(why: string): void {
    this.#control.notice = { words: `${why}.`, tone: 'info' };
    this.#ask();
  }
  #keys(): Commands {
    const on = (action: SessionAction, orElse?: () => void) => (): void => {
      const b = this.#panel.button(action);
      if (this.#control.state && b) b.click();
      else if (!this.#control.state) orElse?.();
    };
    const click = (b: RefusableButton) => (): void => b.element.click(),
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
      c('accept', ['Enter'], t('Accept the proposal'), run, () => this.#hands.accept()),
      c(
        'capture',
        ['k', 'K'],
        t('Give the desktop the keyboard (press and release Ctrl+Alt to take it back)'),
        work,
        () => this.#hands.capture(),
      ),
      c('finish', ['f', 'F'], t('Finish: the verifier judges'), work, on('finish')),
      c('wait', ['w', 'W'], t('Record a wait'), work, on('wait')),
      c('answer', ['a', 'A'], t('Finish with an answer'), work, on('answer')),
      c('dropStep', ['x', 'X'], t('Leave out the last step'), work, on('drop')),
      c('openTrajectory', ['o', 'O'], t('Open the trajectory'), t('Page'), () => this.#openRollout()),
    ]);
  }
}
