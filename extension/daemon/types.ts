/** The interface between the extension host and the daemon client. Plain Node: does not depend on `vscode`. */
import type { ScreenHeader } from '../../runtime/protocol/binary.js';
import type { ErrorData } from '../../runtime/protocol/errors.js';
import type { Notifications } from '../../runtime/protocol/notifications.js';
import type { RunEventType, RunPath } from '../../runtime/protocol/types.js';
import type { Build } from '../../runtime/protocol/version.js';
import type { DaemonState, HostError } from '../../webview/protocol.js';

export type LogLevel = 'info' | 'warn' | 'error';
export type Log = (level: LogLevel, message: string) => void;

export interface DaemonClientOptions {
  /** Folder of the discovery record, the logs and the lock (VS Code's globalStorageUri); made when it is missing. */
  readonly storage: string;
  /** Absolute path of dist/runtime.js. */
  readonly runtime: string;
  /** Program that runs it; default: this process's own executable, as Node. */
  readonly node?: string;
  /** Build of the bundle `runtime`, which decides whether a daemon that is found is older. */
  readonly build: Build;
  /** Name of this client, for the daemon's log. */
  readonly client: string;
  readonly log: Log;
  /** More environment for a daemon started from here. */
  readonly env?: Readonly<Record<string, string>>;
  /** A number in [0, 1), for jitter. */
  readonly random?: () => number;
  /** ms since the epoch. */
  readonly now?: () => number;
}

/** Why a runtime elsewhere cannot be attached to; each is said in words. */
type RemoteFault =
  /** `kubectl` is not there. */
  | 'remote.program'
  /** An address, a name or an answer that cannot be used. */
  | 'remote.invalid'
  /** The cluster refuses this user. */
  | 'remote.rights'
  /** The pod, or the runtime in it, has ended. */
  | 'remote.gone'
  /** Another runtime answers, or the token was mistyped. */
  | 'remote.token'
  /** Nothing answers now; it may later. */
  | 'remote.unreachable';
export type RequestErrorKind = ErrorData['kind'] | 'daemon.failed' | 'daemon.stopped' | RemoteFault;
/** The error of a failed request, and the reason for a state of the client that is not `ready`. */
export class DaemonError extends Error {
  readonly kind: RequestErrorKind;
  readonly remedy: string;
  constructor(kind: RequestErrorKind, message: string, remedy: string) {
    super(message);
    this.name = 'DaemonError';
    this.kind = kind;
    this.remedy = remedy;
  }
  get hostError(): HostError {
    return { kind: this.kind, message: this.message, remedy: this.remedy };
  }
}
/** The thrown error, with a kind. */
export const asError = (e: unknown): DaemonError =>
  e instanceof DaemonError
    ? e
    : new DaemonError(
        'internal',
        e instanceof Error ? e.message : String(e),
        'This is a fault of DART Studio: please report it with the log.',
      );

export const lost = (): DaemonError =>
  new DaemonError(
    'connection.lost',
    'The connection to the runtime was lost.',
    'It is being restored; try again in a moment.',
  );
/** The daemon's last words. */
export interface GoingDown {
  readonly reason: 'idle' | 'drained' | 'shutdown' | 'fault';
  readonly message?: string;
}

/**
 * `daemon.older` is the one detail of a state that works: a run holds an older daemon, which is replaced when it ends.
 */
export type StateListener = (state: DaemonState, detail?: HostError) => void;
export interface EventsQuery {
  readonly run: RunPath;
  readonly sinceSeq: number;
  readonly types?: readonly RunEventType[];
  readonly rollout?: string;
}
export type EventsBatch = Pick<Notifications['events/batch'], 'events' | 'nextSeq' | 'live' | 'ended'>;
export interface WatchListener {
  /** Also after a reconnect; a whole screen follows. */
  start(screen: { readonly width: number; readonly height: number }): void;
  patch(header: ScreenHeader, png: Uint8Array): void;
  /** Called when nothing follows. */
  end(error?: HostError): void;
}
