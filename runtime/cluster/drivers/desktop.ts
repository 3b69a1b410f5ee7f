import type { Duplex } from 'node:stream';
import type { Action, DesktopId, Frame, Screenshot, Size, ProviderKind } from '../../domain/index.js';
import { StudioError, toRunError } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { lost, type AgentClient } from '../agentClient.js';
import type { AgentState } from '../agentReplies.js';
import type {
  Change,
  Desktop,
  DesktopEvent,
  DesktopInput,
  DesktopSpec,
  ExecOptions,
  ExecResult,
  SettleOptions,
  SettleReport,
} from '../types.js';
import { recycleBuffer } from './framebuffer.js';
import { ChangeWatch } from './changes.js';
import { Input } from './input.js';
import { HORIZON_MS, KEY_HORIZON_MS, type Settler } from './settle.js';
import type { X11Client } from './x11Client.js';

/** How a provider opens the channels of a desktop; each is called once after every reset. */
export interface Channels {
  openX(): Promise<X11Client>;
  /** How screens are read: the framebuffer file, or over the relay. `walled`: its programs cannot replace the X server's socket. */
  openScreen(walled: boolean): Promise<ScreenReader> | ScreenReader;
  openSettler(x: X11Client): Promise<Settler> | Settler;
  /** A stream to a unix socket of the agent's; called as often as there are connections. Absent: see Desktop.connect. */
  openSocket?(path: string): Promise<Duplex>;
}
export interface ScreenReader {
  read(): Frame | Promise<Frame>;
  /** See Desktop.screenshot. */
  readEncoded?(): Promise<Screenshot>;
  /** Reading pixels costs less than a file of them. */
  readonly pixelsAtHand?: boolean;
  close(): void;
}

/** A provider's figures of a desktop's programs. */
export interface Usage {
  /** How often the desktop ran into its limit of memory so far; undefined when that is not known. */
  outOfMemory(): Promise<number | undefined>;
  /** Processor time, ms, that its programs have used or waited for; undefined when that is not known. */
  processorMs?(): Promise<number | undefined>;
}

export interface SandboxOptions {
  readonly id: DesktopId;
  readonly provider: ProviderKind;
  readonly spec: DesktopSpec;
  /** Public, because tests ask its own detector. */
  readonly agent: AgentClient;
  readonly channels: Channels;
  /** See Desktop.stalledMs. */
  readonly stalledMs?: () => number;
  readonly usage?: Usage;
}

const RESET_TIMEOUT_MS = 15_000;
/** Longest wait for what explains a failure. */
const BLAME_MS = 1500;
/** An X server that used this share of the time between two looks is working on a request of some program. */
const X_BUSY = 0.5;
/** Programs that use or wait for this share of a core between two looks keep the desktop busy. */
const BUSY = 0.5,
  BUSY_LOOK_MS = 250;
/** The window manager needs 30 to 100 ms; on a crowded machine a few hundred. */
const FIRST_FRAME_MAX_MS = 5_000;

interface Session {
  readonly x: X11Client;
  readonly screen: ScreenReader;
  readonly settler: Settler;
  readonly input: Input;
}

/**
 * A desktop behind an agent and an X server, whatever sandbox they run in. `reset` renews everything but the sandbox
 * itself: all processes are killed, HOME and temporary folders are restored, and a new X server and window manager are
 * started and have drawn.
 */
export class SandboxDesktop implements Desktop {
  readonly id: DesktopId;
  readonly provider: ProviderKind;
  readonly screen: Size;
  readonly spec: DesktopSpec;
  /** Public, because tests ask its own detector. */
  readonly agent: AgentClient;
  readonly #channels: Channels;
  readonly #stalledMs: (() => number) | undefined;
  readonly #usage: Usage | undefined;
  /** Times out of memory before this lease. */
  #outOfMemory: number | undefined;
  /** Whether the last action pressed keys. */
  #pressed = false;
  /** Set where the image keeps a browser open. */
  browse?: Desktop['browse'];
  readonly connect?: NonNullable<Desktop['connect']>;
  /** Whether its programs can replace neither the agent's sockets nor the X server's. */
  #walled = false;
  /** Public, because tests settle on its X connection. */
  session: Session | undefined;
  #gone: StudioError | undefined;
  #resetting = false;
  readonly #listeners = new Set<(e: DesktopEvent) => void>();
  readonly #drawing = new ChangeWatch();
  /** Input must not interleave: one action at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(o: SandboxOptions) {
    this.id = o.id;
    this.provider = o.provider;
    this.spec = o.spec;
    this.screen = o.spec.screen;
    this.agent = o.agent;
    this.#channels = o.channels;
    this.#stalledMs = o.stalledMs;
    this.#usage = o.usage;
    const { openSocket } = o.channels;
    if (openSocket) this.connect = (port) => this.#connect(port, openSocket);
    o.agent.onClose((e) => this.lose(e));
    o.agent.onExit((e) => {
      if (!this.#resetting) this.#emit({ type: 'exit', pid: e.pid, name: e.name, code: e.code, signal: e.signal });
    });
  }

  stalledMs(): number {
    return this.#stalledMs?.() ?? 0;
  }

  get isLost(): boolean {
    return this.#gone !== undefined;
  }

  async reset(): Promise<void> {
    if (this.#gone && this.agent.isClosed) throw this.#gone;
    this.#resetting = true;
    this.#gone = undefined;
    this.#pressed = false;
    this.#endSession();
    try {
      const r = await this.agent.reset({
        ...this.screen,
        a11y: this.spec.a11y ?? false,
        timeoutMs: RESET_TIMEOUT_MS,
        xDataMb: Math.max(64, Math.round(this.spec.memoryMb / 4)),
      });
      this.#walled = r.walled;
      this.#outOfMemory = await this.#usage?.outOfMemory();
      const x = await this.#channels.openX();
      let screen: ScreenReader | undefined, settler: Settler | undefined;
      try {
        screen = await this.#channels.openScreen(r.walled);
        settler = await this.#channels.openSettler(x);
        const s = settler;
        const input = await Input.create(x, {
          doubleClickMs: r.doubleClickMs,
          idle: async (maxMs) => {
            await s.settle({ horizonMs: 0, maxMs });
          },
        });
        await x.rootProperty('_NET_SUPPORTING_WM_CHECK', FIRST_FRAME_MAX_MS);
        await s.settle({ maxMs: FIRST_FRAME_MAX_MS });
        this.session = { x, screen, settler, input };
        this.#drawing.begin(x);
      } catch (e) {
        settler?.close();
        screen?.close();
        x.close();
        throw e;
      }
      x.onClose(() => {
        if (this.session?.x === x) this.lose(lost('The X server of the desktop ended.'));
      });
    } catch (e) {
      this.lose(e instanceof StudioError ? e : lost('The desktop did not come back after its reset.', e));
      throw this.#gone;
    } finally {
      this.#resetting = false;
    }
  }

  async observe(): Promise<Frame> {
    return this.#live().screen.read();
  }
  async screenshot(how?: 'cheapest'): Promise<Screenshot> {
    const { screen } = this.#live(),
      pixels = !screen.readEncoded || (how === 'cheapest' && screen.pixelsAtHand);
    return pixels ? screen.read() : screen.readEncoded!();
  }
  recycle(f: Frame): void {
    recycleBuffer(f.data);
  }

  perform(a: Action): Promise<void> {
    return this.#inTurn(async () => {
      this.#pressed = a.type === 'hotkey';
      try {
        await this.#live().input.perform(a);
      } finally {
        this.#drawing.tell();
      }
    });
  }
  async input(events: readonly DesktopInput[]): Promise<void> {
    try {
      const x = await this.#inTurn(async () => {
        for (const e of events) if (e.type !== 'move' && e.type !== 'release') this.#pressed = e.type === 'key';
        const session = this.#live();
        await session.input.live.send(events);
        return session.x;
      });
      // Awaited outside the turn: the next call need not wait for the server's answer.
      await x.sync();
    } finally {
      // A change of the pointer's picture makes no damage, so it is reported here.
      this.#drawing.tell();
    }
  }
  async changes(signal: AbortSignal): Promise<Change> {
    if (this.#gone) throw this.#gone;
    return this.#drawing.next(signal);
  }
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const p = this.#turn.then(run, run);
    this.#turn = orUndefined(p, 'its caller hears of it; the next call has its turn all the same');
    return p;
  }

  /** After keys the horizon is at least GTK's button flash, so a program with such a timer is waited for. */
  async settle(o?: SettleOptions): Promise<SettleReport> {
    const horizonMs = o?.horizonMs ?? HORIZON_MS;
    return this.#live().settler.settle({
      ...o,
      horizonMs: this.#pressed && horizonMs > 0 ? Math.max(horizonMs, KEY_HORIZON_MS) : horizonMs,
    });
  }
  async exec(cmd: readonly string[], o?: ExecOptions): Promise<ExecResult> {
    this.#live();
    return this.agent.exec(cmd, o);
  }
  async spawn(cmd: readonly string[], o?: Pick<ExecOptions, 'cwd' | 'env'>): Promise<number> {
    this.#live();
    return this.agent.spawn(cmd, o);
  }
  async readFile(path: string): Promise<Buffer> {
    this.#live();
    return this.agent.read(path);
  }
  async writeFile(path: string, data: Buffer): Promise<void> {
    this.#live();
    await this.agent.write(path, data);
  }
  async #connect(port: number, open: NonNullable<Channels['openSocket']>): Promise<Duplex> {
    const session = this.#live();
    if (!this.#walled) throw unwalled(this.id);
    const stream = await open(await this.agent.forward(port));
    if (this.session === session) return stream;
    stream.destroy();
    throw this.#gone ?? lost('The desktop was reset meanwhile.');
  }
  async answers(): Promise<void> {
    await this.#live().x.sync();
  }
  async freeze(): Promise<void> {
    this.#live();
    await this.agent.freeze();
  }
  async thaw(): Promise<void> {
    this.#live();
    await this.agent.thaw();
  }
  async relieve(): Promise<void> {
    this.#live();
    await this.agent.relieve();
  }

  /**
   * Says how the programs inside made a desktop fail: they can use up its memory, keep the X server at work on one
   * request, and keep it busy until the rollout's time is up. They can neither stop nor end the agent or the X server.
   */
  async blame(how?: 'late'): Promise<string | undefined> {
    if (how === 'late') return (await this.#busy()) ? 'its programs keep the desktop busy' : undefined;
    const before = this.#outOfMemory,
      now = await orUndefined(this.#usage?.outOfMemory() ?? Promise.resolve(undefined), 'it is not known');
    if (before !== undefined && now !== undefined && now > before)
      return 'its programs used up the memory of the desktop';
    if (this.agent.isClosed) return undefined;
    const look = (): Promise<AgentState | undefined> =>
      orUndefined(this.agent.state(BLAME_MS), 'an agent that does not answer is no fault of the programs');
    const t0 = performance.now(),
      first = await look();
    if (first?.x === null || first === undefined) return undefined;
    await new Promise((r) => {
      setTimeout(r, 100);
    });
    const second = await look(),
      ms = performance.now() - t0;
    return second && second.xCpuMs - first.xCpuMs > X_BUSY * ms
      ? 'its programs keep the X server at work with one request'
      : undefined;
  }

  async #busy(): Promise<boolean> {
    const look = (): Promise<number | undefined> =>
      orUndefined(this.#usage?.processorMs?.() ?? Promise.resolve(undefined), 'then nobody is to blame');
    const t0 = performance.now(),
      first = await look();
    if (first === undefined) return false;
    await new Promise((r) => {
      setTimeout(r, BUSY_LOOK_MS);
    });
    const second = await look();
    return second !== undefined && second - first > BUSY * (performance.now() - t0);
  }

  onEvent(l: (e: DesktopEvent) => void): () => void {
    this.#listeners.add(l);
    return () => this.#listeners.delete(l);
  }

  /** Called by the provider when the sandbox has ended or is being ended. */
  lose(e: StudioError): void {
    if (this.#gone) return;
    this.#gone = e;
    this.#endSession();
    if (!this.#resetting) this.#emit({ type: 'lost', error: toRunError(e) });
  }

  /** Closes all connections without an event; the provider kills the sandbox. */
  dispose(): void {
    this.#gone ??= lost('The desktop was taken down.');
    this.#endSession();
    this.agent.close();
    this.#listeners.clear();
  }

  #live(): Session {
    if (this.#gone) throw this.#gone;
    if (!this.session) throw lost('The desktop is being reset.');
    return this.session;
  }

  #endSession(): void {
    const s = this.session;
    this.session = undefined;
    this.#drawing.end(this.#gone);
    s?.settler.close();
    s?.screen.close();
    s?.x.close();
  }

  #emit(e: DesktopEvent): void {
    for (const l of [...this.#listeners]) l(e);
  }
}

/** The path to a socket of the agent's would be followed to wherever programs of the desktop make it lead. */
const unwalled = (id: DesktopId): StudioError =>
  new StudioError(
    'desktop.unavailable',
    `The ports of ${id} cannot be reached: nothing stands between its programs and its agent.`,
    'Allow programs in bubblewrap namespaces of their own (`dart-studio doctor`), or use Docker.',
  );
