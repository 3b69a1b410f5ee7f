/** Compare page: wires two trajectories to the host. */
import { t } from '../ui/words.js';
import { Commands, type Command } from '../ui/commands.js';
import { focusFirst } from '../ui/dom.js';
import { clip } from '../ui/format.js';
import { Frames } from '../ui/frames.js';
import { hostErrorOf, type Host, type Init, type Pushed } from '../ui/host.js';
import { diverge, nextDifference } from './diverge.js';
import { compareCommands } from './commands.js';
import { ComparePage } from './page.js';
import {
  initialCompare,
  reduceCompare,
  type CompareChange,
  type CompareInput,
  type CompareState,
  type SideName,
} from './state.js';

interface Saved {
  readonly input: CompareInput;
  readonly selected?: number;
}

const sideOf = (context: unknown): SideName =>
  typeof context === 'object' && context !== null && 'side' in context && context.side === 'right' ? 'right' : 'left';

export class App {
  readonly #host: Host<'compare'>;
  readonly #frames: { readonly left: Frames; readonly right: Frames };
  #state: CompareState;
  #page: ComparePage;
  #subscribed = false;
  #focused = false;
  #saving: ReturnType<typeof setTimeout> | undefined;
  readonly #loading = new Map<SideName, AbortController>();

  constructor(host: Host<'compare'>, root: HTMLElement, init: Init) {
    this.#host = host;
    this.#frames = { left: new Frames(host), right: new Frames(host) };
    if (init.input.kind !== 'compare') throw new Error(`the compare page cannot show a ${init.input.kind}`);
    const saved = this.#host.getState<Saved>(),
      mine =
        saved?.input?.kind === 'compare' &&
        saved.input.left === init.input.left &&
        saved.input.right === init.input.right
          ? saved
          : undefined;
    this.#state = initialCompare(init.input, init.daemon, mine?.selected);
    const keys = new Commands(this.#commands());
    this.#page = new ComparePage(root, this.#frames.left, this.#frames.right, {
      select: (at) => this.#go(at),
      shot: (shot) => this.#dispatch({ type: 'shot', shot }),
      jump: (direction) => this.#jump(direction),
      first: () => this.#first(),
      swap: () => this.#dispatch({ type: 'swap' }),
      choose: (side, rollout) => this.#dispatch({ type: 'choose', side, rollout }),
      open: (side) => this.#open(side),
      retry: (side) => void this.#load(side),
      help: () => keys.help(),
      host: (command) => this.#host.act({ action: 'command', command }),
    });
    this.#host.on((m) => this.#receive(m, keys));
    addEventListener('pagehide', () => this.#flush());
    document.title = t('Compare trajectories');
    this.#shown();
    // VS Code closes the panel of a page that has saved nothing when its window is reloaded.
    this.#flush();
  }
  #commands(): readonly Command[] {
    return compareCommands({
      selected: () => this.#state.selected,
      go: (at) => this.#go(at),
      first: () => this.#first(),
      jump: (direction) => this.#jump(direction),
      swap: () => this.#dispatch({ type: 'swap' }),
      toggleShot: () => this.#dispatch({ type: 'shot', shot: this.#state.shot === 'before' ? 'after' : 'before' }),
      both: (change) => this.#both((side) => change(side.stage)),
      copy: (context) => this.#copy(context),
      saveImage: (context) => this.#saveImage(context),
    });
  }
  #dispatch(c: CompareChange): void {
    const old = this.#state;
    this.#state = reduceCompare(this.#state, c);
    if (this.#state !== old) this.#shown(old);
  }
  #shown(old?: CompareState): void {
    for (const side of ['left', 'right'] as const) {
      const v = this.#state[side].view;
      if (v) this.#frames[side].open(this.#state.run, v.framesDir);
    }
    this.#page.render(this.#state);
    if (this.#state.left.view && !this.#focused) {
      this.#focused = true;
      focusFirst(() => this.#page.focusStrip());
    }
    const title = (this.#state.left.view ?? this.#state.right.view)?.row.instruction;
    if (title !== undefined && title !== (old?.left.view ?? old?.right.view)?.row.instruction) {
      document.title = t('Compare: {0}', clip(title, 32));
      this.#host.title(document.title);
    }
    for (const side of ['left', 'right'] as const) {
      if (this.#state[side].stale && (!old || this.#state[side] !== old[side] || !this.#loading.has(side)))
        void this.#load(side);
      for (const d of [1, -1, 2, -2]) {
        const hash = this.#state[side].view?.steps[this.#state.selected + d]?.frame.hash;
        if (hash) this.#frames[side].picture(hash);
      }
    }
    this.#save();
  }
  async #load(side: SideName): Promise<void> {
    const { run } = this.#state,
      { rollout } = this.#state[side];
    this.#loading.get(side)?.abort();
    const mine = new AbortController();
    this.#loading.set(side, mine);
    try {
      const view = await this.#host.request('trajectory/get', { run, rollout }, mine.signal);
      if (mine.signal.aborted) return;
      this.#loading.delete(side);
      this.#dispatch({ type: 'loaded', side, view });
      if (view.live && view.seq !== undefined && !this.#subscribed) {
        this.#subscribed = true;
        this.#host.subscribe({ run, sinceSeq: view.seq, types: ['started', 'step', 'ended', 'group', 'closed'] });
      }
    } catch (e) {
      if (mine.signal.aborted) return;
      this.#loading.delete(side);
      this.#dispatch({ type: 'failed', side, error: hostErrorOf(e) });
    }
  }
  #input(): CompareInput {
    return {
      kind: 'compare',
      run: this.#state.run,
      left: this.#state.left.rollout,
      right: this.#state.right.rollout,
    };
  }
  #save(): void {
    this.#saving ??= setTimeout(() => this.#flush(), 250);
  }
  #flush(): void {
    clearTimeout(this.#saving);
    this.#saving = undefined;
    this.#host.setState({ input: this.#input(), selected: this.#state.chosen ? this.#state.selected : undefined });
  }
  #go(at: number): void {
    this.#dispatch({ type: 'select', at });
  }
  #first(): void {
    const d =
      this.#state.left.view && this.#state.right.view
        ? diverge(this.#state.left.view.steps, this.#state.right.view.steps)
        : undefined;
    if (d) this.#go(d.at);
  }
  #jump(direction: 1 | -1): void {
    const to = nextDifference(this.#page.differences, this.#state.selected, direction);
    if (to !== undefined) this.#go(to);
  }
  #both(run: (p: ComparePage['left']) => void): void {
    run(this.#page.left);
    run(this.#page.right);
  }
  #copy(context?: unknown): void {
    const of = (s: SideName): unknown => this.#state[s].view?.steps[this.#state.selected],
      value = context === undefined ? { left: of('left'), right: of('right') } : of(sideOf(context));
    this.#host.act({ action: 'copy', text: JSON.stringify(value, null, 2) });
  }
  #saveImage(context?: unknown): void {
    const side = sideOf(context),
      step = this.#state[side].view?.steps[this.#state.selected];
    if (step)
      this.#host.act({
        action: 'saveImage',
        path: this.#frames[side].path(step.frame.hash),
        name: `${this.#state[side].rollout}-step-${step.index + 1}.png`,
      });
  }
  #open(side: SideName): void {
    this.#host.act({
      action: 'openTrajectory',
      run: this.#state.run,
      rollout: this.#state[side].rollout,
      step: this.#state.selected < 0 ? undefined : (this.#state[side].view?.steps[this.#state.selected]?.index ?? 0),
    });
  }
  #receive(m: Pushed, keys: Commands): void {
    if (m.type === 'events' && m.run === this.#state.run)
      this.#dispatch({ type: 'events', events: m.events, ended: m.ended });
    else if (m.type === 'daemon') {
      const back = m.state === 'ready' && this.#state.daemon.state !== 'ready';
      this.#dispatch({ type: 'daemon', state: m.state, error: m.error });
      if (back)
        for (const side of ['left', 'right'] as const)
          if (!this.#state[side].view || this.#state[side].view?.live) void this.#load(side);
    } else if (m.type === 'show' && m.input.kind === 'compare') {
      this.#state = initialCompare(m.input, this.#state.daemon.state);
      this.#subscribed = false;
      this.#shown();
    } else if (m.type === 'do') keys.run(m.what, m.context);
  }
}
