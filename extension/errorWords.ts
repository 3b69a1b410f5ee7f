/** Errors as text: what happened, what to do, and the buttons that do it. Pure; errors.ts shows them. */
import type { HostError } from '../webview/protocol.js';
import { commands, type CommandId } from './ids.js';
import { t } from './words.js';

export interface ActionButton {
  readonly title: string;
  readonly command: CommandId | 'workbench.trust.manage';
}
export interface Explained {
  readonly kind: string;
  /** Equal for equal errors, whoever reports them. */
  readonly fault: string;
  readonly message: string;
  readonly buttons: readonly ActionButton[];
  /** Whether nothing is shown, because the user asked for it. */
  readonly silent: boolean;
  /** Worth a stack in the log: a fault of ours. */
  readonly ours: boolean;
}

/** Any thrown thing as kind, message and remedy. Daemon errors carry theirs; JSON-RPC ones in `data`. */
export function wireError(e: unknown): HostError {
  if (e instanceof Error) {
    const x = e as Error & {
      kind?: unknown;
      remedy?: unknown;
      code?: unknown;
      data?: { kind?: unknown; remedy?: unknown };
    };
    const kind = x.kind ?? x.data?.kind,
      remedy = x.remedy ?? x.data?.remedy;
    if (typeof kind === 'string') return { kind, message: e.message, remedy: typeof remedy === 'string' ? remedy : '' };
    if (e.name === 'AbortError' || e.name === 'Canceled' || e.name === 'CancellationError')
      return { kind: 'cancelled', message: t('Cancelled.'), remedy: '' };
    const io = typeof x.code === 'string' ? ioKinds.get(x.code) : undefined;
    if (io)
      return { kind: io, message: e.message, remedy: t('Check that the file exists and can be read and written.') };
    return {
      kind: 'internal',
      message: e.message,
      remedy: t('This is a fault of DART Studio: please report it with Collect Diagnostics.'),
    };
  }
  if (isHostError(e)) return e;
  return {
    kind: 'internal',
    message: String(e),
    remedy: t('This is a fault of DART Studio: please report it with Collect Diagnostics.'),
  };
}
const isHostError = (e: unknown): e is HostError =>
  typeof e === 'object' &&
  e !== null &&
  (['kind', 'message', 'remedy'] as const).every((k) => typeof (e as Partial<HostError>)[k] === 'string');
const ioKinds: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ENOENT: 'not.found',
    FileNotFound: 'not.found',
    EACCES: 'store.io',
    EPERM: 'store.io',
    ENOSPC: 'store.io',
    EROFS: 'store.io',
    NoPermissions: 'store.io',
  }),
);

/** `doing` completes "DART Studio could not …"; without it the fault's own words are enough. */
export function explain(e: unknown, doing?: string): Explained {
  const w = wireError(e);
  const sentence = (s: string): string => {
    const x = s.trim();
    return x === '' || /[.!?…]$/.test(x) ? x : `${x}.`;
  };
  return {
    kind: w.kind,
    fault: `${w.kind} ${w.message}`,
    silent: w.kind === 'cancelled',
    ours: w.kind === 'internal',
    buttons: buttonsFor(w.kind),
    message: [
      doing === undefined ? '' : t('DART Studio could not {0}:', doing),
      sentence(w.message),
      sentence(w.remedy),
    ]
      .filter((x) => x !== '')
      .join(' '),
  };
}

const showLog = (): ActionButton => ({ title: t('Show Log'), command: commands.showLog });
export function buttonsFor(kind: string): ActionButton[] {
  switch (kind) {
    case 'desktop.unavailable':
      return [
        { title: t('Check This Machine'), command: commands.checkMachine },
        { title: t('Docker Settings'), command: commands.openSettings },
        showLog(),
      ];
    case 'desktop.image':
      return [{ title: t('Build Desktop Image'), command: commands.buildDesktop }, showLog()];
    case 'desktop.start':
    case 'desktop.lost':
    case 'engine.unavailable':
    case 'policy.remote':
    case 'trainer.remote':
      return [{ title: t('Check This Machine'), command: commands.checkMachine }, showLog()];
    case 'busy':
    case 'run.busy':
      return [
        { title: t('Open Dashboard'), command: commands.openDashboard },
        { title: t('Stop Training'), command: commands.stopTraining },
      ];
    case 'connection.lost':
    case 'daemon.stopped':
      return [{ title: t('Start Runtime'), command: commands.startRuntime }, showLog()];
    case 'daemon.failed':
      return [
        { title: t('Retry'), command: commands.startRuntime },
        showLog(),
        { title: t('Show Runtime Log'), command: commands.showRuntimeLog },
      ];
    case 'protocol.mismatch':
    case 'draining':
      return [{ title: t('Restart Runtime'), command: commands.restartRuntime }, showLog()];
    case 'internal':
      return [showLog(), { title: t('Collect Diagnostics'), command: commands.collectDiagnostics }];
    case 'untrusted':
      return [{ title: t('Manage Workspace Trust'), command: 'workbench.trust.manage' }];
    case 'attached':
    case 'remote.gone':
      return [{ title: t('Detach from Runtime'), command: commands.detachRuntime }];
    case 'remote.program':
      return [{ title: t('Settings'), command: commands.openSettings }, showLog()];
    case 'virtual':
    case 'not.found':
    case 'task.invalid':
    case 'task.unsupported':
    case 'cancelled':
      return [];
    default:
      return [showLog()];
  }
}
