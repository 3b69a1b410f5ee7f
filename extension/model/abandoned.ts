/**
 * Finds control sessions whose page is gone. Right after a reload a page may be on its way back, and takes its session
 * again by itself: nothing is said while VS Code restores a page that the person looks at.
 */
import type { ControlSessionId, ControlState } from '../../runtime/protocol/types.js';
import { Disposables, type Ends } from '../dispose.js';
import type { ControlSessions } from './controlSessions.js';

export interface Pages {
  /** Whether a page of this session is open. */
  readonly show: (session: ControlSessionId) => boolean;
  /** Whether a page that can show one is being restored in front of the person. */
  readonly restoring: () => boolean;
  /** Called when either may have changed. */
  readonly onChange: (l: () => void) => () => void;
}

/** A page that is not restored by then is not waited for: the session lasts a minute (runtime/human/controlSession.ts). */
const MOST_MS = 15_000;

/** Calls `gone` once for each session of this window that is abandoned and that no restored page takes again. */
export function followAbandoned(
  sessions: Pick<ControlSessions, 'get' | 'onAbandoned' | 'onChange'>,
  pages: Pages,
  gone: (s: ControlState) => void,
): Ends {
  const own = new Disposables();
  own.defer(
    sessions.onAbandoned(({ session }) => {
      let late = false;
      const waiting = own.add(new Disposables()),
        look = (): void => {
          if (waiting.ended) return;
          const now = sessions.get(session),
            abandoned = now?.abandonedAt !== undefined && !pages.show(session);
          if (abandoned && pages.restoring() && !late) return;
          own.drop(waiting);
          if (abandoned) gone(now);
        };
      const timer = setTimeout(() => {
        late = true;
        look();
      }, MOST_MS);
      waiting.defer(() => clearTimeout(timer));
      waiting.defer(pages.onChange(look));
      waiting.defer(sessions.onChange(look));
      look();
    }),
  );
  return own;
}
