/**
 * The banners across the page when something needs attention: the runtime's state, a run's error, a part that failed.
 * Pure choice, plain view.
 */
import type { JournalDamage } from '../../runtime/protocol/types.js';
import type { DaemonState, HostError } from '../protocol.js';
import { t, whole } from '../ui/words.js';
import { evaluationOnly, stateOf, type Model } from './model.js';

export interface Banner {
  readonly key: string;
  readonly icon: string;
  readonly tone: 'info' | 'warning' | 'error';
  readonly words: string;
  readonly actions: readonly {
    readonly label: string;
    readonly command: 'startRuntime' | 'showLog' | 'resume' | 'startTraining';
  }[];
}

const daemonWords: Readonly<Partial<Record<DaemonState, Omit<Banner, 'key'>>>> = {
  stopped: {
    icon: 'debug-disconnect',
    tone: 'warning',
    words: t('The runtime is stopped, so nothing here is live. Start it to see the run and to act on it.'),
    actions: [{ label: t('Start Runtime'), command: 'startRuntime' }],
  },
  starting: { icon: 'loading', tone: 'info', words: t('The runtime is starting…'), actions: [] },
  attaching: { icon: 'loading', tone: 'info', words: t('Connecting to the runtime…'), actions: [] },
  reconnecting: {
    icon: 'sync',
    tone: 'warning',
    words: t(
      'The connection to the runtime was lost; reconnecting. If the runtime is still running, this page catches up; if it died, the run can be resumed and nothing that was accepted is lost.',
    ),
    actions: [{ label: t('Show Log'), command: 'showLog' }],
  },
  incompatible: {
    icon: 'warning',
    tone: 'error',
    words: t('A runtime of another version of DART Studio is running. It is replaced when its run ends.'),
    actions: [{ label: t('Show Log'), command: 'showLog' }],
  },
  failed: {
    icon: 'error',
    tone: 'error',
    words: t('The runtime could not be started.'),
    actions: [
      { label: t('Try Again'), command: 'startRuntime' },
      { label: t('Show Log'), command: 'showLog' },
    ],
  },
};

export function bannersOf(m: Model): readonly Banner[] {
  const out: (Banner | undefined)[] = [daemonBanner(m), errorBanner(m), stateBanner(m)];
  if (m.detail && evaluationOnly(m))
    out.push({
      key: 'evaluation',
      icon: 'beaker',
      tone: 'info',
      words: t(
        'This run was only evaluated. It has no training rollouts, so throughput, curation and the ledger are left out.',
      ),
      actions: [],
    });
  if (m.damage) out.push(damageBanner(m.damage));
  if (m.detail?.tasksUnread) out.push(tasksBanner(m.detail.tasksUnread));
  for (const words of new Set([...(m.warning ? [m.warning] : []), ...m.lacks.values()]))
    out.push({
      key: `warning ${words}`,
      icon: 'warning',
      tone: 'warning',
      words,
      actions: [{ label: t('Show Log'), command: 'showLog' }],
    });
  return out.filter((b) => b !== undefined);
}
function tasksBanner(e: Pick<HostError, 'message' | 'remedy'>): Banner {
  return {
    key: 'tasks',
    icon: 'warning',
    tone: 'warning',
    words: `${t('The tasks of this run cannot be read, so they have no names here.')} ${e.message} ${e.remedy}`,
    actions: [{ label: t('Show Log'), command: 'showLog' }],
  };
}
function damageBanner(d: JournalDamage): Banner {
  return {
    key: 'damage',
    icon: 'warning',
    tone: 'warning',
    words:
      d.stretches === 1
        ? t(
            '{0} bytes of this run’s journal are damaged. Their contents are missing, so counts and curves may be wrong. Restore the run folder from a copy if you have one.',
            whole(d.bytes),
          )
        : t(
            '{0} bytes of this run’s journal are damaged, in {1} places. Their contents are missing, so counts and curves may be wrong. Restore the run folder from a copy if you have one.',
            whole(d.bytes),
            whole(d.stretches),
          ),
    actions: [{ label: t('Show Log'), command: 'showLog' }],
  };
}
function daemonBanner(m: Model): Banner | undefined {
  const d = daemonWords[m.daemon];
  return (
    d && {
      key: `daemon ${m.daemon}`,
      ...d,
      words: m.daemonError ? `${d.words} ${m.daemonError.message} ${m.daemonError.remedy}`.trim() : d.words,
    }
  );
}
function errorBanner(m: Model): Banner | undefined {
  const state = stateOf(m),
    error = m.status?.error ?? m.detail?.summary.damaged;
  if (error)
    return {
      key: `error ${error.message}`,
      icon: 'error',
      tone: 'error',
      words: `${error.message} ${error.remedy}`,
      actions:
        state === 'failed'
          ? [
              { label: t('Resume Run…'), command: 'resume' },
              { label: t('Show Log'), command: 'showLog' },
            ]
          : [{ label: t('Show Log'), command: 'showLog' }],
    };
  if (state === 'failed')
    return {
      key: 'failed',
      icon: 'error',
      tone: 'error',
      words: t('The run failed. The log says why; once the cause is fixed, resume it from its last checkpoint.'),
      actions: [
        { label: t('Show Log'), command: 'showLog' },
        { label: t('Resume Run…'), command: 'resume' },
      ],
    };
  return undefined;
}
/** Why nothing moves in a run that has not failed. */
function stateBanner(m: Model): Banner | undefined {
  const state = stateOf(m);
  if (state === 'interrupted')
    return {
      key: 'interrupted',
      icon: 'debug-disconnect',
      tone: 'warning',
      words: t(
        'The runtime that ran this died. Nothing that was accepted is lost: resume it to continue from its last checkpoint.',
      ),
      actions: [{ label: t('Resume Run…'), command: 'resume' }],
    };
  if (state === 'elsewhere')
    return {
      key: 'elsewhere',
      icon: 'terminal',
      tone: 'info',
      words: t('Another process writes this run. You can follow it here, and control it only where it was started.'),
      actions: [],
    };
  return undefined;
}
