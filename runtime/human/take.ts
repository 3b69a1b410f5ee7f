import { cancelled } from '../domain/index.js';
import type { HeldRollout } from '../run/runAccess.js';
import type { SessionHost } from './controlSession.js';
import type { TakeOverSession } from './takeOver.js';

export interface Taking {
  readonly host: SessionHost;
  /** The rollout that can be taken now; throws what a person must know when there is none. */
  readonly steer: () => HeldRollout;
  /** Another rollout is on the desktop, the desktop is gone, or the run is paused or over. */
  readonly onChange: (listener: () => void) => () => void;
  /** Whether no rollout is on the desktop, and another one will be. */
  readonly between: () => boolean;
  readonly open: (host: SessionHost, r: HeldRollout) => TakeOverSession;
  readonly signal: AbortSignal;
}

/**
 * Resolves with a rollout that waits for its person. If the rollout ends before its next decision, the next one on this
 * desktop is taken instead, because rollouts are short and a person cannot aim at one. The session is not announced
 * until then.
 */
export async function takeNext(t: Taking): Promise<TakeOverSession> {
  for (;;) {
    await next(t);
    const r = t.steer();
    let there = false;
    const x = t.open(
        {
          ...t.host,
          broadcast: (s) => {
            if (there) t.host.broadcast(s);
          },
          ended: (s) => {
            if (there) t.host.ended(s);
          },
          forget: (s) => {
            if (there) t.host.forget(s);
          },
        },
        r,
      ),
      stop = (): void => {
        void x.discard();
      };
    t.signal.addEventListener('abort', stop, { once: true });
    if (t.signal.aborted) stop();
    try {
      there = await x.taken;
    } finally {
      t.signal.removeEventListener('abort', stop);
    }
    if (there) return x;
    x.close();
  }
}

/** There is a rollout, or a reason why there will be none. */
function next(t: Taking): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
        if (!t.between()) done(resolve);
      },
      gaveUp = (): void => {
        done(() => {
          reject(cancelled('Taking over'));
        });
      };
    const off = t.onChange(look),
      done = (how: () => void): void => {
        off();
        t.signal.removeEventListener('abort', gaveUp);
        how();
      };
    t.signal.addEventListener('abort', gaveUp, { once: true });
    if (t.signal.aborted) gaveUp();
    else look();
  });
}
