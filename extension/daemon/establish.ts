import type { HelloResult } from '../../runtime/protocol/requests.js';
import type { DaemonState, HostError } from '../../webview/protocol.js';
import { replaces } from './decide.js';
import { knock, sendAway, stopped, untilGone } from './handshake.js';
import { launch, type LaunchOptions } from './launcher.js';
import type { Session } from './session.js';
import { asError, DaemonError, type DaemonClientOptions } from './types.js';

/** How many daemons may come and go while one attaches. */
const mostTurns = 6;

/** A connection whose hello was answered. */
export interface Found {
  readonly session: Session;
  readonly hello: HelloResult;
  /** A run holds a daemon older than this window. */
  readonly older: boolean;
}
export interface EstablishOptions extends LaunchOptions, Pick<DaemonClientOptions, 'build' | 'client'> {
  /** Whether a daemon may be started or replaced now. */
  mayStart(): boolean;
  /** Counts a start; false: too many of late. */
  mayLaunch(): boolean;
  become(state: DaemonState, detail?: HostError): void;
  /** Throws, and closes the session, when nobody wants it any more. */
  goOn(session?: Session): void;
}

/** Makes one connection to this machine's daemon; rejects with why there is none. */
export async function establish(o: EstablishOptions): Promise<Found> {
  let session = await knock(o.storage, o.log),
    started = false;
  for (let turn = 0; turn < mostTurns; turn++) {
    o.goOn(session);
    if (!session) {
      if (!o.mayStart()) throw stopped();
      if (!o.mayLaunch())
        throw new DaemonError(
          'daemon.failed',
          'The runtime stopped 3 times within 5 minutes.',
          'Check the log, then start it again.',
        );
      o.become('starting');
      ({ session, started } = await launch(o));
      o.goOn(session);
      o.become('attaching');
    }
    const hello = await session.greet(o.build, o.client).catch((e: unknown) => asError(e)),
      newer = !started && o.mayStart() && replaces(o.build, session.record.build);
    o.goOn(session);
    if (!(hello instanceof DaemonError)) {
      if (!newer || !(await sendAway(session, o.log))) return { session, hello, older: newer };
    } else if (hello.kind === 'draining' && o.mayStart()) {
      o.become('attaching', {
        ...hello.hostError,
        message: 'The previous runtime is still shutting down.',
        remedy: 'Wait until its run has closed.',
      });
      await untilGone(session);
    } else if (!(
      hello.kind === 'connection.lost' ||
      (hello.kind === 'protocol.mismatch' && newer && (await sendAway(session, o.log)))
    )) {
      session.close();
      throw hello.kind === 'draining' ? stopped() : hello;
    }
    session = await knock(o.storage, o.log);
    started = false;
  }
  throw new DaemonError(
    'daemon.failed',
    'The runtime was replaced repeatedly while this window connected.',
    'Reload all windows so that they use the same version of the extension.',
  );
}
