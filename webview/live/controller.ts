/**
 * The page's end of a control session: which one it shows, what it asks of it, and input in order with what is asked.
 */
import { ignoreFailure } from '../../runtime/protocol/failures.js';
import type {
  ControlSessionId,
  ControlState,
  InputEvent as RemoteInput,
  KeepParams,
} from '../../runtime/protocol/types.js';
import type { DaemonState, PageMethod, Requester } from '../protocol.js';
import { RequestFailed } from '../ui/host.js';
import { InputQueue } from '../ui/remoteQueue.js';
import { t, whole } from '../ui/words.js';
import { mayAct, ProposalWatch, type PageKnowledge } from './session.js';

export interface Notice {
  readonly words: string;
  readonly tone: 'error' | 'info';
}
/** Modifiers: alone they do nothing, and whether a key follows is not known yet. */
const modifiers = new Set(['Control', 'Alt', 'Shift', 'Meta']);
const acts = (e: RemoteInput): boolean => e.type !== 'move' && !(e.type === 'key' && modifiers.has(e.key));
/** Input that releases a key or button: worth sending again after a gap, harmless when not needed. */
const lifts = (e: RemoteInput): boolean => (e.type === 'key' || e.type === 'button') && !e.down;

/** The methods of a session; a page that shows one may ask them. */
type ControlMethod = Extract<PageMethod<'live'>, `control/${string}`>;

export class Controller {
  readonly #host: Requester<ControlMethod>;
  /** Something to show is new. */
  readonly #changed: () => void;
  readonly #queue: InputQueue;
  readonly proposal = new ProposalWatch();
  session: ControlSessionId | undefined;
  state: ControlState | undefined;
  notice: Notice | undefined;
  /** The request in progress, in words. */
  asking: string | undefined;
  #daemon: DaemonState;
  #desktop = '';
  #forgotten = false;
  #discarded = false;
  /** The person overrides the proposal, until the next one. */
  #overriding = false;
  #pushes = 0;
  #taking: AbortController | undefined;
  #owed: RemoteInput[] = [];
  readonly #again = new WeakSet<RemoteInput>();

  constructor(host: Requester<ControlMethod>, daemon: DaemonState, changed: () => void) {
    this.#host = host;
    this.#daemon = daemon;
    this.#changed = changed;
    this.#queue = new InputQueue({
      send: (events) => this.#send(events),
      frame: (run) => void requestAnimationFrame(run),
      failed: (e, lost) => this.#lost(e, lost),
    });
  }
  get knowledge(): PageKnowledge {
    return { daemon: this.#daemon, discarded: this.#discarded, forgotten: this.#forgotten };
  }
  get mayAct(): boolean {
    return this.asking === undefined && mayAct(this.state, this.knowledge);
  }
  get overriding(): boolean {
    return this.#overriding;
  }

  /** Shows a desktop and a session on it, or none. The session shown before is released. */
  show(desktop: string, session: ControlSessionId | undefined): void {
    this.#desktop = desktop;
    const before = this.session;
    if (before !== undefined && before !== session && !this.#forgotten)
      ignoreFailure(this.#host.request('control/detach', { session: before }), 'the session may be over already');
    this.session = session;
    this.state = undefined;
    this.notice = undefined;
    this.#forgotten = this.#discarded = this.#overriding = false;
    this.#owed = [];
    this.proposal.has(undefined);
    if (session !== undefined) void this.attach();
    this.#changed();
  }
  daemonIs(state: DaemonState): void {
    const back = state === 'ready' && this.#daemon !== 'ready';
    this.#daemon = state;
    if (back && this.session !== undefined) void this.attach();
    this.#changed();
  }
  /** The state as the runtime sends it on every change. */
  pushed(state: ControlState): void {
    // A person controls the desktop being watched: this page shows it too.
    if (
      this.session === undefined &&
      this.asking === undefined &&
      state.mode !== 'ended' &&
      state.desktop === this.#desktop
    ) {
      this.session = state.session;
      void this.attach();
    }
    if (state.session !== this.session) return;
    this.#pushes++;
    this.#apply(state);
  }
  #apply(state: ControlState): void {
    this.state = state;
    this.#forgotten = false;
    const id = state.mode === 'step' ? state.proposal?.id : undefined;
    if (id !== undefined && this.proposal.has(id)) this.#overriding = false;
    else if (id === undefined && state.mode !== 'step') {
      this.proposal.has(undefined);
      this.#overriding = false;
    }
    this.#changed();
  }
  /** Attaches this page to the session and reads its state. */
  async attach(): Promise<void> {
    const session = this.session;
    if (session === undefined || this.#daemon !== 'ready') return;
    const attach = (): Promise<ControlState> => this.#host.request('control/attach', { session });
    await this.#state(attach, (e) => {
      if (e instanceof RequestFailed && e.kind === 'not.found' && this.session === session) {
        this.#forgotten = this.state?.mode !== 'ended';
        // The session is unknown: the desktop may have been given to others since, and can be watched and taken over.
        if (this.state === undefined) this.session = undefined;
        return true;
      }
      return false;
    });
    if (this.session === session) this.#sendOwed();
  }
  /** A take-over starts at the next decision, perhaps of the next rollout. */
  async takeOver(desktop: string, mode: 'human' | 'step'): Promise<'taken' | 'later' | 'no'> {
    if (this.asking !== undefined) return 'no';
    let refused = false;
    this.#ask(
      t('The rollout waits for you before its next step; if it ends first, the next one does. Press again to cancel.'),
    );
    const off = (this.#taking = new AbortController());
    try {
      const state = await this.#host.request('control/takeOver', { desktop, mode }, off.signal);
      this.asking = undefined;
      this.session = state.session;
      this.#forgotten = this.#discarded = this.#overriding = false;
      this.#apply(state);
      void this.attach();
    } catch (e) {
      // An evaluation runs on it, or nothing does: a rollout follows.
      refused = !off.signal.aborted && e instanceof RequestFailed && e.kind === 'params.invalid';
      if (refused) this.#failed(e, '', t('You get control as soon as a rollout can be taken over.'));
      else if (!off.signal.aborted) this.#failed(e);
    }
    this.#taking = undefined;
    this.asking = undefined;
    this.#changed();
    return this.session !== undefined ? 'taken' : refused ? 'later' : 'no';
  }

  /** Input from the picture, in order. */
  input(e: RemoteInput): void {
    if (!this.mayAct) return;
    if (this.state?.mode === 'step' && !this.#overriding && acts(e)) {
      this.#overriding = true;
      this.proposal.answer('overridden');
      this.#changed();
    }
    this.#queue.push(e);
  }
  flush(): void {
    this.#queue.flush();
  }
  async #send(events: readonly RemoteInput[]): Promise<void> {
    if (this.session !== undefined) await this.#host.request('control/input', { session: this.session, events });
  }
  #lost(e: unknown, lost: readonly RemoteInput[]): void {
    // Retried once: a second refusal is final.
    this.#owed =
      (e instanceof RequestFailed && e.kind === 'params.invalid') || lost.every((x) => this.#again.has(x))
        ? []
        : lost.filter(lifts);
    const what = lost.filter((x) => x.type !== 'move').length;
    this.#failed(
      e,
      what === 0
        ? ''
        : what === 1
          ? t('1 input did not reach the desktop.')
          : t('{0} inputs did not reach the desktop.', whole(what)),
    );
    if (this.#daemon === 'ready') this.#sendOwed();
  }
  #sendOwed(): void {
    if (!this.mayAct) return;
    for (const e of this.#owed.splice(0)) {
      this.#again.add(e);
      this.#queue.push(e);
    }
  }

  /** Asks for something after everything done on the picture has arrived. */
  mode(mode: 'human' | 'policy' | 'step'): Promise<boolean> {
    const words = mode === 'policy' ? t('Handing back…') : t('Asking the rollout to wait…');
    return this.#do(words, (session) => this.#host.request('control/mode', { session, mode }));
  }
  act(
    action:
      | { readonly type: 'wait' }
      | { readonly type: 'fail'; readonly reason?: string }
      | { readonly type: 'finished'; readonly answer?: string },
  ): Promise<boolean> {
    return this.#do(t('Recording…'), (session) => this.#host.request('control/act', { session, action }));
  }
  drop(): Promise<boolean> {
    return this.#do(t('Leaving it out…'), (session) => this.#host.request('control/dropStep', { session }));
  }
  /** Stops a policy that is tried. `request` asks the runtime to end it. */
  stop(request: (session: ControlSessionId) => Promise<ControlState>): Promise<boolean> {
    return this.#do(t('Stopping…'), request);
  }
  finish(): Promise<boolean> {
    return this.#do(t('Finishing…'), (session) => this.#host.request('control/finish', { session }));
  }
  keep(p: Omit<KeepParams, 'session'>): Promise<boolean> {
    return this.#do(t('Keeping it…'), (session) => this.#host.request('control/keep', { session, ...p }));
  }
  async discard(): Promise<boolean> {
    const done = await this.#inOrder(t('Discarding…'), (session) =>
      this.#host.request('control/discard', { session }).then(
        () => true,
        (e: unknown) => {
          this.#failed(e);
          return false;
        },
      ),
    );
    if (done) {
      this.#discarded = true;
      this.#changed();
    }
    return done;
  }
  /** Accepts a proposal that has been on the screen long enough; false when this Enter can't have meant one. */
  accept(now: number, deliberate = false): boolean {
    const { session } = this,
      id =
        session !== undefined && this.state?.mode === 'step' && this.mayAct
          ? this.proposal.acceptable(now, deliberate)
          : undefined;
    if (session === undefined || id === undefined) return false;
    this.proposal.reopen(id);
    this.proposal.answer('accepted');
    this.#overriding = false;
    this.#changed();
    void this.#queue.drained().then(() =>
      this.#state(
        () => this.#host.request('control/accept', { session, proposal: id }),
        () => {
          this.proposal.reopen(id);
          return false;
        },
      ),
    );
    return true;
  }
  /** A take-over was requested and has not started yet. */
  get taking(): boolean {
    return this.#taking !== undefined;
  }
  callOff(): void {
    this.#taking?.abort();
  }
  dismiss(): void {
    this.notice = undefined;
    this.#changed();
  }

  #do(words: string, request: (session: ControlSessionId) => Promise<ControlState>): Promise<boolean> {
    return this.#inOrder(words, (session) => this.#state(() => request(session)));
  }
  /** Input sent so far arrives first. */
  async #inOrder(words: string, ask: (session: ControlSessionId) => Promise<boolean>): Promise<boolean> {
    if (this.asking !== undefined || this.session === undefined) return false;
    const { session } = this;
    this.#ask(words);
    await this.#queue.drained();
    const ok = await ask(session);
    this.#ask(undefined);
    return ok;
  }
  /** A request answered with the state. A state pushed meanwhile is newer than the answer. */
  async #state(request: () => Promise<ControlState>, handled: (e: unknown) => boolean = () => false): Promise<boolean> {
    const pushes = this.#pushes,
      { session } = this;
    try {
      const state = await request();
      if (this.session === session && this.#pushes === pushes) this.#apply(state);
      return true;
    } catch (e) {
      if (!handled(e) && this.session === session) this.#failed(e);
      this.#changed();
      return false;
    }
  }
  #ask(words: string | undefined): void {
    this.asking = words;
    if (words !== undefined) this.notice = undefined;
    this.#changed();
  }
  #failed(e: unknown, before = '', after?: string): void {
    const words =
      e instanceof RequestFailed
        ? `${e.message} ${after ?? e.remedy}`.trim()
        : e instanceof Error
          ? e.message
          : String(e);
    this.notice = { words: before ? `${before} ${words}` : words, tone: after === undefined ? 'error' : 'info' };
    this.#changed();
  }
}
