/** The live page's knowledge of the desktop it watches, and its words for it. Pure. */
import type {
  DesktopRow,
  DesktopWork,
  RunEvent,
  StepView,
  TrajectoryRow,
  TrajectoryView,
} from '../../runtime/protocol/types.js';
import type { DaemonState } from '../protocol.js';
import { t } from '../ui/words.js';

export interface State {
  readonly desktop: string;
  readonly daemon: DaemonState;
  readonly row?: DesktopRow;
  /** The runtime has no such desktop: it is gone, or there never was one. */
  readonly gone: boolean;
  /** When the newest pixels were read. */
  readonly pictureAt?: number;
  /** Newest step of the rollout under way. */
  readonly step?: StepView;
  /** How the rollout ended, until the next begins. */
  readonly ended?: TrajectoryRow;
}
export type Message =
  | { readonly type: 'open'; readonly desktop: string; readonly daemon: DaemonState }
  | { readonly type: 'daemon'; readonly state: DaemonState }
  | { readonly type: 'row'; readonly row?: DesktopRow }
  | { readonly type: 'screen'; readonly at: number }
  | { readonly type: 'trajectory'; readonly view: TrajectoryView }
  | { readonly type: 'events'; readonly events: readonly RunEvent[] };

export function reduce(s: State, m: Message): State {
  switch (m.type) {
    case 'open':
      return { desktop: m.desktop, daemon: m.daemon, gone: false };
    case 'daemon':
      return { ...s, daemon: m.state };
    case 'row': {
      if (!m.row) return { ...s, row: undefined, gone: true };
      const other = m.row.rollout !== undefined && m.row.rollout !== s.row?.rollout;
      return { ...s, row: m.row, gone: false, ...(other ? { step: undefined, ended: undefined } : {}) };
    }
    case 'screen':
      return { ...s, pictureAt: Math.max(m.at, s.pictureAt ?? 0) };
    case 'trajectory':
      return m.view.row.rollout === s.row?.rollout
        ? { ...s, step: newer(s.step, m.view.steps.at(-1)), ...(m.view.live ? {} : { ended: m.view.row }) }
        : s;
    case 'events':
      return m.events.reduce((a, e): State => {
        if (e.type === 'step' && e.rollout === a.row?.rollout) return { ...a, step: newer(a.step, e.step) };
        if (e.type === 'ended' && e.row.rollout === a.row?.rollout) return { ...a, ended: e.row };
        return a;
      }, s);
  }
}
const newer = (a: StepView | undefined, b: StepView | undefined): StepView | undefined =>
  a && b && a.index > b.index ? a : (b ?? a);

const work: Readonly<Record<DesktopWork, readonly [icon: string, word: string, says: string]>> = {
  starting: ['loading', t('Starting'), t('The desktop is starting.')],
  idle: ['circle-outline', t('Idle'), t('Ready; no rollout is planned for it at the moment.')],
  resetting: ['discard', t('Reset'), t('It is being reset.')],
  setup: ['tools', t('Setup'), t('The task is prepared on it.')],
  observe: ['device-camera', t('Observe'), t('A screenshot is taken.')],
  decide: ['lightbulb', t('Decide'), t('The policy chooses the next action.')],
  act: ['play', t('Act'), t('The action is carried out.')],
  settle: ['watch', t('Settle'), t('Waiting until the screen is at rest.')],
  verify: ['checklist', t('Verify'), t('The verifier checks whether the task is done.')],
  broken: ['error', t('Lost'), t('It stopped responding and is being replaced; its rollout is retried.')],
  stopped: ['debug-stop', t('Stopped'), t('It was stopped.')],
};
export interface Words {
  readonly icon: string;
  readonly word: string;
  readonly says: string;
  /** Whether the picture does not move: it is old or missing. */
  readonly still: boolean;
}
export function stateWords(s: State): Words {
  if (s.daemon === 'reconnecting')
    return {
      icon: 'sync',
      word: t('Connection lost'),
      says: t('Reconnecting. The desktop keeps running.'),
      still: true,
    };
  if (s.daemon === 'starting' || s.daemon === 'attaching')
    return { icon: 'loading', word: t('Connecting'), says: t('Connecting to the runtime.'), still: true };
  if (s.daemon !== 'ready')
    return {
      icon: 'debug-disconnect',
      word: t('Runtime stopped'),
      says: t('Desktops exist only while the runtime is running. Start training to see one.'),
      still: true,
    };
  if (s.gone)
    return {
      icon: 'debug-stop',
      word: t('Ended'),
      says:
        s.pictureAt === undefined
          ? t('The desktop is gone: its run ended, or it was replaced.')
          : t('The desktop is gone: its run ended, or it was replaced. This is its last picture.'),
      still: true,
    };
  if (!s.row)
    return {
      icon: 'loading',
      word: t('Looking for the desktop'),
      says: t('Nothing is known about it yet.'),
      still: true,
    };
  const [icon, word, says] = work[s.row.state];
  return { icon, word, says, still: ['broken', 'stopped'].includes(s.row.state) };
}
/** "step 3 of 9": the one under way, from 1; `row.step` are done. While the verifier works, the last one. */
export function stepWords(r: DesktopRow): string {
  if (r.step === undefined) return '';
  const n = r.state === 'verify' ? r.step : Math.min(r.step + 1, r.cap ?? Infinity);
  return r.cap === undefined ? t('step {0}', n) : t('step {0} of {1}', n, r.cap);
}
export const outcomeWords = (r: TrajectoryRow): string =>
  ({
    success: t('Succeeded'),
    failure: r.truncated ? t('Failed: out of steps') : t('Failed'),
    error: t('Ended with an error; it is retried'),
    running: t('Running'),
  })[r.outcome];
