import type { Duplex } from 'node:stream';
import type { Action, DesktopId, Frame, Point, RunError, Screenshot, Size, ProviderKind } from '../domain/index.js';

/** Module 1, environment cluster: the contract of a desktop, its provider and the pool. */
export interface SettleOptions {
  /** A poll timer due within this many ms counts as activity (exact detector). Default 20. */
  readonly horizonMs?: number;
  /** Give up after this long and report `settled: false`. Default 2000. */
  readonly maxMs?: number;
  /**
   * With a terminal open, nothing may have run for this long, ms: data on its way through the kernel cannot be seen.
   * Default 4. A server of OSWorld's own does not know this option.
   */
  readonly terminalHoldMs?: number;
}
export interface SettleReport {
  readonly settled: boolean;
  readonly ms: number;
  /** Which detector judged. */
  readonly detector: 'exact' | 'hold';
  /**
   * When it did not come to rest: the longest share of the time that one of its programs waited for a processor. Absent
   * where that cannot be told.
   */
  readonly starved?: number;
}

export interface ExecOptions {
  /** Default 30 s; on expiry the process group is killed and `timedOut` is set. */
  readonly timeoutMs?: number;
  readonly stdin?: string | Buffer;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /**
   * A command that judges: programs of the user can neither trace it nor take its descriptors, what they left in their
   * home does not run in its python, and what it leaves running ends with it.
   */
  readonly verifier?: boolean;
}
export interface ExecResult {
  readonly code: number | null;
  /** The first 8 MB (2 MB behind OSWorld's port); the rest is read and thrown away. */
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly timedOut: boolean;
  /** The program had been stopped (SIGSTOP) when its time ran out, and no program of the desktop can have done that. */
  readonly stopped?: boolean;
  /** Programs of the desktop ran meanwhile although they were to stand still (`freeze`). */
  readonly disturbed?: boolean;
}

export type DesktopEvent =
  | {
      readonly type: 'exit';
      readonly pid: number;
      readonly name: string;
      readonly code: number | null;
      readonly signal: string | null;
    }
  | { readonly type: 'lost'; readonly error: RunError };

/**
 * `drawn` resolves once something may have been drawn (including the pointer) or the signal fires, and rejects with
 * `desktop.lost`.
 */
export interface Change {
  readonly drawn: Promise<void>;
}

/**
 * One event of a person's pointer or keyboard. Positions are screen pixels; those outside count as the nearest inside.
 */
export type DesktopInput =
  | ({ readonly type: 'move' } & Point)
  | ({ readonly type: 'button'; readonly button: 'left' | 'middle' | 'right'; readonly down: boolean } & Point)
  /** Wheel clicks, positive = right and down; held modifiers do not apply. */
  | ({ readonly type: 'wheel'; readonly dx: number; readonly dy: number } & Point)
  /**
   * `key` as KeyboardEvent.key. A modifier stays down until its release; any other key is pressed and released by
   * `down`, and its release does nothing.
   */
  | { readonly type: 'key'; readonly key: string; readonly down: boolean }
  | { readonly type: 'text'; readonly text: string }
  /** Releases everything that is down. */
  | { readonly type: 'release' };

/**
 * A command to the browser of an image that has one on its whole screen (`web`). `open` leaves a page that is there
 * already; `run` gives a script's value, a promise's when it is settled; `drawn` resolves when changes are on the
 * screen. `ms` is how long the page may take.
 */
export type BrowserCommand =
  | { readonly open: string; readonly ms?: number }
  | { readonly run: string; readonly ms?: number }
  | { readonly drawn: true; readonly ms?: number };
export type BrowserAnswer =
  | { readonly ok: readonly { readonly value?: unknown }[] }
  /** `page`: what the command `at` met in it. `hung`: it did not answer in time. `browser`: it ended, or there is none. */
  | { readonly error: string; readonly at: number; readonly kind: 'page' | 'hung' | 'browser' };

/**
 * One running desktop. Commands run inside it as user `user` (uid 1000, HOME /home/user, DISPLAY set), never on the
 * host. Every method rejects with StudioError `desktop.lost` once the desktop is gone.
 */
export interface Desktop {
  readonly id: DesktopId;
  readonly provider: ProviderKind;
  readonly screen: Size;
  observe(): Promise<Frame>;
  /**
   * The screen for callers that need no pixels: encoded by the desktop or a thread of ours where one does that, else as
   * pixels. `cheapest`: whichever costs less.
   */
  screenshot?(how?: 'cheapest'): Promise<Screenshot>;
  /**
   * Returns a frame's buffer for the next observe(): optional, and faster. The caller must not use the frame
   * afterwards.
   */
  recycle?(f: Frame): void;
  /**
   * Input is synchronised with the X server; between press and release the desktop is allowed to go idle
   * (runtime/cluster/README.md#input). Terminal actions are refused.
   */
  perform(a: Action): Promise<void>;
  /**
   * Sends events in order, never between the parts of an action; resolves when the X server has taken them. The next
   * events may be sent earlier, so that a person over a slow link does not wait for answers. Keys that a desktop does
   * not have are left out.
   */
  input?(events: readonly DesktopInput[]): Promise<void>;
  /**
   * Begins to watch for the next change; a screen read after this resolves misses none. Costs nothing while nothing
   * changes.
   */
  changes?(signal: AbortSignal): Promise<Change>;
  settle(o?: SettleOptions): Promise<SettleReport>;
  exec(cmd: readonly string[], o?: ExecOptions): Promise<ExecResult>;
  /** Starts a program and leaves it running; resolves with its pid as soon as it has started. */
  spawn(cmd: readonly string[], o?: Pick<ExecOptions, 'cwd' | 'env'>): Promise<number>;
  /**
   * Reads a file with the rights of `user`. Rejects with ENOENT in `details.code` when the file is missing, ENOTREG
   * when it is a pipe or the like, EFBIG when it is over 128 MB.
   */
  readFile(path: string): Promise<Buffer>;
  /** Creates parent folders; `user` owns the file. */
  writeFile(path: string, data: Buffer): Promise<void>;
  onEvent(listener: (e: DesktopEvent) => void): () => void;
  /**
   * A stream to 127.0.0.1:`port` inside the desktop. It ends at once where no program listens there, and with the next
   * reset. Absent where no way leads in.
   */
  connect?(port: number): Promise<Duplex>;
  /** Resolves when its X server has answered. A screen that is read from memory does not show that it still works. */
  answers?(): Promise<void>;
  /**
   * ms so far during which its connection was cut and is being made again: calls wait meanwhile, and time limits do not
   * count them.
   */
  stalledMs?(): number;
  /**
   * Stops every program of the user until `thaw`, while commands of the verifier run; the screen can be read meanwhile.
   * One that resists is ended, or makes those commands `disturbed`.
   */
  freeze?(): Promise<void>;
  thaw?(): Promise<void>;
  /** Ends every program of the user, to make room for a command where they use up all processes or memory. */
  relieve?(): Promise<void>;
  /** Asks the browser that an image keeps open. Absent where there is none. */
  browse?(commands: readonly BrowserCommand[], o?: Pick<ExecOptions, 'signal'>): Promise<BrowserAnswer>;
  /**
   * After a call failed, or came `late` with many others: why its programs are to blame for that, or undefined when they
   * are not or nobody can tell. Takes 2 s at most and never rejects.
   */
  blame?(how?: 'late'): Promise<string | undefined>;
}

export interface DesktopSpec {
  /**
   * Starts a session bus and AT-SPI so that oracles can find widgets. Costs CPU at every reset, so training desktops
   * leave it off.
   */
  readonly a11y?: boolean;
  /** Runs at a lower priority than the rest of the machine, where control groups can be made (root on Linux). */
  readonly background?: boolean;
  readonly screen: Size;
  /** Default none. Containers of Docker alone can have one. */
  readonly network?: 'none' | 'internet';
  readonly memoryMb: number;
  readonly pids: number;
  /** Size limit of HOME and of each temporary folder, MB; default: the provider's. */
  readonly diskMb?: number | undefined;
  readonly cpus?: number;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface ProviderStatus {
  readonly provider: ProviderKind;
  readonly ok: boolean;
  readonly detail: string;
  readonly capacity?: number;
  readonly problem?: RunError;
}

export interface DesktopProvider {
  readonly name: ProviderKind;
  /** Desktops that it can start at the same time; default: as few as suits one machine. */
  readonly startsAtOnce?: number;
  /** False where desktops do not look alike after a reset, so that their first frames are not compared. */
  readonly sameFirstFrame?: boolean;
  /** Whether it works here; a problem comes with its remedy. Checks the machine or engine each time. */
  status(): Promise<ProviderStatus>;
  create(spec: DesktopSpec, signal?: AbortSignal): Promise<Desktop>;
  /**
   * Brings the desktop back to its first frame; returns the same object when that was possible in place. Rejects when
   * it cannot be reset (destroy it then).
   */
  reset(d: Desktop, signal?: AbortSignal): Promise<Desktop>;
  destroy(d: Desktop): Promise<void>;
  /** Removes orphaned desktops of earlier runtimes; returns how many. */
  reap(): Promise<number>;
  /** Destroys everything that this provider created. */
  dispose(): Promise<void>;
}

/** A leased desktop, fresh from a reset. */
export interface Lease {
  readonly desktop: Desktop;
  /** ms from the start of the reset until the first frame was right. */
  readonly resetMs: number;
  /**
   * Releases the desktop; with `broken` it is replaced. `fault`: the desktop's own fault that ended its use; after several
   * in a row its place is quarantined. Idempotent.
   */
  release(o?: { broken?: boolean; fault?: RunError }): void;
}
export type DesktopState = 'starting' | 'ready' | 'leased' | 'resetting' | 'broken' | 'stopped';
export interface PoolStatus {
  readonly size: number;
  readonly desktops: readonly {
    readonly id: DesktopId;
    readonly state: DesktopState;
    readonly since: number;
    readonly resets: number;
    readonly replaced: number;
    /**
     * Present while the desktop's place rests because it failed too often in a row: its newest failures, oldest first.
     */
    readonly quarantined?: readonly { readonly at: number; readonly error: RunError }[];
  }[];
  readonly waiting: number;
}
export type PoolEvent =
  | { readonly type: 'state'; readonly desktop: DesktopId; readonly state: DesktopState; readonly at: number }
  | { readonly type: 'replaced'; readonly desktop: DesktopId; readonly error: RunError; readonly at: number }
  | {
      readonly type: 'quarantined';
      readonly desktop: DesktopId;
      readonly log: readonly { readonly at: number; readonly error: RunError }[];
      readonly at: number;
    };

export interface DesktopPool {
  /**
   * Waits for a desktop that is reset and healthy; rejects with `cancelled` when the signal fires. First come, first
   * served.
   */
  lease(o: { signal: AbortSignal }): Promise<Lease>;
  /** Grows at once, shrinks as leases end. */
  resize(n: number): Promise<void>;
  status(): PoolStatus;
  /** One desktop of `status()`, without going over all of them; undefined when it is not there. */
  statusOf(desktop: DesktopId): PoolStatus['desktops'][number] | undefined;
  onEvent(listener: (e: PoolEvent) => void): () => void;
  /** Resolves when every desktop is gone. */
  close(): Promise<void>;
}
